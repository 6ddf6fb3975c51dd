"""The op view: one entry per op type, accounted, filtered and sorted like the TF profiler."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

from .encoding import octets
from .matcher import Matcher, match_counts
from .nodes import NO_STATS, Node, Stats
from .options import Options
from .order import ordered
from .parity import DEFAULT, Parity
from .tree import ROOT, counter_of, sum_of

__all__ = ["ROOT", "OpTypeEntry", "OpView", "in_order", "op_types", "op_view"]


@dataclass(frozen=True, slots=True)
class OpTypeEntry:
    """One op type, with its nodes that -account_type_regexes matches.

    ``own``: the sums of these nodes. ``running_total``: the sums of this entry and all accounted
    entries after it; with -account_displayed_op_only, only of the shown entries.
    """

    name: str
    nodes: tuple[Node, ...]
    own: Stats
    running_total: Stats

    @property
    def runs(self) -> int:
        """The number of runs of the nodes, each node counted once."""
        return sum(node.stats.runs for node in self.nodes)


@dataclass(frozen=True, slots=True)
class OpView:
    """The shown entries in order, and counts of the others.

    ``total``: the total to which percentages refer. ``accounted``: number of accounted entries. Of
    these, ``before_start`` lie before the start, ``after_end`` lie after the end (by depth or
    trim), and ``hidden`` are hidden by a minimum or a name. ``op_types``: number of all op types.
    """

    entries: tuple[OpTypeEntry, ...]
    total: Stats
    accounted: int
    before_start: int
    after_end: int
    hidden: int
    op_types: int


def op_types(nodes: Iterable[Node], options: Options) -> list[OpTypeEntry]:
    """Return an entry for each op type by name; a node that n patterns match counts n times."""
    weight_of = match_counts(options.account_type_regexes)
    by_op: dict[str, list[tuple[Node, int]]] = defaultdict(list)
    for node in nodes:
        by_op[node.op].append((node, weight_of(node)))
    entries = []
    for op in sorted(by_op, key=octets):
        weighted_nodes = [(node, weight) for node, weight in by_op[op] if weight]
        own = sum_of([NO_STATS, *[node.stats for node, weight in weighted_nodes for _ in repeat(None, weight)]])
        entries.append(OpTypeEntry(op, tuple(node for node, _ in weighted_nodes), own, own))
    return entries


def in_order(entries: list[OpTypeEntry], order_by: str, parity: Parity) -> list[OpTypeEntry]:
    """Return ``entries`` sorted by their own numbers; occurrence is the number of nodes."""
    key: Callable[[OpTypeEntry], Any]
    position = counter_of(order_by)
    if position is not None:
        key = lambda entry: entry.own[position]  # noqa: E731  # one of two functions
    elif order_by == "occurrence":
        key = lambda entry: len(entry.nodes)  # noqa: E731
    else:
        return entries
    return ordered(entries, key, descending=True, parity=parity)


def _with_running_totals(entries: Sequence[OpTypeEntry]) -> list[OpTypeEntry]:
    """Return the entries with running totals, which sum up each entry and all entries after it."""
    running = NO_STATS
    with_totals = []
    for entry in reversed(entries):
        running = entry.own.plus(running)
        with_totals.append(replace(entry, running_total=running))
    with_totals.reverse()
    return with_totals


def _start(entries: Sequence[OpTypeEntry], patterns: tuple[str, ...]) -> int:
    matches = Matcher(patterns)
    if not patterns or matches.accepts_all:
        return 0
    return next((at for at, entry in enumerate(entries) if matches(entry.name)), len(entries))


def _filter(options: Options, parity: Parity) -> Callable[[OpTypeEntry], bool]:
    """Return the filter by minima and names.

    Minima apply to running totals; that of occurrence applies to the number of nodes. Older
    versions compare this number as unsigned, so a negative minimum hides everything.
    """
    min_nodes = options.min_occurrence % (1 << 64) if parity.compares_unsigned else options.min_occurrence
    matches_show, matches_hide = Matcher(options.show_name_regexes), Matcher(options.hide_name_regexes, shortcut=False)
    minima = [(at, minimum) for counter, minimum in options.minima if (at := counter_of(counter)) is not None]

    def is_shown(entry: OpTypeEntry) -> bool:
        if any(entry.running_total[at] < minimum for at, minimum in minima) or len(entry.nodes) < min_nodes:
            return False
        return matches_show(entry.name) and not matches_hide(entry.name)

    return is_shown


def op_view(nodes: Sequence[Node], options: Options, parity: Parity = DEFAULT) -> OpView:
    """Fold nodes in name order into the op view."""
    entries = in_order(op_types(nodes, options), options.order_by, parity)
    accounted = _with_running_totals([entry for entry in entries if entry.nodes])
    total = accounted[0].running_total if accounted else NO_STATS
    matches_trim, is_shown = Matcher(options.trim_name_regexes, shortcut=False), _filter(options, parity)
    start = _start(accounted, options.start_name_regexes)
    ends = (
        at for at in range(start, len(accounted)) if at - start > options.max_depth or matches_trim(accounted[at].name)
    )
    end = next(ends, len(accounted))
    shown_entries = [entry for entry in accounted[start:end] if is_shown(entry)]
    after, hidden = len(accounted) - end, end - start - len(shown_entries)
    if options.account_displayed_op_only:
        shown_entries = _with_running_totals(shown_entries)
        total = shown_entries[0].running_total if shown_entries else NO_STATS
    return OpView(tuple(shown_entries), total, len(accounted), start, after, hidden, len(entries))
