"""Marks in a program's own code, which tfprof shows beside what it records by itself.

    from tfprof_spans import part, profile, span, step

    @span                                   # each call is a span
    def decode(record): ...

    with step(number):
        with part("forward"):               # a part of the step
            ...
        with span("log", to="disk"):        # a span with an attribute
            ...

Without tfprof, marks do nothing. This file needs Python 3.7 and nothing else. The decorators use
wrapt, if it is installed, for callables that are no Python functions.
"""

import functools
import inspect
import os
import threading

__all__ = [
    "activity_end", "activity_start", "finalize", "part", "profile", "span", "step", "step_end", "step_start"
]  # fmt: skip
__version__ = "0.1.0"


def _no_listener(_category, _name, _number=0):
    """Begin a mark. Return an object with a method ``end``, or None without a listener."""


#: A listener such as tfprof replaces this function. The category is "mark", "part", "step" or
#: "profile"; the number is that of a step, or of steps to profile.
_begin = _no_listener


class _Mark(object):
    """A mark around a ``with`` statement, or around each call of what it decorates."""

    __slots__ = ("_about", "_begun")

    def __init__(self, category, name, number):
        self._about = category, name, number
        self._begun = None  # what has begun last, and what before it

    def __enter__(self):
        if _begin is not _no_listener:
            self._begun = _begin(*self._about), self._begun
        return self

    def __exit__(self, kind, error, traceback):
        if self._begun is not None:
            begun, self._begun = self._begun
            if begun is not None:
                begun.end()

    def __call__(self, function):
        return _decorated(function, *self._about)


def span(name="", **attributes):
    """Return a span called ``name``: ``with span("decode"):``, ``@span("decode")``, or ``@span``.

    It may have ``attributes``. As a decorator, each call is a span; for a generator, each time that
    it runs up to its next yield; for a coroutine, the time from its start to its end; for a class,
    each initialization.
    """
    if attributes or type(name) is not str:
        return _marked("mark", name, attributes)
    return _Mark("mark", name, 0)


def part(name="", **attributes):
    """Return a part of a step, such as ``part("forward")``; used like `span`."""
    if attributes or type(name) is not str:
        return _marked("part", name, attributes)
    return _Mark("part", name, 0)


def step(number=0, name="step", **attributes):
    """Return a step of a loop: ``with step(number):``."""
    return _Mark("step", _text(name, attributes), number)


def _marked(category, name, attributes):
    if not isinstance(name, str):
        return _decorated(name, category, "", 0)
    name = str.__str__(name)  # the text of an enumeration's member, for example
    # The text of attributes takes longer than all else.
    return _Mark(category, name if _begin is _no_listener else _text(name, attributes), 0)


def _text(name, attributes):
    """Return a name with those ``attributes`` that are texts or numbers."""
    pairs = ["%s=%s" % pair for pair in attributes.items() if isinstance(pair[1], (str, int, float))]
    return "%s (%s)" % (name, ", ".join(pairs)) if pairs else name


def profile(steps=0):
    """Let tfprof trace steps: ``profile(steps=10)``, ``with profile():``, or ``@profile``.

    ``profile(steps=10)`` begins at once and ends by itself; the others trace all steps within.
    """
    if callable(steps) or isinstance(steps, (classmethod, staticmethod)):
        return _decorated(steps, "profile", "profile", 0)
    if steps:
        _begin("profile", "profile", steps)
        return _Nothing("profile", "profile", steps)
    return _Mark("profile", "profile", 0)


class _Nothing(_Mark):
    """What ``profile(steps=10)`` returns: it has begun already, and ends by itself."""

    __slots__ = ()

    def __enter__(self):
        self._begun = None, self._begun
        return self

    def __call__(self, function):
        return function


# -- decorators ----------------------------------------------------------------------------------


def _decorated(function, *about):
    """Return ``function`` with a mark around each of its calls."""
    category, name, number = about
    if isinstance(function, (classmethod, staticmethod)):
        return type(function)(_decorated(function.__func__, *about))
    name = name or getattr(function, "__qualname__", "").replace("<locals>.", "") or type(function).__name__
    if isinstance(function, type):
        return _decorated_class(function, category, name, number)
    # A `tf.function` is a descriptor, too, but has methods and a type that are needed.
    is_plain = inspect.isfunction(function) or inspect.ismethod(function) or inspect.isbuiltin(function)
    decorate = _wrapped if is_plain else _proxy
    return decorate(function, category, name, number)


def _decorated_class(cls, *about):
    """Let each initialization of a ``cls`` be a mark; the class stays the same object.

    A class without an `__init__` or `__new__` of its own stays as it is.
    """
    if cls.__init__ is object.__init__ and cls.__new__ is not object.__new__:
        cls.__new__ = staticmethod(_wrapped(cls.__new__, *about))
    elif "__init__" in vars(cls):
        cls.__init__ = _wrapped(cls.__init__, *about)
    return cls


def _wrapped(function, *about):
    """Return a function of the same kind as ``function`` that calls it within a mark."""
    kinds = (
        (inspect.isasyncgenfunction, _async_generator),
        (inspect.iscoroutinefunction, _coroutine),
        (inspect.isgeneratorfunction, _generator),
    )
    make = next((make for is_kind, make in kinds if is_kind(function)), _function)
    wrapper = functools.wraps(function)(make(function, *about))
    try:
        wrapper.__signature__ = inspect.signature(function)
    except ValueError:  # a function in C may have none
        pass
    return wrapper


def _proxy(function, *about):
    """Return a proxy of an object that can be called, such as a `tf.function`."""
    try:
        from wrapt import FunctionWrapper
    except ImportError:
        return _wrapped(function, *about)

    class Proxy(FunctionWrapper):
        def __reduce_ex__(self, protocol):
            return self.__wrapped__.__reduce_ex__(protocol)

    return Proxy(function, lambda wrapped, _instance, args, kwargs: _called(wrapped, args, kwargs, *about))


def _called(function, args, kwargs, *about):
    begun = _begin(*about)
    try:
        return function(*args, **kwargs)
    finally:
        if begun is not None:
            begun.end()


def _function(function, *about):
    def call(*args, **kwargs):
        begun = _begin(*about)
        if begun is None:
            return function(*args, **kwargs)
        try:
            return function(*args, **kwargs)
        finally:
            begun.end()

    return call


def _coroutine(function, *about):
    async def call(*args, **kwargs):
        begun = _begin(*about)
        try:
            return await function(*args, **kwargs)
        finally:
            if begun is not None:
                begun.end()

    return call


def _generator(function, *about):
    def call(*args, **kwargs):
        generator = function(*args, **kwargs)
        resume, value = generator.send, None
        while True:
            begun = _begin(*about)
            try:
                item = resume(value)
            except StopIteration as stop:
                return stop.value
            finally:
                if begun is not None:
                    begun.end()
            try:
                resume, value = generator.send, (yield item)
            except GeneratorExit:
                generator.close()
                raise
            except BaseException as error:
                resume, value = generator.throw, error

    return call


def _async_generator(function, *about):
    async def call(*args, **kwargs):
        generator = function(*args, **kwargs)
        resume, value = generator.asend, None
        while True:
            begun = _begin(*about)
            try:
                item = await resume(value)
            except StopAsyncIteration:
                return
            finally:
                if begun is not None:
                    begun.end()
            try:
                resume, value = generator.asend, (yield item)
            except GeneratorExit:
                await generator.aclose()
                raise
            except BaseException as error:
                resume, value = generator.athrow, error

    return call


# -- pairs of calls, as users of the Cambricon profiler know them --------------------------------

_started = {}  # what has begun: (thread, category, name, step) -> handles
_is_on = os.environ.get("TENSORFLOW_MODELS_TRACE_LEVEL", "") != "0"


def activity_start(name, step=None, meta=None):
    """Begin the activity ``name``; the attributes in the dictionary ``meta`` belong to it."""
    _start("mark", name, step, _text(name, meta) if isinstance(meta, dict) else name)


def activity_end(name, step=None, meta=None):
    """End the activity that the calling thread began last with this name and step."""
    del meta
    _end("mark", name, step)


def step_start(graph, step=None):
    """Begin a step of the model ``graph``."""
    _start("step", graph, step, graph)


def step_end(graph, step=None):
    """End the step of the model ``graph``."""
    _end("step", graph, step)


def finalize():
    """End what the calling thread has begun and not ended."""
    thread = threading.get_ident()
    for key in [key for key in list(_started) if key[0] == thread]:  # other threads change it
        while key in _started:
            _end(*key[1:])


def _start(category, name, step, text):
    if _is_on:
        begun = _begin(category, str(text), step if isinstance(step, int) else 0)
        if begun is None:
            return
        _started.setdefault(_key(category, name, step), []).append(begun)


def _end(category, name, step):
    key = _key(category, name, step)
    handles = _started.get(key)
    if handles:
        begun = handles.pop()
        if not handles:
            del _started[key]
        if begun is not None:
            begun.end()


def _key(category, name, step):
    try:
        hash(step)
    except TypeError:  # such as a tensor
        step = id(step)
    return threading.get_ident(), category, name, step
