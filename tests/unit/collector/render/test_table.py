"""Plain text tables."""

from tfprof.collector.render.table import Column, render
from tfprof.collector.text import clean


def test_columns_are_as_wide_as_their_widest_cell_and_nothing_trails() -> None:
    assert render([Column("A"), Column("N", right=True), Column("")], [["long name", "1", ""], ["b", "22", "x"]]) == [
        "A           N",
        "long name   1",
        "b          22  x",
    ]


def test_columns_that_may_be_cut_are_cut_until_the_table_fits() -> None:
    lines = render([Column("NAME", least=4), Column("N")], [["abcdefghij", "1234"]], width=12)
    assert lines == ["NAME    N", "a…ghij  1234"]


def test_a_column_is_never_cut_below_its_least_width_nor_one_that_has_none() -> None:
    assert render([Column("", least=4), Column("")], [["abcdefghij", "123456"]], width=3) == ["a…ij  123456"]


def test_columns_that_can_be_spared_are_left_out_from_the_highest_on_before_one_is_shortened_too_far() -> None:
    columns = [Column("NAME", least=4, fair=8), Column("A", spare=1), Column("B", spare=2), Column("C")]
    row = ["abcdefghij", "aaaa", "bbbb", "cc"]
    assert render(columns, [row], width=26) == ["NAME        A     B     C", "abcdefghij  aaaa  bbbb  cc"]
    told = {width: render(columns, [row], width=width)[1] for width in (24, 23, 14, 13, 8)}
    assert told == {
        24: "ab…fghij  aaaa  bbbb  cc",
        23: "abcdefghij  aaaa  cc",
        14: "a…ij  aaaa  cc",
        13: "ab…efghij  cc",
        8: "a…ij  cc",
    }


def test_a_table_without_headings_has_no_heading_line() -> None:
    assert render([Column(""), Column("")], [["a", "b"]], indent="  ") == ["  a  b"]


def test_what_would_move_a_terminal_is_replaced() -> None:
    assert clean("a\x1b[31mb\nc\u202ed\udc80") == "a?[31mb?c?d?"
    assert render([Column("")], [["\x1b]0;title\x07"]]) == ["?]0;title?"]
