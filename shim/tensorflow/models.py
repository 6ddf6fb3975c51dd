"""Finds the models that a function refers to, and their weights."""

from __future__ import annotations

import gc
import sys
import types
from typing import Any
from weakref import ref

from ..clock import identity
from ..cpython.codes import names_in
from ..guard import guarded, of_job
from ..weak_table import WeakTable

_DEPTH_MAX = 12  # maximum depth of references from a function, among them those of cells and dictionaries
_OBJECTS_MAX = 512  # maximum objects that are examined, and in one container
_MODELS_MAX = 256  # maximum models that are remembered
_MODULE = "tensorflow.python.module.module"
#: Names of the two properties that list all weights and the trained weights: first in Keras's
#: layers and models, then in TensorFlow's modules.
_WEIGHTS = (("weights", "trainable_weights"), ("variables", "trainable_variables"))
#: Packages whose functions refer to nothing of the job's.
_PACKAGES = ("keras", "tensorflow", "tensorflow_core", "tf_keras", "numpy")

#: Keras models that ran.
remembered = WeakTable()


class Weights(object):
    """Weights of models: whether each is trained, by id, and ids of copies on other devices."""

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
        for name, is_trained in zip(names[::-1], (True, False)):
            for weight in list(of_job(getattr, model, name)):
                variable, copies = variable_and_copies(weight)
                self.trained_by_id.setdefault(identity(variable), is_trained)
                self.copy_ids.update(map(identity, copies))


@guarded
def remember(model: Any) -> None:
    """Remember a Keras model that runs, by a weak reference."""
    if model is not None and model not in remembered and len(remembered) < _MODELS_MAX:
        remembered.set(model)


def referred_models(call: Any) -> list[Any]:
    """Return the models that a call refers to, directly or through functions and plain objects."""
    seen: dict[int, Any] = {}  # by id, the objects themselves, so that no other object gets their ids
    waiting = [(call, 0)]
    while waiting and len(seen) < _OBJECTS_MAX:
        value, depth = waiting.pop()
        if issubclass(type(value), ref):
            value = value()
        if identity(value) in seen or not gc.is_tracked(value):  # the collector tracks all that refers to others
            continue
        seen[identity(value)] = value
        if depth < _DEPTH_MAX:
            waiting.extend((inner, depth + 1) for inner in _references(value))
    return [value for value in seen.values() if is_model(value)]


def is_model(value: Any) -> bool:
    """Return whether the object has weights."""
    return _weight_properties(type(value)) is not None


def _weight_properties(cls: type) -> tuple[str, str] | None:
    """Return the pair of ``_WEIGHTS`` that ``cls`` has as properties, None if it is not a model."""
    if hasattr(cls, "trainable_weights") and hasattr(cls, "weights"):
        return _WEIGHTS[0]
    module = getattr(sys.modules.get(_MODULE), "Module", None)
    return _WEIGHTS[1] if module is not None and issubclass(cls, module) else None


def _references(value: Any) -> list[Any]:
    # Nothing here runs code of the job's, such as that of a proxy, or of a module that is loaded at
    # its first use.
    kind = type(value)
    if kind is types.FunctionType:
        names = () if _is_of_package(value) else names_in(value.__code__)
        referred_globals = [value.__globals__[name] for name in names if name in value.__globals__]
        return [*referred_globals, value.__closure__, value.__defaults__, vars(value).get("__wrapped__")]
    if issubclass(kind, (type, types.ModuleType)) or is_model(value):
        return []
    if _is_of_package(kind):
        return [getattr(value, "_python_function", None)]
    # Large containers hold data. Other objects may hold a model, as the job's trainer does.
    return [] if kind in (list, tuple, dict) and len(value) > _OBJECTS_MAX else gc.get_referents(value)


def _is_of_package(value: Any) -> bool:
    return str(getattr(value, "__module__", "")).partition(".")[0] in _PACKAGES


def variable_and_copies(weight: Any) -> tuple[Any, list[Any]]:
    """Return TensorFlow's variable of a weight, and its copies on other devices."""
    for name in ("_value", "_variable"):
        inner = getattr(weight, name, None)
        if of_job(hasattr, inner, "handle"):
            weight = inner
    copies = list(getattr(weight, "_values", None) or ())
    return (copies[0], copies[1:]) if copies else (weight, [])
