"""Python stacks of nodes: converts rows of FRAMES and STACKS into shared tuples of frames."""

from typing import Any, Final

import pyarrow as pa

from ..store.columns import changes, flat, integer, integers, pc, row_numbers, row_tuples
from .nodes import Frame

#: Columns of FRAMES that are read.
FRAME_COLUMNS: Final = ("graph", "stack", *Frame._fields)
#: Upper bound of the stacks in a graph; the factor that packs graph and stack into one number.
_STACKS_MAX: Final = 1 << 32
#: Upper bound of the numbers that pack several columns; larger numbers would not fit in 64 bits.
_PACKED_MAX: Final = 1 << 62


def stacks(frames: pa.Table, nodes: pa.Table) -> dict[str, tuple[Frame, ...]]:
    """Return the stack of each node by name, outermost frame first.

    ``frames`` and ``nodes``: rows of FRAMES and STACKS in order of arrival. If nodes of several
    graphs have one name, the first is used. Nodes with the same graph and stack number share one
    tuple. Equal frames are one object.
    """
    by_number = _stacks_by_number(frames) if frames.num_rows else {}
    by_name: dict[str, tuple[Frame, ...]] = {}
    for name, graph, stack in row_tuples(nodes, "name", "graph", "stack"):
        if name not in by_name:
            by_name[name] = by_number.get(graph * _STACKS_MAX + stack, ())
    return by_name


def _stacks_by_number(table: pa.Table) -> dict[int, tuple[Frame, ...]]:
    """Return the frames of each stack, by graph * _STACKS_MAX + stack."""
    frames, frame_ids = _distinct_frames(table)
    rows = list(map(frames.__getitem__, integers(frame_ids)))
    graph, stack = (flat(table[name]).cast(pa.uint64()) for name in ("graph", "stack"))
    numbers = pc.add(pc.multiply(graph, pa.scalar(_STACKS_MAX, pa.uint64())), stack)
    runs = pc.run_end_encode(numbers, run_end_type=pa.int64())
    ends = integers(runs.run_ends)
    starts = [0, *ends[:-1]]
    spans = zip(runs.values.to_pylist(), starts, ends, strict=True)
    return {number: tuple(rows[start:end]) for number, start, end in spans}


def _distinct_frames(table: pa.Table) -> tuple[list[Frame], Any]:
    """Return the distinct frames, and for each row the index of its frame."""
    frame_ids, combinations = pc.multiply(row_numbers(table.num_rows), integer(0)), 1
    for name in Frame._fields:
        codes = flat(table[name]).dictionary_encode()
        size = len(codes.dictionary)
        if combinations * size >= _PACKED_MAX:
            frame_ids, combinations = _renumbered(frame_ids), table.num_rows
        frame_ids, combinations = (
            pc.add(pc.multiply(frame_ids, integer(size)), _int64(codes.indices)),
            combinations * size,
        )
    frame_ids = _renumbered(frame_ids)
    is_first = changes(pc.cumulative_max(frame_ids))  # a new frame has the highest number so far
    rows = table.select(list(Frame._fields)).filter(is_first)
    return list(map(Frame, *(column.to_pylist() for column in rows.columns))), frame_ids


def _renumbered(numbers: Any) -> Any:
    """Return 0, 1, … for the distinct ``numbers`` in order of appearance."""
    return _int64(numbers.dictionary_encode().indices)


def _int64(column: Any) -> Any:
    return flat(column).cast(pa.int64())
