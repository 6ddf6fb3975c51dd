"""The op view: one entry for each op type, as TensorFlow's own profiler accounts, filters and orders them."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from tfprof.collector.views.nodes import Node, Stats, total
from tfprof.collector.views.options import Matcher, Options

ROOT: Final = "_TFProfRoot"


@dataclass(frozen=True, slots=True)
class Entry:
    """One op type: its picked nodes, their sums, and the running total with all accounted entries after it."""

    name: str
    nodes: tuple[Node, ...]
    own: Stats
    running: Stats

    @property
    def runs(self) -> int:
        """How often the nodes ran, each node counted once."""
        return sum(node.stats.runs for node in self.nodes)


@dataclass(frozen=True, slots=True)
class OpView:
    """The shown entries in order, the total that percentages refer to, and why the other accounted entries are not shown.

    Before the start, after the end (of depth, or by a trim), or hidden by a minimum or a name.
    """

    entries: tuple[Entry, ...]
    total: Stats
    accounted: int
    before: int
    after: int
    hidden: int
    op_types: int


def _picked(nodes: Sequence[Node], patterns: tuple[str, ...]) -> list[Node]:
    """Return the nodes that each pattern takes, one pattern after the other: a node may be there twice."""
    if Matcher(patterns).everything:
        return list(nodes)
    singles = [Matcher((pattern,)) for pattern in patterns]
    return [node for single in singles for node in nodes if any(map(single, node.op_types))]


def _accounted(nodes: Iterable[Node], options: Options) -> list[Entry]:
    by_op: dict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        by_op[node.op].append(node)
    entries = []
    for op in sorted(by_op):
        picked = _picked(by_op[op], options.account_type_regexes)
        if picked:
            own = total(picked)
            entries.append(Entry(op, tuple(dict.fromkeys(picked)), own, own))
    return entries


def value(entry: Entry, stats: Stats, counter: str) -> int:
    """Return what a counter's name stands for; occurrence is the number of nodes, whatever the sums."""
    return len(entry.nodes) if counter == "occurrence" else int(getattr(stats, counter))


def _ordered(entries: list[Entry], order_by: str) -> list[Entry]:
    if order_by == "name":
        return entries
    return sorted(entries, key=lambda entry: value(entry, entry.own, order_by), reverse=True)


def _chained(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries with running totals: own + those of all that follow."""
    running = Stats()
    chained = []
    for entry in reversed(entries):
        running = entry.own.plus(running)
        chained.append(Entry(entry.name, entry.nodes, entry.own, running))
    chained.reverse()
    return chained


def _start(entries: Sequence[Entry], patterns: tuple[str, ...]) -> int:
    matches = Matcher(patterns)
    if not patterns or matches.everything:
        return 0
    return next((at for at, entry in enumerate(entries) if matches(entry.name)), len(entries))


def _filter(options: Options) -> Callable[[Entry], bool]:
    show, hide = Matcher(options.show_name_regexes), Matcher(options.hide_name_regexes)
    minima = options.minima

    def shown(entry: Entry) -> bool:
        if any(value(entry, entry.running, counter) < least for counter, least in minima):
            return False
        return show(entry.name) and not hide(entry.name)

    return shown


def op_view(nodes: Sequence[Node], options: Options) -> OpView:
    """Fold nodes in name order into the op view."""
    accounted = _chained(_ordered(_accounted(nodes, options), options.order_by))
    whole = accounted[0].running if accounted else Stats()
    trims, shown = Matcher(options.trim_name_regexes), _filter(options)
    start = _start(accounted, options.start_name_regexes)
    ends = (at for at in range(start, len(accounted)) if at > options.max_depth or trims(accounted[at].name))
    end = next(ends, len(accounted))
    kept = [entry for entry in accounted[start:end] if shown(entry)]
    after, hidden = len(accounted) - end, end - start - len(kept)
    if options.account_displayed_op_only:
        kept = _chained(kept)
        whole = kept[0].running if kept else Stats()
    return OpView(tuple(kept), whole, len(accounted), start, after, hidden, len({node.op for node in nodes}))
