"""Plain text tables."""

from tfprof.collector.render.table import Column, render


def test_columns_are_as_wide_as_their_widest_cell_without_trailing_blanks() -> None:
    assert render([Column("A"), Column("N", right=True), Column("")], [["long name", "1", ""], ["b", "22", "x"]]) == [
        "A           N",
        "long name   1",
        "b          22  x",
    ]


def test_columns_are_aligned_after_wide_characters_and_combining_marks() -> None:
    names = ["模型训练.py", "🚀.py", "e\u0301.py", "b.py"]
    lines = render([Column("NAME"), Column("N", right=True)], [[name, "1"] for name in names])
    assert lines == [
        "NAME         N",
        "模型训练.py  1",
        "🚀.py        1",
        "e\u0301.py         1",
        "b.py         1",
    ]
    short_lines = render([Column("NAME", min_width=4), Column("N")], [[name, "1"] for name in names], width=11)
    assert short_lines == ["NAME      N", "模…练.py  1", "🚀.py     1", "e\u0301.py      1", "b.py      1"]


def test_columns_with_a_minimum_are_shortened_until_the_table_fits() -> None:
    lines = render([Column("NAME", min_width=4), Column("N")], [["abcdefghij", "1234"]], width=12)
    assert lines == ["NAME    N", "a…ghij  1234"]


def test_columns_are_not_shortened_below_their_minimum() -> None:
    assert render([Column("", min_width=4), Column("")], [["abcdefghij", "123456"]], width=3) == ["a…ij  123456"]


def test_columns_with_a_priority_are_dropped_before_others_get_too_short() -> None:
    columns = [
        Column("NAME", min_width=4, preferred_width=8),
        Column("A", drop_priority=1),
        Column("B", drop_priority=2),
        Column("C"),
    ]
    row = ["abcdefghij", "aaaa", "bbbb", "cc"]
    assert render(columns, [row], width=26) == ["NAME        A     B     C", "abcdefghij  aaaa  bbbb  cc"]
    row_by_width = {width: render(columns, [row], width=width)[1] for width in (24, 23, 14, 13, 8)}
    assert row_by_width == {
        24: "ab…fghij  aaaa  bbbb  cc",
        23: "abcdefghij  aaaa  cc",
        14: "a…ij  aaaa  cc",
        13: "ab…efghij  cc",
        8: "a…ij  cc",
    }


def test_a_table_without_headings_has_no_heading_line() -> None:
    assert render([Column(""), Column("")], [["a", "b"]], indent="  ") == ["  a  b"]
