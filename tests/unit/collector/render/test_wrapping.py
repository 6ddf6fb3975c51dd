"""Wrapped lines keep a number and its unit together."""

import pytest
from tfprof.collector.render.wrapping import wrapped


@pytest.mark.parametrize("amount", ["61 %", "1.77 ms", "390 µs", "12.0 s", "598 MB", "20 B"])
def test_a_number_and_its_unit_stay_on_one_line(amount: str) -> None:
    for width in range(40, 60):
        lines = wrapped(f"moderately input-bound: something is {amount} of the time", width)
        assert sum(line.count(amount) for line in lines) == 1
        assert max(map(len, lines)) <= width


def test_without_a_width_there_is_one_line() -> None:
    assert wrapped("a b " * 40, None) == ["a b " * 40]
    assert wrapped("", None) == wrapped("", 80) == []


def test_lines_are_indented() -> None:
    assert wrapped("0123456789 " * 5, 40, "    ", "- ") == [
        "- 0123456789 0123456789 0123456789",
        "    0123456789 0123456789",
    ]
