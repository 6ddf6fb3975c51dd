"""Screens on narrow terminals."""

import pytest
from tfprof.collector.render.diff_text import DiffParts, lines
from tfprof.collector.summaries.comparison import Change

CHANGE = Change(1e6, 2e6, 2.0, 2.0, None, None, None)


@pytest.mark.parametrize("width", [60, 80])
def test_the_lines_of_a_comparison_are_no_wider_than_the_terminal(width: int) -> None:
    differences = [("output of IteratorGetNext in the first step", "32x28x28x1 " * 4, "48x28x28x1 " * 4)]
    parts = DiffParts([], CHANGE, differences, 1.5, [], "the host was busy: others used 1.9 of 2 cores " * 2, (1, 1))
    text = list(lines(parts, width))
    assert max(map(len, text)) <= width
    words = " ".join(text).split()
    assert words[:3] + words[-2:] == ["2.0", "times", "as", "not", "include"]
