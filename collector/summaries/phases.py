"""The phase of training that a node belongs to: forward, backward or optimizer."""

import re
from collections.abc import Sequence
from typing import Final

from ..tfviews.nodes import Node
from .op_classes import BACKWARD, FORWARD, OPTIMIZER

_GRADIENT: Final = re.compile(r"(?:^|/)gradient(?:s|_tape)(?:_\d+)?/")
_APPLIES: Final = re.compile(r"(?:Resource)?(?:Sparse)?Apply[A-Z]")
#: Files and functions of TensorFlow and Keras whose ops are those of an optimizer.
_OPTIMIZER_FILE: Final = re.compile(r".*/(?:optimizers?/[^/]*|optimizer(?:_v\d)?|optimizers)\.py")
_OPTIMIZER_FUNCTIONS: Final = frozenset(
    {"_apply_dense", "_distributed_apply", "_resource_apply_dense", "apply", "apply_gradients", "update_step"}
)


def phases(nodes: Sequence[Node]) -> dict[str, str]:
    """Return the phase of training of each node; an empty result if no node computes a gradient.

    Gradients are known by their scope, the ops of optimizers by their type and by the functions of
    TensorFlow or Keras that created them. All other ops are forward.
    """
    known = {node.name: _phase(node) for node in nodes}
    if BACKWARD not in known.values():
        return {}
    return known


def _phase(node: Node) -> str:
    if _APPLIES.match(node.op) or any(
        frame.function in _OPTIMIZER_FUNCTIONS and _OPTIMIZER_FILE.fullmatch(frame.file)
        for frame in node.facts.stack or ()
    ):
        return OPTIMIZER
    return BACKWARD if _GRADIENT.search(node.name) else FORWARD
