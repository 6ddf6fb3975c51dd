"""The activities of a job: what its Python does beside the ops, as a tree with times.

An activity within another one, such as a checkpoint within a callback, is below it. The self time
of an activity leaves out what is below it, so self times add up.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ...formats import activities, layout, span_kinds
from ..store.columns import flagged
from .kinds import NO_FUNCTION_NAMES, FunctionNames
from .series import spread
from .steps import rows_of_kinds


@dataclass(frozen=True, slots=True)
class ActivityNode:
    """A line of the tree: the activities of one name within one parent.

    ``in_steps_ns`` and ``outside_ns`` are the parts of the total time in the steps of the thread
    that runs most of them, and outside of them in this thread. ``other_threads_ns`` is the rest.
    ``share`` is that of the total in the time from the job's first span to its last one; several
    threads together may exceed 1.
    """

    depth: int
    category: str
    name: str
    count: int
    total_ns: int
    self_ns: int
    median_ns: float
    max_ns: int
    share: float
    in_steps_ns: int
    outside_ns: int
    other_threads_ns: int
    start_ns: int


_KEY: Final = ["key", "parent"]


def activity_tree(spans: pa.Table, names: FunctionNames = NO_FUNCTION_NAMES) -> list[ActivityNode]:
    """Fold SPANS into the lines of the tree, parents first, and the longest first."""
    rows = rows_of_kinds(spans, (layout.ACTIVITY,))
    if not rows.num_rows:
        return []
    groups: dict[tuple[int, int], Any] = {}
    by_parent: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for group in _totals(rows):
        key = group["key"], group["parent"]
        groups[key] = group
        by_parent[key[1]].append(key)
    keys = {key for key, _ in groups}
    roots = [key for key in groups if key[1] not in keys]
    main, span_ns = _main_thread(spans, rows), max(1, _end(spans) - (pc.min(spans["start_ns"]).as_py() or 0))
    below_ns = {parent: sum(groups[key]["total_ns_sum"] for key in below) for parent, below in by_parent.items()}
    of_key_ns: defaultdict[int, int] = defaultdict(int)
    for group in groups.values():
        of_key_ns[group["key"]] += group["total_ns_sum"]
    seen: set[tuple[int, int]] = set()

    def nodes(group_keys: list[tuple[int, int]], depth: int) -> Iterator[ActivityNode]:
        for group_key in group_keys:
            if group_key in seen:  # a name with several parents is shown in full below the longest parent
                continue
            seen.add(group_key)
            key, group = group_key[0], groups[group_key]
            total = group["total_ns_sum"]
            # If a name has several parents, what is below the name is divided in the ratio of the
            # parents' times.
            own = max(0, total - below_ns.get(key, 0) * total // max(1, of_key_ns[key]))
            table = rows.filter(pc.and_(_equals(rows, "key", key), _equals(rows, "parent", group_key[1])))
            yield _node(depth, group_key, table, own, span_ns, main, names)
            yield from nodes(by_parent.get(key, []), depth + 1)

    tree = list(nodes(roots, 0))
    # Each of two names may be within the other while the outermost activity still runs.
    return tree + list(nodes([key for key in groups if key not in seen], 0))


def _node(
    depth: int,
    group_key: tuple[int, int],
    rows: pa.Table,
    self_ns: int,
    span_ns: int,
    main_thread: int,
    names: Mapping[int, str],
) -> ActivityNode:
    key = group_key[0]
    times = spread(rows)
    assert times is not None  # there are rows of each key
    main_rows = rows.filter(_equals(rows, "thread", main_thread))
    in_steps = _sum(main_rows.filter(flagged(main_rows, layout.FLAG_IN_STEP)))
    return ActivityNode(
        depth=depth,
        category=activities.category_of(key),
        name=activities.label_of(key, names),
        count=times.count,
        total_ns=times.total_ns,
        self_ns=self_ns,
        median_ns=times.p50_ns,
        max_ns=times.max_ns,
        share=times.total_ns / span_ns,
        in_steps_ns=in_steps,
        outside_ns=_sum(main_rows) - in_steps,
        other_threads_ns=times.total_ns - _sum(main_rows),
        start_ns=int(pc.min(rows["start_ns"]).as_py()),
    )


def _totals(rows: pa.Table) -> list[dict[str, Any]]:
    """Return the sums by key and parent, the longest first."""
    totals = rows.group_by(_KEY, use_threads=False).aggregate([("total_ns", "sum")])
    ordered: list[dict[str, Any]] = totals.sort_by([("total_ns_sum", "descending"), ("key", "ascending")]).to_pylist()
    return ordered


def _main_thread(spans: pa.Table, rows: pa.Table) -> int:
    """Return the thread with the most time in steps.

    Without steps, it is the thread of the first activity.
    """
    steps = rows_of_kinds(spans, span_kinds.steps())
    if not steps.num_rows:
        return int(rows.sort_by("start_ns")["thread"][0].as_py())
    threads = steps.group_by("thread").aggregate([("total_ns", "sum")]).sort_by([("total_ns_sum", "descending")])
    return int(threads["thread"][0].as_py())


def _equals(rows: pa.Table, column: str, value: int) -> Any:
    return pc.equal(rows[column], pa.scalar(value, rows.schema.field(column).type))


def _sum(rows: pa.Table) -> int:
    return int(pc.sum(rows["total_ns"]).as_py() or 0)


def _end(spans: pa.Table) -> int:
    return int(pc.max(pc.add(spans["start_ns"], spans["total_ns"])).as_py() or 0)
