"""One row for each job."""

from dataclasses import replace

import pytest
from fakes.made_store import IDENTITY, SECOND, START_NS
from tfprof.collector.store.catalog import JobInfo
from tfprof.collector.summaries.jobs import cost, functions_of, job_row, job_rows, over_budget, short_ids

COUNTERS = {
    "traced": 3,
    "dropped_records": 2,
    "dropped_spans": 1,
    "self_ns": 10,
    "extra_ns": 100,
    "step_ns": 11_100,
    "counts": {"run": 7, "batch": 5, "epoch": 2},
}


def test_ids_are_as_short_as_possible_with_at_least_four_digits() -> None:
    assert short_ids(["7f3a000000000000", "7f3b000000000000", "12340000000000aa", "12340000000000ab"]) == {
        "7f3a000000000000": "7f3a",
        "7f3b000000000000": "7f3b",
        "12340000000000aa": "12340000000000aa",
        "12340000000000ab": "12340000000000ab",
    }


def test_a_row_is_built_from_identity_and_last_words() -> None:
    info = JobInfo(
        0x7F3A << 48, "exited", IDENTITY, COUNTERS, {"t_ns": START_NS + 5 * SECOND, "status": 3, "traced": 4}
    )
    (row,) = job_rows([info], START_NS + 99 * SECOND)
    assert (row.id, row.name, row.pid, row.framework_version) == ("7f3a", "train.py", 4711, "2.21.0")
    assert (row.steps, row.step_kind, row.epochs, row.traced, row.lost) == (5, "batch", 2, 4, 3)
    assert (row.state, row.status, row.duration_ns, row.ended_ns) == ("exited", 3, 5 * SECOND, START_NS + 5 * SECOND)
    assert row.cost == pytest.approx(0.01)


def test_a_running_job_has_run_until_now() -> None:
    (row,) = job_rows([JobInfo(1, "running", IDENTITY, COUNTERS)], START_NS + 9 * SECOND)
    assert (row.ended_ns, row.duration_ns) == (None, 9 * SECOND)


def test_a_job_without_an_identity_has_a_row() -> None:
    (row,) = job_rows([JobInfo(1, "running", opened_ns=START_NS)], START_NS)
    assert (row.name, row.pid, row.steps, row.lost, row.cost, row.started_ns) == ("", None, 0, 0, None, START_NS)


def test_without_steps_there_is_no_cost() -> None:
    assert cost({"self_ns": 5}) is None


@pytest.mark.parametrize(
    ("trace", "traced", "cost", "why"),
    [
        ("budget=1%", 3, 0.009, None),
        ("budget=1%", 3, 0.02, "the first steps"),
        ("budget=5%", 3, 0.02, None),
        ("", 3, 0.02, "the first steps"),
        ("all", 3, 0.02, "--trace all"),
        ("budget=x", 3, 0.02, "the first steps"),
        ("off", 0, 0.02, None),
        ("budget=1%", 3, None, None),
    ],
)
def test_a_cost_above_the_budget_is_explained(trace: str, traced: int, cost: float | None, why: str | None) -> None:
    row = replace(job_row(JobInfo(1), "0001", 0), trace=trace, traced=traced, cost=cost)
    found = over_budget(row)
    assert found is None if why is None else why in (found or "")


def test_the_note_on_a_short_job_contains_the_times() -> None:
    row = replace(job_row(JobInfo(1), "0001", 0), traced=3, cost=0.15, steps_ns=400 * 10**6)
    assert over_budget(row) == (
        "the first steps of each kind are always traced, and the job is short: 60.0 ms for 400 ms of steps"
    )
    assert over_budget(replace(row, steps_ns=3600 * 10**9)) == "the first steps of each kind are always traced"


@pytest.mark.parametrize("kind", ["batch", "predict_batch"])
def test_short_batches_of_keras_explain_a_cost_above_the_budget(kind: str) -> None:
    row = replace(job_row(JobInfo(1), "0001", 0), traced=3, cost=0.012, steps_ns=400 * 10**9, steps=10**6)
    row = replace(row, step_kind=kind)
    assert over_budget(row) == f"most of it is for timing short steps: a {kind} takes 400 µs"
    assert over_budget(replace(row, steps=10**5)) == "the first steps of each kind are always traced"
    assert over_budget(replace(row, step_kind="run")) == "the first steps of each kind are always traced"


def test_functions_of_a_job_have_names_by_key() -> None:
    assert functions_of(JobInfo(1, identity={"functions": {"7": "train_step", "x": "no"}})) == {7: "train_step"}
    assert functions_of(JobInfo(1, identity={"functions": "odd"})) == {}
    assert functions_of(JobInfo(1)) == {}
