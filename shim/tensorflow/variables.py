"""Variables of graphs: which nodes are parameters, and which of these are trained."""

from __future__ import annotations

import sys

from ..guard import guarded
from . import models

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional

    from .models import Weights

    Sizes = Optional[List[int]]  # -1: unknown size; None: unknown

#: Keys in a frames record: trained variables, other weights, and variables of no model.
TRAINED, OTHERS, STATE = "variables", "others", "state"
_VARIABLES = ("VarHandleOp", "VariableV2", "Variable")
_TRAINABLE, _GLOBAL, _LOCAL = "trainable_variables", "variables", "local_variables"
#: Packages of Keras, and their modules that make additional variables: optimizers, scales of
#: losses, metrics.
_KERAS = ("tensorflow.python.keras", "keras", "keras.src", "tf_keras.src")
_OF_KERAS = (
    "optimizers",
    "optimizers.optimizer",
    "optimizer_v2.optimizer_v2",
    "optimizers.optimizer_v2.optimizer_v2",
    "optimizers.legacy.optimizer_v2",
    "mixed_precision.loss_scale_optimizer",
    "metrics",
    "metrics.base_metric",
)
#: All modules that make such variables.
_MAKERS = (
    "tensorflow.python.training.optimizer",
    "tensorflow.python.training.slot_creator",
    "tensorflow.python.training.moving_averages",
    "tensorflow.python.training.experimental.loss_scale",
    "tensorflow.python.ops.metrics_impl",
    *("%s.%s" % (package, name) for package in _KERAS for name in _OF_KERAS),
)


class _Variable(object):
    """A variable of a graph: its id, node and copies, and whether it is an integer."""

    __slots__ = ("copies", "name", "number", "whole")

    def __init__(self, first: Any, copies: list[Any]) -> None:
        self.number = id(first)
        self.name = str(first.op.name)
        self.whole = bool(first.dtype.is_integer)
        self.copies = [str(each.op.name) for each in copies]


def of_graph(graph: Any, ops: list[Any], seen: dict[str, list[str]]) -> dict[str, dict[str, Sizes]]:
    """Return the nodes of the graph's variables whose keys have changed, by key.

    ``seen`` maps nodes to the keys that they had before; it is updated. ``ops`` are the new ops of
    the graph. The values are sizes, all of them unknown here. A variable that cannot be examined is
    left out; it affects neither other variables nor the frames of nodes.
    """
    found: dict[str, dict[str, Sizes]] = {}
    roles = _of_collections(graph)
    collected = {name for key, name in roles if key != STATE}
    roles += [(STATE, name) for name in _made(ops) or () if name not in collected]
    keys: dict[str, list[str]] = {}
    for key, name in roles:
        keys.setdefault(name, []).append(key)
    for name, current in keys.items():
        if seen.get(name) != current:
            seen[name] = current
            for key in current:
                found.setdefault(key, {})[name] = None
    return found


def _of_collections(graph: Any) -> list[tuple[str, str]]:
    """Return keys and nodes of the variables in the graph's collections."""
    trainable, every, local = (_collected(graph, name) or [] for name in (_TRAINABLE, _GLOBAL, _LOCAL))
    trained, apart = set(map(id, trainable)), set(map(id, local))
    described = [(id(each), _described(each, graph)) for each in [*trainable, *every, *local]]
    mine = {number: known for number, known in described if known is not None}
    by_model = models.Weights(models.ran() if mine else []).trained
    found: list[tuple[str, str]] = []
    for number, known in mine.items():
        seen = by_model.get(known.number)
        if number in trained:
            found.append((TRAINED, known.name))
        if seen is False:
            found.append((OTHERS, known.name))
        elif seen is None and number not in trained and (known.whole or number in apart):
            found.append((STATE, known.name))
        found.extend((STATE, name) for name in known.copies)
    return found


@guarded
def _made(ops: list[Any]) -> list[str]:
    """Return the nodes of variables that optimizers, averages and metrics made."""
    files = {str(getattr(sys.modules[name], "__file__", None)) for name in _MAKERS if name in sys.modules}
    return [
        str(op.name)
        for op in ops
        if op.type in _VARIABLES and any(frame.filename in files for frame in frames_of(op) or ())
    ]


def captured(graph: Any, seen: dict[str, tuple[str, str]], weights: Weights) -> dict[str, dict[str, Sizes]]:
    """Return the placeholders of parameters in a function's graph by key, with their sizes.

    Parameters that are not trained are frozen weights or moving statistics. ``seen`` holds key and
    placeholder of the variables of any graph that were returned before; it is updated. Such a
    variable is returned again, with the same placeholder, if its model has frozen or thawed it
    meanwhile.
    """
    found: dict[str, dict[str, Sizes]] = {}
    inner = _placeholders(graph) or {}
    for reference in getattr(graph, "_weak_variables", ()) if inner else ():
        variable = reference()
        entry = _placeholder(variable, inner, weights)
        if entry is None:
            continue
        number, name, sizes = entry
        is_trained = weights.trained.get(id(variable))
        key = OTHERS if is_trained is False else TRAINED
        before, first = seen.get(number, (None, name))
        if before is None or (is_trained is not None and before != key):
            seen[number] = key, first
            found.setdefault(key, {})[first] = sizes
    return found


@guarded
def _collected(graph: Any, name: str) -> list[Any]:
    return list(graph.get_collection(name))


@guarded
def _described(variable: Any, graph: Any) -> _Variable | None:
    """Return the properties of a variable; None where it belongs to another graph."""
    first, copies = models.variable_and_copies(variable)
    return _Variable(first, copies) if first.op.graph is graph else None


@guarded
def _placeholders(graph: Any) -> dict[int, Any]:
    """Return the placeholders of a function's graph, by the id of the tensor that each replaces."""
    captures = getattr(graph, "_function_captures", None)
    if captures is not None:
        return dict(captures.by_val_internal)
    return {id(outer): tensor for outer, tensor in list(getattr(graph, "captures", ()))}


@guarded
def _placeholder(variable: Any, inner: dict[int, Any], weights: Weights) -> tuple[str, str, Sizes] | None:
    """Return a variable's id, placeholder node and sizes; None where it is not a parameter.

    A variable of no known model is a parameter if it is trained. Integers never are, though Keras's
    count of batches claims to be trainable by default.
    """
    if variable is None or id(variable) in weights.copies:
        return None
    known = id(variable) in weights.trained
    if not known and (not variable.trainable or variable.dtype.is_integer):
        return None
    tensor = inner.get(id(variable.handle))
    if tensor is None:
        return None
    shape = variable.shape
    sizes = None if shape.ndims is None else [-1 if size is None else int(size) for size in shape.as_list()]
    return str(variable._unique_id), str(tensor.op.name), sizes


def frames_of(op: Any) -> Any:
    """Return the frames of ``op``, outermost first, as TensorFlow stores them."""
    trace = getattr(op, "_traceback", None)
    return op.traceback if trace is None else trace
