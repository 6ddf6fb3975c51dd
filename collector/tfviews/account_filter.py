"""The filter of -account_type_regexes, and the number of matches per node."""

from collections.abc import Callable
from typing import Any

from .nodes import Node
from .options import Matcher

#: Facts of a node that determine its op types.
_Kind = tuple[str, tuple[str, ...], tuple[str, ...]]


def _by_kind(row_filter: Callable[[Node], Any]) -> Callable[[Node], Any]:
    """Return ``row_filter``, cached by op types."""
    known: dict[_Kind, Any] = {}

    def judged(node: Node) -> Any:
        kind = node.op, node.devices, node.facts.types
        if kind not in known:
            known[kind] = row_filter(node)
        return known[kind]

    return judged


def accounts(patterns: tuple[str, ...]) -> Callable[[Node], bool]:
    """Return a predicate: whether some pattern matches an op type of a node."""
    matches = Matcher(patterns)
    if matches.everything:
        return lambda _node: True
    return _by_kind(lambda node: any(map(matches, node.op_types)))


def match_counts(patterns: tuple[str, ...]) -> Callable[[Node], int]:
    """Return a function that counts the patterns matching a node.

    This count is the weight of the node in the op view and the code view.
    """
    if Matcher(patterns).everything:
        return lambda _node: 1
    singles = [Matcher((pattern,)) for pattern in patterns]
    return _by_kind(lambda node: sum(any(map(single, node.op_types)) for single in singles))
