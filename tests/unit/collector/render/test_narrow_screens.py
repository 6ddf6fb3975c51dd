"""Screens on narrow terminals."""

import pytest
from fakes.made_store import IDENTITY, START_NS
from tfprof.collector.query.diffing import Diff, Difference, Run
from tfprof.collector.render.diff_text import lines
from tfprof.collector.render.top_text import fitted
from tfprof.collector.store.catalog import JobInfo
from tfprof.collector.summaries.comparison import Change, Comparison
from tfprof.collector.summaries.jobs import job_row

PARTS = ["like '模型'", "2 running"]
CHANGE = Change(1e6, 2e6, 2.0, 2.0, None, None, None)
ROW = job_row(JobInfo(0x7F3A << 48, "exited", IDENTITY), "7f3a", START_NS)


def run_with(others_cores: float) -> Run:
    """Return a run of one job, in which others used so many CPUs."""
    return Run(None, ROW, 1e6, (), {}, others_cores, 2)


@pytest.mark.parametrize("width", [60, 80])
def test_the_lines_of_a_comparison_are_no_wider_than_the_terminal(width: int) -> None:
    shapes = ("32x28x28x1 " * 4, "48x28x28x1 " * 4)
    differences = [Difference("output of IteratorGetNext in the first step", *shapes)]
    result = Diff([run_with(0.1)], [run_with(1.9)], differences, CHANGE, Comparison(1.5, {}), {}, {})
    text = list(lines(result, "run", width))
    assert max(map(len, text)) <= width
    words = " ".join(text).split()
    assert words[:3] + words[-2:] == ["2.0", "times", "as", "not", "include"]
    assert "others used 1.90 of 2 CPUs" in " ".join(words)


@pytest.mark.parametrize(
    ("width", "line"),
    [(None, "like '模型' · 2 running"), (23, "like '模型' · 2 running"), (22, "like '模型'"), (9, "like '模")],
)
def test_the_line_above_the_jobs_is_cut_by_cells(width: int | None, line: str) -> None:
    assert fitted(PARTS, width) == line
