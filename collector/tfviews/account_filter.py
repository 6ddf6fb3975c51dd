"""Which nodes -account_type_regexes takes, and how often."""

from collections.abc import Callable
from typing import Any

from .nodes import Node
from .options import Matcher

#: What of a node its op types depend on.
_Kind = tuple[str, tuple[str, ...], tuple[str, ...]]


def _by_kind(judge: Callable[[Node], Any]) -> Callable[[Node], Any]:
    """Return ``judge`` asked once for all nodes with the same op types."""
    known: dict[_Kind, Any] = {}

    def judged(node: Node) -> Any:
        kind = node.op, node.devices, node.facts.types
        if kind not in known:
            known[kind] = judge(node)
        return known[kind]

    return judged


def accounts(patterns: tuple[str, ...]) -> Callable[[Node], bool]:
    """Return what says whether a node has an op type that some pattern matches."""
    matches = Matcher(patterns)
    if matches.everything:
        return lambda _node: True
    return _by_kind(lambda node: any(map(matches, node.op_types)))


def match_counts(patterns: tuple[str, ...]) -> Callable[[Node], int]:
    """Return what says how many patterns match an op type of a node: so often its numbers count in the op and code view."""
    if Matcher(patterns).everything:
        return lambda _node: 1
    singles = [Matcher((pattern,)) for pattern in patterns]
    return _by_kind(lambda node: sum(any(map(single, node.op_types)) for single in singles))
