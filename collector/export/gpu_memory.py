"""Memory in use by a GPU's allocator during a step, and the nodes that held most of it."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple

from ..tfviews.encoding import octets
from ..tfviews.entries import Entry

#: Maximum number of holders of a point.
HOLDERS_MAX: Final = 10
#: Minimum distance of two points in µs.
_DISTANCE_MIN_US: Final = 100


class MemoryHolder(NamedTuple):
    """A node and the bytes that it holds."""

    bytes: int
    node: str


class Point(NamedTuple):
    """Bytes in use at a moment (µs), their largest holders, and the bytes of all others."""

    time_us: int
    bytes: int
    holders: list[MemoryHolder]
    other_bytes: int


class GpuMemory:
    """The memory of one GPU during a step."""

    def __init__(self) -> None:
        self._in_use: dict[int, int] = {}  # bytes by time (µs)
        self._changes: dict[str, dict[int, int]] = {}  # by node: bytes allocated by time, negative if freed

    def add(self, node: str, entry: Entry, persistent: int) -> None:
        """Add the allocations of ``node``; ``persistent``: bytes that it keeps across steps."""
        changes: dict[int, int] = defaultdict(int)
        changes[0] = persistent
        for time_us, size in entry.allocations:
            changes[time_us] += size
        self._changes[node] = changes
        self._in_use.update({record.micros: record.in_use for record in entry.memory if record.micros > 0})

    @property
    def peak(self) -> int:
        """The most bytes in use at one moment."""
        return max(self._in_use.values(), default=0)

    def points(self) -> Iterator[Point]:
        """Yield points in order of time, at least _DISTANCE_MIN_US apart."""
        changes = sorted(
            (
                (time_us, node, change)
                for node, node_changes in self._changes.items()
                for time_us, change in node_changes.items()
            ),
            reverse=True,
        )
        sizes: dict[str, int] = defaultdict(int)
        last_us = 0
        for time_us, in_use in sorted(self._in_use.items()):
            if time_us - last_us < _DISTANCE_MIN_US:
                continue
            last_us = time_us
            while changes and changes[-1][0] < time_us:
                _, node, change = changes.pop()
                sizes[node] += change
            yield _point(time_us, in_use, sizes)


def _point(time_us: int, in_use: int, sizes: dict[str, int]) -> Point:
    """Return a point with its largest holders.

    A holder is skipped if its bytes and those of the listed holders would exceed the bytes in use.
    """
    holders = sorted(
        (MemoryHolder(size, node) for node, size in sizes.items() if size > 0),
        key=lambda holder: (-holder.bytes, octets(holder.node)),
    )
    listed: list[MemoryHolder] = []
    other_bytes = in_use
    for holder in holders:
        if len(listed) == HOLDERS_MAX:
            break
        if holder.bytes <= other_bytes:
            listed.append(holder)
            other_bytes -= holder.bytes
    return Point(time_us, in_use, listed, other_bytes)
