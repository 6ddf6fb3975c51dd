"""The guard: contains our exceptions and lets the job's own pass."""

import sys

from .cpython.codes import uninterrupted_start
from .own_os import OUR_FILE_PREFIXES, os

TYPE_CHECKING = False  # types are quoted: importing even __future__ would slow down every interpreter's start
if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import Any, Callable, ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")

#: Errors that calls of ours may raise without arguments. Any other error without arguments was set
#: by another thread (`raised_by_job`).
_WITHOUT_ARGUMENTS = (MemoryError, StopIteration)
#: The frameworks' packages; the errors of their compiled parts may have no arguments, too.
packages: "set[str]" = set()
_STANDARD_LIBRARY = os.path.dirname(os.__file__) + os.sep
_INSTALLED = ("site-", "dist-")  # beginnings of the folders of other packages within it
_environment = {name: os.environ.get("TFPROF_" + name.upper()) for name in ("debug", "raise")}
lets_errors_out: "bool | None" = None  # whether our errors reach the job; None: not yet read
_REPLACED_MAX = 8  # maximum length of a chain of errors in which each replaced the one before
is_retired = False  # nothing of ours can be imported any more: our errors are contained silently
count: "Callable[[str], object] | None" = None  # called with the traceback of each internal error


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


def attempt(expected: "Any", function: "Callable[P, R]", *args: "P.args", **kwargs: "P.kwargs") -> "R | None":
    """Return the result of ``function``, None if it raises an ``expected`` error.

    ``expected`` is a class of exceptions, or a tuple of classes. Exceptions of the job's pass.
    """
    try:
        return function(*args, **kwargs)
    except expected as error:
        if raised_by_job(error):
            raise
    return None  # not above: an exception of a trace function there would leave ``error`` the current one


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


def contain_in_callback() -> None:
    """Handle the current exception of a callback whose errors Python drops (``called_back``)."""
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
    global lets_errors_out
    job_error = _job_exception(error)
    if job_error is error:
        return False
    if job_error is not None:
        context = job_error.__context__
        try:
            raise job_error
        finally:
            job_error.__context__ = context
            del job_error, context  # their tracebacks have this frame
    if is_retired:
        return True
    if lets_errors_out is None:
        lets_errors_out = _is_on("raise")
    if lets_errors_out:
        return False
    import traceback

    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    if count is not None:
        count(text)
    if _is_on("debug"):
        attempt(Exception, lambda: of_job(sys.stderr.write, text))  # the job may have closed or replaced stderr
    return True


def raised_by_job(error: BaseException) -> bool:
    """Return whether the job raised ``error`` while our code ran.

    Each except clause that handles an error, and does not call `contain`, calls this.

    The job's signal handlers and trace functions may raise in our code: then a frame of the job's
    is below ours in the traceback. Another thread may also set an exception in this one. It is
    recognized if its class is the job's, or if it has no arguments and no raise statement raised
    it. If an error of ours replaces an exception of the job's, as in a failed clean-up, the error
    counts as the job's until ``contain`` handles it.
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
            cause = candidate.__cause__  # of a RuntimeError: Python replaces a StopIteration that leaves a generator
            trace = cause.__traceback__ if isinstance(cause, StopIteration) else None
            return cause if trace is not None and _is_ours(trace.tb_frame) else candidate
        while trace is not None:
            frames.add(trace.tb_frame)
            trace = trace.tb_next
        candidate = candidate.__context__
    return None


def _is_of_job(error: BaseException) -> bool:
    """Return whether ``error`` itself is the job's, and not that of a call of ours."""
    if not isinstance(error, Exception):
        return True
    if isinstance(error, RuntimeError) and isinstance(error.__cause__, StopIteration):
        error = error.__cause__  # Python replaces a StopIteration that leaves a generator
    caller, last, is_below_ours, trace = None, None, False, error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if is_below_ours and is_of_job_file(frame):
            return caller is None or caller.f_code is not of_job.__code__ or _has_handler(trace)
        is_below_ours = is_below_ours or _is_ours(frame)
        caller, last, trace = frame, trace, trace.tb_next
    if not _is_known_module(type(error).__module__):
        return True
    if last is None or error.args or isinstance(error, _WITHOUT_ARGUMENTS):
        return False
    return type(error).__module__.partition(".")[0] not in packages and not _is_at_raise(last)


def of_job(function: "Callable[P, R]", *args: "P.args", **kwargs: "P.kwargs") -> "R":
    """Call ``function``, which may run code of the job's; errors of that code count as ours."""
    return function(*args, **kwargs)


def _has_handler(trace: "TracebackType | None") -> bool:
    """Return whether ``trace`` has a handler, which gets the interrupted frame as an argument."""
    while trace is not None:
        values = list(trace.tb_frame.f_locals.values())
        values += [item for value in values if type(value) is tuple for item in value]
        if any(type(value) is type(trace.tb_frame) for value in values):
            return True
        trace = trace.tb_next
    return False


def is_of_job_file(frame: "FrameType") -> bool:
    """Return whether a frame is the job's: not ours, a framework's or the standard library's."""
    name = frame.f_code.co_filename
    if name.startswith((*OUR_FILE_PREFIXES, "<frozen ")) or is_of_standard_library(name):
        return False
    return not is_of_framework(frame)


def is_of_framework(frame: "FrameType") -> bool:
    """Return whether the frame is one of a framework's packages: its file may be in any folder."""
    return str(frame.f_globals.get("__name__")).partition(".")[0] in packages


def _is_known_module(name: str) -> bool:
    """Return whether a module is ours, a framework's, built-in or the standard library's."""
    top = name.partition(".")[0]
    if top in packages or top in sys.builtin_module_names or top in (__package__.partition(".")[0], "builtins"):
        return True
    file: "Any" = getattr(sys.modules.get(name), "__file__", None)
    return isinstance(file, str) and is_of_standard_library(file)


def is_of_standard_library(name: str) -> bool:
    """Return whether a file of this name is of the standard library."""
    length = len(_STANDARD_LIBRARY)
    return name[:length] == _STANDARD_LIBRARY and not name.startswith(_INSTALLED, length)


def _is_at_raise(trace: "TracebackType") -> bool:
    if is_retired and "opcode" not in sys.modules:
        return True
    import opcode

    number = trace.tb_frame.f_code.co_code[trace.tb_lasti]
    return opcode.opname[number] in ("RAISE_VARARGS", "RERAISE")


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
    return frame.f_code.co_filename.startswith(OUR_FILE_PREFIXES)


def _is_on(name: str) -> bool:
    """Return whether the setting ``name`` was on at the job's start; an invalid value means off."""
    try:
        from ..formats.settings import SETTINGS

        return bool(SETTINGS[name].value(_environment[name]))
    except (ImportError, KeyError, ValueError) as error:  # the job may have removed our modules
        if raised_by_job(error):
            raise
        return False
