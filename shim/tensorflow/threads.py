"""Threads in an XSpace: the line of the step's thread, and whether other threads call functions."""

from __future__ import annotations

from ...formats import layout

_MASK = (1 << 64) - 1
_SEED, _FACTOR, _SHIFT = 0xC70F6907, 0xC6A4A7935BD1E995, 47


def line_id(ident: int) -> int:
    """Return the low 32 bits of the XSpace line id of the thread ``ident``.

    TensorFlow uses libstdc++'s hash of ``ident``: MurmurHash64A of its eight bytes.
    """
    word = ident * _FACTOR & _MASK
    word = (word ^ word >> _SHIFT) * _FACTOR & _MASK
    value = ((_SEED ^ 8 * _FACTOR) & _MASK ^ word) * _FACTOR & _MASK
    value = (value ^ value >> _SHIFT) * _FACTOR & _MASK
    return (value ^ value >> _SHIFT) & 0xFFFFFFFF


def head_word(ident: int) -> int:
    """Return the last word of layout.XSPACE_HEAD for the calling thread, which has ``ident``."""
    from .function import is_other_thread_in_call  # imported late: it imports the windows, which import this module

    others = layout.XSPACE_OTHER_THREADS if is_other_thread_in_call() else 0
    return line_id(ident) & ~layout.XSPACE_OTHER_THREADS | others
