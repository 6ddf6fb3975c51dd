"""Activities of TensorFlow jobs: iterators, checkpoints, summaries, functions of ops, tracing.

A written table names the methods that are observed. Keras's callbacks are timed where its loops
call them, so none of their methods is changed.
"""

from __future__ import annotations

import re
import sys
from types import ModuleType
from typing import Any, Callable, Iterator

from ...formats import activities
from .. import core
from ..clock import mono
from ..guard import called_back, guarded, is_of_job_file, of_job
from ..steps import observer
from ..steps.activities import Activity, begin, observe_collections, place_of, put_ended
from ..weak_table import WeakTable

_TOKENS_MAX = 1024  # maximum number of functions of ops whose names are remembered
_WRAPPERS_MAX = 8  # maximum number of functions around one of the job
_NUMBER = re.compile(r"(_\d+)+\Z")  # TensorFlow's own number of a graph
#: Names of methods of `CallbackList`, and of its helpers, that call the callbacks.
LOOPS = ("on_", "_on_", "_call_")

#: Category, text before a method's name, classes, their methods.
_METHODS = (
    (activities.CHECKPOINT, "Saver.", "Saver", "save restore"),
    (activities.CHECKPOINT, "CheckpointManager.", "CheckpointManager", "save restore_or_initialize"),
    (activities.CHECKPOINT, "Checkpoint.", "Checkpoint CheckpointV1", "save write read restore"),
    (activities.CHECKPOINT, "Model.", "Model Network", "save save_weights load_weights export"),
    (activities.SUMMARY, "FileWriter.", "SummaryToEventTransformer FileWriter", "add_summary add_event flush close"),
    (activities.SUMMARY, "SummaryWriter.", "ResourceSummaryWriter _ResourceSummaryWriter", "flush close"),
    (activities.SUMMARY, "SummaryWriter.", "_LegacyResourceSummaryWriter", "flush close"),
    (activities.INPUT, "", "IteratorV2 OwnedIterator", "_next_internal get_next_as_optional _create_iterator"),
    (activities.INPUT, "", "MultiDeviceIteratorV2 OwnedMultiDeviceIterator", "get_next"),
)
#: Category, text before a function's name, ends of the names of modules, functions of these.
_FUNCTIONS = (
    (activities.CHECKPOINT, "saved_model.", "saved_model.save", "save"),
    (activities.SUMMARY, "summary.", "summary_ops_v2", "write trace_on trace_export"),
    (activities.INPUT, "", "training_generator training_generator_v1", "_get_next_batch"),
)
#: Class or "" for a module, method, category. Conversions of scalars are too short to count.
_CONVERSIONS = (
    ("_EagerTensorBase", "numpy", activities.FETCH),
    ("", "convert_to_eager_tensor", activities.CONVERSION),
)
_SCALARS = (int, float, bool, str)
_LONG_NS = 20_000
#: Names of activities that have other words than the method.
_NAMES = {
    **dict.fromkeys(("_next_internal", "get_next_as_optional", "get_next"), "next"),
    "_create_iterator": "new iterator",
    "_get_next_batch": "next batch",
}


def patch(module: ModuleType) -> None:
    """Observe what the tables have of ``module``, and garbage collections."""
    observe_collections()
    for category, prefix, classes, methods in _METHODS:
        for owner in map(vars(module).get, classes.split()):
            if isinstance(owner, type) and owner.__module__ == module.__name__:
                _observe(owner, category, prefix, methods)
    for category, prefix, modules, functions in _FUNCTIONS:
        if module.__name__.endswith(tuple("." + name for name in modules.split())):
            _observe(module, category, prefix, functions)


def _observe(owner: object, category: int, prefix: str, names: str) -> None:
    """Observe those of the functions ``names`` that ``owner`` itself has."""
    for name in names.split():
        observer.observe(owner, name, _begins(category, prefix + _NAMES.get(name, name)), 0, observes_end=True)


def _begins(category: int, name: str) -> Callable[[], Activity | None]:
    return lambda: begin(category, name)


# -- graphs that TensorFlow makes ----------------------------------------------------------------


def patch_graphs(module: ModuleType) -> None:
    """Observe the function of ``module`` that makes the graph of a function."""
    observer.observe(module, "func_graph_from_py_func", _graph_begins, observes_end=True)


def _graph_begins(name: object) -> Activity | None:
    return begin(activities.TRACING, _NUMBER.sub("", str(name)))


# -- values of Python and tensors ----------------------------------------------------------------


def patch_values(module: ModuleType) -> None:
    """Observe conversions between tensors and values of Python, named by the line of the job."""
    for owner, name, category in _CONVERSIONS:
        observer.observe(vars(module).get(owner, module), name, _conversion(category), 1, observes_end=True)


def _conversion(category: int) -> Callable[[object], _Conversion | None]:
    return lambda value: None if type(value) in _SCALARS else _Conversion(category)


class _Conversion(object):
    """A running conversion. Most are short: the line of the job is looked up at the end."""

    __slots__ = ("_category", "_start")

    def __init__(self, category: int) -> None:
        self._category, self._start = category, mono()

    @called_back
    def __del__(self) -> None:
        end = mono()
        frame: Any = sys._getframe(1) if end - self._start >= _LONG_NS else None
        while frame is not None and not is_of_job_file(frame):
            frame = frame.f_back
        if frame is not None:
            put_ended(self._category, "in " + place_of(frame.f_code, frame.f_lineno), self._start, end)


# -- functions of the job that ops call ----------------------------------------------------------


def patch_functions_of_ops(module: ModuleType) -> None:
    """Observe calls of the functions in the registry of ``module``."""
    names: dict[object, str] = {}

    def callback(registry: Any, token: object) -> Activity | None:
        name = names.get(token)
        if name is None:
            if len(names) >= _TOKENS_MAX:
                names.clear()
            name = names[token] = _name_of(registry, token) or "unknown"
        return begin(activities.PYTHON_FUNCTION, name)

    observer.observe(vars(module).get("FuncRegistry"), "__call__", callback, 2, observes_end=True)


@guarded
def _name_of(registry: Any, token: object) -> str:
    """Return the name of a function of the job, and its place: `load (train.py:12)`."""
    text = token.decode() if isinstance(token, bytes) else token
    function = registry._funcs.get(text)
    function = _innermost(getattr(function, "_func", function))  # that of an `EagerFunc`
    cells = [of_job(getattr, cell, "cell_contents", None) for cell in getattr(function, "__closure__", None) or ()]
    for owner in (getattr(function, "__self__", None), *cells):
        if type(owner).__name__ == "_GeneratorState":  # what `from_generator` registers
            function = _innermost(vars(owner).get("_generator", function))
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    name = getattr(function, "__name__", None) or type(function).__name__
    return str(name) if code is None else place_of(code, code.co_firstlineno, name)


def _innermost(function: Any) -> Any:
    """Return the function within a decorated or partial one."""
    for _ in range(_WRAPPERS_MAX):
        inner = getattr(function, "__wrapped__", None) or getattr(function, "func", None)
        if not callable(inner):
            break
        function = inner
    return function


# -- callbacks of Keras --------------------------------------------------------------------------


class TimedCallbacks(list):  # type: ignore[type-arg]  # not generic in Python 3.7
    """The callbacks of a list of Keras; the loops of its methods time each of them."""

    __class__ = property(lambda _: list)

    def __iter__(self) -> Iterator[Any]:
        callbacks = list.__iter__(self)
        return _timed(callbacks) if sys._getframe(1).f_code.co_name.startswith(LOOPS) else callbacks

    def __reduce_ex__(self, _protocol: object) -> Any:
        return list, (list(list.__iter__(self)),)


#: Lists of Keras whose callbacks are timed -> their own list of callbacks.
_lists = WeakTable()


def _timed(callbacks: Iterator[Any]) -> Iterator[Any]:
    """Yield each of the ``callbacks``; an activity lasts until the next one is requested."""
    for callback in callbacks:
        activity = _callback_begins(callback)
        yield callback
        del activity


@guarded
def _callback_begins(callback: object) -> Activity | None:
    return begin(activities.CALLBACK, type(callback).__name__)


def time_callbacks(callback_list: Any) -> None:
    """Let ``callback_list`` of Keras time its callbacks until ``disarm``; idempotent."""
    original = vars(callback_list).get("callbacks")
    if type(original) is list:
        core.at_disarm(_restore_lists)
        _lists.set(callback_list, original)
        vars(callback_list)["callbacks"] = TimedCallbacks(original)


def _restore_lists() -> None:
    for callback_list in _lists.existing():
        timed, original = vars(callback_list).get("callbacks"), _lists.get(callback_list)
        if type(timed) is TimedCallbacks:
            original[:] = list(list.__iter__(timed))
            vars(callback_list)["callbacks"] = original
    _lists.clear()
