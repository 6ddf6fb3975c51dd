"""The guard: it contains our errors and lets the job's own pass."""

import bdb
import ctypes
import errno
import functools
import itertools
import os
import signal
import sys
import threading
import traceback
import weakref
from typing import Any

import pytest
from fakes.our_code import ours
from tfprof.shim import guard
from tfprof.shim.guard import guarded

LIBC = ctypes.CDLL(None)


class JobsError(Exception):
    """An error of the job."""


def test_an_error_of_ours_gives_none_and_is_counted(channel, reader):
    @guarded
    @ours
    def fails():
        raise KeyError("what")

    assert fails() is None
    assert fails() is None
    assert reader.word("faults") == 2
    assert "KeyError: 'what'" in reader.fault()
    assert "in fails" in reader.fault()


def test_a_long_traceback_is_cut_to_the_page(channel, reader):
    @guarded
    @ours
    def fails():
        raise ValueError("x" * 10000)

    assert fails() is None
    assert len(reader.fault()) == 2044
    assert reader.fault().endswith("xxx\n")


class FullStream:
    """A stream on a full disk."""

    def write(self, _text):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def closed_file():
    with open(os.devnull, "w") as file:
        return file


@pytest.mark.parametrize("stderr", [lambda: None, closed_file, FullStream])
def test_with_debug_an_error_of_ours_does_not_reach_a_job_without_standard_error(channel, reader, monkeypatch, stderr):
    monkeypatch.setitem(guard._environment, "debug", "1")
    monkeypatch.setattr(sys, "stderr", stderr())

    @guarded
    @ours
    def fails():
        raise KeyError("what")

    assert fails() is None
    assert reader.word("faults") == 1


@pytest.mark.parametrize("error", [ImportError("the interpreter ends"), KeyError()], ids=repr)
def test_when_nothing_can_be_imported_any_more_our_errors_are_contained(monkeypatch, error):
    @guard.called_back
    @ours
    def finalize():
        raise error

    @guarded
    @ours
    def fails():
        raise error

    with monkeypatch.context() as context:
        context.setattr(guard, "is_retired", True)
        context.setattr(sys, "meta_path", [])
        for name in ("_signal", "opcode"):
            context.delitem(sys.modules, name, raising=False)
        assert finalize() is None
        assert fails() is None


def test_a_result_is_returned():
    assert guarded(lambda value, other=1: value + other)(2, other=3) == 5


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_exits_of_the_job_pass(error):
    @guarded
    def leaves():
        raise error

    with pytest.raises(error):
        leaves()


@pytest.mark.parametrize("error", [TimeoutError, JobsError, ValueError])
def test_an_error_of_the_jobs_signal_handler_is_the_jobs(channel, reader, error):
    class Handler:
        def handle(self, *_):
            raise error("theirs")

    def function(*_):
        raise error("theirs")

    for handler in (function, Handler().handle):
        previous_handler = signal.signal(signal.SIGUSR1, handler)
        try:
            with pytest.raises(error, match="theirs"):
                guarded(lambda: os.kill(os.getpid(), signal.SIGUSR1))()
        finally:
            signal.signal(signal.SIGUSR1, previous_handler)
    assert reader.word("faults") == 0


@pytest.mark.parametrize("folder", ["src", "tensorflow", "keras/mnist", "google"])
def test_a_file_of_the_job_may_lie_in_a_folder_with_the_name_of_a_package(channel, reader, monkeypatch, folder):
    monkeypatch.setattr(guard, "packages", {"tensorflow", "keras", "google"})
    code = "def handler(_number, _frame):\n    raise TimeoutError('theirs')"
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(code, f"/home/me/{folder}/train.py", "exec"), names)
    previous_handler = signal.signal(signal.SIGUSR1, names["handler"])
    try:
        with pytest.raises(TimeoutError, match="theirs"):
            guarded(ours(lambda: signal.raise_signal(signal.SIGUSR1)))()
    finally:
        signal.signal(signal.SIGUSR1, previous_handler)
    assert reader.word("faults") == 0


def raises(error):
    raise error


def forgets_its_frame(number, frame):
    signal.signal(number, signal.SIG_IGN)
    del number, frame
    raise OSError("theirs")


def uses_a_generator(_number, _frame):
    try:
        next(iter(()))
    except StopIteration:
        raise OSError("theirs") from None


HANDLERS = {
    "forgets its frame": forgets_its_frame,
    "uses a generator": uses_a_generator,
    "lambda": lambda _number, _frame: raises(OSError("theirs")),
    "any arguments": lambda *_: raises(OSError("theirs")),
    "with a bound argument": functools.partial(functools.partial(lambda _bound, *_: raises(OSError("theirs"))), 1),
}


@pytest.mark.parametrize("handler", HANDLERS.values(), ids=HANDLERS)
def test_a_handler_is_recognized_even_after_its_removal(channel, reader, handler):
    def handle_once(number, frame):
        signal.signal(number, signal.SIG_IGN)
        handler(number, frame)

    @ours
    def sends_signal():
        try:
            os.kill(os.getpid(), signal.SIGUSR1)
        except OSError as error:
            if guard.raised_by_job(error):
                raise

    previous_handler = signal.signal(signal.SIGUSR1, handle_once)
    try:
        with pytest.raises(OSError, match="theirs"):
            guarded(sends_signal)()
    finally:
        signal.signal(signal.SIGUSR1, previous_handler)
    assert reader.word("faults") == 0


@pytest.mark.parametrize(
    "error", [OSError(2, "no such file"), ValueError("no number"), KeyError("none"), MemoryError()]
)
def test_an_error_raised_by_a_function_that_the_shim_calls_is_not_the_jobs(error):
    @ours
    def fails():
        try:
            list(map(ours(raises), [error]))
        except type(error) as caught:
            return guard.raised_by_job(caught)
        return None

    assert fails() is False


def test_a_stop_iteration_of_a_handler_is_the_jobs(channel, reader):
    previous_handler = signal.signal(signal.SIGUSR1, lambda *_: next(iter(())))
    try:
        with pytest.raises(StopIteration):
            guarded(ours(lambda: os.kill(os.getpid(), signal.SIGUSR1)))()
    finally:
        signal.signal(signal.SIGUSR1, previous_handler)
    assert reader.word("faults") == 0


def test_a_stop_iteration_of_a_handler_leaves_a_generator_of_ours_unchanged(channel, reader):
    @ours
    def generate():
        os.kill(os.getpid(), signal.SIGUSR1)
        yield

    previous_handler = signal.signal(signal.SIGUSR1, lambda *_: next(iter(())))
    try:
        with pytest.raises(StopIteration):
            guarded(ours(lambda: list(generate())))()
    finally:
        signal.signal(signal.SIGUSR1, previous_handler)
    assert reader.word("faults") == 0


@pytest.mark.parametrize("error", [JobsError("theirs"), AttributeError("theirs")], ids=repr)
def test_an_error_of_the_jobs_code_that_we_call_is_not_the_jobs(channel, reader, error):
    class Model:
        @property
        def weights(self):
            raise error

    assert guarded(ours(lambda model: guard.of_job(getattr, model, "weights")))(Model()) is None
    assert reader.word("faults") == 1


def test_an_exception_of_a_class_of_the_jobs_is_the_jobs_wherever_it_was_set(channel, reader):
    class InterruptError(Exception):
        """Something that another thread sets, with arguments."""

        def __init__(self):
            super().__init__("theirs")

    @ours
    def set_from_outside():
        thread = ctypes.c_ulong(threading.get_ident())
        ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(InterruptError))
        for _ in range(1000):
            ""

    with pytest.raises(InterruptError):
        guarded(set_from_outside)()
    assert reader.word("faults") == 0


class CleanUp:
    """A context manager whose end fails."""

    def __enter__(self):
        return self

    @ours
    def __exit__(self, *_error):
        raise FileNotFoundError("ours")


@ours
def fails_in_except():
    try:
        os.kill(os.getpid(), signal.SIGUSR1)
    except BaseException:
        os.unlink("/no/such/file")
        raise


@ours
def fails_in_finally():
    try:
        fails_in_except()
    finally:
        os.rmdir("/no/such/folder")


@ours
def fails_in_exit():
    try:
        with CleanUp():
            os.kill(os.getpid(), signal.SIGUSR1)
    except OSError as error:
        if guard.raised_by_job(error):
            raise


@pytest.mark.parametrize("cls", [TimeoutError, KeyboardInterrupt])
@pytest.mark.parametrize("fails", [fails_in_except, fails_in_finally, fails_in_exit])
def test_an_error_in_our_clean_up_does_not_replace_the_jobs(channel, reader, fails, cls):
    cause = LookupError("the cause")

    def handler(_number, _frame):
        raise cls("theirs") from cause

    previous_handler = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(cls, match="theirs") as caught:
            guarded(fails)()
    finally:
        signal.signal(signal.SIGUSR1, previous_handler)
    assert (caught.value.__cause__, caught.value.__context__) == (cause, None)
    assert handler.__code__ in [frame.f_code for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    assert reader.word("faults") == 0


def test_an_error_in_our_clean_up_in_a_callback_does_not_replace_the_jobs(channel, reader):
    class Thing:
        """Something to refer to."""

    def handler(_number, _frame):
        raise TimeoutError("theirs")

    previous_handler = signal.signal(signal.SIGUSR1, handler)
    try:
        thing = Thing()
        reference = weakref.ref(thing, guard.called_back(ours(lambda _reference: fails_in_finally())))
        with pytest.raises(TimeoutError, match="theirs"):  # noqa: PT012 - the error is raised at the next line
            del thing
            assert reference() is not None
    finally:
        signal.signal(signal.SIGUSR1, previous_handler)


@pytest.mark.parametrize("handled_error", [TimeoutError("theirs"), KeyboardInterrupt()])
def test_an_exception_that_the_job_handles_is_not_raised_again(channel, reader, handled_error):
    def handler(_number, _frame):
        raise handled_error

    previous_handler = signal.signal(signal.SIGUSR1, handler)
    try:
        try:
            os.kill(os.getpid(), signal.SIGUSR1)
        except BaseException:
            assert guarded(ours(lambda: os.rmdir("/no/such/folder")))() is None
    finally:
        signal.signal(signal.SIGUSR1, previous_handler)
    assert reader.word("faults") == 1


def test_a_raise_without_arguments_is_ours_and_an_error_set_by_another_thread_is_not():
    main = ctypes.c_ulong(threading.get_ident())

    @ours
    def set_from_outside():
        ctypes.pythonapi.PyThreadState_SetAsyncExc(main, ctypes.py_object(TimeoutError))
        for _ in range(1000):
            ""

    @ours
    def raise_without_arguments():
        raise TimeoutError

    for function, is_theirs in ((set_from_outside, True), (raise_without_arguments, False)):
        with pytest.raises(TimeoutError) as caught:
            function()
        assert guard.raised_by_job(caught.value) is is_theirs


def test_a_debugger_can_quit_in_our_code():
    def trace(frame, _event, _argument):
        if frame.f_code is inner.__code__:
            raise bdb.BdbQuit

    def inner():
        return 1

    sys.settrace(trace)
    try:
        with pytest.raises(bdb.BdbQuit):
            guarded(inner)()
    finally:
        sys.settrace(None)


def test_an_import_error_that_interrupts_an_import_of_ours_is_the_jobs(channel, reader):
    def trace(frame, _event, _argument):
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            sys.settrace(None)
            raise ModuleNotFoundError("theirs")

    def imports():
        import wsgiref.headers  # noqa: F401 - the traceback of the error lacks the frames of this import

    sys.modules.pop("wsgiref.headers", None)
    sys.settrace(trace)
    try:
        with pytest.raises(ModuleNotFoundError, match="theirs"):
            guarded(imports)()
    finally:
        sys.settrace(None)
    assert reader.word("faults") == 0


def test_an_error_that_python_would_drop_is_raised_at_the_next_line(channel, reader):
    class Thing:
        """Something to refer to."""

    def handler(_number, _frame):
        raise TimeoutError("theirs")

    @ours
    def send_signal(_reference):
        os.kill(os.getpid(), signal.SIGUSR1)

    previous_handler = signal.signal(signal.SIGUSR1, handler)
    try:
        thing = Thing()
        reference = weakref.ref(thing, guard.called_back(send_signal))
        with pytest.raises(TimeoutError, match="theirs"):  # noqa: PT012 - the error is raised at the next line
            del thing
            assert reference() is not None
    finally:
        signal.signal(signal.SIGUSR1, previous_handler)
    assert sys.gettrace() is None
    assert reader.word("faults") == 0


def test_an_exception_that_is_pending_when_a_finalizer_begins_reaches_the_job(channel, reader):
    class Thing:
        """Something with a finalizer of ours."""

        __del__ = guard.called_back(lambda _self: None)

    def handler(_number, _frame):
        raise TimeoutError("theirs")

    previous_handler = signal.signal(signal.SIGUSR1, handler)
    try:
        things = [Thing()]
        # No Python code runs from the signal to the finalizer; the signal is sent by C code that
        # does not run its handler.
        calls = itertools.chain(map(LIBC.kill, [os.getpid()], [signal.SIGUSR1]), map(list.clear, [things]))
        with pytest.raises(TimeoutError, match="theirs"):  # noqa: PT012 - the error may be raised at the next line
            any(calls)
            assert things == []
    finally:
        signal.signal(signal.SIGUSR1, previous_handler)
    assert sys.gettrace() is None
    assert reader.word("faults") == 0


@pytest.mark.parametrize(
    ("text", "expected"), [("0", False), ("no", False), ("", False), ("perhaps", False), ("yes", True)]
)
def test_switches_are_read_by_the_table_of_settings(monkeypatch, text, expected):
    monkeypatch.setitem(guard._environment, "debug", text)
    assert guard._is_on("debug") is expected


def test_with_the_setting_raise_our_errors_are_raised(monkeypatch):
    empty: dict[str, int] = {}
    monkeypatch.setattr(guard, "lets_errors_out", True)
    with pytest.raises(KeyError):
        guarded(ours(lambda: empty["none"]))()


def test_an_error_without_arguments_from_tensorflows_compiled_parts_is_ours(monkeypatch):
    """The guard must not take such an error for one that another thread sets.

    That one has no arguments either. The module of its class tells them apart.
    """
    monkeypatch.setattr(guard, "lets_errors_out", False)
    classes = {name: type("Error", (Exception,), {"__module__": name}) for name in ("tensorflow.errors", "theirs")}

    @ours
    def fail(cls):
        ctypes.pythonapi.PyErr_SetNone(ctypes.py_object(cls))

    monkeypatch.setattr(guard, "packages", {"tensorflow"})
    guard.guarded(fail)(classes["tensorflow.errors"])
    with pytest.raises(classes["theirs"]):
        guard.guarded(fail)(classes["theirs"])
