"""The guard: contains our exceptions and lets the job's own pass."""

import os
import sys

TYPE_CHECKING = False  # types are quoted: importing even __future__ would slow down every interpreter's start
if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import Any, Callable, ParamSpec, TypeVar

    from .channel.ring import Channel

    P = ParamSpec("P")
    R = TypeVar("R")

#: Prefix of our code's file names in frames.
OUR_FILE_PREFIX = os.path.dirname((lambda: 0).__code__.co_filename) + os.sep
#: Errors that calls of ours may raise without arguments. Any other error without arguments was set
#: by another thread (`raised_by_job`).
_WITHOUT_ARGUMENTS = (MemoryError, StopIteration)
#: Packages whose compiled parts raise errors without arguments.
_COMPILED = ("google", "keras", "tensorflow", "tensorflow_core", "tf_keras")
_environment = {name: os.environ.get("TFPROF_" + name.upper()) for name in ("debug", "raise")}
_lets_errors_out: "bool | None" = None  # whether our errors reach the job; None: not yet read
#: Since Python 3.11, a function begins with the instruction RESUME, which runs signal handlers.
#: With the operand _AFTER_YIELD_FROM it runs none.
_RESUME = (lambda: 0).__code__.co_code[0] if sys.version_info >= (3, 11) else None
_AFTER_YIELD_FROM = 2
#: Instructions that begin a ``try`` in Python 3.7.
_SETUP_EXCEPT, _SETUP_FINALLY = 121, 122
_REPLACED_MAX = 8  # maximum length of a chain of errors in which each replaced the one before
_is_retired = False
_channel: "Channel | None" = None


def count_errors_in(channel: "Channel | None") -> None:
    """Count internal errors in ``channel`` from now on; None: do not count them."""
    global _channel
    _channel = channel


def retire() -> None:
    """Contain our errors silently from now on: nothing of ours can be imported any more."""
    global _is_retired
    _is_retired = True


def guarded(function: "Callable[P, R]") -> "Callable[P, R | None]":
    """Return a function that calls ``function`` and contains our errors: it then returns None."""

    def call(*args: "P.args", **kwargs: "P.kwargs") -> "R | None":
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if not contain(error):
                raise
            return None

    call.__name__ = function.__name__
    call.__doc__ = function.__doc__
    return call


def called_back(function: "Callable[P, object]") -> "Callable[P, None]":
    """Return ``function`` guarded, for callbacks whose errors Python drops.

    An exception of the job's is raised again soon after the callback.
    """

    def call(*args: "P.args", **kwargs: "P.kwargs") -> None:
        try:
            function(*args, **kwargs)
        except BaseException:
            contain_in_callback()

    return uninterrupted_start(call)


def uninterrupted_start(function: "Callable[P, R]") -> "Callable[P, R]":
    """Let no signal handler run in ``function`` before its first line, and return it.

    If that line is a ``try``, all exceptions of signal handlers are raised within it. Python 3.8 to
    3.10 need no change for this. Python 3.7 needs a change only for a ``try`` with ``except``: its
    first instruction is replaced by that of a ``try`` with ``finally``. Both instructions have the
    same effect as long as no ``return`` leaves the block.
    """
    code = function.__code__
    if sys.version_info < (3, 8):
        from .codes import copy_code

        raw = bytes((_SETUP_FINALLY,)) + code.co_code[1:]
        if code.co_code[0] == _SETUP_EXCEPT:
            function.__code__ = copy_code(code, co_code=raw)
    if _RESUME is not None:
        raw = bytearray(code.co_code)
        offset = next(offset for offset in range(0, len(raw), 2) if raw[offset] == _RESUME)
        raw[offset + 1] = _AFTER_YIELD_FROM
        function.__code__ = code.replace(co_code=bytes(raw))
    return function


def contain_in_callback() -> None:
    """Handle the current exception of a callback whose errors Python drops.

    An exception of the job's is raised again soon after the callback.
    """
    error = sys.exc_info()[1]
    if error is None:
        return
    job_error = _job_exception(error)
    if job_error is not None or not contain(error):
        _raise_later(sys._getframe(1), job_error or error)


def contain(error: BaseException) -> bool:
    """Count our own ``error``, and return True.

    Return False if the job raised ``error``, or if the setting ``raise`` is on: the caller must
    raise it again. If ``error`` replaced an exception of the job's, raise that exception.
    """
    global _lets_errors_out
    job_error = _job_exception(error)
    if job_error is error:
        return False
    if job_error is not None:
        try:
            _raise_again(job_error)
        finally:
            del job_error  # its traceback has this frame
    if _is_retired:
        return True
    if _lets_errors_out is None:
        _lets_errors_out = _is_on("raise")
    if _lets_errors_out:
        return False
    if _channel is not None:
        _count_error(_channel, error)
    if _is_on("debug"):
        _print(_traceback_text(error))
    return True


def raised_by_job(error: BaseException) -> bool:
    """Return whether the job raised ``error`` while our code ran.

    Each except clause that handles an error, and does not call `contain`, calls this.

    The job's signal handlers and trace functions may raise in our code. They get the interrupted
    frame as an argument. Another thread may also set an exception in this one. Such an exception
    has no arguments, and no raise statement raised it. If an error of ours replaces an exception of
    the job's, as in a failed clean-up, the error counts as the job's until ``contain`` handles it.
    """
    return _job_exception(error) is not None


def _job_exception(error: BaseException) -> "BaseException | None":
    """Return ``error`` if the job raised it, or the exception of the job's that it replaced.

    The context of an error may also be an exception that the job has handled before. An exception
    was replaced only if the outermost frame of its traceback is also in the traceback of an error
    that followed it.
    """
    frames: "set[FrameType]" = set()
    candidate: "BaseException | None" = error
    for _ in range(_REPLACED_MAX):
        if candidate is None:
            return None
        trace = candidate.__traceback__
        if candidate is not error and (trace is None or trace.tb_frame not in frames):
            return None
        if _is_of_job(candidate):
            return candidate
        while trace is not None:
            frames.add(trace.tb_frame)
            trace = trace.tb_next
        candidate = candidate.__context__
    return None


def _raise_again(error: BaseException) -> None:
    """Raise ``error`` again, and keep its context."""
    context = error.__context__
    try:
        raise error
    finally:
        error.__context__ = context
        del error  # its traceback has this frame


def _is_of_job(error: BaseException) -> bool:
    if not isinstance(error, Exception):
        return True
    if isinstance(error, RuntimeError) and isinstance(error.__cause__, StopIteration):
        error = error.__cause__  # Python replaces a StopIteration that leaves a generator
    caller, last = None, None
    trace = error.__traceback__
    while trace is not None:
        if caller is not None and _interrupts(trace.tb_frame, caller):
            return True
        caller, last, trace = trace.tb_frame, trace, trace.tb_next
    if last is None or error.args or isinstance(error, _WITHOUT_ARGUMENTS):
        return False
    return type(error).__module__.partition(".")[0] not in _COMPILED and not _is_at_raise(last)


def _interrupts(frame: "FrameType", caller: "FrameType") -> bool:
    """Return whether ``frame`` is that of a signal handler, or has ``caller`` as an argument.

    If a signal arrives when a function has only just been entered, some versions of Python pass the
    frame of the function's caller to the handler.
    """
    code = frame.f_code
    if (code.co_filename, code.co_name) in _handlers():
        return True
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
    for name in code.co_varnames[:count]:
        argument = frame.f_locals.get(name)
        for value in argument if type(argument) is tuple else (argument,):
            if value is not None and (value is caller.f_back or _is_below(value, caller)):
                return True
    return False


def _is_below(frame: object, caller: "FrameType") -> bool:
    """Return whether ``frame`` is ``caller`` or was called by it.

    Frames between them may be missing in a traceback: an import removes its own from ImportErrors.
    """
    while type(frame) is type(caller):
        if frame is caller:
            return True
        frame = frame.f_back
    return False


def _is_at_raise(trace: "TracebackType") -> bool:
    """Return whether ``trace`` ends in a raise statement."""
    if _is_retired and "opcode" not in sys.modules:
        return True
    import opcode

    number = trace.tb_frame.f_code.co_code[trace.tb_lasti]
    return opcode.opname[number] in ("RAISE_VARARGS", "RERAISE")


def _handlers() -> "set[tuple[str, str]]":
    """Return (file, name) of the job's current signal handlers that are written in Python."""
    handlers: "set[tuple[str, str]]" = set()
    if _is_retired and "_signal" not in sys.modules:  # the interpreter ends, and runs no handlers any more
        return handlers
    import _signal

    for number in range(1, _signal.NSIG):
        handler: "Any" = _signal.getsignal(number)
        method = getattr(type(handler), "__call__", None)  # noqa: B004 - the attribute itself is needed
        for candidate in (handler, getattr(handler, "func", None), method):
            code = getattr(getattr(candidate, "__func__", candidate), "__code__", None)
            if code is not None:
                handlers.add((code.co_filename, code.co_name))
    return handlers


def _raise_later(frame: "FrameType | None", error: BaseException) -> None:
    """Raise ``error`` at the job's next line, in ``frame`` or a caller.

    Our own frames are skipped, and those of finalizers, since Python drops the errors of
    finalizers, too.
    """
    while frame is not None and (_is_ours(frame) or frame.f_code.co_name == "__del__"):
        frame = frame.f_back
    if frame is None:
        return
    while error.__traceback__ is not None and _is_ours(error.__traceback__.tb_frame):
        error.__traceback__ = error.__traceback__.tb_next
    jobs_trace = sys.gettrace()

    def trace(frame: "FrameType", _event: str, _arg: object) -> None:
        sys.settrace(jobs_trace)
        frame.f_trace = None
        raise error

    frame.f_trace = trace
    sys.settrace(lambda *_: None)


def _is_ours(frame: "FrameType") -> bool:
    return frame.f_code.co_filename.startswith(OUR_FILE_PREFIX)


def _is_on(name: str) -> bool:
    """Return whether the setting ``name`` was on at the job's start; an invalid value means off."""
    from ..formats.settings import SETTINGS

    try:
        return bool(SETTINGS[name].value(_environment[name]))
    except ValueError as error:
        if raised_by_job(error):
            raise
        return False


def _print(text: str) -> None:
    try:
        sys.stderr.write(text)
    except Exception as error:  # the job may have closed or replaced stderr
        if raised_by_job(error):
            raise


def _traceback_text(error: BaseException) -> str:
    import traceback

    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


def _count_error(channel: "Channel", error: BaseException) -> None:
    """Count an internal error in ``channel``, which keeps the first traceback."""
    from ..formats import layout

    word = layout.WORD["faults"]
    channel.words[word] += 1
    if channel.words[word] == 1:
        text = _traceback_text(error).encode("utf-8", "replace")[-layout.FAULT_MAX :]
        at = layout.FAULT_AT
        channel.view[at + 4 : at + 4 + len(text)] = text
        channel.view[at : at + 4] = len(text).to_bytes(4, "little")
