"""Step times of untraced and of traced steps, and the cost of tracing a step."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ...formats import layout, run_keys, span_kinds
from ..store.columns import changes, constant, flagged, flat, integer, integers, row_numbers, row_tuples
from .kinds import KINDS_BY_NAME, NO_FUNCTION_NAMES, FunctionNames, function_key, step_kind_of
from .series import Spread, spread, timed_step_count

#: Flags of special steps, whose times are not representative: traced, failed and setup steps. Other
#: steps are normal.
SPECIAL: Final = layout.FLAG_TRACED | layout.FLAG_FAILED | layout.FLAG_SETUP
_BY_KEY: Final[Any] = [("kind", "ascending"), ("key", "ascending")]
#: Label of all calls of a kind.
ALL_CALLS: Final = "all calls"
#: End of the label of several calls that ran once each.
ONCE: Final = "each once"


def spans_within(spans: pa.Table, steps: tuple[int, int] | None, since_ns: int) -> pa.Table:
    """Return the rows of SPANS with a number in ``steps`` that began at ``since_ns`` or later.

    An entry of several steps is returned if one of them is in the range. ``steps``: None for all;
    ``since_ns``: real time, 0 for all.
    """
    if steps is not None:
        last = pc.add(spans["ordinal"], pc.subtract(spans["count"], pa.scalar(1, pa.uint32())))
        is_in_range = pc.and_(
            pc.greater_equal(last, pa.scalar(steps[0], pa.uint64())),
            pc.less_equal(spans["ordinal"], pa.scalar(steps[1], pa.uint64())),
        )
        spans = spans.filter(is_in_range)
    if not since_ns:
        return spans
    return spans.filter(pc.greater_equal(at_measured_starts(spans)["start_ns"], pa.scalar(since_ns, pa.int64())))


def spans_since(spans: pa.Table, since_ns: int) -> pa.Table:
    """Return the rows of SPANS that ended at ``since_ns`` (real time) or later; all if it is 0."""
    ends = pc.add(spans["start_ns"], spans["total_ns"])
    return spans.filter(pc.greater_equal(ends, pa.scalar(since_ns, pa.int64()))) if since_ns else spans


#: Minimum number of traced steps that have enough neighbors.
PAIRS_MIN: Final = 5
#: The neighbors of a traced step are the untraced steps among this many entries on each side.
_ENTRIES_PER_SIDE: Final = 4
#: Minimum number of neighbors.
_NEIGHBORS_MIN: Final = 2


class StepCost(NamedTuple):
    """Median extra time of ``pairs`` traced steps over their neighbors, in ns and as a share."""

    ns: float
    share: float
    pairs: int


class RunName(NamedTuple):
    """What a session run fetches: the names of its fetches, and of its only target if known."""

    fetches: tuple[str, ...]
    target: str = ""


#: What session runs fetch, by key.
RunNames = Mapping[int, RunName]
NO_RUN_NAMES: Final[RunNames] = {}


@dataclass(frozen=True, slots=True)
class StepGroup:
    """The steps of one kind and key.

    ``call``: label of the key. ``failed`` and ``setup``: numbers of such steps. ``requested``:
    number of traced steps whose trace the job itself requested. ``cost``: extra time of a traced
    step, None if unknown.
    """

    kind: str
    call: str
    key: int
    untraced: Spread | None
    traced: Spread | None
    failed: int
    setup: int
    requested: int = 0
    cost: StepCost | None = None

    @property
    def count(self) -> int:
        """Number of all steps."""
        return sum(times.count for times in (self.untraced, self.traced) if times) + self.failed + self.setup

    @property
    def total_ns(self) -> int:
        """The time of all steps that neither failed nor were of setup."""
        return sum(times.total_ns for times in (self.untraced, self.traced) if times)


@dataclass(frozen=True, slots=True)
class StepEntry:
    """One step, or ``count`` consecutive short ones from ``ordinal`` on; durations are means in ns.

    ``requested``: the job itself requested the trace. ``sampled``: only the last step was timed, or
    none if the last step failed.
    """

    kind: str
    ordinal: int
    count: int
    start_ns: int
    mean_ns: float
    traced: bool
    requested: bool
    failed: bool
    setup: bool
    sampled: bool


@dataclass(frozen=True, slots=True)
class Steps:
    """A job's steps in groups, and its latest entries in order of their start.

    The entries may also be the longest ones, the longest first. The groups are in order of their
    kinds' importance, then of their total time, largest first. ``kinds``: the steps of each kind
    with all its keys; each function is a kind. ``entry_count``: number of all entries. ``timed``:
    number of timed steps of each kind.
    """

    groups: tuple[StepGroup, ...]
    kinds: tuple[StepGroup, ...]
    listed_entries: tuple[StepEntry, ...]
    entry_count: int
    timed: Mapping[str, int]


def call_label(kind: int, key: int, names: FunctionNames = NO_FUNCTION_NAMES, runs: RunNames = NO_RUN_NAMES) -> str:
    """Return the label that distinguishes a call from the other calls of its kind.

    The label of a session run has the fetched names, if ``runs`` has them by key, and the numbers
    in its key: those of feeds, fetches and targets. Any other key is labeled by its name in
    ``names``, or else by the key itself; key 0 has no label.
    """
    if kind not in {*layout.RUN_KINDS, layout.PARTIAL_RUN}:
        return names.get(key, f"#{key:x}") if key else ""
    run = runs.get(key) if kind in layout.RUN_KINDS else None
    feeds, fetches, targets = run_keys.call_counts(key)
    if run is None:
        return _numbers({"feed": feeds, "fetch": fetches, "target": targets})
    rest = _numbers({"feed": feeds, "target": 0 if run.target else targets})
    return ", ".join(filter(None, (*run.fetches, run.target))) + (f" ({rest})" if rest else "")


def _numbers(numbers: Mapping[str, int]) -> str:
    return ", ".join(
        f"{number}{'+' * (number == run_keys.COUNT_MAX)} {_plural(word, number)}"
        for word, number in numbers.items()
        if number
    )


def _plural(word: str, number: int) -> str:
    if number == 1:
        return word
    return word + ("es" if word.endswith("ch") else "s")


def rows_of_kinds(rows: pa.Table, kinds: Collection[int]) -> pa.Table:
    """Return the traces or spans of ``kinds``."""
    whole_kinds = pa.array([kind for kind in kinds if not function_key(kind)], pa.uint16())
    condition = pc.is_in(rows["kind"], whole_kinds)
    if keys := [function_key(kind) for kind in kinds if function_key(kind)]:
        is_call = pc.equal(rows["kind"], constant(layout.FUNCTION, pa.uint16()))
        condition = pc.or_(condition, pc.and_(is_call, pc.is_in(rows["key"], pa.array(keys, pa.uint32()))))
    return rows.filter(condition)


def sums_by_kind(spans: pa.Table, column: str) -> dict[int, int]:
    """Return the sum of ``column`` over the steps of each kind in ``spans``, the largest one first.

    Each function is a kind.
    """
    step_spans = rows_of_kinds(spans, span_kinds.steps())
    sums = step_spans.group_by(["kind", "key"]).aggregate([(column, "sum")])
    by_kind = Counter[int]()
    for kind, key, number in row_tuples(sums, "kind", "key", f"{column}_sum"):
        by_kind[step_kind_of(kind, key)] += number
    return dict(by_kind.most_common())


def normal_spans(spans: pa.Table, kind: int) -> pa.Table:
    """Return the spans of ``kind`` that are neither traced nor failed, nor of setup."""
    of_kind = rows_of_kinds(spans, (kind,))
    return of_kind.filter(pc.invert(flagged(of_kind, SPECIAL)))


def sampled(spans: pa.Table) -> Any:
    """Return for each of ``spans`` whether only its last step was timed."""
    return flagged(spans, layout.FLAG_SAMPLED)


def at_measured_starts(spans: pa.Table) -> pa.Table:
    """Return ``spans``, of which those of sampled steps start with the only step that was timed.

    Their starts are estimates, which can be long before other steps.
    """
    before = pc.subtract(spans["total_ns"], pc.divide(spans["total_ns"], spans["count"].cast(pa.int64())))
    starts = pc.if_else(sampled(spans), pc.add(spans["start_ns"], before), spans["start_ns"])
    return spans.set_column(spans.schema.get_field_index("start_ns"), "start_ns", starts)


def possible_starts(spans: pa.Table) -> Any:
    """Return the starts of ``spans``; sampled steps start no earlier than the row before ends.

    If the only step that was timed is a slow one, the estimate is long before that. The row before
    is that of the same kind; without one, the start is the measured one.
    """
    if not pc.any(sampled(spans)).as_py():
        return spans["start_ns"]
    order = pc.sort_indices(spans, sort_keys=[("kind", "ascending"), ("ordinal", "ascending")])
    rows = spans.take(order)
    starts, ends = rows["start_ns"], flat(pc.add(rows["start_ns"], rows["total_ns"]))
    ends_before = ends.take(pc.max_element_wise(pc.subtract(row_numbers(len(ends)), integer(1)), integer(0)))
    measured = flat(at_measured_starts(rows)["start_ns"])
    latest = pc.if_else(changes(flat(rows["kind"])), measured, pc.min_element_wise(ends_before, measured))
    starts = pc.if_else(sampled(rows), pc.max_element_wise(starts, latest), starts)
    return starts.take(pc.sort_indices(order))


def by_time(spans: pa.Table) -> pa.Table:
    """Return ``spans`` in the order of their measured starts."""
    return spans.take(pc.sort_indices(at_measured_starts(spans)["start_ns"]))


def requested_steps(spans: pa.Table) -> int:
    """Return the number of steps whose trace the job itself requested."""
    return _step_count(spans.filter(flagged(spans, layout.FLAG_REQUESTED)))


def _step_count(spans: pa.Table) -> int:
    return int(pc.sum(spans["count"]).as_py() or 0)


class _Calls(NamedTuple):
    """The keys of a group of steps, none for all keys of their kind, and the label of the group."""

    keys: Sequence[int]
    label: str


def _calls(rows: Sequence[Mapping[str, Any]], names: FunctionNames, runs: RunNames) -> Iterator[tuple[int, _Calls]]:
    """Yield the kind and the keys of each group; ``rows``: the keys with their numbers of steps.

    Keys that ran once each form one group if they have the same label apart from names of fetches.
    A graph that grows in a loop has a new key for each run.
    """
    single: dict[tuple[int, str], list[int]] = {}
    for row in rows:
        kind, key = row["kind"], row["key"]
        if row["count_sum"] == 1:
            single.setdefault((kind, call_label(kind, key, names)), []).append(key)
        else:
            yield kind, _Calls([key], call_label(kind, key, names, runs))
    for (kind, label), keys in single.items():
        own = call_label(kind, keys[0], names, runs)
        yield kind, _Calls(keys, own if len(keys) == 1 else ", ".join(filter(None, (label, ONCE))))


def _group(kind: int, calls: "_Calls", spans: pa.Table) -> StepGroup:
    """Return the group of ``spans``, all of ``kind`` and of the keys of ``calls``."""
    failed = flagged(spans, layout.FLAG_FAILED)
    successful_spans = spans.filter(pc.invert(failed))
    setup = flagged(successful_spans, layout.FLAG_SETUP)
    regular_spans = successful_spans.filter(pc.invert(setup))
    traced = flagged(regular_spans, layout.FLAG_TRACED)
    return StepGroup(
        span_kinds.name_of(kind),
        calls.label,
        calls.keys[0] if len(calls.keys) == 1 else 0,
        spread(regular_spans.filter(pc.invert(traced))),
        spread(regular_spans.filter(traced)),
        _step_count(spans.filter(failed)),
        _step_count(successful_spans.filter(setup)),
        requested_steps(regular_spans),
        step_cost(regular_spans),
    )


def _step_entry(row: dict[str, Any]) -> StepEntry:
    flags = row["flags"]
    return StepEntry(
        span_kinds.name_of(row["kind"]),
        row["ordinal"],
        row["count"],
        row["possible_start_ns"],
        row["total_ns"] / row["count"],
        bool(flags & layout.FLAG_TRACED),
        bool(flags & layout.FLAG_REQUESTED),
        bool(flags & layout.FLAG_FAILED),
        bool(flags & layout.FLAG_SETUP),
        bool(flags & layout.FLAG_SAMPLED),
    )


def _listed(step_spans: pa.Table, number: int | None, *, longest: bool) -> pa.Table:
    """Return the last ``number`` rows (None: all) or the longest ones, with possible starts."""
    step_spans = step_spans.append_column("possible_start_ns", possible_starts(step_spans))
    if not longest:
        ordered = by_time(step_spans)
        return ordered if number is None else ordered.slice(max(0, ordered.num_rows - number))
    means = pc.divide(pc.cast(step_spans["total_ns"], pa.float64(), safe=False), step_spans["count"])
    ordered = step_spans.append_column("mean_ns", means).sort_by([("mean_ns", "descending"), ("start_ns", "ascending")])
    return ordered.slice(0, number).drop_columns("mean_ns")


def _kind_groups(groups: Sequence[StepGroup], step_spans: pa.Table) -> tuple[StepGroup, ...]:
    """Return a group for each kind. If a kind has only one group, it is that group."""
    kind_groups: list[StepGroup] = []
    for name, (first, *others) in _by_kind(groups).items():
        kind = KINDS_BY_NAME[name]
        if not others or kind == layout.FUNCTION:
            kind_groups += [first, *others]
        else:
            kind_groups.append(_group(kind, _Calls((), ALL_CALLS), rows_of_kinds(step_spans, (kind,))))
    return tuple(kind_groups)


def _by_kind(groups: Sequence[StepGroup]) -> dict[str, list[StepGroup]]:
    groups_by_kind: dict[str, list[StepGroup]] = {}
    for group in groups:
        groups_by_kind.setdefault(group.kind, []).append(group)
    return groups_by_kind


def _spans_by_key(step_spans: pa.Table, keys: pa.Table) -> dict[tuple[int, int], pa.Table]:
    """Return the spans of each kind and key; ``keys``: their numbers, in order."""
    ordered_spans = step_spans.sort_by(_BY_KEY).combine_chunks()
    spans, first = {}, 0
    for kind, key, number in row_tuples(keys, "kind", "key", "key_count"):
        spans[kind, key] = ordered_spans.slice(first, number)
        first += number
    return spans


def steps(
    spans: pa.Table,
    listed: int | None,
    names: FunctionNames = NO_FUNCTION_NAMES,
    runs: RunNames = NO_RUN_NAMES,
    *,
    longest: bool = False,
) -> Steps:
    """Fold SPANS into groups of steps, and a list of the last ``listed`` entries (None: all).

    ``longest``: list the longest entries instead. ``names`` and ``runs``: as for `call_label`.
    """
    step_spans = rows_of_kinds(spans, span_kinds.steps()).combine_chunks()
    sums = step_spans.group_by(["kind", "key"]).aggregate([("total_ns", "sum"), ("count", "sum"), ("key", "count")])
    keys = sums.sort_by(_BY_KEY)
    spans_by_key = _spans_by_key(step_spans, keys)
    groups = [
        _group(kind, calls, pa.concat_tables(spans_by_key[kind, key] for key in calls.keys).combine_chunks())
        for kind, calls in _calls(keys.sort_by([("total_ns_sum", "descending")]).to_pylist(), names, runs)
    ]
    groups.sort(key=lambda group: -group.total_ns)
    importance = {span_kinds.name_of(kind): rank for rank, kind in enumerate(span_kinds.steps())}
    groups.sort(key=lambda group: importance[group.kind])
    kinds = sorted(set(integers(keys["kind"])), key=span_kinds.steps().index)
    timed_counts = {span_kinds.name_of(kind): timed_step_count(rows_of_kinds(step_spans, (kind,))) for kind in kinds}
    return Steps(
        tuple(groups),
        _kind_groups(groups, step_spans),
        tuple(map(_step_entry, _listed(step_spans, listed, longest=longest).to_pylist())),
        step_spans.num_rows,
        timed_counts,
    )


def step_cost(spans: pa.Table) -> StepCost | None:
    """Return the cost of tracing a step, None without enough traced steps.

    ``spans``: SPANS of one kind and key, without failed and setup steps. Only neighbors are
    compared, since a job's first steps are slower than later ones, and are traced more often.
    """
    names = ("thread", "start_ns", "total_ns", "count", "flags")
    columns: Any = (spans[name].to_pylist() for name in names)
    rows = sorted(zip(*columns, strict=True))
    extra_times, neighbor_times = [], []
    for _, thread_rows in groupby(rows, key=lambda row: row[0]):
        steps = [(total / count, bool(flags & layout.FLAG_TRACED)) for _, _, total, count, flags in thread_rows]
        for index, (time_ns, traced) in enumerate(steps):
            if traced:
                neighbors = [
                    ns
                    for ns, is_traced in steps[max(0, index - _ENTRIES_PER_SIDE) : index + _ENTRIES_PER_SIDE + 1]
                    if not is_traced
                ]
                if len(neighbors) >= _NEIGHBORS_MIN:
                    neighbor_times.append(median(neighbors))
                    extra_times.append(time_ns - neighbor_times[-1])
    if len(extra_times) < PAIRS_MIN:
        return None
    neighbor_ns, extra_ns = median(neighbor_times), median(extra_times)
    return StepCost(extra_ns, extra_ns / neighbor_ns if neighbor_ns else 0.0, len(extra_times))
