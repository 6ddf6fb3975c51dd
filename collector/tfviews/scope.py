"""The scope view: a tree of nodes by the components of their names."""

from collections.abc import Iterable, Sequence
from typing import Final

from .account_filter import accounts
from .encoding import octets
from .nodes import NOTHING, Node
from .options import Options
from .parity import DEFAULT, Parity
from .tree import AccountedNode, TreeView, root_of, tree_view

#: Op type of a scope that is not a node.
SCOPE_TYPE: Final = "_kTFScopeParent"


def _scopes(names: Iterable[str]) -> dict[str, str | None]:
    """Return the parent scope of each of ``names`` and of their scopes, None at the top."""
    scopes: dict[str, str | None] = {}
    for name in names:
        inner: str | None = name
        while inner is not None and inner not in scopes:
            outer, slash, _ = inner.rpartition("/")
            scopes[inner] = outer if slash else None
            inner = scopes[inner]
    return scopes


def scope_view(nodes: Sequence[Node], options: Options, parity: Parity = DEFAULT) -> TreeView:
    """Fold nodes in name order into the scope view.

    An entry is kept if it, or one below it, is accounted; its own numbers count in both cases.
    """
    counted = accounts(options.account_type_regexes)
    known = {node.name: node for node in nodes}
    scopes, plain = _scopes(known), all(map(str.isascii, known))
    scope_counted = counted(Node("", SCOPE_TYPE, (), NOTHING))
    below: dict[str | None, list[AccountedNode]] = {}
    names = []
    for name in sorted(scopes, key=None if plain else octets, reverse=True):  # a scope sorts before its descendants
        node = known.get(name)
        accounted = counted(node) if node else scope_counted
        children = below.pop(name, [])
        if node and accounted:
            names.append(name)
        if accounted or children:
            children.reverse()
            own, of = (node.stats, (node,)) if node else (NOTHING, ())
            below.setdefault(scopes[name], []).append(AccountedNode(name, own, of, children, accounted=accounted))
    top = below.pop(None, [])
    top.reverse()
    return tree_view(root_of(top), options, parity, nodes=len(nodes), accounted=frozenset(names))
