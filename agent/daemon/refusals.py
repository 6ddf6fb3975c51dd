"""Counts refusals: one entry per process and reason."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

#: Maximum number of entries: the oldest are dropped, but all refusals are counted.
ENTRIES_MAX: Final = 1000
#: Number of entries in the status file.
_SHOWN_MAX: Final = 20
_TEXT_MAX: Final = 512


class Refusal(NamedTuple):
    """A reason for which a process was refused, and how often; ``launch`` is 0 if unknown."""

    launch: int
    pid: int
    slug: str
    text: str
    times: int = 1


class Refusals:
    """The last refusals of one agent, the latest last; ``total`` counts all of them."""

    def __init__(self) -> None:
        self._entries: dict[tuple[int, int, str], Refusal] = {}
        self.total = 0

    def add(self, launch: int, pid: int, slug: str, text: str) -> None:
        """Count one refusal; the newest text replaces the earlier one."""
        self.total += 1
        key = (launch, pid, slug)
        earlier_entry = self._entries.pop(key, None)
        self._entries[key] = Refusal(
            launch, pid, slug, text[:_TEXT_MAX], earlier_entry.times + 1 if earlier_entry else 1
        )
        if len(self._entries) > ENTRIES_MAX:
            del self._entries[next(iter(self._entries))]

    def __iter__(self) -> Iterator[Refusal]:
        return iter(list(self._entries.values()))

    def status(self) -> dict[str, Any]:
        """Return the refusals for the status file."""
        return {"refused": self.total, "refusals": [refusal._asdict() for refusal in list(self)[-_SHOWN_MAX:]]}
