"""Packs slices into lanes, so that two slices of a lane are disjoint or one encloses the other."""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple


class Packed(NamedTuple):
    """For each slice: its lane, and the number of slices in the lane that enclose it."""

    lanes: list[int]
    depths: list[int]


class Lanes:
    """The lanes of one group of slices, such as a device.

    Slices arrive in batches. A slice goes to the free lane with the lowest number.
    """

    def __init__(self) -> None:
        self._ends: list[int] = []

    def pack(self, starts: Sequence[int], durations: Sequence[int], threads: Sequence[int] | None = None) -> Packed:
        """Pack slices.

        They must be in order of their starts, and slices with the same start must be in order of
        length, longest first. With ``threads``, a slice within another slice of the same thread
        goes into the lane of that slice. Batches may overlap in time: a lane is free from the end
        of its last slice on.
        """
        busy = [(end, lane) for lane, end in enumerate(self._ends)]
        heapify(busy)
        free: list[int] = []
        lanes, depths = [0] * len(starts), [0] * len(starts)
        open_slices: dict[int, list[tuple[int, int]]] = {}  # thread -> (end, row) of its open slices, outermost first
        for row, start in enumerate(starts):
            end = start + durations[row]
            stack = open_slices.setdefault(threads[row], []) if threads is not None else []
            while stack and stack[-1][0] <= start:
                stack.pop()
            if stack and end <= stack[-1][0]:
                lanes[row], depths[row] = lanes[stack[-1][1]], len(stack)
            else:
                while busy and busy[0][0] <= start:
                    heappush(free, heappop(busy)[1])
                lanes[row] = lane = heappop(free) if free else len(self._ends)
                if lane == len(self._ends):
                    self._ends.append(end)
                self._ends[lane] = end
                heappush(busy, (end, lane))
                stack.clear()
            stack.append((end, row))
        return Packed(lanes, depths)
