"""Threads in an XSpace: the line of the step's thread, and whether other threads call functions."""

from __future__ import annotations

import _thread
import sys

from ...formats import layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

_MASK = (1 << 64) - 1
_SEED, _FACTOR, _SHIFT = 0xC70F6907, 0xC6A4A7935BD1E995, 47


def line_id(ident: int) -> int:
    """Return the low 32 bits of the XSpace line id of the thread ``ident``.

    TensorFlow uses libstdc++'s hash of ``ident``: MurmurHash64A of its eight bytes.
    """
    word = ident * _FACTOR & _MASK
    word = (word ^ word >> _SHIFT) * _FACTOR & _MASK
    found = ((_SEED ^ 8 * _FACTOR) & _MASK ^ word) * _FACTOR & _MASK
    found = (found ^ found >> _SHIFT) * _FACTOR & _MASK
    return (found ^ found >> _SHIFT) & 0xFFFFFFFF


def head_word(ident: int) -> int:
    """Return the last word of layout.XSPACE_HEAD for the calling thread, which has ``ident``."""
    others = _others_are_inside() or _others_call(ident)
    return line_id(ident) & ~layout.XSPACE_OTHERS | (layout.XSPACE_OTHERS if others else 0)


def _others_are_inside() -> bool:
    """Return whether another thread is in a measured call or in a Keras call."""
    from .function import inside, scope  # imported late: it imports the windows, which import this module

    here = scope.thread_state
    return any(each is not here and (each.calling or each.keras_calls) for each in list(inside))


def _others_call(ident: int) -> bool:
    """Return whether a thread other than ``ident`` is in a call of a function.

    Only the frames show a call that is counted and not measured.
    """
    if not _thread._count():  # there is only the main thread
        return False
    return any(_calls(frame) for other, frame in sys._current_frames().items() if other != ident)


def _calls(frame: FrameType | None) -> bool:
    """Return whether ``frame`` or one of its callers is the call of a function."""
    from .function import annotating

    while frame is not None:
        if "Trace" in frame.f_code.co_names and id(dict.get(frame.f_globals, "trace")) in annotating:
            return True
        frame = frame.f_back
    return False
