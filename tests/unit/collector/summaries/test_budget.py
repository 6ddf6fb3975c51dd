"""The reason for a cost above the budget."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fakes.made_store import rows, trace, write_job
from tfprof.collector.query.explanations import cost_note
from tfprof.collector.render.jobs_text import cost_part
from tfprof.collector.store.catalog import JobInfo
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.summaries.budget import overrun_reason
from tfprof.collector.summaries.jobs import JobRow, job_row

NO_COUNTERS: Mapping[str, Any] = {}
FIRST_STEPS = "the first traces of each kind are always made"
LOWERED_BUDGET = "an order (`tfprof trace`, `tfprof top` or an alert) set a budget of 0.5 %; earlier steps cost more"


def row_of(trace: str, traced: int, cost: float | None, steps_ns: int = 3600 * 10**9, **other: Any) -> JobRow:
    row = job_row(JobInfo(1), "0001", 0)
    return replace(row, trace=trace, traced=traced, cost=cost, steps_ns=steps_ns, **other)


def traces_of(steps: Iterable[int], key: int = 0) -> pa.Table:
    """Return traces of steps of one kind and key."""
    return rows("traces", [trace(step, step, 1, 0) | {"key": key} for step in steps])


@pytest.mark.parametrize(
    ("trace", "traced", "cost", "reason"),
    [
        ("budget=1%", 3, 0.009, None),
        ("budget=1%", 3, 0.02, "the first traces"),
        ("budget=5%", 3, 0.02, None),
        ("", 3, 0.02, "the first traces"),
        ("all", 3, 0.02, "the requested steps are traced (--trace all)"),
        ("steps=3-5", 3, 0.02, "(--trace steps=3-5)"),
        ("budget=x", 3, 0.02, "the first traces"),
        ("off", 0, 0.02, None),
        ("budget=1%", 0, 0.009, None),
        ("budget=1%", 3, None, None),
    ],
)
def test_a_cost_above_the_budget_is_explained(trace: str, traced: int, cost: float | None, reason: str | None) -> None:
    result = overrun_reason(row_of(trace, traced, cost), NO_COUNTERS, traces_of([3, 4, 5]), 0)
    assert result is None if reason is None else reason in (result or "")


def test_the_first_traces_of_a_short_job_need_no_note() -> None:
    row, traces = row_of("", 3, 0.15, steps_ns=400 * 10**6), traces_of([3, 4, 5])
    assert overrun_reason(row, NO_COUNTERS, traces, 0) is None
    assert overrun_reason(replace(row, steps_ns=3600 * 10**9), NO_COUNTERS, traces, 0) == FIRST_STEPS
    assert cost_part(row) == "cost 60.0 ms"
    assert cost_part(replace(row, steps_ns=3600 * 10**9)) == "cost 15 %"


def test_without_a_traced_step_the_cost_is_that_of_counting_and_timing() -> None:
    row = row_of("budget=1%", 0, 0.05, steps_ns=400 * 10**6)
    expected = "no step is traced; counting and timing the steps took 20.0 ms of 400 ms"
    assert overrun_reason(row, NO_COUNTERS, traces_of([]), 0) == expected


@pytest.mark.parametrize("kind", ["batch", "predict_batch", "eager"])
def test_short_batches_and_training_steps_explain_a_cost_above_the_budget(kind: str) -> None:
    row = row_of("", 3, 0.012, steps_ns=400 * 10**9, steps=10**6, step_kind=kind)
    traces = traces_of([3, 4, 5])
    reason = "most of it is for counting and timing short steps: a step takes 400 µs"
    assert overrun_reason(row, NO_COUNTERS, traces, 0) == reason
    assert overrun_reason(replace(row, steps=10**5), NO_COUNTERS, traces, 0) == FIRST_STEPS
    assert overrun_reason(replace(row, step_kind="run"), NO_COUNTERS, traces, 0) == FIRST_STEPS


@pytest.mark.parametrize(
    ("policy", "counters", "reason"),
    [
        (
            "budget=1%",
            {"policy_seen": 1, "order_traced": 50},
            "an order (`tfprof trace`, `tfprof top` or an alert) selected 50 of 53 traced steps",
        ),
        (
            "off",
            {"policy_seen": 1, "order_traced": 53},
            "an order (`tfprof trace`, `tfprof top` or an alert) selected 53 of 53 traced steps",
        ),
        (
            "off",
            {"policy_seen": 4, "order_traced": 9},
            "orders (`tfprof trace`, `tfprof top` or an alert) selected the traced steps",
        ),
        ("every=2", {"policy_seen": 1, "order_traced": 1}, "the requested steps are traced (--trace every=2)"),
        (
            "budget=1%",
            {"policy_seen": 4, "order_traced": 9},
            "orders (`tfprof trace`, `tfprof top` or an alert) changed which steps are traced",
        ),
        ("budget=1%", {"policy_seen": 0, "order_traced": 50}, "the traced steps cost more than estimated"),
    ],
)
def test_steps_of_an_order_are_not_called_first_steps(policy: str, counters: Mapping[str, int], reason: str) -> None:
    row = row_of(policy, 53, 0.2, steps_ns=400 * 10**6)
    assert (overrun_reason(row, counters, traces_of([3, 4, 5, *range(100, 150)]), 0) or "").startswith(reason)


@pytest.mark.parametrize(
    ("policy", "order_budget", "cost", "reason"),
    [
        ("budget=1%", 5_000, 0.0052, None),
        ("budget=1%", 5_000, 0.008, LOWERED_BUDGET),
        ("budget=1%", 5_000, 0.02, FIRST_STEPS),
        ("budget=1%", 50_000, 0.04, None),
        ("budget=1%", 50_000, 0.06, FIRST_STEPS),
        ("budget=1%", 0, 0.02, FIRST_STEPS),
        ("off", 5_000, 0.004, None),
        ("off", 5_000, 0.02, "orders (`tfprof trace`, `tfprof top` or an alert) selected the traced steps"),
        ("all", 5_000, 0.004, None),
        ("all", 5_000, 0.02, "the requested steps are traced (--trace all)"),
        ("budget=1%", 2**64 - 1, 0.02, None),
        ("budget=1%", True, 0.02, FIRST_STEPS),
        ("budget=1%", -5_000, 0.02, FIRST_STEPS),
        ("budget=1%", "x", 0.02, FIRST_STEPS),
    ],
)
def test_the_cost_is_compared_with_the_budget_of_the_order_in_force(
    policy: str, order_budget: Any, cost: float, reason: str | None
) -> None:
    row = row_of(policy, 3, cost, steps_ns=3600 * 10**9)
    values = {"policy_seen": 1, "order_budget": order_budget}
    assert overrun_reason(row, values, traces_of([3, 4, 5]), 0) == reason


def test_first_traces_are_counted_for_up_to_eight_keys_of_a_kind() -> None:
    row = row_of("budget=1%", 40, 0.2)
    few_traces = pa.concat_tables(traces_of(range(10 * key, 10 * key + 2), key) for key in range(10))
    assert overrun_reason(row, NO_COUNTERS, few_traces, 0) == FIRST_STEPS
    many_traces = pa.concat_tables(traces_of(range(10 * key, 10 * key + 3), key) for key in range(8))
    assert "more than estimated" in (overrun_reason(row, NO_COUNTERS, many_traces, 0) or "")


def test_traces_that_the_job_requests_are_the_reason_if_they_are_most() -> None:
    row, many_traces = row_of("budget=1%", 680, 0.3), traces_of(range(680))
    reason = "the job itself traced 680 steps, and 680 of these traces were recorded"
    assert overrun_reason(row, NO_COUNTERS, many_traces, own_traces=680) == reason
    assert "more than estimated" in (overrun_reason(row, NO_COUNTERS, many_traces, own_traces=300) or "")


def test_the_note_follows_from_the_counters_and_traces_in_the_store(tmp_path: Path) -> None:
    values = {"traced": 6, "self_ns": 10, "extra_ns": 100, "step_ns": 1_100, "policy_seen": 1, "order_traced": 4}
    write_job(tmp_path, 1, {"traces": traces_of([3, 4, 90, 91, 92, 93])}, identity={"trace": ""}, counters=values)
    job = LocalStore(tmp_path).job("last")
    note = (
        "the cost is above the budget: an order (`tfprof trace`, `tfprof top` or an alert) selected 4 of 6 traced steps"
    )
    assert cost_note(job, job_row(job.info, "0001", 0)) == note
    assert cost_note(job, row_of("budget=20%", 6, 0.11)) is None
    values["order_budget"] = 300_000
    write_job(tmp_path, 2, {"traces": traces_of([3, 4])}, identity={"trace": ""}, counters=values)
    job = LocalStore(tmp_path).job("last")
    assert cost_note(job, job_row(job.info, "0002", 0)) is None
