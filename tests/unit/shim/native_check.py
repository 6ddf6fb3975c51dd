"""Loads the C part of the shim, and checks what it counts and what it keeps.

This script runs in Python 3.7 and later. Usage: native_check.py SHIM_FOLDER
"""

import array
import ctypes
import gc
import sys
import threading
import types
import weakref


def load(shim_folder):
    """Return the modules ``native`` and ``prologue`` of the shim."""
    for name, folder in (("ours", shim_folder), ("ours.shim", shim_folder)):
        package = types.ModuleType(name)
        package.__path__ = [folder]
        sys.modules[name] = package
    return __import__("ours.shim.native", fromlist=["module"]).module, __import__(
        "ours.shim.prologue", fromlist=["with_call"]
    )


native, prologue = load(sys.argv[1])
assert native is not None


class Graphs(threading.local):
    """TensorFlow's stack of graphs."""

    def __init__(self):
        self.stack = []


class FuncGraph:
    """A graph with a name."""

    def __init__(self, name):
        self.name = name


class Concrete:
    """A concrete function with an observed method."""

    def __init__(self, name="step", error=None):
        self._func_graph = FuncGraph(name)
        self.error = error

    def call(self, value):
        """Return ``value``, or raise the error."""
        if self.error is not None:
            raise self.error
        return value


def raised_by(function):
    """Call ``function``, and return the exception that it raises."""
    try:
        function.call(1)
    except KeyError as error:
        return error
    return None


def bound_ordinals(number):
    """Return (ordinals, word): of the next steps, ``number`` are only counted."""
    ordinals, word = native.Ordinals(), ctypes.c_uint64()
    ordinals.bind(ctypes.addressof(word), word)
    ordinals.skip(number)
    return ordinals, word


def check_ordinals():
    ordinals, word = bound_ordinals(3)
    assert list(ordinals) == [1, 2, 3]
    assert word.value == 3
    assert ordinals.left == 0
    assert ordinals.next() == 4
    assert list(ordinals) == []
    assert word.value == 3
    ordinals.skip(2)
    assert next(ordinals) == 5
    assert ordinals.left == 1
    ordinals.reset()
    assert ordinals.left == 0
    assert ordinals.next() == 1
    assert word.value == 5
    ordinals.skip(1 << 62)
    assert next(ordinals) == 2
    assert word.value == 5
    reference = weakref.ref(word)
    ordinals, word = bound_ordinals(1)
    gc.collect()
    assert reference() is None
    for arguments in ((), (1,), ("1", None)):
        try:
            ordinals.bind(*arguments)
        except TypeError:
            continue
        raise AssertionError(arguments)


def check_threads():
    ordinals, _word = bound_ordinals(400000)
    taken = []
    threads = [threading.Thread(target=lambda: taken.append(sum(1 for _ in ordinals))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(taken) == 400000 == ordinals.next() - 1


def check_concrete():
    ordinals, word = bound_ordinals(1000)
    busy: set[int] = set()
    pending: dict[int, int] = {}
    begun: list[object] = []
    failed: list[object] = []
    graphs = Graphs()
    callback = native.concrete_callback(
        ordinals, busy, pending, graphs, "init", begun.append, lambda *arguments: failed.append(arguments)
    )
    code = prologue.with_call(Concrete.call.__code__, callback, 1, True)
    if code is None:  # CPython 3.11.0 and versions after 3.13 cannot keep the result of a call
        return
    Concrete.call.__code__ = code
    function = Concrete()
    references = sys.getrefcount(function)
    for value in range(100):
        assert function.call(value) == value
    assert word.value == 100
    assert not begun
    assert not failed
    assert sys.getrefcount(function) == references
    other = Concrete(error=KeyError(7))
    for _ in range(3):
        assert raised_by(other) is other.error
    assert failed == [(101, other), (102, other), (103, other)]
    try:
        [].pop()
    except IndexError:
        assert function.call(1) == 1  # an exception that is being handled is no failure
    assert word.value == 104
    assert len(failed) == 3
    Concrete("init").call(1)
    busy.add(1)
    function.call(1)
    busy.clear()
    pending[1] = 2
    function.call(1)
    pending.clear()
    graphs.stack.append(1)
    function.call(1)
    graphs.stack.clear()
    ordinals.skip(0)
    function.call(1)
    assert len(begun) == 5
    assert word.value == 104
    ordinals.skip(10)
    nested = Concrete()
    nested.call(function.call(1))
    assert word.value == 106

    def recurse(depth):
        return depth and callback(function) is not None and recurse(depth - 1)

    assert recurse(8) == 0
    assert word.value == 114
    assert ordinals.left == 0
    kept = weakref.ref(other)
    del other, failed[:], begun[:]
    gc.collect()
    assert kept() is None


def check_errors_of_attributes():
    class Broken:
        @property
        def stack(self):
            raise KeyboardInterrupt

    ordinals, word = bound_ordinals(10)
    calls: list[object] = []
    callback = native.concrete_callback(ordinals, set(), {}, Broken(), "init", calls.append, calls.append)
    factory = native.annotation_factory(ordinals, set(), {}, Broken(), bool, "inert", calls.append)
    for function in (callback, factory):
        try:
            function("step")
        except KeyboardInterrupt:
            continue
        raise AssertionError(function)
    assert not calls
    assert word.value == 0
    callback = native.concrete_callback(ordinals, set(), {}, None, "init", calls.append, calls.append)
    callback("step")
    assert calls == ["step"]


def check_annotations():
    ordinals, word = bound_ordinals(3)
    busy: set[int] = set()
    is_recording: list[int] = []
    calls: list[object] = []

    def annotate(*arguments, **keywords):
        calls.append((arguments, keywords))
        return "annotation"

    factory = native.annotation_factory(ordinals, busy, {}, Graphs(), lambda: bool(is_recording), "inert", annotate)
    assert factory("step") == "inert"
    assert word.value == 1
    assert factory("step", step_num=1) == "annotation"
    is_recording.append(1)
    assert factory("step") == "annotation"
    is_recording.clear()
    busy.add(1)
    assert factory("step") == "annotation"
    busy.clear()
    assert factory("step") == "inert"
    assert factory("step") == "inert"
    assert factory("step") == "annotation"
    assert word.value == 3
    assert calls == [(("step",), {"step_num": 1})] + [(("step",), {})] * 3


def check_runs():
    tracker, session = types.SimpleNamespace(), types.SimpleNamespace()
    fetch, target = object(), object()
    tracker.untimed, word = bound_ordinals(3)
    assert native.count_run(session, [fetch], [target]) is None
    signature = session._tfprof_run = native.RunSignature([fetch], [target], 9, tracker)
    assert (signature.fetches, signature.targets, signature.key, signature.tracker) == ([fetch], [target], 9, tracker)
    assert native.count_run(session, [fetch], [target]) == 1
    for fetches, targets in (([], [target]), ([fetch], []), ([target], [fetch]), ([fetch, fetch], [target])):
        assert native.count_run(session, fetches, targets) is None
    assert native.count_run(session, (fetch,), (target,)) is None
    assert native.count_run(session, [fetch], [target]) == 2
    assert native.count_run(session, [fetch], [target]) == 3
    assert native.count_run(session, [fetch], [target]) is None
    assert word.value == 3
    session._tfprof_run = native.RunSignature(None, [], 0, tracker)
    assert native.count_run(session, [], []) is None
    session._tfprof_run = "another"
    assert native.count_run(session, [], []) is None
    tracker.untimed = iter(())
    invalid: tuple[tuple[object, ...], ...] = (([], [], 0, tracker), ([],), (1, 2, 3, 4))
    for arguments in invalid:
        try:
            native.RunSignature(*arguments)
        except (AttributeError, TypeError):
            continue
        raise AssertionError(arguments)


def check_memory():
    """Nothing leaks: the number of blocks does not grow."""
    checks = (check_ordinals, check_concrete, check_annotations, check_runs, check_errors_of_attributes)
    original = Concrete.call.__code__
    blocks = array.array("q", [0] * 30)
    for round_number in range(30):
        for check in checks:
            check()
            Concrete.call.__code__ = original
        gc.collect()
        blocks[round_number] = sys.getallocatedblocks()
    leak_of_python = 20 if sys.version_info[:2] == (3, 10) else 0  # one block for each changed code object
    assert blocks[-1] - blocks[10] < leak_of_python + 10, blocks


check_threads()
check_memory()
