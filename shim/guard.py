"""The fence: nothing of ours reaches the job, nothing of the job's is kept from it."""

import os
import sys

TYPE_CHECKING = False  # types are quoted here: even __future__ would make every interpreter start slower
if TYPE_CHECKING:
    from types import CodeType
    from typing import Callable, ParamSpec, TypeVar

    from .ring import Channel

    P = ParamSpec("P")
    R = TypeVar("R")

_OURS = os.path.dirname(os.path.abspath(__file__))
#: Packages whose errors our own calls can end with.
_CALLED = {
    "builtins",
    "ctypes",
    "google",
    "json",
    "keras",
    "struct",
    "tensorflow",
    "tensorflow_core",
    "tf_keras",
    __name__.partition(".")[0],
}
_raise = os.environ.get("TFPROF_RAISE") == "1"
_debug = bool(os.environ.get("TFPROF_DEBUG"))
_channel: "Channel | None" = None


def watch(channel: "Channel | None") -> None:
    """Count faults in ``channel`` from now on; None: in none."""
    global _channel
    _channel = channel


def guarded(function: "Callable[P, R]") -> "Callable[P, R | None]":
    """Return ``function`` behind the fence: None is returned where it fails."""

    def call(*args: "P.args", **kwargs: "P.kwargs") -> "R | None":
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if not stop(error):
                raise
            return None

    call.__name__ = function.__name__
    call.__doc__ = function.__doc__
    return call


def stop(error: BaseException) -> bool:
    """Count ``error``, which is being handled, and return True; False when it is the job's own and is to be raised again."""
    if _raise or theirs(error):
        return False
    if _channel is not None:
        _keep(_channel, error)
    if _debug:
        sys.stderr.write(_text(error))
    return True


def _text(error: BaseException) -> str:
    import traceback

    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


def _keep(channel: "Channel", error: BaseException) -> None:
    """Count a fault in ``channel``, which keeps the first one's traceback."""
    from . import layout

    word = layout.JOB_WORDS["faults"] // 8
    channel.words[word] += 1
    if channel.words[word] == 1:
        text = _text(error).encode("utf-8", "replace")[-layout.FAULT_MAX :]
        at = layout.FAULT_AT
        channel.view[at + 4 : at + 4 + len(text)] = text
        channel.view[at : at + 4] = len(text).to_bytes(4, "little")


def theirs(error: BaseException) -> bool:
    """Tell whether the job raised ``error`` while our code happened to run: a signal handler, or an exception set from outside."""
    trace = error.__traceback__
    handlers = _handlers()
    last = None
    while trace is not None:
        last = trace.tb_frame.f_code
        if last in handlers:
            return True
        trace = trace.tb_next
    ours = last is not None and os.path.dirname(os.path.abspath(last.co_filename)) == _OURS
    return ours and type(error).__module__.partition(".")[0] not in _CALLED


def _handlers() -> "set[CodeType]":
    """Return the code objects of the job's signal handlers."""
    import _signal

    codes = set()
    for number in range(1, _signal.NSIG):
        try:
            handler = _signal.getsignal(number)
        except ValueError:
            continue
        for candidate in (handler, getattr(handler, "func", None), vars(type(handler)).get("__call__")):
            code = getattr(getattr(candidate, "__func__", candidate), "__code__", None)
            if code is not None:
                codes.add(code)
    return codes
