"""Wrapped lines keep a number and its unit together."""

import pytest
from tfprof.collector.render.cells import cells
from tfprof.collector.render.wrapping import wrapped


@pytest.mark.parametrize("amount", ["61 %", "1.77 ms", "390 µs", "12.0 s", "598 MB", "20 B"])
def test_a_number_and_its_unit_stay_on_one_line(amount: str) -> None:
    for width in range(40, 60):
        lines = wrapped(f"moderately input-bound: something is {amount} of the time", width)
        assert sum(line.count(amount) for line in lines) == 1
        assert max(map(len, lines)) <= width


@pytest.mark.parametrize("word", ["模型训练.py", "e\u0301tude.py", "模型" * 60, "x" * 200])
@pytest.mark.parametrize("width", [40, 41, 80])
def test_lines_fit_in_cells(word: str, width: int) -> None:
    text = f"the job {word} of host 机器学习 is slower: " * 5
    lines = wrapped(text, width)
    assert max(map(cells, lines)) <= width
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(cells(line) >= width - 20 for line in lines[:-1])


def test_a_long_word_begins_in_the_line() -> None:
    assert wrapped("file " + "x" * 50, 40) == ["file " + "x" * 35, "  " + "x" * 15]


def test_without_a_width_there_is_one_line() -> None:
    assert wrapped("a b " * 40, None) == ["a b " * 40]
    assert wrapped("", None) == wrapped("", 80) == []


def test_lines_are_indented() -> None:
    assert wrapped("0123456789 " * 5, 40, "    ", "- ") == [
        "- 0123456789 0123456789 0123456789",
        "    0123456789 0123456789",
    ]
