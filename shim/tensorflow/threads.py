"""Threads as the lines of an XSpace: which one is the step's, and whether others call functions."""

from __future__ import annotations

from ...formats import layout

_MASK = (1 << 64) - 1
_SEED, _FACTOR, _SHIFT = 0xC70F6907, 0xC6A4A7935BD1E995, 47


def line_of(ident: int) -> int:
    """Return the low 32 bits of a line's id by the thread's ``ident``.

    TensorFlow takes libstdc++'s hash of the thread: MurmurHash64A of its eight bytes.
    """
    word = ident * _FACTOR & _MASK
    word = (word ^ word >> _SHIFT) * _FACTOR & _MASK
    found = ((_SEED ^ 8 * _FACTOR) & _MASK ^ word) * _FACTOR & _MASK
    found = (found ^ found >> _SHIFT) * _FACTOR & _MASK
    return (found ^ found >> _SHIFT) & 0xFFFFFFFF


def caller(ident: int) -> int:
    """Return what layout.XSPACE_HEAD says of the calling thread, whose ident is given."""
    from .function import inside, scope  # it needs the windows itself

    here = scope.thread_state
    others = any(each is not here and (each.calling or each.keras_calls) for each in list(inside))
    return line_of(ident) & ~layout.XSPACE_OTHERS | (layout.XSPACE_OTHERS if others else 0)
