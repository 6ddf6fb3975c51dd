"""The ordinals of steps, which the shim's C part takes (native.c).

Without it every step is timed: where no compiler has built it, or where this Python is unknown. An
attach sends it along, as the package's attribute ``compiled``.
"""

from __future__ import annotations

import _imp
import itertools
import posix
import sys
from typing import Any

from ..channel import memory
from ..cpython.version import CURRENT
from ..guard import attempt
from ..own_os import os

_SUFFIX = ".abi3.so"


class TimedOrdinals(object):
    """Stands in for the C part's Ordinals (native.c): every step is timed, and thereby counted."""

    timed_at = counted = generation = word = order = 0
    take_untimed = take_counted = int  # called without arguments: 0

    @property
    def last(self) -> int:
        """The last ordinal before the first step of this process; to set it begins again."""
        return 0

    @last.setter
    def last(self, ordinal: int) -> None:
        self.next = itertools.count(ordinal + 1).__next__


def _load() -> Any:
    """Return the C part, None where it cannot be loaded."""
    compiled = getattr(sys.modules[__package__], "compiled", None)
    if CURRENT is None or compiled == b"" or _SUFFIX not in _imp.extension_suffixes():
        return None
    errors = (ImportError, SystemError, OSError)
    if compiled:
        return attempt(errors, _load_from_memory, compiled)
    path = os.path.join(os.path.dirname(__file__), "_native" + _SUFFIX)
    return attempt(errors, _load_file, __package__, path)


def _load_file(package: str, path: str) -> Any:
    return _imp.create_dynamic(sys.modules["_frozen_importlib"].ModuleSpec(package + "._native", None, origin=path))


def _load_from_memory(compiled: bytes) -> Any:
    """Return the module in ``compiled``; the process keeps it, since it cannot be unloaded."""
    key = hash(compiled)
    kept: dict[int, Any] = vars(posix).setdefault("_tfprof_compiled", {})
    if key not in kept:
        fd = memory.create("native")
        try:
            memory.reserve(fd, len(compiled))
            os.write(fd, compiled)
            kept[key] = _load_file("_tfprof.%x" % abs(key), "/proc/self/fd/%d" % fd)
        finally:
            os.close(fd)
    return kept[key]


native = _load()
Ordinals: Any = TimedOrdinals if native is None else native.Ordinals
