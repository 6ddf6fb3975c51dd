"""Says where the user's program made nodes: the line, with its function or the layer of Keras."""

import re
from collections.abc import Callable, Collection
from typing import Final

from .layers import short_layer_lookup
from .nodes import Frame, Node
from .own_files import Stack, own_frame, own_line, own_location, stack_lookup

#: Paths of files of Keras, in all its packages.
_KERAS: Final = re.compile(r".*/(?:tf_)?keras/.*", re.DOTALL)


class Places:
    """Looks up the places of ``nodes``.

    The place of a gradient is that of its forward op.
    """

    def __init__(self, nodes: Collection[Node]) -> None:
        self._nodes = nodes
        self._stack_of = stack_lookup(nodes)
        self._layer_of: Callable[[Node], str] | None = None
        #: By identity, since nodes share their stacks and keep them alive.
        self._texts: dict[int, tuple[str, str, bool]] = {}

    def stack(self, node: Node) -> Stack | None:
        """Return the Python stack that created a node, or its forward op."""
        return self._stack_of(node)

    def line(self, node: Node) -> str:
        """Return the innermost of the user's lines, as `train.py:12`, '' without one.

        A line that calls Keras makes many layers. The layer therefore stands beside such a line:
        `train.py:12 (dense_1)`.
        """
        line, _, calls_keras = self._text(node)
        return self._with_layer(line, node) or line if calls_keras else line

    def location(self, node: Node) -> str:
        """Return the line with its function, as `train.py:12 (step)`, or with the layer."""
        line, location, calls_keras = self._text(node)
        return self._with_layer(line, node) or location if calls_keras else location

    def _text(self, node: Node) -> tuple[str, str, bool]:
        stack = self._stack_of(node)
        if id(stack) not in self._texts:
            self._texts[id(stack)] = own_line(stack), own_location(stack), _calls_keras(stack)
        return self._texts[id(stack)]

    def _with_layer(self, line: str, node: Node) -> str:
        if self._layer_of is None:
            self._layer_of = short_layer_lookup(self._nodes)
        layer = self._layer_of(node)
        return f"{line} ({layer})" if layer else ""


def _calls_keras(stack: Stack | None) -> bool:
    """Return whether there are calls of Keras below the user's innermost call."""
    frame: Frame | None = own_frame(stack)
    if stack is None or frame is None:
        return False
    innermost = len(stack) - 1 - stack[::-1].index(frame)
    return any(_KERAS.fullmatch(below.file) for below in stack[innermost + 1 :])
