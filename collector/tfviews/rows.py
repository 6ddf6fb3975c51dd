"""The rows of a view in tfprof's own layout: the entries above the limit, in the view's order."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import add, sub
from typing import Final, NamedTuple

from .code import Call
from .nodes import NO_STATS, Node, Stats
from .op import OpTypeEntry, OpView
from .places import ADDED, is_own
from .tree import AccountedNode, Branch, TreeView, sort_key, sum_of

#: An entry is shown if its share of the total is at least 1 / SHARE_DIVISOR: 0.5 %.
SHARE_DIVISOR: Final = 200
#: A scope and its only child share a row if at most 1 / _REMAINDER_DIVISOR of the scope's numbers
#: are not in the child.
_REMAINDER_DIVISOR: Final = 20

#: Times in ns by node, one for each of the same steps.
Times = dict[str, list[int]]
#: Looks up the user's line that created a node: `Places.line`.
LineLookup = Callable[[Node], str]


class Row(NamedTuple):
    """One row: its own numbers, the totals with all entries below, and its description.

    `name` is relative to the parent row, `key` the full name. `op` and `line` are the op type and
    the user's line with most of the row's time; in the graph view, they are those of the node
    itself. `times` are in ns, one for each step of the spread.
    """

    name: str
    key: str
    depth: int
    own: Stats
    total: Stats
    nodes: tuple[Node, ...]
    definitions: int
    is_leaf: bool = True
    op: str = ""
    line: str = ""
    times: Sequence[int] = ()


def extremes(times: Sequence[int], typical_ns: float) -> tuple[int, int]:
    """Return the shortest and the longest time in a step, ns; ``times`` is not empty.

    The typical time is a sum of medians, so it may be below or above the times of all steps. In
    that case it is itself the shortest or the longest time.
    """
    return min(*times, round(typical_ns)), max(*times, round(typical_ns))


@dataclass(frozen=True, slots=True)
class VisibleRows:
    """Rows in order, and the numbers of hidden entries.

    `total`: the total to which shares refer. `empty_count`: entries whose selected counters are all
    0; `small_count`: entries below the limit; `cut_count`: entries beyond the number of rows to
    show; `library_count`: calls in libraries.
    """

    rows: tuple[Row, ...]
    total: Stats
    empty_count: int = 0
    small_count: int = 0
    library_count: int = 0
    cut_count: int = 0


class Limit(NamedTuple):
    """The limit for a row: an entry needs a share of 1 / SHARE_DIVISOR in any selected counter.

    `counters`: the positions of the selected counters in Stats; without any, there is no limit.
    `total`: the total to which shares refer.
    """

    counters: tuple[int, ...]
    total: Stats

    def is_empty(self, stats: Stats) -> bool:
        """Return whether all selected counters of an entry are 0."""
        return bool(self.counters) and not any(stats[at] > 0 for at in self.counters)

    def is_small(self, stats: Stats) -> bool:
        """Return whether an entry is below the limit."""
        return bool(self.counters) and not any(
            stats[at] > 0 and stats[at] * SHARE_DIVISOR >= self.total[at] for at in self.counters
        )


class Parts(NamedTuple):
    """The parts into which op types are taken apart, in order, with their names.

    `add_up`: whether the numbers of an op type are the sums of those of its parts. Steps as parts
    do not add up: each of them has the whole number in that step.
    """

    by_op: Mapping[str, Sequence[OpTypeEntry]]
    add_up: bool = True


NO_PARTS: Final = Parts({})


# -- descriptions of entries -----------------------------------------------------------------------


class _TimeBreakdown:
    """The time of an entry by op type, by line and by step."""

    __slots__ = ("lines", "ops", "times")

    def __init__(self) -> None:
        self.ops: dict[str, int] = {}
        self.lines: dict[str, int] = {}
        self.times: list[int] = []

    def merge(self, other: "_TimeBreakdown") -> None:
        """Add ``other``, the times of an entry below; ``other`` must not be used afterwards."""
        if len(other.ops) > len(self.ops):
            self.ops, other.ops = other.ops, self.ops
        if len(other.lines) > len(self.lines):
            self.lines, other.lines = other.lines, self.lines
        for sums, other_sums in ((self.ops, other.ops), (self.lines, other.lines)):
            for key, time in other_sums.items():
                sums[key] = sums.get(key, 0) + time
        self._add(other.times)

    def add(self, nodes: Iterable[Node], times: Times, line_of: LineLookup) -> None:
        """Add the times of ``nodes``."""
        for node in nodes:
            time = node.stats.micros
            if time > 0:
                self.ops[node.op] = self.ops.get(node.op, 0) + time
                if text := line_of(node):
                    self.lines[text] = self.lines.get(text, 0) + time
            self._add(times.get(node.name, ()))

    def _add(self, times: Sequence[int]) -> None:
        if times:
            self.times = list(map(add, self.times, times)) if self.times else list(times)

    def summary(self) -> tuple[str, str, Sequence[int]]:
        """Return the op type and the line with most of the time, and the times."""
        return _heaviest(self.ops), _heaviest(self.lines), tuple(self.times)


def _heaviest(weights: dict[str, int]) -> str:
    return max(weights, key=weights.__getitem__, default="")


# -- the op view ----------------------------------------------------------------------------------


def op_rows(
    view: OpView, times: Times, limit: Limit, line_of: LineLookup, top: int = 0, parts: Parts = NO_PARTS
) -> VisibleRows:
    """Return a row for each op type above the limit, and a last row for all others.

    Op types whose selected counters are all 0 get no row. A single op type below the limit keeps
    its own row. ``top``: how many op types have a row of their own, 0 for no limit. The rows of
    ``parts``, below that of their op type, are chosen in the same way, by their shares of all op
    types of the view.
    """
    chosen = _choose(view.entries, limit, top)
    part_limit = Limit(limit.counters, sum_of([NO_STATS, *[entry.own for entry in view.entries]]))
    rows = []
    for entry in chosen.shown:
        rows.append(_op_row(entry.name, [entry], times, line_of))
        rows += _part_rows(parts, entry.name, part_limit, top, times, line_of)
    if chosen.others:
        rows.append(_others_row(chosen, times, line_of))
    return VisibleRows(tuple(rows), view.total, chosen.empty_count, chosen.small_count, cut_count=chosen.cut_count)


class _Chosen(NamedTuple):
    """The entries with rows of their own, those that share a row, and numbers of hidden ones."""

    shown: Sequence[OpTypeEntry]
    others: Sequence[OpTypeEntry]
    empty_count: int
    small_count: int
    cut_count: int


def _choose(entries: Sequence[OpTypeEntry], limit: Limit, top: int) -> _Chosen:
    empty = [entry for entry in entries if limit.is_empty(entry.own)]
    small = [entry for entry in entries if limit.is_small(entry.own) and not limit.is_empty(entry.own)]
    if len(small) == 1:
        small = []  # a row of its own takes no more space than a row for all others
    hidden = {id(entry) for entry in (*empty, *small)}
    shown = [entry for entry in entries if id(entry) not in hidden]
    cut = shown[top:] if top else []
    return _Chosen(shown[: len(shown) - len(cut)], [*cut, *small], len(empty), len(small), len(cut))


def _part_rows(parts: Parts, op: str, limit: Limit, top: int, times: Times, line_of: LineLookup) -> Iterator[Row]:
    """Yield the rows of an op type's parts; other steps have a row without numbers."""
    chosen = _choose(parts.by_op.get(op, ()), limit if parts.add_up else Limit((), limit.total), top)
    for part in chosen.shown:
        yield _op_row(part.name, [part], times if parts.add_up else {}, line_of)._replace(depth=1)
    if chosen.others and parts.add_up:
        yield _others_row(chosen, times, line_of)._replace(depth=1)
    elif chosen.others:
        yield Row(name := _others_name(chosen), name, 1, NO_STATS, NO_STATS, (), 0)


def _others_name(chosen: _Chosen) -> str:
    return f"({len(chosen.others)} other{'s' * (len(chosen.others) > 1)})"


def _others_row(chosen: _Chosen, times: Times, line_of: LineLookup) -> Row:
    return _op_row(_others_name(chosen), chosen.others, times, line_of)._replace(line="", op="")


def _op_row(name: str, entries: Sequence[OpTypeEntry], times: Times, line_of: LineLookup) -> Row:
    breakdown = _TimeBreakdown()
    nodes = tuple(node for entry in entries for node in entry.nodes)
    breakdown.add(nodes, times, line_of)
    own = sum_of([NO_STATS, *[entry.own for entry in entries]])
    return Row(name, name, 0, own, own, nodes, len(nodes), True, *breakdown.summary())


# -- trees ----------------------------------------------------------------------------------------


def _is_own_call(branch: Branch) -> bool:
    entry = branch.entry
    return isinstance(entry, Call) and entry.site.frame is not None and is_own(entry.site.frame)


class RowFilter(NamedTuple):
    """The rules that decide which entries of a tree get a row.

    `own_only`: only the user's own calls get a row.
    """

    view: str
    limit: Limit
    own_only: bool = False

    def is_empty(self, branch: Branch) -> bool:
        """Return whether all selected counters of an entry are 0."""
        return self.limit.is_empty(self._numbers(branch))

    def is_library_call(self, branch: Branch) -> bool:
        """Return whether an entry is hidden because it is a call in a library."""
        return self.own_only and not _is_own_call(branch)

    def keeps(self, branch: Branch) -> bool:
        """Return whether an entry gets a row."""
        return not self.limit.is_small(self._numbers(branch)) and not self.is_library_call(branch)

    def joins(self, top: Branch, child: Branch) -> bool:
        """Return whether nearly all of ``top`` is in ``child``, so that one row can show both."""
        if self.view != "scope" or not self.limit.counters:
            return False
        return all(
            (top.total[at] - child.total[at]) * _REMAINDER_DIVISOR <= top.total[at] for at in self.limit.counters
        )

    def _numbers(self, branch: Branch) -> Stats:
        is_group = self.view == "graph" and branch.name == ADDED
        return branch.own if self.view == "graph" and not is_group else branch.total


class _Tree:
    """The entries of a view, parents first.

    `children`: for each entry with a row, the positions of the nearest entries with a row below it.
    """

    def __init__(self, root: Branch, row_filter: RowFilter, order_by: str) -> None:
        self.branches = [root]
        self.parents = [-1]
        self.has_row = [True]
        self.children: list[list[int]] = [[]]
        nearest_with_row = [0]  # of each entry: itself if it has a row, else the nearest ancestor that has one
        pending = [(child, 0) for child in reversed(root.children)]
        while pending:
            branch, parent = pending.pop()
            at, has_row = len(self.branches), row_filter.keeps(branch)
            self.branches.append(branch)
            self.parents.append(parent)
            self.has_row.append(has_row)
            self.children.append([])
            nearest_with_row.append(at if has_row else nearest_with_row[parent])
            if has_row:
                self.children[nearest_with_row[parent]].append(at)
            pending.extend((child, at) for child in reversed(branch.children))
        key = sort_key(order_by, sorts_by_occurrence=True)
        if key is not None:
            for children in self.children:
                children.sort(key=lambda at: key(self.branches[at]), reverse=True)

    def summaries(self, times: Times, line_of: LineLookup) -> list[tuple[str, str, Sequence[int]]]:
        """Return op type, line and times of each entry, including all entries below it."""
        breakdowns = [_TimeBreakdown() for _ in self.branches]
        summaries: list[tuple[str, str, Sequence[int]]] = [("", "", ())] * len(self.branches)
        shown_ids = {id(branch.entry) for branch in self.branches}
        for at in range(len(self.branches) - 1, -1, -1):
            breakdown = breakdowns[at]
            breakdown.add(self.branches[at].nodes, times, line_of)
            for entry in _hidden_below(self.branches[at], shown_ids):
                breakdown.add(entry.nodes, times, line_of)
            if self.has_row[at]:
                summaries[at] = breakdown.summary()
            if self.parents[at] >= 0:
                breakdowns[self.parents[at]].merge(breakdown)
        return summaries


def _hidden_below(branch: Branch, shown_ids: Collection[int]) -> Iterator[AccountedNode]:
    """Yield the entries in the total of ``branch`` that options such as -max_depth hide.

    Entries below another shown entry are in the total of that entry. ``shown_ids``: ids of the
    shown entries.
    """
    if branch.entry is None or branch.total != branch.entry.total:  # the total covers shown entries only
        return
    pending = list(branch.entry.children)
    while pending:
        entry = pending.pop()
        if id(entry) not in shown_ids:
            yield entry
            pending.extend(entry.children)


def tree_rows(view: TreeView, times: Times, row_filter: RowFilter, order_by: str, line_of: LineLookup) -> VisibleRows:
    """Return the rows of a tree, and the counts of hidden entries."""
    tree = _Tree(view.root, row_filter, order_by)
    summaries, rows = tree.summaries(times, line_of), []
    pending = [(at, 0, "") for at in reversed(tree.children[0])]
    while pending:
        at, depth, parent_prefix = pending.pop()
        top = tree.branches[at]
        top_summary = summaries[at]
        while len(tree.children[at]) == 1 and row_filter.joins(top, tree.branches[tree.children[at][0]]):
            at = tree.children[at][0]
        branch, children = tree.branches[at], tree.children[at]
        rows.append(
            Row(
                branch.name.removeprefix(parent_prefix),
                branch.name,
                depth,
                branch.own,
                top.total,
                branch.nodes,
                branch.definitions,
                not children,
                *(_node_description(branch, top_summary, line_of) if row_filter.view == "graph" else top_summary),
            )
        )
        prefix = f"{branch.name}/" if row_filter.view == "scope" else ""
        pending.extend((child, depth + 1, prefix) for child in reversed(children))
    hidden = [branch for branch, has_row in zip(tree.branches, tree.has_row, strict=True) if not has_row]
    library_count = sum(map(row_filter.is_library_call, hidden))
    empty_count = sum(row_filter.is_empty(branch) and not row_filter.is_library_call(branch) for branch in hidden)
    small_count = len(hidden) - empty_count - library_count
    return VisibleRows(tuple(rows), view.root.total, empty_count, small_count, library_count)


def largest(rows: VisibleRows, top: int, counter: str) -> VisibleRows:
    """Return the ``top`` rows of a tree with the largest totals of ``counter``, 0 for all.

    A row is at least as large as those below it, so that the rows above a kept one are kept.
    """
    if not top or len(rows.rows) <= top:
        return rows
    by_size = sorted(range(len(rows.rows)), key=lambda at: -getattr(rows.rows[at].total, counter))
    kept = tuple(rows.rows[at] for at in sorted(by_size[:top]))
    return replace(rows, rows=kept, cut_count=len(rows.rows) - top)


def _node_description(
    branch: Branch, summary: tuple[str, str, Sequence[int]], line_of: LineLookup
) -> tuple[str, str, Sequence[int]]:
    """Return op type, line and times of an entry of the graph view.

    Op type and line are the node's own; the row of all added nodes has none.
    """
    if not branch.nodes or branch.name == ADDED:
        return "", "", summary[2]
    return branch.nodes[0].op, line_of(branch.nodes[0]), summary[2]


def with_unattributed_row(rows: VisibleRows, total: Stats, limit: Limit) -> VisibleRows:
    """Return ``rows`` with shares of ``total``, and a row for nodes without a call.

    There is no such row if these nodes do not reach the limit.
    """
    remainder = Stats(*map(sub, total, rows.total))
    if limit.is_small(remainder) or not any(remainder):
        return replace(rows, total=total)
    name = "(no line of Python)"
    return replace(rows, rows=(*rows.rows, Row(name, name, 0, remainder, remainder, (), 0)), total=total)
