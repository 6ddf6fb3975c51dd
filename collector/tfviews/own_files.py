"""Finds the user's own lines in stacks: those outside of installed packages and Python itself."""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

from .code import basename, forward_name
from .inlined import original_name
from .nodes import Frame, Node

Stack = tuple[Frame, ...]

#: Function name of a script's top-level lines.
_SCRIPT: Final = "<module>"
#: Paths of installed packages and of Python's library, and names that are not files.
_FOREIGN: Final = re.compile(
    r".*/(site-packages|dist-packages|lib/python[0-9.]+)/.*|.*/__autograph_generated_file[^/]*|<.*|", re.DOTALL
)


def own_files(nodes: Iterable[Node]) -> list[str]:
    """Return the base names of the user's files, outermost callers first."""
    stacks = {id(node.facts.stack): node.facts.stack for node in nodes if node.facts.stack}
    files = dict.fromkeys(frame.file for stack in stacks.values() for frame in stack)
    return list(dict.fromkeys(name for file in files if _is_own_file(file) and (name := basename(file))))


def stack_lookup(nodes: Iterable[Node]) -> Callable[[Node], Stack | None]:
    """Return a function that looks up the stack of one of ``nodes``.

    A gradient gets the stack of its forward op, since its own stack only shows the line that
    requested all gradients.
    """
    stacks = {node.name: node.facts.stack for node in nodes if node.facts.stack}
    return lambda node: stacks.get(forward_of(node)) or node.facts.stack


def forward_of(node: Node) -> str:
    """Return the name of the forward op of a gradient, '' for another node."""
    return node.facts.forward or forward_name(original_name(node.name)) or ""


def is_own(frame: Frame) -> bool:
    """Return whether a call is in one of the user's files."""
    return _is_own_file(frame.file)


@lru_cache(1 << 14)  # there are few files and many frames
def _is_own_file(file: str) -> bool:
    return _FOREIGN.fullmatch(file) is None


def own_frame(stack: tuple[Frame, ...] | None) -> Frame | None:
    """Return the innermost of the user's calls in ``stack``.

    If there is none, return the outermost call at the top level of a script, or None.
    """
    own = next(filter(is_own, reversed(stack or ())), None)
    return own or next((frame for frame in stack or () if frame.function == _SCRIPT and frame.file[:1] != "<"), None)


def own_line(stack: tuple[Frame, ...] | None) -> str:
    """Return the innermost of the user's lines in ``stack``, as `train.py:12`.

    Return '' if `own_frame` finds none.
    """
    frame = own_frame(stack)
    return _line(frame) if frame else ""


def own_location(stack: tuple[Frame, ...] | None) -> str:
    """Return the innermost of the user's lines with its function, as `train.py:12 (step)`.

    The top level of a script is shown without a function. Return '' if `own_frame` finds no line.
    """
    frame = own_frame(stack)
    if frame is None:
        return ""
    return _line(frame) if frame.function == _SCRIPT else f"{_line(frame)} ({frame.function})"


def _line(frame: Frame) -> str:
    return f"{basename(frame.file)}:{frame.line}"


def has_own_line(node: Node) -> bool:
    """Return whether the stack of ``node`` contains one of the user's lines."""
    return any(map(is_own, node.facts.stack or ()))
