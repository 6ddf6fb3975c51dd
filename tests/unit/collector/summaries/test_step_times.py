"""Step times of each kind, and the median step of the report."""

from dataclasses import replace

import pytest
from fakes.made_store import MS, rows, span
from tfprof.collector.store.catalog import JobInfo
from tfprof.collector.summaries.jobs import job_row
from tfprof.collector.summaries.step_times import median_step, step_times_of
from tfprof.formats import layout

FUNCTIONS = {1: "train_step", 2: "eval_step"}
ROW = job_row(JobInfo(uid=1), "0001", 0)


def test_the_median_step_covers_all_calls_of_the_kind() -> None:
    spans = [span(layout.TRAIN, number, number, 1, key=1) for number in range(1, 8)]
    spans += [span(layout.TRAIN, number, number, 99, key=2) for number in range(8, 12)]
    row = replace(ROW, step_kind="train")
    times = median_step(row, step_times_of(row, rows("spans", spans), {}), ["train"])
    assert times is not None
    assert (times.kind, times.spread.p50_ns, times.count) == ("train", MS, 11)


@pytest.mark.parametrize(
    ("kinds", "name"),
    [(["function:train_step"], "function:train_step"), ([], "function:eval_step"), (["run"], "function:eval_step")],
)
def test_the_median_step_is_of_the_function_whose_ops_are_shown(kinds: list[str], name: str) -> None:
    spans = [span(layout.FUNCTION, number, number, 9 if key == 2 else 1, key=key) for number, key in enumerate((1, 2))]
    row = replace(ROW, step_kind="function")
    times = median_step(row, step_times_of(row, rows("spans", spans), FUNCTIONS), kinds)
    assert times is not None
    assert times.kind == name


def test_there_is_no_median_step_if_every_step_was_traced() -> None:
    spans = rows("spans", [span(layout.TRAIN, 1, 1, 1, flags=layout.FLAG_TRACED), span(layout.RUN, 2, 2, 1)])
    row = replace(ROW, step_kind="train")
    assert median_step(row, step_times_of(row, spans, {}), ["train"]) is None
