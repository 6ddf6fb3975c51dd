"""Memory in use by a GPU's allocator during a step, and the nodes that held most of it."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple

from ..tfviews.encoding import octets
from ..tfviews.entries import Entry

#: Maximum nodes listed for a point.
LISTED: Final = 10
#: Minimum distance of two points in µs.
_DISTANCE_MIN_US: Final = 100


class MemoryHolder(NamedTuple):
    """A node and the bytes that it holds."""

    bytes: int
    node: str


class Point(NamedTuple):
    """Bytes in use at a moment (µs), the largest holders, and the rest."""

    at: int
    bytes: int
    holders: list[MemoryHolder]
    rest: int


class GpuMemory:
    """The memory of one GPU over a step."""

    def __init__(self) -> None:
        self._in_use: dict[int, int] = {}
        self._held: dict[str, dict[int, int]] = {}

    def add(self, node: str, entry: Entry, persistent: int) -> None:
        """Add the allocations of ``node``; ``persistent``: bytes that it keeps across steps."""
        held: dict[int, int] = defaultdict(int)
        held[0] = persistent
        for at, size in entry.allocations:
            held[at] += size
        self._held[node] = held
        self._in_use.update({record.micros: record.in_use for record in entry.memory if record.micros > 0})

    @property
    def peak(self) -> int:
        """The most bytes in use at one moment."""
        return max(self._in_use.values(), default=0)

    def points(self) -> Iterator[Point]:
        """Yield points in order, with a minimum distance."""
        changes = sorted(
            ((at, node, change) for node, held in self._held.items() for at, change in held.items()), reverse=True
        )
        sizes: dict[str, int] = defaultdict(int)
        last = 0
        for at, in_use in sorted(self._in_use.items()):
            if at - last < _DISTANCE_MIN_US:
                continue
            last = at
            while changes and changes[-1][0] < at:
                _, node, change = changes.pop()
                sizes[node] += change
            yield _point(at, in_use, sizes)


def _point(at: int, in_use: int, sizes: dict[str, int]) -> Point:
    """Return a point with its largest holders.

    A holder of more bytes than are left of the bytes in use is skipped.
    """
    largest = sorted(
        (MemoryHolder(size, node) for node, size in sizes.items() if size > 0),
        key=lambda holder: (-holder.bytes, octets(holder.node)),
    )
    listed: list[MemoryHolder] = []
    rest = in_use
    for holder in largest:
        if len(listed) == LISTED:
            break
        if holder.bytes <= rest:
            listed.append(holder)
            rest -= holder.bytes
    return Point(at, in_use, listed, rest)
