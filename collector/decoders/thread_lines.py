"""The line of a thread in an XSpace."""

from typing import Final

from ...formats.layout import XSPACE_OTHER_THREADS

_MASK: Final = (1 << 64) - 1
_SEED, _FACTOR, _SHIFT = 0xC70F6907, 0xC6A4A7935BD1E995, 47


def caller_of(thread: int) -> int:
    """Return the number of the XSpace line of a step's thread; ``thread``: from the step's header.

    The number is the low 32 bits of the line's id. The lowest bit is XSPACE_OTHER_THREADS, as in
    the header. The line of an unknown thread is 0.
    """
    others = thread & XSPACE_OTHER_THREADS
    ident = thread - others
    return (line_id(ident) & ~XSPACE_OTHER_THREADS if ident else 0) | others


def line_id(ident: int) -> int:
    """Return the low 32 bits of the XSpace line id of the thread ``ident``.

    TensorFlow uses libstdc++'s hash of ``ident``: MurmurHash64A of its eight bytes.
    """
    word = ident * _FACTOR & _MASK
    word = (word ^ word >> _SHIFT) * _FACTOR & _MASK
    value = ((_SEED ^ 8 * _FACTOR) & _MASK ^ word) * _FACTOR & _MASK
    value = (value ^ value >> _SHIFT) * _FACTOR & _MASK
    return (value ^ value >> _SHIFT) & 0xFFFFFFFF
