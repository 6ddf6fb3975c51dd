"""The scope and the graph view: trees of nodes by their names, and by their inputs.

The code view is folded by the same functions: accounting, filtering and totals, without recursion.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import add, lt
from typing import Any, Final

from .encoding import octets
from .matcher import Matcher, account_filter
from .nodes import NO_STATS, Node, Stats, wrap_int64
from .options import MINIMA, Options
from .order import ordered
from .parity import DEFAULT, Parity

ROOT: Final = "_TFProfRoot"
_COUNTERS: Final = {name: at for at, name in enumerate(Stats._fields) if name in MINIMA.values()} | {"calls": 0}
_LIMIT: Final = 1 << 63


@dataclass(frozen=True, slots=True)
class Branch:
    """One shown entry with its shown children, in order.

    `own`: its own numbers; NO_STATS for the root and for scopes that are not nodes. If the entry is
    not accounted, its own numbers are printed as `--`. `total`: the TF profiler's total_* numbers.
    `nodes`: the node itself, none for the root and for scopes that are not nodes; in the code view,
    the picked nodes of the call. `entry`: the accounted entry, for exports.
    """

    name: str
    own: Stats
    total: Stats
    definitions: int
    accounted: bool
    nodes: tuple[Node, ...]
    children: tuple["Branch", ...]
    entry: "AccountedNode | None" = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class TreeView:
    """The shown tree, and the counts of entries that are not shown.

    `nodes`: number of nodes; `accounted`: names of those that match -account_type_regexes;
    `unreached`: number of nodes in cycles without an outside consumer (graph view), or of gradient
    nodes whose forward op has no stack (code view). `accounted_entries`: number of entries that are
    accounted or have an accounted entry below them, including scopes and frames. Of these,
    `outside_start` lie outside -start_name_regexes, `cut_off` are too deep, or trimmed by
    -trim_name_regexes, `hidden` are hidden by minima or names, and `shown` are shown.
    """

    root: Branch
    nodes: int
    accounted: frozenset[str]
    accounted_entries: int
    outside_start: int
    cut_off: int
    hidden: int
    shown: int
    unreached: int = 0


class AccountedNode:
    """An entry that is accounted, or has an accounted entry below it.

    `accounted`: whether the entry itself is accounted. `total`: its own numbers and the totals of
    its children. `definitions`: the number of entries in its tree, itself included.
    """

    __slots__ = ("accounted", "children", "definitions", "name", "nodes", "own", "total")

    def __init__(
        self,
        name: str,
        own: Stats,
        nodes: tuple[Node, ...],
        children: Sequence["AccountedNode"] = (),
        *,
        accounted: bool,
    ) -> None:
        self.name = name
        self.own = own
        self.nodes = nodes
        self.children = children
        self.accounted = accounted
        self.total = own
        self.definitions = 1
        if children:
            self.total = sum_of([own, *[child.total for child in children]])
            self.definitions = sum([child.definitions for child in children], 1)


def root_of(children: Sequence[AccountedNode]) -> AccountedNode:
    """Return the root above ``children``; it does not count in `definitions`."""
    root = AccountedNode(ROOT, NO_STATS, (), children, accounted=False)
    root.definitions -= 1
    return root


def sum_of(stats: Sequence[Stats]) -> Stats:
    """Return the sums of one or more Stats, wrapped to 64 bits."""
    columns = list(
        map(add, *stats) if len(stats) == 2 else map(sum, zip(*stats, strict=True))
    )  # usually there are two, which `map` adds faster
    if min(columns) < -_LIMIT or max(columns) >= _LIMIT:
        columns = list(map(wrap_int64, columns))
    return Stats._make(columns)


def start_entries(entries: Sequence[AccountedNode], patterns: tuple[str, ...]) -> Sequence[AccountedNode]:
    """Return the topmost entries with matching names; entries below a match are not searched."""
    matches = Matcher(patterns)
    if matches.accepts_all:
        return entries
    matching, pending = [], list(reversed(entries))
    while pending:
        entry = pending.pop()
        if matches(entry.name):
            matching.append(entry)
        else:
            pending.extend(reversed(entry.children))
    return matching


def entry_filter(options: Options) -> Callable[[AccountedNode], bool]:
    """Return the filter of the scope view and the graph view.

    Minima of runs, parameters and float_ops apply to own numbers, the others to totals.
    """
    matches_show, matches_hide = Matcher(options.show_name_regexes), Matcher(options.hide_name_regexes, shortcut=False)
    filters_names = not matches_show.accepts_all or bool(options.hide_name_regexes)
    minima = dict(options.minima) | {"runs": options.min_occurrence}
    lower_bounds = tuple(minima[counter] for counter in Stats._fields)

    def is_shown(entry: AccountedNode) -> bool:
        own, total = entry.own, entry.total
        if any(map(lt, own[:1] + total[1:-2] + own[-2:], lower_bounds)):
            return False
        return not filters_names or (matches_show(entry.name) and not matches_hide(entry.name))

    return is_shown


def counter_of(order_by: str) -> int | None:
    """Return the position in Stats of the counter ``order_by``; None if it is not a counter."""
    return _COUNTERS.get(order_by)


def sort_key(order_by: str, *, sorts_by_occurrence: bool) -> Callable[[Branch], Any] | None:
    """Return the key by which children are sorted in descending order; None to sort by name."""
    at = counter_of(order_by)
    if at is not None:
        return lambda branch: branch.total[at]
    if sorts_by_occurrence and order_by == "occurrence":
        return lambda branch: len(branch.nodes)
    return None


def _name_bytes(branch: Branch) -> bytes:
    return octets(branch.name)


class _Walk:
    """The shown entries of a tree in preorder; `parents`: the positions of their parents."""

    def __init__(
        self, root: AccountedNode, options: Options, is_shown: Callable[[AccountedNode], bool], *, prunes: bool
    ) -> None:
        self.shown: list[AccountedNode] = [root]
        self.parents: list[int] = [-1]
        self.cut_off = self.hidden = 0
        matches_trim, max_depth, has_trims = (
            Matcher(options.trim_name_regexes, shortcut=False),
            options.max_depth,
            bool(options.trim_name_regexes),
        )
        starts = start_entries(root.children, options.start_name_regexes)
        self.entries_from_start = sum(entry.definitions for entry in starts)
        if has_trims and matches_trim(root.name):
            self.cut_off, starts = self.entries_from_start, ()
        pending = [(entry, 2, 0) for entry in reversed(starts)]
        while pending:
            entry, depth, parent = pending.pop()
            is_trimmed = has_trims and matches_trim(entry.name)
            if depth > max_depth or (prunes and is_trimmed):
                self.cut_off += entry.definitions
                continue
            if is_shown(entry):
                self.parents.append(parent)
                parent = len(self.shown)
                self.shown.append(entry)
            else:
                self.hidden += 1
            if is_trimmed:
                self.cut_off += entry.definitions - 1
            elif entry.children:
                pending.extend([(child, depth + 1, parent) for child in reversed(entry.children)])


def tree_view(
    root: AccountedNode,
    options: Options,
    parity: Parity = DEFAULT,
    *,
    nodes: int,
    accounted: frozenset[str],
    unreached: int = 0,
    is_shown: Callable[[AccountedNode], bool] | None = None,
    sorts_by_occurrence: bool = False,
    displayed_only: bool | None = None,
    prunes: bool = False,
) -> TreeView:
    """Filter an accounted tree by the options.

    ``is_shown``: the filter, by default that of scope and graph view. ``sorts_by_occurrence``:
    whether -order_by occurrence is supported. ``displayed_only``: whether totals cover shown
    entries only; the default is -account_displayed_op_only. ``prunes``: remove a trimmed entry
    itself, too, and not only the entries below it, as in the code view.
    """
    walk = _Walk(root, options, is_shown or entry_filter(options), prunes=prunes)
    key, unsorted = sort_key(options.order_by, sorts_by_occurrence=sorts_by_occurrence), not options.order_by
    recounts = options.account_displayed_op_only if displayed_only is None else displayed_only
    children_by_parent: dict[int, list[Branch]] = {}
    branch = None
    for at in range(len(walk.shown) - 1, -1, -1):  # descendants come after their ancestors
        entry, children = walk.shown[at], children_by_parent.pop(at, None) or []
        children.reverse()
        total, definitions = entry.total, entry.definitions
        if recounts:
            total = sum_of([entry.own, *[child.total for child in children]]) if children else entry.own
            definitions = 1 + sum(child.definitions for child in children)
        if len(children) > 1 and not unsorted:
            children = ordered(children, key or _name_bytes, descending=key is not None, parity=parity)
        branch = Branch(entry.name, entry.own, total, definitions, entry.accounted, entry.nodes, tuple(children), entry)
        children_by_parent.setdefault(walk.parents[at], []).append(branch)
    assert branch is not None
    return TreeView(
        root=branch,
        nodes=nodes,
        accounted=accounted,
        accounted_entries=root.definitions,
        outside_start=root.definitions - walk.entries_from_start,
        cut_off=walk.cut_off,
        hidden=walk.hidden,
        shown=len(walk.shown) - 1,
        unreached=unreached,
    )


#: Op type of a scope that is not a node.
SCOPE_TYPE: Final = "_kTFScopeParent"


def _parent_scopes(names: Iterable[str]) -> dict[str, str | None]:
    """Return the parent scope of each of ``names`` and of their scopes, None at the top."""
    parents: dict[str, str | None] = {}
    for name in names:
        inner: str | None = name
        while inner is not None and inner not in parents:
            outer, slash, _ = inner.rpartition("/")
            parents[inner] = outer if slash else None
            inner = parents[inner]
    return parents


def scope_view(nodes: Sequence[Node], options: Options, parity: Parity = DEFAULT) -> TreeView:
    """Fold nodes in name order into the scope view.

    An entry is kept if it, or one below it, is accounted; its own numbers count in both cases.
    """
    is_accounted = account_filter(options.account_type_regexes)
    nodes_by_name = {node.name: node for node in nodes}
    parents, ascii_only = _parent_scopes(nodes_by_name), all(map(str.isascii, nodes_by_name))
    is_scope_accounted = is_accounted(Node("", SCOPE_TYPE, (), NO_STATS))
    children_by_scope: dict[str | None, list[AccountedNode]] = {}
    names = []
    # A scope comes after its descendants.
    for name in sorted(parents, key=None if ascii_only else octets, reverse=True):
        node = nodes_by_name.get(name)
        accounted = is_accounted(node) if node else is_scope_accounted
        children = children_by_scope.pop(name, [])
        if node and accounted:
            names.append(name)
        if accounted or children:
            children.reverse()
            own, own_nodes = (node.stats, (node,)) if node else (NO_STATS, ())
            children_by_scope.setdefault(parents[name], []).append(
                AccountedNode(name, own, own_nodes, children, accounted=accounted)
            )
    roots = children_by_scope.pop(None, [])
    roots.reverse()
    return tree_view(root_of(roots), options, parity, nodes=len(nodes), accounted=frozenset(names))


def _walk(nodes: Sequence[Node]) -> tuple[list[Node], list[int]]:
    """Walk depth first from nodes without consumers, and return the nodes in order.

    Also return for each node the position of the consumer through which the walk met it, -1 for a
    start.
    """
    unvisited = {node.name: node for node in nodes}
    consumed = {name for node in nodes for name in node.facts.inputs}
    pending = [(name, -1) for name in reversed(unvisited) if name not in consumed]
    walked: list[Node] = []
    consumers: list[int] = []
    while pending:
        name, consumer = pending.pop()
        node = unvisited.pop(name, None)
        if node is None:  # already met, or not a node
            continue
        if inputs := node.facts.inputs:
            at = len(walked)
            pending += [(source, at) for source in reversed(inputs)]
        walked.append(node)
        consumers.append(consumer)
    return walked, consumers


def graph_view(nodes: Sequence[Node], options: Options, parity: Parity = DEFAULT) -> TreeView:
    """Fold nodes in name order into the graph view.

    Nodes that are not accounted are dropped. Accounted nodes below them move up to the nearest
    accounted consumer.
    """
    walked, consumers = _walk(nodes)
    is_accounted = list(map(account_filter(options.account_type_regexes), walked))
    parents: list[int] = []  # the nearest accounted consumer
    for consumer in consumers:
        parents.append(consumer if consumer < 0 or is_accounted[consumer] else parents[consumer])
    accounted_inputs: dict[int, list[AccountedNode]] = {}
    for at in range(len(walked) - 1, -1, -1):  # descendants come after their ancestors
        if is_accounted[at]:
            node = walked[at]
            inputs = accounted_inputs.pop(at, [])
            inputs.reverse()
            accounted_inputs.setdefault(parents[at], []).append(
                AccountedNode(node.name, node.stats, (node,), inputs, accounted=True)
            )
    roots = accounted_inputs.pop(-1, [])
    roots.reverse()
    names = frozenset(node.name for node, accounted in zip(walked, is_accounted, strict=True) if accounted)
    unreached = len(nodes) - len(walked)
    return tree_view(root_of(roots), options, parity, nodes=len(nodes), accounted=names, unreached=unreached)
