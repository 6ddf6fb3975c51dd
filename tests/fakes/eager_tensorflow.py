"""A fake eager TensorFlow and Keras: a profiler session, functions, a list of callbacks."""

import ctypes
import os
import sys
import types
import weakref

_libc = ctypes.CDLL(None)
STARTED_LINE = "I tensorflow/tsl/profiler_session.cc:1] Profiler session started."


def log(text):
    """Write a line to the C library's standard error, as TensorFlow's log does."""
    stream = ctypes.c_void_p.in_dll(_libc, "stderr")
    _libc.fputs(text.encode() + b"\n", stream)


class AlreadyExistsError(Exception):
    """Another session is active."""


class Profiler:
    """State of a process's only profiler; ``log`` lists the events of its sessions.

    Each session calls ``on_start`` when it has started.
    """

    def __init__(self):
        self.active = None
        self.log = []
        self.on_start = lambda: None
        self.export = lambda: b"xspace"


def install(monkeypatch):
    """Put the modules into sys.modules for one test; return (profiler, functions, Keras)."""
    state = Profiler()

    class ProfilerSession:
        def start(self, folder, _options):
            log(STARTED_LINE)
            if state.active is not None:
                raise AlreadyExistsError
            state.active, self.folder = weakref.ref(self), folder
            state.log.append("start")
            state.on_start()

        def export_to_tb(self):
            log("I tensorflow/tsl/profiler_session.cc:2] Profiler session tear down.")
            state.active = None
            state.log.append("export")
            plugins = os.path.join(self.folder, "plugins")
            os.makedirs(plugins)
            with open(os.path.join(plugins, "host.xplane.pb"), "wb") as file:
                file.write(state.export())

        def __del__(self):
            if state.active is not None and state.active() in (None, self):
                log("I tensorflow/tsl/profiler_session.cc:2] Profiler session tear down.")
                state.active = None
                state.log.append("drop")

    profiler = module("tensorflow.python.profiler.internal._pywrap_profiler")
    profiler.ProfilerSession = ProfilerSession
    profiler.start_server = lambda port: state.log.append(("server", port))
    ops = module("tensorflow.python.framework.ops")
    ops._default_graph_stack = types.SimpleNamespace(stack=[])
    context = module("tensorflow.python.eager.context")
    context.executing_eagerly = lambda: not ops._default_graph_stack.stack
    context.context = lambda: types.SimpleNamespace(_logical_devices=[types.SimpleNamespace(device_type="CPU")])
    functions = module("tensorflow.python.eager.polymorphic_function.polymorphic_function")
    functions.trace = module("trace")
    functions.trace.enabled = enabled
    functions.trace.Trace = type("Trace", (), {"__init__": _init, "__enter__": _enter, "__exit__": _exit})
    functions.Function = _function(functions)
    keras = module("keras.src.callbacks.callback_list")
    keras.CallbackList = _callback_list()
    keras.Model = _model()
    for fake in (profiler, ops, context, functions, keras):
        monkeypatch.setitem(sys.modules, fake.__name__, fake)
    return state, functions, keras


def tape_module():
    """Return a module with a gradient tape and an optimizer."""
    backprop = module("tensorflow.python.eager.backprop")

    class GradientTape:
        def __enter__(self):
            return self

        def __exit__(self, kind, value, trace):
            pass

        def gradient(self):
            return ()

    class Optimizer:
        __module__ = backprop.__name__

        def apply_gradients(self, gradients):
            return gradients

    backprop.GradientTape, backprop.Optimizer = GradientTape, Optimizer
    return backprop


def enter_graph_construction():
    """Make all calls from now on look like calls during the construction of a graph."""
    sys.modules["tensorflow.python.framework.ops"]._default_graph_stack.stack.append("graph")


def module(name):
    """Return a new module."""
    return types.ModuleType(name)


#: Whether TensorFlow records annotations.
enabled = False


class _TraceMe:
    """A recorded annotation."""

    def Stop(self):  # noqa: N802 - TensorFlow's name
        """Stop."""


def _init(self, name, **_kwargs):
    self.name = name
    self._traceme = _TraceMe() if enabled else None


def _enter(self):
    return self


def _exit(self, *_error):
    if self._traceme:
        self._traceme.Stop()


def _function(functions):
    class Function:
        """Calls ``body`` inside an annotation, as TensorFlow's function does."""

        def __init__(self, name, body=lambda: None):
            self._name, self.body, self._function_cache = name, body, {}

        def __call__(self):
            with functions.trace.Trace(self._name) as annotation:  # noqa: F841 - the shim reads it from the frame
                return self.body()

    return Function


def _callback_list():
    names = ["on_epoch_begin", "on_epoch_end"]
    for mode in ("train", "test", "predict"):
        names += [f"on_{mode}_{when}" for when in ("begin", "end", "batch_begin", "batch_end")]

    def method(name):
        def call(self, *arguments):
            self.events.append((name, *arguments))
            error = self.errors.pop(name, None)
            if error is not None:
                raise error

        call.__name__ = name
        return call

    def init(self, model=None, steps=None):
        self.events, self.errors, self.model, self.params = [], {}, model, {"steps": steps}

    body = {name: method(name) for name in names}
    return type("CallbackList", (), {"__init__": init, "__module__": "keras.src.callbacks.callback_list", **body})


def _model():
    class Model:
        """Runs the loops of Keras."""

        __module__ = "keras.src.callbacks.callback_list"

        def __init__(self, steps_per_execution=1):
            self.steps_per_execution = steps_per_execution

        def fit(self, callbacks, epochs=1, calls=4, work=lambda: None, validation_calls=0):
            callbacks.on_train_begin()
            for epoch in range(epochs):
                callbacks.on_epoch_begin(epoch)
                self._batches(callbacks, "train", calls, work)
                if validation_calls:
                    self.evaluate(callbacks, validation_calls)
                callbacks.on_epoch_end(epoch)
            callbacks.on_train_end()

        def evaluate(self, callbacks, calls=4):
            callbacks.on_test_begin()
            self._batches(callbacks, "test", calls, lambda: None)
            callbacks.on_test_end()

        def _batches(self, callbacks, mode, calls, work):
            for number in range(calls):
                getattr(callbacks, f"on_{mode}_batch_begin")(number)
                try:
                    work()
                except StopIteration:
                    return
                getattr(callbacks, f"on_{mode}_batch_end")(number)

        def train_on_batch(self, function):
            return function()

    return Model
