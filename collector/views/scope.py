"""The scope view: the nodes as a tree by the parts of their names between slashes."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from tfprof.collector.views.account import accounts
from tfprof.collector.views.matcher import encoded
from tfprof.collector.views.nodes import NOTHING, Node
from tfprof.collector.views.options import Options
from tfprof.collector.views.rules import DEFAULT, Rules
from tfprof.collector.views.tree import Kept, TreeView, root_of, tree_view

#: The op type of a scope that is no node.
SCOPE_TYPE: Final = "_kTFScopeParent"


def _parent(name: str) -> str | None:
    scope, slash, _ = name.rpartition("/")
    return scope if slash else None


def _with_scopes(names: Iterable[str]) -> list[str]:
    """Return ``names`` and every scope around them, in bytewise order."""
    known = set(names)
    for name in list(known):
        scope = _parent(name)
        while scope is not None and scope not in known:
            known.add(scope)
            scope = _parent(scope)
    return sorted(known, key=encoded)


def scope_view(nodes: Sequence[Node], options: Options, rules: Rules = DEFAULT) -> TreeView:
    """Fold nodes in name order into the scope view.

    An entry is kept if it is accounted or has one below it that is; its own numbers count either way.
    """
    accounted = accounts(options.account_type_regexes)
    known = {node.name: node for node in nodes}
    scope_accounted = accounted(Node("", SCOPE_TYPE, (), NOTHING))
    below: dict[str | None, list[Kept]] = defaultdict(list)
    for name in reversed(_with_scopes(known)):  # what is below a scope sorts after it
        node = known.get(name)
        counts = accounted(node) if node else scope_accounted
        children = below.pop(name, [])
        if counts or children:
            children.reverse()
            own, of = (node.stats, (node,)) if node else (NOTHING, ())
            below[_parent(name)].append(Kept(name, own, of, children, accounted=counts))
    top = below.pop(None, [])
    top.reverse()
    names = frozenset(node.name for node in nodes if accounted(node))
    return tree_view(root_of(top), options, rules, nodes=len(nodes), accounted=names)
