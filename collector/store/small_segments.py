"""Small tables: the segment of a later generation takes in those before it, so that a long job has few to open."""

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa

from ..errors import StoreError
from . import segment
from .catalog import JobInfo

#: A segment that would have more bytes takes in no more: what is sealed again and again must stay small.
FULL_BYTES: Final = 1 << 18
#: Large tables, and those that are read for the traces of a generation: each generation has its own.
_APART: Final = frozenset({"ops", "allocations", "output_memory", segment.ROLLUP_NAME, segment.TOTAL_NAME})


class Grown(NamedTuple):
    """A segment with what it took in, and the generations before it whose segments stay in force."""

    data: memoryview
    before: tuple[int, ...]


def together(name: str) -> bool:
    """Whether segments of table ``name`` take in earlier ones: the job's record lists those in force, then."""
    return name not in _APART


def in_force(info: JobInfo, name: str, generations: Iterable[int]) -> list[int]:
    """Return which of the ``generations`` that have segments of table ``name`` count, oldest first."""
    if together(name):
        return list(info.parts.get(name, ()))
    if name == segment.TOTAL_NAME:
        return [info.total] if info.total >= 0 else []
    return sorted(number for number in generations if number <= info.sealed)


def grown(folder: Path, name: str, table: pa.Table, parts: Sequence[int]) -> Grown:
    """Return the segment of ``table`` and of the last of ``parts``, those in force: of each as long as it is no larger.

    So a row is written again as often as the job's length doubles. A damaged segment is left to those who read it.
    """
    data = segment.encode(name, table)
    size, taken, before = len(data), [table], list(parts)
    with contextlib.suppress(OSError, StoreError):
        while before:
            path = folder / segment.file_name(name, before[-1])
            more = path.stat().st_size
            if more > size or size + more > FULL_BYTES:
                break
            taken.append(segment.read(path, name))
            before.pop()
            size += more
    if len(taken) > 1:
        data = segment.encode(name, pa.concat_tables(reversed(taken)))
    return Grown(data, tuple(before))
