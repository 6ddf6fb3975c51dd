"""The largest lines of a tree."""

from collections.abc import Sequence
from typing import Protocol, TypeVar


class Line(Protocol):
    """A line of a tree; lines follow their parents."""

    @property
    def depth(self) -> int:
        """The number of lines above it in the tree."""
        ...

    @property
    def total_ns(self) -> int:
        """Its time."""
        ...


L = TypeVar("L", bound=Line)


def largest_lines(lines: Sequence[L], top: int) -> list[L]:
    """Return the ``top`` lines with the most time and the lines above them, all if ``top`` is 0."""
    if not top:
        return list(lines)
    by_size = sorted(range(len(lines)), key=lambda at: -lines[at].total_ns)
    kept = set(by_size[:top])
    for at in sorted(kept):
        depth = lines[at].depth
        for above in range(at - 1, -1, -1):
            if lines[above].depth < depth:
                depth = lines[above].depth
                kept.add(above)
    return [lines[at] for at in sorted(kept)]
