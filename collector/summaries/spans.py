"""The tree of a job's spans, its largest lines, and the stages of the job.

The tree has fits with epochs and batches, evaluations and session runs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from ...formats import layout, span_kinds
from ..store.catalog import IMPORTED
from .activities import ActivityNode
from .jobs import ENDED, STARTING, JobRow
from .kinds import NO_FUNCTION_NAMES, FunctionNames
from .steps import NO_RUN_NAMES, RunNames, at_measured_starts, call_label, rows_of_kinds

#: Kinds of spans that `_other_nodes` leaves out: `_fit_nodes` has them, or another tree.
_LEFT_OUT_KINDS: Final = frozenset({layout.FIT, layout.EPOCH, layout.BATCH, layout.ACTIVITY})
#: The first of the other kinds, in the order of the tree: batches follow their evaluation or
#: prediction.
_FIRST_KINDS: Final = (
    layout.EVALUATE,
    layout.TEST_BATCH,
    layout.PREDICT,
    layout.PREDICT_BATCH,
    *layout.RUN_KINDS,
    layout.PARTIAL_RUN,
    layout.FUNCTION,
    layout.EAGER,
    layout.CALL,
)
_BATCH_KINDS: Final = frozenset({layout.TEST_BATCH, layout.PREDICT_BATCH})
#: Names of the stage after the last step or fit: of an ended job, and of a running one.
ENDING: Final = "ending"
WAITING: Final = "no step since"


@dataclass(frozen=True, slots=True)
class SpanNode:
    """One line of the tree: ``count`` spans at a depth; ``running``: the span has not ended yet."""

    depth: int
    kind: str
    label: str
    count: int
    total_ns: int
    min_ns: int
    max_ns: int
    start_ns: int | None = None
    running: bool = False

    @property
    def mean_ns(self) -> float | None:
        """Mean duration in ns, None if no span has ended."""
        return self.total_ns / self.count if self.count else None


def _sums(spans: pa.Table, keys: list[str]) -> list[dict[str, Any]]:
    aggregates: Any = [("count", "sum"), ("total_ns", "sum"), ("min_ns", "min"), ("max_ns", "max"), ("start_ns", "min")]
    untimed = pc.equal(spans["max_ns"], pa.scalar(0, pa.int64()))
    min_ns = pc.if_else(untimed, pa.scalar(None, pa.int64()), spans["min_ns"])
    spans = spans.set_column(spans.schema.get_field_index("min_ns"), "min_ns", min_ns)
    return spans.group_by(keys, use_threads=False).aggregate(aggregates).to_pylist()


def _sum_node(depth: int, kind: int, label: str, sums: Mapping[str, Any]) -> SpanNode:
    names = ("count_sum", "total_ns_sum", "min_ns_min", "max_ns_max", "start_ns_min")
    numbers: list[Any] = [sums[name] or 0 for name in names]
    return SpanNode(depth, span_kinds.name_of(kind), label, *numbers)


def _span_node(depth: int, row: Mapping[str, Any]) -> SpanNode:
    kind, total = span_kinds.name_of(row["kind"]), row["total_ns"]
    return SpanNode(depth, kind, str(row["ordinal"]), 1, total, total, total, row["start_ns"])


def _epoch_nodes(epochs: Iterable[Mapping[str, Any]], batches: dict[int, dict[str, Any]]) -> list[SpanNode]:
    """Return a line for each of ``epochs``, followed by a line for its batches if it has any.

    ``batches``: sums of batches by the ordinal of their epoch. The sums that get a line are
    removed.
    """
    nodes = []
    for epoch in epochs:
        nodes.append(_span_node(1, epoch))
        batch_sums = batches.pop(epoch["ordinal"], None)
        if batch_sums is not None:
            nodes.append(_sum_node(2, layout.BATCH, "", batch_sums))
    return nodes


def _running_node(kind: int, depth: int, label: str) -> SpanNode:
    return SpanNode(depth, span_kinds.name_of(kind), label, 0, 0, 0, 0, running=True)


def _fit_nodes(spans: pa.Table, live: bool) -> list[SpanNode]:
    fits = rows_of_kinds(spans, (layout.FIT,)).sort_by("start_ns").to_pylist()
    epochs = rows_of_kinds(spans, (layout.EPOCH,)).sort_by("start_ns").to_pylist()
    batches = {row["parent"]: row for row in _sums(rows_of_kinds(spans, (layout.BATCH,)), ["parent"])}
    nodes = []
    for fit in fits:
        end = fit["start_ns"] + fit["total_ns"]
        fit_epochs = [
            epoch for epoch in epochs if fit["start_ns"] <= epoch["start_ns"] < end and epoch["thread"] == fit["thread"]
        ]
        nodes += [_span_node(0, fit), *_epoch_nodes(fit_epochs, batches)]
        ordinals = {epoch["ordinal"] for epoch in fit_epochs}
        epochs = [epoch for epoch in epochs if epoch["ordinal"] not in ordinals]
    outside_batches = batches.pop(0, None)
    if epochs or batches:
        open_label = "" if live else "unfinished"
        nodes += [_running_node(layout.FIT, 0, open_label), *_epoch_nodes(epochs, batches)]
        for parent in sorted(batches):
            nodes += [_running_node(layout.EPOCH, 1, str(parent)), _sum_node(2, layout.BATCH, "", batches[parent])]
    if outside_batches is not None:
        nodes.append(_sum_node(0, layout.BATCH, "outside of an epoch", outside_batches))
    return nodes


def _other_nodes(spans: pa.Table, names: FunctionNames, runs: RunNames) -> list[SpanNode]:
    all_kinds = dict.fromkeys((*_FIRST_KINDS, *span_kinds.others(), *span_kinds.steps(), *layout.KINDS))
    kinds = [kind for kind in all_kinds if kind not in _LEFT_OUT_KINDS]
    rows = _sums(rows_of_kinds(spans, kinds), ["kind", "key"])
    rows.sort(key=lambda row: (kinds.index(row["kind"]), -row["total_ns_sum"]))
    return [
        _sum_node(int(row["kind"] in _BATCH_KINDS), row["kind"], call_label(row["kind"], row["key"], names, runs), row)
        for row in rows
    ]


def span_tree(
    spans: pa.Table, names: FunctionNames = NO_FUNCTION_NAMES, runs: RunNames = NO_RUN_NAMES, *, live: bool
) -> list[SpanNode]:
    """Fold SPANS into the lines of a tree, parents first.

    ``names`` and ``runs``: as for `call_label`. ``live``: whether the job runs. If it does not, a
    fit without an end is labeled `unfinished`.
    """
    return [*_fit_nodes(spans, live), *_other_nodes(spans, names, runs)]


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of a job: its name, and the number and total time of its spans.

    ``running``: whether the stage has not ended.
    """

    name: str
    count: int
    total_ns: int
    running: bool = False


def stages(row: JobRow, tree: Sequence[SpanNode], spans: pa.Table, now_ns: int) -> list[Stage]:
    """Return the stages of the job of ``row`` at ``now_ns``, from its SPANS and their ``tree``.

    An imported job without spans has none.
    """
    end_ns = row.ended_ns or now_ns
    spans = spans.filter(pc.not_equal(spans["kind"], pa.scalar(layout.ACTIVITY, pa.uint16())))
    if not spans.num_rows:
        if row.state == IMPORTED:
            return []
        return [Stage(STARTING, 1, max(0, end_ns - row.started_ns), row.phase != ENDED)]
    first_start: Any = pc.min(at_measured_starts(spans)["start_ns"]).as_py()
    last_end: Any = pc.max(pc.add(spans["start_ns"], spans["total_ns"])).as_py()
    ended_stages = [Stage(STARTING, 1, max(0, first_start - row.started_ns)), *_span_stages(tree)]
    name = ENDING if row.phase == ENDED else WAITING
    return [*ended_stages, Stage(name, 1, max(0, end_ns - last_end), row.phase != ENDED)]


def _span_stages(tree: Sequence[SpanNode]) -> list[Stage]:
    """Return a stage for each kind of span at depth 0.

    A running fit has the time of its epochs so far.
    """
    stages_by_kind: dict[str, Stage] = {}
    for index, node in enumerate(tree):
        if node.depth:
            continue
        total = node.total_ns if not node.running else _epochs_ns(tree[index + 1 :])
        earlier = stages_by_kind.get(node.kind, Stage(node.kind, 0, 0))
        number = earlier.count + (1 if node.running else node.count)
        stages_by_kind[node.kind] = Stage(node.kind, number, earlier.total_ns + total, earlier.running or node.running)
    return list(stages_by_kind.values())


def _epochs_ns(nodes: Sequence[SpanNode]) -> int:
    """Return the total time of the epochs in ``nodes`` before the first node of depth 0.

    A running epoch has the time of its batches.
    """
    total, open_epoch = 0, False
    for node in nodes:
        if not node.depth:
            break
        if node.depth == 1:
            open_epoch = node.running
            total += node.total_ns
        elif open_epoch:
            total += node.total_ns
    return total


#: A line of a tree; lines follow their parents.
L = TypeVar("L", SpanNode, ActivityNode)


def largest_lines(lines: Sequence[L], top: int) -> list[L]:
    """Return the ``top`` lines with the most time and the lines above them, all if ``top`` is 0."""
    if not top:
        return list(lines)
    by_size = sorted(range(len(lines)), key=lambda at: -lines[at].total_ns)
    kept = set(by_size[:top])
    for at in sorted(kept):
        depth = lines[at].depth
        for above in range(at - 1, -1, -1):
            if lines[above].depth < depth:
                depth = lines[above].depth
                kept.add(above)
    return [lines[at] for at in sorted(kept)]
