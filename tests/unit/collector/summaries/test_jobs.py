"""One row for each job."""

import pytest
from fakes.made_store import IDENTITY, SECOND, START_NS
from tfprof.collector.store.catalog import JobInfo
from tfprof.collector.summaries.jobs import cost, counts_of, functions_of, job_rows, short_ids

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


def test_a_row_is_built_from_identity_counters_and_end() -> None:
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


def test_a_job_with_activities_only_is_starting_and_has_no_spans() -> None:
    info = JobInfo(1, "running", IDENTITY, {"counts": {"activity": 428}})
    (row,) = job_rows([info], START_NS)
    assert (row.phase, row.steps, sum(counts_of(info).values())) == ("starting", 0, 0)


def test_a_job_without_an_identity_has_a_row() -> None:
    (row,) = job_rows([JobInfo(1, "running", opened_ns=START_NS)], START_NS)
    assert (row.name, row.pid, row.steps, row.lost, row.cost, row.started_ns) == ("", None, 0, 0, None, START_NS)


def test_the_loss_of_a_job_whose_channel_was_lost_is_unknown() -> None:
    (row,) = job_rows([JobInfo(1, "lost", IDENTITY, COUNTERS)], START_NS)
    assert (row.steps, row.lost) == (5, None)


def test_without_steps_there_is_no_cost() -> None:
    assert cost({"self_ns": 5}) is None


def test_functions_of_a_job_have_names_by_key() -> None:
    assert functions_of(JobInfo(1, identity={"functions": {"7": "train_step", "x": "no"}})) == {7: "train_step"}
    assert functions_of(JobInfo(1, identity={"functions": "odd"})) == {}
    assert functions_of(JobInfo(1)) == {}
