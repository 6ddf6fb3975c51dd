"""The ordinals of the steps of one kind.

Steps that are only counted store their ordinal in the channel's counter of their kind.
"""

from __future__ import annotations

import ctypes
import itertools
import operator

from .. import native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator


class PythonOrdinals(object):
    """The ordinals of steps, from 1 on; iterating takes those of steps that are only counted.

    The iteration ends before a step that is to be timed. Such a step calls ``next()``. No two
    threads get the same ordinal.

    The iteration also ends when a check for orders is due, which the next step does. The C version
    does the check itself, and goes on if there is no new order. ``later`` is the number of steps
    that are only counted after the next check.
    """

    __slots__ = ("_next", "_untimed", "_word", "later")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start again at 1, and store no ordinal until the next `bind`."""
        self._next = itertools.count(1).__next__
        self._untimed: Iterator[None] = itertools.repeat(None, 0)
        self._word = ctypes.c_uint64()
        self.later = 0

    def bind(self, _address: int, _order_address: int, word: ctypes.c_uint64) -> None:
        """Store the ordinal of each step that is only counted in ``word``, at ``_address``."""
        self._word = word

    def skip(self, number: int, interval: int) -> None:
        """Let the next ``number`` steps be only counted, and check for orders each ``interval``."""
        first = max(0, min(number, interval))
        self.later = max(0, number) - first
        self._untimed = itertools.repeat(None, first)

    def follow(self, _generation: int) -> int:
        """Follow a new order: return ``later``, and set it to 0."""
        later, self.later = self.later, 0
        return later

    @property
    def left(self) -> int:
        """How many of the next steps are only counted, before a check for orders."""
        return operator.length_hint(self._untimed)

    def next(self) -> int:
        """Return the next ordinal, for a step that is timed."""
        return self._next()

    def __iter__(self) -> PythonOrdinals:
        return self

    def __next__(self) -> int:
        next(self._untimed)
        ordinal = self._next()
        self._word.value = ordinal
        return ordinal


Ordinals: Any = PythonOrdinals if native.module is None else native.module.Ordinals
