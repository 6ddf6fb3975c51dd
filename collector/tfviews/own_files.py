"""Which of the lines in nodes' stacks are the user's own: those outside of packages and of Python itself."""

import re
from collections.abc import Callable, Iterable
from typing import Final

from .code import basename, forward_name
from .inlined import inlined
from .nodes import Frame, Node

Stack = tuple[Frame, ...]

#: What the function of a script's own lines is called.
_SCRIPT: Final = "<module>"
#: Where packages are installed, where Python has its own, and what is no file.
_FOREIGN: Final = re.compile(
    r".*/(site-packages|dist-packages|lib/python[0-9.]+)/.*|.*/__autograph_generated_file[^/]*|<.*|", re.DOTALL
)


def own_files(nodes: Iterable[Node]) -> list[str]:
    """Return the names, without folders, of the user's files, outermost callers first."""
    stacks = {id(node.facts.stack): node.facts.stack for node in nodes if node.facts.stack}
    files = dict.fromkeys(frame.file for stack in stacks.values() for frame in stack)
    return list(dict.fromkeys(name for file in files if not _FOREIGN.fullmatch(file) and (name := basename(file))))


def stacks_of(nodes: Iterable[Node]) -> Callable[[Node], Stack | None]:
    """Return what looks up the calls that made one of ``nodes``.

    A gradient has the calls of the node that it is the gradient of: the line that asked for all gradients tells nothing.
    """
    stacks = {node.name: node.facts.stack for node in nodes if node.facts.stack}
    return lambda node: stacks.get(forward_name(inlined(node.name)) or "") or node.facts.stack


def is_own(frame: Frame) -> bool:
    """Whether a call is in a file of the user's."""
    return not _FOREIGN.fullmatch(frame.file)


def own_frame(stack: tuple[Frame, ...] | None) -> Frame | None:
    """Return the innermost call of the user's own in ``stack``, else that of the script; None where there is neither."""
    inside = next(filter(is_own, reversed(stack or ())), None)
    return inside or next((frame for frame in stack or () if frame.function == _SCRIPT and frame.file[:1] != "<"), None)


def own_line(stack: tuple[Frame, ...] | None) -> str:
    """Return the innermost line of the user's own in ``stack``, as `train.py:12`; nothing where there is none."""
    frame = own_frame(stack)
    return f"{basename(frame.file)}:{frame.line}" if frame else ""


def own_place(stack: tuple[Frame, ...] | None) -> str:
    """Return the innermost line of the user's own with its function, as `train.py:12 (step)`; nothing where there is none."""
    frame = own_frame(stack)
    return f"{own_line(stack)} ({frame.function})" if frame and frame.function != _SCRIPT else own_line(stack)


def has_own_line(node: Node) -> bool:
    """Whether a line of the user's own is among the calls that made ``node``."""
    return any(map(is_own, node.facts.stack or ()))
