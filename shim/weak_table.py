"""A table with weak keys; other than in ``weakref``, no Python code runs when a key is deleted.

Python drops the exceptions that signal handlers raise in such code.
"""

from __future__ import annotations

from functools import partial
from typing import Any
from weakref import ref

from .clock import identity


class WeakTable(object):
    """Values by object; keys are compared by identity, and an entry is deleted with its key."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[int, tuple[ref[Any], Any]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return identity(key) in self._entries

    def get(self, key: object) -> Any:
        """Return the value of ``key``, None where there is none."""
        entry = self._entries.get(identity(key))
        return None if entry is None else entry[1]

    def set(self, key: Any, value: Any = True) -> None:
        """Set the value of ``key``, an object that allows weak references."""
        key_id = identity(key)
        # Python calls ``pop(key_id, reference)``: the reference is the result for a missing entry.
        self._entries[key_id] = ref(key, partial(self._entries.pop, key_id)), value

    def existing(self) -> list[Any]:
        """Return the keys that still exist."""
        keys = [reference() for reference, _ in list(self._entries.values())]
        return [key for key in keys if key is not None]

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()
