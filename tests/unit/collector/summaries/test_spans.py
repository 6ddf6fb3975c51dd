"""The tree of a job's spans, and the stages of the job."""

from dataclasses import replace

import pytest
from fakes.made_store import IDENTITY, MS, SECOND, START_NS, rows, span
from tfprof.collector.store.catalog import JobInfo
from tfprof.collector.summaries.jobs import JobRow, job_row
from tfprof.collector.summaries.spans import SpanNode, span_tree, stages
from tfprof.formats import layout


def lines(tree: list[SpanNode]) -> list[tuple[int, str, str, int, int]]:
    """Return depth, kind, label, number of spans and total time (ms) of each line of the tree."""
    return [(node.depth, node.kind, node.label, node.count, node.total_ns // MS) for node in tree]


def fit(ordinal: int, start: float, epochs: int) -> list[dict[str, int]]:
    """Return a fit with epochs of 100 ms, each with four batches of 20 ms."""
    spans = [span(layout.FIT, ordinal, start, 100 * epochs)]
    for epoch in range(epochs):
        number, at = 10 * ordinal + epoch, start + 100 * epoch
        spans.append(span(layout.EPOCH, number, at, 100))
        spans += [span(layout.BATCH, 4 * number + n, at + 20 * n, 20, parent=number) for n in range(4)]
    return spans


def test_batches_are_below_epochs_and_epochs_below_fits() -> None:
    tree = span_tree(rows("spans", [*fit(1, 0, 2), *fit(2, 500, 1)]), live=False)
    assert lines(tree) == [
        (0, "fit", "1", 1, 200),
        (1, "epoch", "10", 1, 100),
        (2, "batch", "", 4, 80),
        (1, "epoch", "11", 1, 100),
        (2, "batch", "", 4, 80),
        (0, "fit", "2", 1, 100),
        (1, "epoch", "20", 1, 100),
        (2, "batch", "", 4, 80),
    ]
    assert tree[2].mean_ns == 20 * MS


def test_running_spans_enclose_ended_ones() -> None:
    spans = [row for row in fit(1, 0, 2) if row["kind"] != layout.FIT and row["ordinal"] != 11]
    tree = span_tree(rows("spans", spans), live=True)
    assert [(node.kind, node.label, node.running) for node in tree] == [
        ("fit", "", True),
        ("epoch", "10", False),
        ("batch", "", False),
        ("epoch", "11", True),
        ("batch", "", False),
    ]
    assert span_tree(rows("spans", spans), live=False)[0].label == "unfinished"
    assert tree[0].mean_ns is None


def test_batches_outside_of_an_epoch_are_separate() -> None:
    tree = span_tree(rows("spans", [span(layout.BATCH, 1, 0, 5)]), live=False)
    assert lines(tree) == [(0, "batch", "outside of an epoch", 1, 5)]


def test_session_runs_have_one_line_per_key_the_longest_first() -> None:
    spans = [span(layout.RUN, 1, 0, 1, key=1 << 20), span(layout.RUN, 2, 1, 9, key=1 << 24, count=3)]
    assert lines(span_tree(rows("spans", spans), live=False)) == [
        (0, "run", "1 fetch", 3, 9),
        (0, "run", "1 target", 1, 1),
    ]


def test_steps_of_an_evaluation_are_below_it() -> None:
    spans = [span(layout.EVALUATE, 1, 0, 10), span(layout.TEST_BATCH, 1, 0, 4), span(layout.TEST_BATCH, 2, 4, 4)]
    assert lines(span_tree(rows("spans", spans), live=False)) == [
        (0, "evaluate", "", 1, 10),
        (1, "test_batch", "", 2, 8),
    ]


@pytest.mark.parametrize("kind", sorted(set(layout.KINDS) - {layout.ACTIVITY}))
def test_a_span_of_each_kind_has_a_line(kind: int) -> None:
    tree = span_tree(rows("spans", [span(kind, 1, 0, 5)]), live=True)
    assert (tree[-1].kind, tree[-1].total_ns) == (layout.SPAN_NAMES[kind], 5 * MS)


def test_without_spans_there_are_no_lines() -> None:
    assert span_tree(rows("spans", []), live=True) == []


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


def test_a_job_starts_until_the_first_step_that_was_timed() -> None:
    sampled = span(layout.RUN, 2, 200, 9_000, count=9, flags=layout.FLAG_SAMPLED)
    spans = rows("spans", [span(layout.RUN, 1, 5_000, 1_000), sampled])
    assert stages(row(), span_tree(spans, live=False), spans, START_NS)[0].total_ns == 5_000 * MS


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
