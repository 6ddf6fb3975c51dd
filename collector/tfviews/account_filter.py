"""The filter of -account_type_regexes, and the number of matches per node."""

from collections.abc import Callable
from typing import Any

from .nodes import Node
from .options import Matcher

#: Facts of a node that determine its op types.
_Key = tuple[str, tuple[str, ...], tuple[str, ...]]


def _cached_by_op_types(function: Callable[[Node], Any]) -> Callable[[Node], Any]:
    """Return ``function``, cached by op types."""
    results: dict[_Key, Any] = {}

    def cached(node: Node) -> Any:
        key = node.op, node.devices, node.facts.types
        if key not in results:
            results[key] = function(node)
        return results[key]

    return cached


def account_filter(patterns: tuple[str, ...]) -> Callable[[Node], bool]:
    """Return a predicate: whether some pattern matches an op type of a node."""
    matches = Matcher(patterns)
    if matches.accepts_all:
        return lambda _node: True
    return _cached_by_op_types(lambda node: any(map(matches, node.op_types)))


def match_counts(patterns: tuple[str, ...]) -> Callable[[Node], int]:
    """Return a function that counts the patterns matching a node.

    This count is the weight of the node in the op view and the code view.
    """
    if Matcher(patterns).accepts_all:
        return lambda _node: 1
    matchers = [Matcher((pattern,)) for pattern in patterns]
    return _cached_by_op_types(lambda node: sum(any(map(matcher, node.op_types)) for matcher in matchers))
