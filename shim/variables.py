"""Trainable variables: which nodes of a graph they are."""

from __future__ import annotations

from .guard import guarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional

    Sizes = Optional[List[int]]  # -1 unknown; None: not told

_COLLECTION = "trainable_variables"


def own(graph: Any, told: set[str]) -> dict[str, Sizes]:
    """Return the nodes of the graph's variables that are not in ``told`` yet, and add them; the nodes themselves have their sizes.

    One variable that cannot be looked at hides no other, a graph that tells none keeps its nodes' frames.
    """
    names = (_node(variable, graph) for variable in _trainable(graph) or ())
    found: dict[str, Sizes] = {name: None for name in names if name is not None and name not in told}
    told.update(found)
    return found


def captured(graph: Any, told: set[str]) -> dict[str, Sizes]:
    """Return the placeholders of variables in a function's graph, and the variables' sizes, which placeholders do not have.

    ``told`` are the variables that were returned before, of whatever graph, and takes in these.
    """
    found: dict[str, Sizes] = {}
    inner = _placeholders(graph) or {}
    for reference in getattr(graph, "_weak_variables", ()) if inner else ():
        entry = _placeholder(reference(), inner)
        if entry is not None and entry[0] not in told:
            told.add(entry[0])
            found[entry[1]] = entry[2]
    return found


@guarded
def _trainable(graph: Any) -> list[Any]:
    return list(graph.get_collection(_COLLECTION))


@guarded
def _node(variable: Any, graph: Any) -> str | None:
    """Return the name of the variable's node, None where it is in another graph: functions list those around them too."""
    op = variable.op
    return str(op.name) if op.graph is graph else None


@guarded
def _placeholders(graph: Any) -> dict[int, Any]:
    """Return the tensors of a function's graph that stand for outer ones, by the identity of these."""
    captures = getattr(graph, "_function_captures", None)
    if captures is not None:
        return dict(captures.by_val_internal)
    return {id(outer): tensor for outer, tensor in list(getattr(graph, "captures", ()))}


@guarded
def _placeholder(variable: Any, inner: dict[int, Any]) -> tuple[str, str, Sizes] | None:
    """Return which variable it is, the name of the node that stands for it, and its sizes; None where it is none, or gone.

    Keras's count of batches says that it is trainable, as variables do unless told otherwise: whole numbers never are.
    """
    tensor = inner.get(id(variable.handle)) if variable is not None and variable.trainable else None
    if tensor is None or variable.dtype.is_integer:
        return None
    shape = variable.shape
    sizes = None if shape.ndims is None else [-1 if size is None else int(size) for size in shape.as_list()]
    return str(variable._unique_id), str(tensor.op.name), sizes
