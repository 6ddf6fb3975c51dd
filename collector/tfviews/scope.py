"""The scope view: a tree of nodes by the components of their names."""

from collections.abc import Iterable, Sequence
from typing import Final

from .account_filter import account_filter
from .encoding import octets
from .nodes import NO_STATS, Node
from .options import Options
from .parity import DEFAULT, Parity
from .tree import AccountedNode, TreeView, root_of, tree_view

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
    for name in sorted(
        parents, key=None if ascii_only else octets, reverse=True
    ):  # a scope sorts before its descendants
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
