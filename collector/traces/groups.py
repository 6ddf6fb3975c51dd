"""Assigns the slices of a process to tracks: each group, such as a device, has several lanes."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from ..store.columns import flat_table, integers, pc
from .flows import FLOWS
from .lanes import Lanes
from .model import SLICES, Process, Track


class _Group(NamedTuple):
    lanes: Lanes
    tracks: list[Track]


class Groups:
    """The groups of one process by name; ``numbers`` yields the numbers of new tracks."""

    def __init__(self, process: Process, numbers: Iterator[int]) -> None:
        self._process, self._numbers = process, numbers
        self._groups: dict[str, _Group] = {}

    def track(self, group: str, lane: int = 0) -> tuple[Track, list[Track]]:
        """Return a track of a group, and the tracks that are new: those up to this lane."""
        tracks = self._groups.setdefault(group, _Group(Lanes(), [])).tracks
        known = len(tracks)
        while len(tracks) <= lane:
            tracks.append(Track(next(self._numbers), self._process.number, group, len(tracks)))
        return tracks[lane], tracks[known:]

    def pack(self, group: str, rows: pa.Table, *, nested: bool) -> tuple[list[Track], pa.Table]:
        """Return the new tracks, and ``rows`` of one group as SLICES.

        ``rows`` has the columns of SLICES that do not depend on the lane, and thread. ``nested``: a
        slice within another slice of its thread goes into the lane of that slice.
        """
        rows = flat_table(rows.sort_by([("start_ns", "ascending"), ("duration_ns", "descending")]))
        starts, durations = integers(rows["start_ns"]), integers(rows["duration_ns"])
        lanes = self._groups.setdefault(group, _Group(Lanes(), [])).lanes
        packed = lanes.pack(starts, durations, integers(rows["thread"]) if nested else None)
        new_tracks = self.track(group, max(packed.lanes, default=-1))[1] if packed.lanes else []
        numbers = pa.array([track.number for track in self._groups[group].tracks], pa.uint32())
        no_flows = pa.nulls(rows.num_rows, FLOWS)
        columns: dict[str, Any] = {name: rows[name] for name in SLICES.names if name in rows.column_names} | {
            "track": pc.take(numbers, pa.array(packed.lanes, pa.uint32())),
            "depth": pa.array(packed.depths, pa.uint32()),
            "leaving": rows["leaving"] if "leaving" in rows.column_names else no_flows,
            "entering": rows["entering"] if "leaving" in rows.column_names else no_flows,
            "waits": rows["waits"] if "waits" in rows.column_names else pa.repeat(pa.scalar(False), rows.num_rows),
        }
        return new_tracks, pa.table([columns[name] for name in SLICES.names], schema=SLICES)
