"""Variables of graphs: which nodes are parameters, and which of these are trained."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from ..clock import identity
from ..guard import guarded, of_job
from . import models
from .models import Weights

Sizes = Optional[Tuple[int, ...]]  # -1: unknown size; None: unknown rank

#: Keys in a frames record: trained variables, other weights, and variables of no model.
TRAINED, OTHERS, STATE = "variables", "others", "state"
_COLLECTIONS = ("trainable_variables", "variables", "local_variables")


def changed_nodes(graph: Any, known_keys: dict[str, list[str]]) -> dict[str, dict[str, Sizes]]:
    """Return the nodes of the graph's variables whose keys have changed, by key.

    ``known_keys`` maps nodes to the keys that they had before; it is updated. The values of the
    nodes are sizes, all of them unknown here. A variable that cannot be examined is left out; it
    affects neither other variables nor the frames of nodes.
    """
    changed: dict[str, dict[str, Sizes]] = {}
    for name, keys in _keys_by_node(graph).items():
        if known_keys.get(name) != keys:
            known_keys[name] = keys
            for key in keys:
                changed.setdefault(key, {})[name] = None
    return changed


def _keys_by_node(graph: Any) -> dict[str, list[str]]:
    """Return the keys of the variables in the graph's collections, by node."""
    trainable, global_variables, local = (_collection(graph, name) or [] for name in _COLLECTIONS)
    members = {identity(member): member for member in [*trainable, *global_variables, *local]}
    trained_by_id = models.Weights(models.remembered.existing() if members else []).trained_by_id
    trainable_ids, local_ids = set(map(identity, trainable)), set(map(identity, local))
    keys: dict[str, list[str]] = {}
    for member_id, member in members.items():
        roles = _roles(member, graph, trained_by_id, member_id in trainable_ids, member_id in local_ids)
        for key, name in roles or ():
            keys.setdefault(name, []).append(key)
    return keys


@guarded
def _collection(graph: Any, name: str) -> list[Any]:
    return list(graph.get_collection(name))


@guarded
def _roles(
    member: Any, graph: Any, trained_by_id: dict[int, bool], is_trainable: bool, is_local: bool
) -> list[tuple[str, str]]:
    """Return keys and nodes of a variable and its copies, unless they belong to another graph."""
    variable, copies = models.variable_and_copies(member)
    if of_job(getattr, variable, "op").graph is not graph:
        return []
    name, is_trained = str(variable.op.name), trained_by_id.get(identity(variable))
    is_state = is_trained is None and not is_trainable and (bool(variable.dtype.is_integer) or is_local)
    keys = ((TRAINED, is_trainable), (OTHERS, is_trained is False), (STATE, is_state))
    return [(key, name) for key, applies in keys if applies] + [(STATE, str(copy.op.name)) for copy in copies]


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
        is_trained = weights.trained_by_id.get(identity(variable))
        key = OTHERS if is_trained is False else TRAINED
        previous, first_name = known_variables.get(variable_id, (None, name))
        if previous is None or (is_trained is not None and previous != key):
            known_variables[variable_id] = key, first_name
            parameters.setdefault(key, {})[first_name] = sizes
    return parameters


@guarded
def _placeholders(graph: Any) -> dict[int, Any]:
    """Return the placeholders of a function's graph, by the id of the tensor that each replaces."""
    captures = getattr(graph, "_function_captures", None)
    if captures is not None:
        return dict(captures.by_val_internal)
    return {identity(outer): tensor for outer, tensor in list(getattr(graph, "captures", ()))}


@guarded
def _placeholder(variable: Any, placeholders: dict[int, Any], weights: Weights) -> tuple[str, str, Sizes] | None:
    """Return a variable's id, placeholder node and sizes; None where it is not a parameter.

    A variable of no known model is a parameter if it is trainable and not an integer: Keras's count
    of batches is an integer that claims to be trainable.
    """
    if variable is None or identity(variable) in weights.copy_ids:
        return None
    is_weight = identity(variable) in weights.trained_by_id
    if not is_weight and (not of_job(getattr, variable, "trainable") or variable.dtype.is_integer):
        return None
    tensor = placeholders.get(identity(of_job(getattr, variable, "handle")))
    if tensor is None:
        return None
    return str(variable._unique_id), str(tensor.op.name), sizes_of(variable.shape)


def sizes_of(shape: Any) -> Sizes:
    """Return the sizes of a TensorShape."""
    return None if shape.ndims is None else tuple(-1 if size is None else int(size) for size in shape.as_list())
