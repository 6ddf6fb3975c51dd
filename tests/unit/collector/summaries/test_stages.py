"""The stages of a job and their times."""

from dataclasses import replace

import pytest
from fakes.made_store import IDENTITY, MS, SECOND, START_NS, rows, span
from tfprof.collector.store.catalog import JobInfo
from tfprof.collector.summaries.jobs import JobRow, job_row
from tfprof.collector.summaries.spans import span_tree
from tfprof.collector.summaries.stages import stages
from tfprof.formats import layout


def row(state: str = "exited", seconds: int = 60) -> JobRow:
    """Return the row of a job that started at START_NS and ended some seconds later."""
    info = JobInfo(1, state, IDENTITY, {"counts": {"batch": 1}}, {"t_ns": START_NS + seconds * SECOND})
    return job_row(info, "0001", START_NS + seconds * SECOND)


SPANS = rows(
    "spans",
    [
        span(layout.FIT, 1, 5_000, 20_000),
        span(layout.EPOCH, 1, 5_000, 10_000),
        span(layout.EPOCH, 2, 15_000, 10_000),
        span(layout.BATCH, 1, 5_000, 9_000, parent=2),
        span(layout.EVALUATE, 1, 30_000, 3_000),
        span(layout.EVALUATE, 2, 35_000, 4_000),
    ],
)


def test_stages_are_start_phases_and_end() -> None:
    result = stages(row(), span_tree(SPANS, live=False), SPANS, START_NS)
    assert [(stage.name, stage.count, stage.total_ns // MS, stage.running) for stage in result] == [
        ("starting", 1, 5_000, False),
        ("fit", 1, 20_000, False),
        ("evaluate", 2, 7_000, False),
        ("ending", 1, 21_000, False),
    ]


def test_a_running_fit_has_the_time_of_its_epochs_so_far() -> None:
    open_fit = rows("spans", [span(layout.EPOCH, 1, 5_000, 10_000), span(layout.BATCH, 1, 15_000, 2_000, parent=2)])
    result = stages(row("running", 20), span_tree(open_fit, live=True), open_fit, START_NS + 20 * SECOND)
    assert [(stage.name, stage.total_ns // MS, stage.running) for stage in result] == [
        ("starting", 5_000, False),
        ("fit", 12_000, True),
        ("no step since", 3_000, True),
    ]


@pytest.mark.parametrize("state", ["running", "exited"])
def test_a_job_without_steps_has_only_the_starting_stage(state: str) -> None:
    no_spans = SPANS.slice(0, 0)
    job = replace(row(state, 7), phase="starting" if state == "running" else "ended")
    (only_stage,) = stages(job, [], no_spans, START_NS + 7 * SECOND)
    assert (only_stage.name, only_stage.total_ns, only_stage.running) == ("starting", 7 * SECOND, state == "running")
