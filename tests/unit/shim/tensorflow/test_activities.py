"""Names of functions of ops, and the list of Keras's callbacks, whose loops time them."""

import copy
import functools
import pickle
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tfprof.formats import layout
from tfprof.formats.activities import CALLBACK, CONVERSION, FETCH, key_of
from tfprof.shim import core, guard
from tfprof.shim.tensorflow import activities


def load(path):
    return path


@functools.wraps(load)
def decorated(path):
    return load(path)


class _GeneratorState:
    def __init__(self, generator):
        self._generator = generator


def generator_py_func(state):
    return lambda: state


class Loader:
    """An object that can be called."""

    def __call__(self):
        return 0

    def load_one(self):
        return 1


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (load, "load (test_activities.py:"),
        (decorated, "load (test_activities.py:"),
        (functools.partial(load, 1), "load (test_activities.py:"),
        (SimpleNamespace(_func=load), "load (test_activities.py:"),
        (generator_py_func(_GeneratorState(load)), "load (test_activities.py:"),
        (Loader().load_one, "load_one (test_activities.py:"),
        (Loader(), "Loader"),
        (len, "len"),
        (None, "NoneType"),
    ],
)
def test_the_function_of_an_op_has_the_name_and_the_line_that_its_author_knows(function, name):
    registry = SimpleNamespace(_funcs={"pyfunc_1": function})
    for token in ("pyfunc_1", b"pyfunc_1"):
        assert activities._name_of(registry, token).startswith(name)


class Callback:
    """A callback of Keras."""

    def __init__(self):
        self.calls = []

    def on_epoch_end(self, epoch):
        self.calls.append(epoch)
        sum(range(10000))
        if epoch == 2:
            raise LookupError("the job's own")


class CallbackList:
    """The list of callbacks of a version of Keras."""

    def __init__(self, callbacks):
        self.callbacks = callbacks

    def on_epoch_end(self, epoch):
        for callback in self.callbacks:
            callback.on_epoch_end(epoch)

    def others(self):
        return list(self.callbacks)


def test_loops_over_callbacks_are_timed_and_the_list_looks_as_before(armed, read):
    read()  # opens the channel, which a detach closes
    callbacks = [Callback(), Callback()]
    callback_list = CallbackList(callbacks)
    activities.time_callbacks(callback_list)
    activities.time_callbacks(callback_list)
    timed = callback_list.callbacks
    assert isinstance(timed, list)
    assert timed.__class__ is list
    assert timed == callbacks
    assert callback_list.others() == callbacks
    assert type(pickle.loads(pickle.dumps(timed))) is type(copy.copy(timed)) is list
    callback_list.on_epoch_end(1)
    with pytest.raises(LookupError, match="the job's own"):
        callback_list.on_epoch_end(2)
    assert [callback.calls for callback in callbacks] == [[1, 2], [1]]
    timed.append(Callback())
    core.disarm()
    assert type(callback_list.callbacks) is list
    assert callback_list.callbacks is callbacks
    assert len(callbacks) == 3
    spans = [span for span in read().of_kind(layout.ACTIVITY) if span.key == key_of(CALLBACK, "Callback")]
    assert sum(span.count for span in spans) == 3


def test_a_list_that_is_no_list_is_left_alone(armed):
    for callbacks in ((Callback(),), None):
        callback_list = CallbackList(callbacks)
        activities.time_callbacks(callback_list)
        assert callback_list.callbacks is callbacks


def test_conversions_of_large_values_are_named_by_the_line_of_the_job(armed, read, tmp_path):
    guard.packages.add(__name__.partition(".")[0])  # the fakes here are TensorFlow's

    class EagerTensorBase:
        def numpy(self):
            return time.sleep(0.002)

    def convert_to_eager_tensor(value, ctx=None):
        return time.sleep(0.002)

    module = SimpleNamespace(_EagerTensorBase=EagerTensorBase, convert_to_eager_tensor=convert_to_eager_tensor)
    read()
    activities.patch_values(cast("Any", module))
    script = tmp_path / "train.py"
    script.write_text("def train(tensor, convert):\n    tensor.numpy()\n    convert([1.0])\n    convert(1.0)\n")
    functions: dict[str, Any] = {}
    exec(compile(script.read_text(), str(script), "exec"), functions)
    functions["train"](EagerTensorBase(), module.convert_to_eager_tensor)
    channel = read()
    keys = [span.key for span in channel.of_kind(layout.ACTIVITY)]
    assert keys == [key_of(FETCH, "in train (train.py:2)"), key_of(CONVERSION, "in train (train.py:3)")]
    assert channel.hello()["functions"][str(keys[0])] == "in train (train.py:2)"
