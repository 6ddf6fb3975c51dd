"""Explains why the cost of profiling is above the budget in force."""

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from ...formats import layout
from ...formats.policy import MILLION
from ...formats.settings import SETTINGS
from ..numbers import duration, is_short
from ..store.catalog import integer_of
from .jobs import JobRow

#: Factor by which the cost may exceed the budget without a warning.
_TOLERANCE: Final = 1.1
#: Kinds of steps that cost `_STEP_NS_MIN` (ns) or more each, even those that are only counted.
_COSTLY_KINDS: Final = frozenset(
    layout.SPAN_NAMES[kind] for kind in (layout.BATCH, layout.TEST_BATCH, layout.PREDICT_BATCH, layout.EAGER)
)
_STEP_NS_MIN: Final = 3_000
#: What is always traced under a budget: a step of each of the first keys of a kind, and some more
#: of the kind.
_FIRST_KEYS: Final = 8
_EARLY_STEPS: Final = 2
#: The sources of orders, for messages.
_ORDER_SOURCES: Final = "`tfprof trace`, `tfprof top` or an alert"
_OFF: Final = "off"


def exceeds_budget(row: JobRow, values: Mapping[str, Any]) -> bool:
    """Return whether profiling cost more than the budget in force.

    A budget of the order in force replaces the budget of the job's own policy. A policy without a
    budget counts as a budget of 0 if any step was traced, else as no limit. ``values``: the latest
    words of the job's channel.
    """
    budget = _order_share(values) or _share(row.trace)
    return row.cost is not None and row.cost > budget * _TOLERANCE and bool(row.traced or budget)


def overrun_reason(row: JobRow, values: Mapping[str, Any], traces: pa.Table, own_traces: int) -> str | None:
    """Return the reason why profiling exceeded its budget; None if it did not.

    It is also None if the first traces of a short job are the reason, since a profile needs these
    traces.

    ``values``: the latest words of the job's channel. ``traces``: columns kind, key and step of the
    job's TRACES. ``own_traces``: number of steps whose trace the job itself requested.
    """
    if row.cost is None or not exceeds_budget(row, values):
        return None
    spent, steps = duration(row.cost * row.steps_ns), duration(row.steps_ns)
    early_reason = "the first traces of each kind are always made"
    reasons = (
        (not row.traced, f"no step is traced; counting and timing the steps took {spent} of {steps}"),
        (
            2 * own_traces > row.traced,
            f"the job itself traced {own_traces:,} steps, and {row.traced:,} of these traces were recorded",
        ),
        (
            _is_mostly_counting(row),
            f"most of it is for counting and timing short steps: a step takes {_step_time(row)}",
        ),
        (
            row.cost <= _share(row.trace) * _TOLERANCE,
            f"an order ({_ORDER_SOURCES}) set a budget of {100 * _order_share(values):g} %; earlier steps cost more",
        ),
        (_is_mostly_ordered(row, values), _order_reason(row, values)),
        (row.trace and not row.trace.startswith("budget"), f"the requested steps are traced (--trace {row.trace})"),
        (
            2 * _early_step_count(traces) >= traces.num_rows,
            None if is_short(row.steps_ns) else early_reason,
        ),
        (integer_of(values, "policy_seen"), f"orders ({_ORDER_SOURCES}) changed which steps are traced"),
        (True, "the traced steps cost more than estimated from those before them"),
    )
    return next(text for applies, text in reasons if applies)


def _step_time(row: JobRow) -> str:
    return duration(row.steps_ns / max(1, row.steps))


def _is_mostly_counting(row: JobRow) -> bool:
    """Return whether more than half of the cost is for counting and timing each step."""
    return row.step_kind in _COSTLY_KINDS and 2 * row.steps * _STEP_NS_MIN > (row.cost or 0.0) * row.steps_ns


def _is_mostly_ordered(row: JobRow, values: Mapping[str, Any]) -> bool:
    """Return whether orders selected most of the traced steps.

    The channel counts only the steps of the last order.
    """
    return row.trace == _OFF or (
        integer_of(values, "policy_seen") > 0 and 2 * integer_of(values, "order_traced") > row.traced
    )


def _order_reason(row: JobRow, values: Mapping[str, Any]) -> str:
    order_steps = integer_of(values, "order_traced")
    if 2 * order_steps <= row.traced:
        return f"orders ({_ORDER_SOURCES}) selected the traced steps"
    return f"an order ({_ORDER_SOURCES}) selected {min(order_steps, row.traced):,} of {row.traced:,} traced steps"


def _early_step_count(traces: pa.Table) -> int:
    """Return how many of ``traces`` may be steps that are always traced under a budget."""
    kinds = traces.group_by("kind", use_threads=False).aggregate([("key", "count_distinct"), ("step", "count")])
    return sum(
        min(row["step_count"], min(row["key_count_distinct"], _FIRST_KEYS) + _EARLY_STEPS) for row in kinds.to_pylist()
    )


def _order_share(values: Mapping[str, Any]) -> float:
    """Return the budget of the order in force as a share of the time in steps.

    It is 0 if no order is in force, or if the order has no budget.
    """
    return max(0, integer_of(values, "order_budget")) / MILLION


def _share(trace: str) -> float:
    """Return the budget in the policy ``trace`` as a share of the time in steps.

    It is 0 if the policy has no budget. An empty ``trace`` means the default policy.
    """
    word, _, value = (trace or str(SETTINGS["trace"].default)).partition("=")
    try:
        return float(value.removesuffix("%")) / 100 if word == "budget" else 0.0
    except ValueError:
        return 0.0
