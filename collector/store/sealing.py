"""Seals a write-ahead log into segments; a crash at any point loses nothing."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import pyarrow as pa

from . import catalog, durable, segment, small_segments
from .catalog import JobInfo
from .columns import as_table, flat_table, pc
from .devices import Devices, device_rows
from .merging import merge
from .protocols import Rows
from .rollup import canonical_after, canonical_of, rollup_of, sorted_by_node
from .schema import JOB_TABLES, LAST_TRACE, NAMES, ROLLUP, STEP_TIMES
from .snapshot import Snapshot
from .step_times import bucket_rows, merge_histograms, summed
from .wal import Contents

#: Rows of ops that are sealed at a time, rounded up to whole appends: a few megabytes.
PART_ROWS: Final = 16_000


@dataclass
class LogState:
    """The state of a job's log: acked numbers, rows, appends, and the job's device names."""

    acked: dict[int, int] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    appends: int = 0
    devices: pa.Table = field(default_factory=NAMES.empty_table)

    @classmethod
    def of_snapshot(cls, snapshot: Snapshot) -> "LogState":
        """Return the state of ``snapshot``, including its log."""
        state = cls(dict(snapshot.info.acked), devices=device_rows(snapshot.sealed("names")))
        for name in JOB_TABLES:
            state.count_rows(name, snapshot.log.table(name))
        for append in snapshot.log.appends:
            state.count_append(append.about, append.last)
        return state

    def add(self, tables: Mapping[str, Rows], about: int, last: int) -> None:
        """Count an append and its rows."""
        for name, rows in tables.items():
            self.count_rows(name, rows)
        self.count_append(about, last)

    def count_rows(self, name: str, rows: Rows) -> None:
        """Count ``rows`` of table ``name``."""
        if not rows.num_rows:
            return
        self.rows[name] = self.rows.get(name, 0) + rows.num_rows
        if name == "names":
            self.devices = pa.concat_tables([self.devices, device_rows(as_table(rows))])

    def count_append(self, about: int, last: int) -> None:
        """Count an append, which completes message ``last`` of type ``about``; 0 is no type."""
        self.appends += 1
        if about:
            self.acked[about] = last

    def clear(self) -> None:
        """Reset rows and appends after a sealing."""
        self.rows, self.appends = {}, 0


def seal(folder: Path, info: JobInfo, state: LogState, contents: Contents) -> JobInfo:
    """Write ``contents`` as the next generation, and return the new content of the job file.

    The last step, the replacement of the job file, commits the generation. A StoreError before
    this step changes nothing.
    """
    generation = info.sealed + 1
    rows = {**info.rows, **{name: info.rows.get(name, 0) + number for name, number in state.rows.items()}}
    generations = dict(info.parts)
    for name in (name for name in state.rows if name != "ops"):
        table = contents.table(name)
        if small_segments.is_merged(name):
            data, earlier_generations = small_segments.merged_segment(folder, name, table, info.parts.get(name, ()))
            generations[name] = [*earlier_generations, generation]
        else:
            data = segment.encode(name, table)
        _write(folder, name, generation, data)
    total = _write_ops(folder, info, state, contents) if "ops" in state.rows else info.total
    with durable.store_errors(folder):
        durable.sync_folder(folder)
    new_info = replace(info, sealed=generation, total=total, parts=generations, rows=rows, acked=dict(state.acked))
    with durable.store_errors(folder):
        durable.replace(folder / catalog.JOB_FILE, new_info.dump())
    return new_info


def tidy(folder: Path, old_info: JobInfo, new_info: JobInfo, log: Path) -> None:
    """Remove the log and the superseded segments once the new job file is durable.

    Errors are ignored: leftovers are removed when the job is next opened.
    """
    with contextlib.suppress(OSError):
        durable.sync_folder(folder)
        log.unlink()
        for name, number in _superseded(old_info, new_info):
            (folder / segment.file_name(name, number)).unlink(missing_ok=True)


def _superseded(old_info: JobInfo, new_info: JobInfo) -> Iterator[tuple[str, int]]:
    """Yield table and generation of the superseded segments."""
    if old_info.total not in (new_info.total, -1):
        yield from ((name, old_info.total) for name in segment.TOTALS)
    for name, numbers in old_info.parts.items():
        yield from ((name, number) for number in numbers if number not in new_info.parts[name])


def _write_ops(folder: Path, info: JobInfo, state: LogState, contents: Contents) -> int:
    """Write ops, their aggregates and the totals of the next generation; return its number."""
    generation = info.sealed + 1
    total, total_times = _total(folder, info), _total_times(folder, info)
    traces, devices = contents.table("traces"), Devices(state.devices)
    rollups: list[pa.Table] = []
    times: list[pa.Table] = []
    canonical = canonical_of(total)
    first, last = LAST_TRACE, 0

    def pieces() -> Iterator[pa.Table]:
        nonlocal canonical, first, last
        for piece in contents.pieces("ops", PART_ROWS):
            canonical = canonical_after(piece, devices, canonical)
            part = sorted_by_node(flat_table(piece), devices)
            rollups.append(rollup_of(part, traces, devices, canonical))
            times.append(bucket_rows(part, traces, devices))
            first, last = min(first, pc.min(part["trace"]).as_py()), max(last, pc.max(part["trace"]).as_py())
            yield part
            del piece, part  # as in segment.encode_parts
            pa.default_memory_pool().release_unused()  # otherwise the pool keeps more and more unused blocks

    _write(folder, "ops", generation, segment.encode_parts("ops", pieces()))
    rollup, histogram = merge(*rollups), summed(pa.concat_tables([STEP_TIMES.empty_table(), *times]))
    metadata = {"first_trace": first, "last_trace": last}
    _write(folder, segment.ROLLUP_NAME, generation, segment.encode(segment.ROLLUP_NAME, rollup, metadata))
    aggregates = {segment.TIMES_NAME: histogram, segment.TOTAL_NAME: merge(total, rollup)}
    if total_times is not None:
        aggregates[segment.TOTAL_TIMES_NAME] = merge_histograms(total_times, histogram)
    for name, table in aggregates.items():
        _write(folder, name, generation, segment.encode(name, table))
    return generation


def _total(folder: Path, info: JobInfo) -> pa.Table:
    if info.total < 0:
        return ROLLUP.empty_table()
    path = folder / segment.file_name(segment.TOTAL_NAME, info.total)
    with durable.store_errors(path):
        return segment.read(path, segment.TOTAL_NAME)


def _total_times(folder: Path, info: JobInfo) -> pa.Table | None:
    """Return the histogram of all sealed generations; None if tfprof 0.2.0 sealed one of them."""
    if info.total < 0:
        return STEP_TIMES.empty_table()
    path = folder / segment.file_name(segment.TOTAL_TIMES_NAME, info.total)
    with durable.store_errors(path):
        return segment.read(path, segment.TOTAL_TIMES_NAME) if path.exists() else None


def _write(folder: Path, name: str, generation: int, data: memoryview) -> None:
    path = folder / segment.file_name(name, generation)
    with durable.store_errors(path):
        durable.replace(path, data)
