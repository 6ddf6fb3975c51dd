"""Finds the models that a function refers to, and their weights."""

from __future__ import annotations

import sys
import types
import weakref

from ..guard import guarded
from ..weak_table import WeakTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

_DEPTH_MAX = 6  # maximum depth of references from a function
_OBJECTS_MAX = 256  # maximum objects that are examined
_MODULE = "tensorflow.python.module.module"
#: Names of the two properties that list all weights and the trained weights: first in Keras's
#: layers and models, then in TensorFlow's modules.
_WEIGHTS = (("weights", "trainable_weights"), ("variables", "trainable_variables"))
#: Packages whose functions refer to nothing of the job's.
_PACKAGES = ("keras", "tensorflow", "tensorflow_core", "tf_keras", "numpy")


#: Types of the attribute `__dict__` of a class, if its instances store their attributes.
_DICT_DESCRIPTORS = (types.GetSetDescriptorType, types.MemberDescriptorType)

#: Keras models that ran.
_remembered = WeakTable()
#: Ids of models for which ``remember`` was called; another model may get the id of a deleted one.
remembered_ids: set[int] = set()


class Weights(object):
    """The weights of models: ``trained_by_id`` maps the id of a variable to whether it is trained.

    ``copy_ids`` are the ids of copies of these variables on other devices.
    """

    def __init__(self, models: list[Any]) -> None:
        self.trained_by_id: dict[int, bool] = {}
        self.copy_ids: set[int] = set()
        for model in models:
            self._add(model)

    @guarded
    def _add(self, model: Any) -> None:
        names = _weight_properties(type(model))
        if names is None:
            return
        weights, trained_weights = (list(getattr(model, name)) for name in names)
        for weight, is_trained in [(weight, True) for weight in trained_weights] + [
            (weight, False) for weight in weights
        ]:
            variable, copies = variable_and_copies(weight)
            self.trained_by_id.setdefault(id(variable), is_trained)
            self.copy_ids.update(map(id, copies))


@guarded
def remember(model: Any) -> None:
    """Remember a Keras model that runs, by a weak reference."""
    model_id = id(model)
    if len(remembered_ids) < _OBJECTS_MAX:
        remembered_ids.add(model_id)
    if model is not None and model not in _remembered and len(_remembered) < _OBJECTS_MAX:
        _remembered.set(model)


def remembered_models() -> list[Any]:
    """Return the Keras models that ran and still exist."""
    return _remembered.existing()


def referred_models(call: Any) -> list[Any]:
    """Return the models that a call refers to, as through closures, globals and bound methods."""
    return [value for value in _referred_objects(call) if is_model(value)]


def is_model(value: Any) -> bool:
    """Return whether the object has weights."""
    return _weight_properties(type(value)) is not None


def _weight_properties(cls: type) -> tuple[str, str] | None:
    """Return the pair of ``_WEIGHTS`` that ``cls`` has as properties, None if it is not a model."""
    if hasattr(cls, "trainable_weights") and hasattr(cls, "weights"):
        return _WEIGHTS[0]
    module = getattr(sys.modules.get(_MODULE), "Module", None)
    return _WEIGHTS[1] if module is not None and issubclass(cls, module) else None


def _referred_objects(call: Any) -> Iterator[Any]:
    """Yield each object that a call refers to, directly or through functions and plain objects."""
    seen: set[int] = set()
    examined_objects: list[Any] = []
    waiting = [(call, 0)]
    while waiting and len(seen) < _OBJECTS_MAX:
        value, depth = waiting.pop()
        if issubclass(type(value), weakref.ref):
            value = value()
        if value is None or id(value) in seen:
            continue
        seen.add(id(value))
        examined_objects.append(value)  # so that no other object gets its id
        yield value
        if depth < _DEPTH_MAX:
            waiting.extend((inner, depth + 1) for inner in _references(value, depth))


def _references(value: Any, depth: int) -> list[Any]:
    # Nothing here runs code of the job's, such as that of a proxy, or of a module that is loaded at
    # its first use.
    kind = type(value)
    if kind is types.MethodType:
        return [value.__self__, value.__func__]
    if kind is types.FunctionType:
        return _function_references(value, depth)
    if kind in (list, tuple):
        return list(value[:_OBJECTS_MAX])
    if kind is dict:
        return list(value.values())[:_OBJECTS_MAX]
    return [] if issubclass(kind, (type, types.ModuleType)) else _object_references(value, kind)


def _object_references(value: Any, kind: type) -> list[Any]:
    attributes = _attributes(value)
    inner = attributes.get("_python_function")
    if inner is not None:
        return [inner]
    # Other objects may hold a model, as the job's trainer or a checkpoint does.
    return [] if _weight_properties(kind) is not None or _is_of_package(kind) else list(attributes.values())


def _attributes(value: Any) -> dict[str, Any]:
    """Return the attributes of an object that are stored in it."""
    for base in type(value).__mro__:
        descriptor = vars(base).get("__dict__")
        if descriptor is not None:
            return descriptor.__get__(value) or {} if type(descriptor) in _DICT_DESCRIPTORS else {}
    return {}


def _function_references(function: types.FunctionType, depth: int) -> list[Any]:
    references = [] if function.__closure__ is None else [_content(cell) for cell in function.__closure__]
    wrapped = vars(function).get("__wrapped__")
    if not (depth and _is_of_package(function)):
        names = set(_names(function.__code__))
        references.extend(function.__globals__[name] for name in names if name in function.__globals__)
    return [*references, wrapped, *(function.__defaults__ or ())]


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _empty_cell() -> Any:
    """Return an empty closure cell."""
    value = None

    def inner() -> None:
        return value  # noqa: F821  # never called: only its empty cell is used

    assert inner.__closure__ is not None
    cell = inner.__closure__[0]
    del value
    return cell


_EMPTY_CELL = _empty_cell()


def _content(cell: Any) -> Any:
    return None if cell == _EMPTY_CELL else cell.cell_contents


def _is_of_package(value: Any) -> bool:
    return str(getattr(value, "__module__", "")).partition(".")[0] in _PACKAGES


def variable_and_copies(weight: Any) -> tuple[Any, list[Any]]:
    """Return TensorFlow's variable of a weight, and its copies on other devices."""
    for name in ("_value", "_variable"):
        inner = getattr(weight, name, None)
        if hasattr(inner, "handle"):
            weight = inner
    copies = list(getattr(weight, "_values", None) or ())
    return (copies[0], copies[1:]) if copies else (weight, [])
