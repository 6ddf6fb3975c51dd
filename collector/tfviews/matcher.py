"""Regular expressions with the TF profiler's semantics, and filters of nodes by their op types.

The expressions are RE2 on UTF-8, and match whole names, in linear time.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from .encoding import octets
from .nodes import Node

#: The list that matches everything, without being compiled.
ALL: Final = (".*",)
#: Maximum number of cached patterns.
_CACHED_MAX: Final = 256


@lru_cache(_CACHED_MAX)
def _compile(pattern: str) -> tuple[Any, str]:
    """Return the compiled ``pattern`` and '', or None and the error."""
    import re2  # noqa: PLC0415  # 10 ms of a command's start, and most queries name no pattern

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(octets(pattern), options), ""
    except re2.error as error:
        message = error.args[0]
        return None, message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)


def regex_error(pattern: str) -> str:
    """Return the error in ``pattern``, '' if it is a regular expression."""
    return _compile(pattern)[1]


class Matcher:
    """A list of regexes that match whole names (RE2's full match); an invalid one matches nothing.

    ALL matches everything. Without ``shortcut``, ALL is an ordinary `.*`, which matches no name
    with a line break. The TF profiler's options that hide and trim treat it so.
    """

    __slots__ = ("accepts_all", "patterns")

    def __init__(self, patterns: tuple[str, ...], *, shortcut: bool = True) -> None:
        self.accepts_all = shortcut and patterns == ALL
        self.patterns = (
            () if self.accepts_all else tuple(compiled for text in patterns if (compiled := _compile(text)[0]))
        )

    def __call__(self, name: str) -> bool:
        """Return whether a pattern matches all of ``name``."""
        if self.accepts_all or not self.patterns:
            return self.accepts_all
        text = octets(name)
        return any(pattern.fullmatch(text) for pattern in self.patterns)


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
