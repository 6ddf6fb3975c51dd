"""Loads the C part of the shim, and checks what it counts and what it keeps.

This script runs in Python 3.7 and later. Usage: native_check.py SHIM_FOLDER
"""

import array
import ctypes
import gc
import sys
import threading
import time
import types
import weakref
from typing import Any


def load(shim_folder):
    """Return the modules ``native`` and ``prologue`` of the shim."""
    for name, folder in (("ours", shim_folder), ("ours.shim", shim_folder)):
        package = types.ModuleType(name)
        package.__path__ = [folder]
        sys.modules[name] = package
    return __import__("ours.shim.native", fromlist=["module"]).module, __import__(
        "ours.shim.prologue", fromlist=["with_call"]
    )


native: Any
native, prologue = load(sys.argv[1])
assert native is not None


class Graphs(threading.local):
    """TensorFlow's stack of graphs."""

    def __init__(self):
        self.stack = []


class ThreadState(native.ThreadFields):  # type: ignore[misc]  # known at run time only
    """The state of a thread."""

    def __init__(self):
        self.keras_calls = []
        self.outermost_call = NO_CALL
        self.tape_step = self.counted_step = None
        self.are_gradients_applied = self.is_applying = self.is_busy = False
        self.pending_kind = 0
        self.optimizer_history = ()


class Local(threading.local):
    """The calling thread's state."""

    def __init__(self):
        self.thread_state = ThreadState()


class Tape:
    """A gradient tape."""


NO_CALL = weakref.ref(Tape())


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
    """Return new Ordinals and its count word; the next ``number`` steps are only counted."""
    ordinals, word = native.Ordinals(), ctypes.c_uint64()
    ordinals.bind(ctypes.addressof(word), 0, word)
    ordinals.skip(number, 1 << 62)
    return ordinals, word


def check_ordinals():
    ordinals, word = bound_ordinals(3)
    assert list(ordinals) == [1, 2, 3]
    assert word.value == 3
    assert ordinals.left == 0
    assert ordinals.next() == 4
    assert list(ordinals) == []
    assert word.value == 3
    ordinals.skip(2, 9)
    assert next(ordinals) == 5
    assert ordinals.left == 1
    ordinals.reset()
    assert ordinals.left == 0
    assert ordinals.next() == 1
    assert word.value == 5
    ordinals.skip(1 << 62, 1 << 62)
    assert next(ordinals) == 2
    assert word.value == 5
    reference = weakref.ref(word)
    ordinals, word = bound_ordinals(1)
    gc.collect()
    assert reference() is None
    for arguments in ((), (1,), ("1", 1, None)):
        try:
            ordinals.bind(*arguments)
        except TypeError:
            continue
        raise AssertionError(arguments)


def check_orders():
    """The C code checks for orders after each interval, and continues if there is none."""
    memory = (ctypes.c_uint64 * 2)()
    address = ctypes.addressof(memory)
    ordinals = native.Ordinals()
    ordinals.bind(address, address + 8, memory)
    ordinals.skip(10, 3)
    assert (ordinals.left, ordinals.later) == (3, 7)
    for number in range(1, 9):
        assert next(ordinals) == number
    assert (ordinals.left, ordinals.later) == (1, 1)
    memory[1] = 5
    assert next(ordinals) == 9
    assert list(ordinals) == []
    assert (ordinals.left, ordinals.later) == (0, 1)
    memory[1] = 0
    assert list(ordinals) == [10]
    memory[1] = 5
    ordinals.skip(10, 3)
    assert list(ordinals) == [11, 12, 13]
    assert ordinals.follow(5) == 7
    assert (list(ordinals), ordinals.later) == ([], 0)
    ordinals.skip(4, 0)
    assert (ordinals.left, ordinals.later) == (1, 3)
    assert list(ordinals) == [14, 15, 16, 17]
    assert memory[0] == 17
    ordinals.skip(-1, -1)
    assert (list(ordinals), ordinals.later) == ([], 0)
    ordinals.skip(9, 2)
    ordinals.reset()
    assert (list(ordinals), ordinals.later) == ([], 0)
    ordinals.skip(9, 2)
    assert list(ordinals) == [1, 2]  # nothing to check without a channel


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
    begun: list[object] = []
    failed: list[object] = []
    graphs, local = Graphs(), Local()
    state = local.thread_state
    callback = native.concrete_callback(ordinals, graphs, local, "init", begun.append)
    code = prologue.with_call(Concrete.call.__code__, callback, 1, True, failed.append)
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
    assert failed == [other] * 3
    try:
        [].pop()
    except IndexError:
        assert function.call(1) == 1  # an exception that is being handled is no failure
    assert word.value == 104
    assert len(failed) == 3
    Concrete("init").call(1)
    state.is_busy = True
    function.call(1)
    state.is_busy = False
    state.pending_kind = 2
    function.call(1)
    state.pending_kind = 0
    graphs.stack.append(1)
    function.call(1)
    graphs.stack = [1]
    function.call(1)
    graphs.stack = []
    ordinals.skip(0, 0)
    function.call(1)
    assert len(begun) == 6
    assert word.value == 104
    ordinals.skip(10, 10)
    nested = Concrete()
    nested.call(function.call(1))
    assert word.value == 106

    def recurse(depth):
        return depth and callback(function) is None and recurse(depth - 1)

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
    callback = native.concrete_callback(ordinals, Broken(), Local(), "init", calls.append)
    factory = native.annotation_factory(ordinals, Broken(), Local(), bool, "inert", calls.append)
    for function in (callback, factory):
        try:
            function("step")
        except KeyboardInterrupt:
            continue
        raise AssertionError(function)
    assert not calls
    assert word.value == 0
    callback = native.concrete_callback(ordinals, None, Local(), "init", calls.append)
    callback("step")
    assert calls == ["step"]


def check_annotations():
    ordinals, word = bound_ordinals(3)
    local = Local()
    state = local.thread_state
    is_recording: list[int] = []
    calls: list[object] = []

    def annotate(*arguments, **keywords):
        calls.append((arguments, keywords))
        return "annotation"

    factory = native.annotation_factory(ordinals, Graphs(), local, lambda: bool(is_recording), "inert", annotate)
    assert factory("step") == "inert"
    assert word.value == 1
    assert factory("step", step_num=1) == "annotation"
    is_recording.append(1)
    assert factory("step") == "annotation"
    is_recording.clear()
    state.is_busy = True
    assert factory("step") == "annotation"
    state.is_busy = False
    assert factory("step") == "inert"
    assert factory("step") == "inert"
    assert factory("step") == "annotation"
    assert word.value == 3
    assert calls == [(("step",), {"step_num": 1})] + [(("step",), {})] * 3
    check_annotations_of_batches(factory, state)


def check_annotations_of_batches(factory, state):
    words = {}
    for kind in (2, 3, 4):
        state.pending_kind = kind
        assert factory("step") == "annotation"
        assert state.pending_kind == kind
        ordinals, words[kind] = bound_ordinals(2)
        native.add_annotation(factory, kind, ordinals, kind)
    for kind, word in words.items():
        for number in (1, 2):
            state.pending_kind = kind
            assert factory("step") == kind
            assert state.pending_kind == 0
            assert word.value == number
        state.pending_kind = kind
        assert factory("step") == "annotation"
        assert state.pending_kind == kind
    state.pending_kind = 0
    for arguments in (factory, 5, ordinals, None), (len, 5, ordinals, None), (factory, 5, None, None), ("f",):
        try:
            native.add_annotation(*arguments)
        except (TypeError, ValueError):
            continue
        raise AssertionError(arguments)


def check_runs():
    tracker, session = types.SimpleNamespace(), types.SimpleNamespace()
    fetch, target = object(), object()
    tracker.untimed, word = bound_ordinals(3)

    def needs_python(fetches, targets, options=None):
        return native.run_needs_python(session, options, {}, fetches, targets)

    assert needs_python([fetch], [target]) is True
    signature = session._tfprof_run = native.RunSignature([fetch], [target], 9, tracker)
    assert (signature.fetches, signature.targets, signature.key, signature.tracker) == ([fetch], [target], 9, tracker)
    assert needs_python([fetch], [target]) is False
    for fetches, targets in (([], [target]), ([fetch], []), ([target], [fetch]), ([fetch, fetch], [target])):
        assert needs_python(fetches, targets) is True
    assert needs_python((fetch,), (target,)) is True
    assert needs_python([fetch], [target], options=object()) is True
    assert needs_python([fetch], [target]) is False
    assert needs_python([fetch], [target]) is False
    assert needs_python([fetch], [target]) is True
    assert word.value == 3
    session._tfprof_run = native.RunSignature(None, [], 0, tracker)
    assert needs_python([], []) is True
    session._tfprof_run = "another"
    assert needs_python([], []) is True
    tracker.untimed = iter(())
    invalid: tuple[tuple[object, ...], ...] = (([], [], 0, tracker), ([],), (1, 2, 3, 4))
    for arguments in invalid:
        try:
            native.RunSignature(*arguments)
        except (AttributeError, TypeError):
            continue
        raise AssertionError(arguments)


class Getattr:
    """An object of the job; its ``__getattr__`` raises KeyboardInterrupt."""

    _tfprof_ordinals: object

    def __getattr__(self, name):
        raise KeyboardInterrupt


def check_callables():
    tf_callable = Getattr()
    assert native.call_needs_python(tf_callable) is True
    tf_callable._tfprof_ordinals, word = bound_ordinals(2)
    assert native.call_needs_python(tf_callable) is False
    assert native.call_needs_python(tf_callable) is False
    assert native.call_needs_python(tf_callable) is True
    assert word.value == 2
    tf_callable._tfprof_ordinals = "another"
    assert native.call_needs_python(tf_callable) is True


class TapeStep(native.CountedFields):  # type: ignore[misc]  # known at run time only
    """A training step that is only counted."""

    def __init__(self, state, tape):
        self.tape, self.reference = weakref.ref(tape), weakref.ref(self)
        self.is_recording = True
        state.tape_step = state.counted_step = self
        state.outermost_call = self.reference


class Tapes:
    """Tapes that are entered and left, and the calls of the Python functions."""

    def __init__(self, number):
        self.ordinals, self.word = bound_ordinals(number)
        self.graphs, self.local = Graphs(), Local()
        self.calls: list[str] = []
        self.enter, self.leave, self.compute = native.tape_callbacks(
            self.ordinals,
            self.graphs,
            self.local,
            "tracker",
            TapeStep,
            NO_CALL,
            self.entered,
            lambda _tape, _error: self.calls.append("left"),
            lambda _tape: self.calls.append("gradient"),
        )

    def entered(self, tape):
        self.calls.append("entered")
        TapeStep(self.local.thread_state, tape).is_recording = False
        self.local.thread_state.outermost_call = NO_CALL

    def step(self, error=None):
        """Run a step, and return the calls of Python functions in it."""
        self.calls.clear()
        tape = Tape()
        self.enter(tape)
        self.leave(tape, error)
        self.compute(tape)
        return self.calls


def check_tapes():
    tapes = Tapes(100)
    state = tapes.local.thread_state
    assert tapes.step() == ["entered"]  # the first step makes the object
    step = weakref.ref(state.counted_step)
    for number in range(1, 11):
        assert tapes.step() == []
        assert state.tape_step is state.counted_step is step()
        assert (step().ordinal, step().tracker, step().is_recording) == (number, "tracker", False)
        assert step().tape() is None
    assert tapes.word.value == 10
    tape = Tape()
    assert tapes.enter(tape) is None
    assert state.is_busy
    assert state.outermost_call() is step()
    assert step().tape() is tape
    tapes.leave(Tape(), None)
    assert tapes.calls == ["left"]
    assert step().is_recording
    tapes.enter(Tape())  # within a step
    assert tapes.calls == ["left", "entered"]
    held = state.counted_step
    assert tapes.step() == ["entered"]  # something else refers to the object
    del held
    assert tapes.step() == []
    assert tapes.step(error=ValueError) == ["left"]
    state.tape_step = None
    assert tapes.step() == ["entered"]
    assert tapes.step() == []
    state.are_gradients_applied = True
    assert tapes.step() == []
    assert state.are_gradients_applied is False
    assert tapes.word.value == 15
    check_reasons(tapes, state)


def check_reasons(tapes, state):
    """Check each reason for which a Python function handles the entry of a tape."""
    for change, undo in (
        (lambda: state.keras_calls.append(1), state.keras_calls.clear),
        (lambda: setattr(state, "pending_kind", 2), lambda: setattr(state, "pending_kind", 0)),
        (lambda: tapes.graphs.stack.append(1), tapes.graphs.stack.clear),
        (lambda: setattr(state, "outermost_call", weakref.ref(tapes)), lambda: None),
        (lambda: setattr(state, "tape_step", "timed"), lambda: None),
        (lambda: tapes.ordinals.skip(0, 0), lambda: tapes.ordinals.skip(9, 9)),
    ):
        assert tapes.step() == []
        change()
        assert tapes.step()[0] == "entered"
        undo()
    state.tape_step = "timed"
    tapes.compute(Tape())
    assert tapes.calls[-1] == "gradient"
    vars(tapes).clear()  # the callbacks are part of a cycle that is never collected


def check_states_of_threads():
    """Each thread has its own state, which is deleted when the thread ends."""
    tapes = Tapes(100000)
    states = []

    def run():
        for _ in range(100):
            tapes.step()
        states.append(weakref.ref(tapes.local.thread_state.counted_step))

    for _ in range(3):
        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    gc.collect()
    assert [state() for state in states] == [None] * 12
    assert tapes.word.value >= 12 * 98
    vars(tapes).clear()
    cyclic = ThreadState()
    cyclic.keras_calls.append(cyclic)
    reference = weakref.ref(TapeStep(cyclic, Tape()))
    cyclic.optimizer_history = cyclic
    del cyclic
    gc.collect()
    assert reference() is None


class Model:
    """A model of Keras with observed methods."""

    def train_on_batch(self, work):
        """Run a batch."""
        return work()


def observe_batches(callback):
    """Call ``callback`` for each batch from now on. Return whether that is possible."""
    code = prologue.with_call(original_batch, callback, 1, True)
    if code is not None:
        Model.train_on_batch.__code__ = code
    return code is not None


original_batch = Model.train_on_batch.__code__


def check_pending_kinds():
    local = Local()
    state = local.thread_state
    if not observe_batches(native.function_batch_callback(3, local)):
        return
    kinds = []

    def take():
        kinds.append(state.pending_kind)
        return "result"

    def take_nested():
        nested.train_on_batch(take)
        take()

    model, nested = Model(), Model()
    assert model.train_on_batch(take) == "result"
    assert state.pending_kind == 0
    model.train_on_batch(take_nested)
    assert kinds == [3, 3, 3]
    for change, undo in (
        (lambda: state.keras_calls.append(1), state.keras_calls.clear),
        (lambda: setattr(state, "outermost_call", weakref.ref(model)), lambda: None),
    ):
        state.is_busy = True
        change()
        model.train_on_batch(take)
        undo()
        state.outermost_call = NO_CALL
        model.train_on_batch(take)
        state.is_busy = False
    assert kinds[3:] == [0, 3] * 2
    try:
        model.train_on_batch([].pop)
    except IndexError:
        assert state.pending_kind == 0
    references = sys.getrefcount(state)
    held = native.function_batch_callback(2, local)(model)
    assert state.pending_kind == 2
    del held
    assert (state.pending_kind, sys.getrefcount(state)) == (0, references)
    vars(local).clear()


class Batch(native.CountedFields):  # type: ignore[misc]  # known at run time only
    """A batch that is only counted."""

    def end(self, failed):
        """Note the end of a batch that failed or had a run."""
        ended.append((self.ordinal, failed, self.has_run))


ended: "list[tuple[int, bool, bool]]" = []


def check_run_batches():
    ordinals, word = bound_ordinals(100)
    local = Local()
    begun: list[object] = []
    model_ids: set[int] = set()
    state, model, contexts = local.thread_state, Model(), []
    del ended[:]
    callback = native.run_batch_callback(ordinals, None, local, "tracker", Batch, NO_CALL, model_ids, begun.append)
    if not observe_batches(callback):
        return
    model.train_on_batch(bool)
    assert begun == [model]
    model_ids.add(id(model))

    def run():
        batch = state.outermost_call()
        assert type(batch) is Batch
        assert state.is_busy
        assert (batch.tracker, batch.has_run) == ("tracker", False)
        assert 0 <= time.monotonic() - batch.start / 1e9 < 10
        return batch

    for number in range(1, 11):
        assert model.train_on_batch(lambda: run().ordinal) == number == word.value
        assert not state.is_busy
        assert state.outermost_call() is None
    assert (begun, ended) == ([model], [])
    model.train_on_batch(lambda: setattr(run(), "has_run", True))
    for _ in range(2):
        try:
            model.train_on_batch([].pop)
        except IndexError as error:
            contexts.append(error.__context__)
    try:
        [].pop()
    except IndexError:
        model.train_on_batch(run)  # an exception that is being handled is no failure
    model.train_on_batch(lambda: setattr(run(), "tracker", None))  # as in a forked child
    assert contexts == [None, None]
    assert ended == [(11, False, True), (12, True, False), (13, True, False)]
    assert state.is_busy
    model.train_on_batch(bool)
    state.is_busy = False
    ordinals.skip(0, 0)
    model.train_on_batch(bool)
    assert begun == [model] * 3
    assert word.value == 15
    ordinals.skip(3, 3)
    batch = model.train_on_batch(run)
    assert model.train_on_batch(run) is not batch  # something else refers to the object
    reference = weakref.ref(batch)
    del batch
    assert reference() is None
    same = weakref.ref(model.train_on_batch(run))
    assert same() is not None
    check_batches_within_batches(model, ordinals, state)
    del begun[:], ended[:]
    vars(local).clear()
    kept = weakref.ref(model)
    del model
    assert kept() is None


def check_batches_within_batches(model, ordinals, state):
    ordinals.skip(2, 2)
    model.train_on_batch(lambda: model.train_on_batch(bool))
    assert ordinals.left == 1
    state.keras_calls.append(1)
    model.train_on_batch(bool)
    assert ordinals.left == 0
    assert state.is_busy
    state.keras_calls.clear()
    state.is_busy = False
    invalid: tuple[tuple[object, ...], ...] = (
        (),
        (ordinals, None, None, None, Model, None, set(), None),
        (ordinals, None, None, None, Batch, None, {}, 1),
    )
    for arguments in invalid:
        try:
            native.run_batch_callback(*arguments)
        except TypeError:
            continue
        raise AssertionError(arguments)


def check_memory():
    """Nothing leaks: the number of blocks does not grow."""
    checks = (
        check_ordinals,
        check_orders,
        check_concrete,
        check_annotations,
        check_runs,
        check_callables,
        check_tapes,
        check_pending_kinds,
        check_run_batches,
        check_states_of_threads,
        check_errors_of_attributes,
    )
    original = Concrete.call.__code__
    blocks = array.array("q", [0] * 30)
    for round_number in range(30):
        for check in checks:
            check()
            Concrete.call.__code__, Model.train_on_batch.__code__ = original, original_batch
        gc.collect()
        blocks[round_number] = sys.getallocatedblocks()
    leak_of_python = 80 if sys.version_info[:2] == (3, 10) else 0  # for each changed code object
    assert blocks[-1] - blocks[10] < leak_of_python + 10, blocks


check_threads()
check_memory()
