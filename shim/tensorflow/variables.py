"""Variables of graphs: which nodes are parameters, and which of these are trained."""

from __future__ import annotations

import sys

from ..guard import guarded
from . import models

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional

    from .models import Weights

    Sizes = Optional[List[int]]  # -1: unknown size; None: unknown rank

#: Keys in a frames record: trained variables, other weights, and variables of no model.
TRAINED, OTHERS, STATE = "variables", "others", "state"
_VARIABLES = ("VarHandleOp", "VariableV2", "Variable")
_TRAINABLE, _GLOBAL, _LOCAL = "trainable_variables", "variables", "local_variables"
#: Packages of Keras, and their modules that make additional variables: optimizers, scales of
#: losses, metrics.
_KERAS = ("tensorflow.python.keras", "keras", "keras.src", "tf_keras.src")
_KERAS_MODULES = (
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
_AUXILIARY_MODULES = (
    "tensorflow.python.training.optimizer",
    "tensorflow.python.training.slot_creator",
    "tensorflow.python.training.moving_averages",
    "tensorflow.python.training.experimental.loss_scale",
    "tensorflow.python.ops.metrics_impl",
    *("%s.%s" % (package, name) for package in _KERAS for name in _KERAS_MODULES),
)


class _Variable(object):
    """A variable of a graph: its id, node and copies, and whether it is an integer."""

    __slots__ = ("copy_names", "is_integer", "name", "variable_id")

    def __init__(self, variable: Any, copies: list[Any]) -> None:
        self.variable_id = id(variable)
        self.name = str(variable.op.name)
        self.is_integer = bool(variable.dtype.is_integer)
        self.copy_names = [str(each.op.name) for each in copies]


def changed_nodes(graph: Any, ops: list[Any], known_keys: dict[str, list[str]]) -> dict[str, dict[str, Sizes]]:
    """Return the nodes of the graph's variables whose keys have changed, by key.

    ``known_keys`` maps nodes to the keys that they had before; it is updated. ``ops`` are the new
    ops of the graph. The values of the nodes are sizes, all of them unknown here. A variable that
    cannot be examined is left out; it affects neither other variables nor the frames of nodes.
    """
    changed: dict[str, dict[str, Sizes]] = {}
    roles = _collection_roles(graph)
    parameter_nodes = {name for key, name in roles if key != STATE}
    roles += [(STATE, name) for name in _auxiliary_nodes(ops) or () if name not in parameter_nodes]
    keys: dict[str, list[str]] = {}
    for key, name in roles:
        keys.setdefault(name, []).append(key)
    for name, current in keys.items():
        if known_keys.get(name) != current:
            known_keys[name] = current
            for key in current:
                changed.setdefault(key, {})[name] = None
    return changed


def _collection_roles(graph: Any) -> list[tuple[str, str]]:
    """Return keys and nodes of the variables in the graph's collections."""
    trainable, global_variables, local = (_collection(graph, name) or [] for name in (_TRAINABLE, _GLOBAL, _LOCAL))
    trainable_ids, local_ids = set(map(id, trainable)), set(map(id, local))
    entries = [(id(member), _variable(member, graph)) for member in [*trainable, *global_variables, *local]]
    variables = {member_id: variable for member_id, variable in entries if variable is not None}
    trained_by_id = models.Weights(models.remembered_models() if variables else []).trained_by_id
    roles: list[tuple[str, str]] = []
    for member_id, variable in variables.items():
        is_trained = trained_by_id.get(variable.variable_id)
        if member_id in trainable_ids:
            roles.append((TRAINED, variable.name))
        if is_trained is False:
            roles.append((OTHERS, variable.name))
        elif is_trained is None and member_id not in trainable_ids and (variable.is_integer or member_id in local_ids):
            roles.append((STATE, variable.name))
        roles.extend((STATE, name) for name in variable.copy_names)
    return roles


@guarded
def _auxiliary_nodes(ops: list[Any]) -> list[str]:
    """Return the nodes of variables that optimizers, averages and metrics made."""
    files = {str(getattr(sys.modules[name], "__file__", None)) for name in _AUXILIARY_MODULES if name in sys.modules}
    return [
        str(op.name)
        for op in ops
        if op.type in _VARIABLES and any(frame.filename in files for frame in frames_of(op) or ())
    ]


def captured_parameters(
    graph: Any, known_variables: dict[str, tuple[str, str]], weights: Weights
) -> dict[str, dict[str, Sizes]]:
    """Return the placeholders of parameters in a function's graph by key, with their sizes.

    Parameters that are not trained are frozen weights or moving statistics. ``known_variables``
    maps the ids of variables that were returned before, for any graph, to their key and
    placeholder; it is updated. Such a variable is returned again, with the same placeholder, if its
    model has begun or ceased to train it meanwhile.
    """
    parameters: dict[str, dict[str, Sizes]] = {}
    placeholders = _placeholders(graph) or {}
    for reference in getattr(graph, "_weak_variables", ()) if placeholders else ():
        variable = reference()
        entry = _placeholder(variable, placeholders, weights)
        if entry is None:
            continue
        variable_id, name, sizes = entry
        is_trained = weights.trained_by_id.get(id(variable))
        key = OTHERS if is_trained is False else TRAINED
        previous, first_name = known_variables.get(variable_id, (None, name))
        if previous is None or (is_trained is not None and previous != key):
            known_variables[variable_id] = key, first_name
            parameters.setdefault(key, {})[first_name] = sizes
    return parameters


@guarded
def _collection(graph: Any, name: str) -> list[Any]:
    return list(graph.get_collection(name))


@guarded
def _variable(variable: Any, graph: Any) -> _Variable | None:
    """Return the facts about ``variable``; None where it belongs to another graph."""
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
def _placeholder(variable: Any, placeholders: dict[int, Any], weights: Weights) -> tuple[str, str, Sizes] | None:
    """Return a variable's id, placeholder node and sizes; None where it is not a parameter.

    A variable of no known model is a parameter if it is trainable and not an integer: Keras's count
    of batches is an integer that claims to be trainable.
    """
    if variable is None or id(variable) in weights.copy_ids:
        return None
    is_weight = id(variable) in weights.trained_by_id
    if not is_weight and (not variable.trainable or variable.dtype.is_integer):
        return None
    tensor = placeholders.get(id(variable.handle))
    if tensor is None:
        return None
    shape = variable.shape
    sizes = None if shape.ndims is None else [-1 if size is None else int(size) for size in shape.as_list()]
    return str(variable._unique_id), str(tensor.op.name), sizes


def frames_of(op: Any) -> Any:
    """Return the frames of ``op``, outermost first, as TensorFlow stores them."""
    trace = getattr(op, "_traceback", None)
    return op.traceback if trace is None else trace
