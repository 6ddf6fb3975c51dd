"""Step times of untraced and of traced steps, and the cost of tracing a step."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ...formats import layout
from .kinds import NO_FUNCTION_NAMES, FunctionNames
from .spread import Spread, spread, timed_step_count
from .step_cost import StepCost, step_cost

#: Flags of special steps, whose times are not representative: traced, failed and setup steps. Other
#: steps are normal.
SPECIAL: Final = layout.FLAG_TRACED | layout.FLAG_FAILED | layout.FLAG_SETUP
#: Largest number of feeds, fetches or targets that a key can represent. It means this many or more.
_COUNT_MAX: Final = 15


@dataclass(frozen=True, slots=True)
class StepGroup:
    """The steps of one kind and key.

    ``call``: label of the key. ``failed`` and ``setup``: numbers of such steps. ``cost``: extra
    time of a traced step, None if unknown.
    """

    kind: str
    call: str
    key: int
    untraced: Spread | None
    traced: Spread | None
    failed: int
    setup: int
    cost: StepCost | None = None

    @property
    def count(self) -> int:
        """Number of all steps."""
        return sum(times.count for times in (self.untraced, self.traced) if times) + self.failed + self.setup


@dataclass(frozen=True, slots=True)
class StepEntry:
    """One step, or ``count`` consecutive short ones from ``ordinal`` on; durations are means in ns.

    ``sampled``: only the last step was timed, or none if the last step failed.
    """

    kind: str
    ordinal: int
    count: int
    start_ns: int
    mean_ns: float
    traced: bool
    failed: bool
    setup: bool
    sampled: bool


@dataclass(frozen=True, slots=True)
class Steps:
    """A job's steps in groups, and its latest entries in order of their start.

    The groups are in order of their kinds' importance, then of their total time, largest first.
    ``entry_count``: number of all entries. ``timed``: number of timed steps of each kind.
    """

    groups: tuple[StepGroup, ...]
    latest_entries: tuple[StepEntry, ...]
    entry_count: int
    timed: Mapping[str, int]


def call_label(kind: int, key: int, names: FunctionNames = NO_FUNCTION_NAMES) -> str:
    """Return the label that distinguishes a call from the other calls of its kind.

    The key of a session run contains the numbers of its feeds, fetches and targets. Any other key
    is labeled by its name in ``names``, or else by the key itself; key 0 has no label.
    """
    if kind not in {*layout.RUN_KINDS, layout.PARTIAL_RUN}:
        return names.get(key, f"#{key:x}") if key else ""
    parts = ((key >> 28, "feed"), (key >> 24 & _COUNT_MAX, "fetch"), (key >> 20 & _COUNT_MAX, "target"))
    return ", ".join(
        f"{number}{'+' * (number == _COUNT_MAX)} {_plural(word, number)}" for number, word in parts if number
    )


def _plural(word: str, number: int) -> str:
    if number == 1:
        return word
    return word + ("es" if word.endswith("ch") else "s")


def flagged(spans: pa.Table, flags: int) -> Any:
    """Return a mask of the spans with any of ``flags``."""
    return pc.not_equal(pc.bit_wise_and(spans["flags"], pa.scalar(flags, pa.uint16())), pa.scalar(0, pa.uint16()))


def spans_of_kinds(spans: pa.Table, kinds: tuple[int, ...]) -> pa.Table:
    """Return the spans of ``kinds``."""
    return spans.filter(pc.is_in(spans["kind"], pa.array(kinds, pa.uint16())))


def _step_count(spans: pa.Table) -> int:
    return int(pc.sum(spans["count"]).as_py() or 0)


def _group(kind: int, key: int, spans: pa.Table, names: FunctionNames) -> StepGroup:
    failed = flagged(spans, layout.FLAG_FAILED)
    successful_spans = spans.filter(pc.invert(failed))
    setup = flagged(successful_spans, layout.FLAG_SETUP)
    regular_spans = successful_spans.filter(pc.invert(setup))
    traced = flagged(regular_spans, layout.FLAG_TRACED)
    return StepGroup(
        layout.SPAN_NAMES[kind],
        call_label(kind, key, names),
        key,
        spread(regular_spans.filter(pc.invert(traced))),
        spread(regular_spans.filter(traced)),
        _step_count(spans.filter(failed)),
        _step_count(successful_spans.filter(setup)),
        step_cost(regular_spans),
    )


def _step_entry(row: dict[str, Any]) -> StepEntry:
    flags = row["flags"]
    return StepEntry(
        layout.SPAN_NAMES[row["kind"]],
        row["ordinal"],
        row["count"],
        row["start_ns"],
        row["total_ns"] / row["count"],
        bool(flags & layout.FLAG_TRACED),
        bool(flags & layout.FLAG_FAILED),
        bool(flags & layout.FLAG_SETUP),
        bool(flags & layout.FLAG_SAMPLED),
    )


def steps(spans: pa.Table, last: int | None, names: FunctionNames = NO_FUNCTION_NAMES) -> Steps:
    """Fold SPANS into groups of steps, and a list of the ``last`` entries (None: all entries).

    ``names``: names of calls by key.
    """
    step_spans = spans_of_kinds(spans, layout.STEP_KINDS).combine_chunks()
    keys = (
        step_spans.group_by(["kind", "key"]).aggregate([("total_ns", "sum")]).sort_by([("total_ns_sum", "descending")])
    )
    groups = []
    for row in keys.to_pylist():
        is_in_group = pc.and_(pc.equal(step_spans["kind"], row["kind"]), pc.equal(step_spans["key"], row["key"]))
        groups.append(_group(row["kind"], row["key"], step_spans.filter(is_in_group), names))
    importance = {layout.SPAN_NAMES[kind]: rank for rank, kind in enumerate(layout.STEP_KINDS)}
    groups.sort(key=lambda group: importance[group.kind])
    ordered = step_spans.sort_by("start_ns")
    latest = ordered if last is None else ordered.slice(max(0, ordered.num_rows - last))
    kinds = dict.fromkeys(row["kind"] for row in keys.to_pylist())
    timed_counts = {layout.SPAN_NAMES[kind]: timed_step_count(spans_of_kinds(step_spans, (kind,))) for kind in kinds}
    return Steps(tuple(groups), tuple(map(_step_entry, latest.to_pylist())), ordered.num_rows, timed_counts)
