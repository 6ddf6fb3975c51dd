"""The ordinals of the steps of one kind.

A word in the channel holds the ordinal of the last step that was only counted.
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
    """

    __slots__ = ("_next", "_untimed", "_word")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start again at 1, and store no ordinal until the next `bind`."""
        self._next = itertools.count(1).__next__
        self._untimed: Iterator[None] = itertools.repeat(None, 0)
        self._word = ctypes.c_uint64()

    def bind(self, _address: int, word: ctypes.c_uint64) -> None:
        """Store the ordinal of each step that is only counted in ``word``, at ``_address``."""
        self._word = word

    def skip(self, number: int) -> None:
        """Let the next ``number`` steps be only counted."""
        self._untimed = itertools.repeat(None, number)

    @property
    def left(self) -> int:
        """How many of the next steps are only counted."""
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
