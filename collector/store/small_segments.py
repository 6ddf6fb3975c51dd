"""Merges trailing segments of small tables into the new one, so that long jobs have few files."""

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa

from ..errors import StoreError
from . import segment
from .catalog import JobInfo

#: Maximum bytes of a merged segment: rewriting a larger one at every sealing would cost too much.
FULL_BYTES: Final = 1 << 18
#: Tables that are never merged: large tables, and tables that are read by generation.
_NEVER_MERGED: Final = frozenset(
    {
        *("ops", "allocations", "output_memory", "memory_changes", "block_addresses"),
        *(segment.ROLLUP_NAME, segment.TIMES_NAME, *segment.TOTALS),
    }
)


class MergedSegment(NamedTuple):
    """A merged segment, and the earlier generations whose segments stay in force."""

    data: memoryview
    earlier_generations: tuple[int, ...]


def is_merged(name: str) -> bool:
    """Whether segments of table ``name`` are merged.

    If so, the job file lists the generations whose segments are in force.
    """
    return name not in _NEVER_MERGED


def generations_in_force(info: JobInfo, name: str, generations: Iterable[int]) -> list[int]:
    """Return the generations whose segments of table ``name`` are in force, oldest first.

    ``generations``: the generations that have a segment of the table.
    """
    if is_merged(name):
        return list(info.parts.get(name, ()))
    if name in segment.TOTALS:
        return [info.total] if info.total >= 0 else []
    return sorted(number for number in generations if number <= info.sealed)


def merged_segment(folder: Path, name: str, table: pa.Table, generations: Sequence[int]) -> MergedSegment:
    """Merge ``table`` and the trailing segments of ``generations`` into one segment.

    Segments are added one by one, newest first. This stops at a segment that is larger than the
    result so far, or that would make the result larger than FULL_BYTES. A row is therefore
    rewritten at most once each time the table doubles. A damaged segment stays in force; readers
    report it.
    """
    data = segment.encode(name, table)
    size, tables, earlier_generations = len(data), [table], list(generations)
    with contextlib.suppress(OSError, StoreError):
        while earlier_generations:
            path = folder / segment.file_name(name, earlier_generations[-1])
            segment_size = path.lstat().st_size
            if segment_size > size or size + segment_size > FULL_BYTES:
                break
            tables.append(segment.read(path, name))
            earlier_generations.pop()
            size += segment_size
    if len(tables) > 1:
        data = segment.encode(name, pa.concat_tables(reversed(tables)))
    return MergedSegment(data, tuple(earlier_generations))
