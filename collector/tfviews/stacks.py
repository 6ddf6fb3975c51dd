"""Python stacks of nodes: converts rows of FRAMES and STACKS into shared tuples of frames."""

from typing import Any, Final

import pyarrow as pa

from ..store.columns import flat, integer, integers, pc, row_numbers, row_tuples
from .nodes import Frame

#: Columns of FRAMES that are read.
FRAME_COLUMNS: Final = ("graph", "stack", *Frame._fields)
#: Upper bound of the stacks in a graph; packs graph and stack into one number.
_STACKS: Final = 1 << 32
#: Bound of the numbers that pack several columns; larger ones would not fit in 64 bits.
_ROOM: Final = 1 << 62


def stacks(frames: pa.Table, nodes: pa.Table) -> dict[str, tuple[Frame, ...]]:
    """Return the stack of each node by name, outermost frame first.

    ``frames`` and ``nodes``: rows of FRAMES and STACKS in order of arrival. If several graphs have
    a name, the first is used. Equal stacks and equal frames are shared.
    """
    known = _by_number(frames) if frames.num_rows else {}
    by_name: dict[str, tuple[Frame, ...]] = {}
    for name, graph, stack in row_tuples(nodes, "name", "graph", "stack"):
        if name not in by_name:
            by_name[name] = known.get(graph * _STACKS + stack, ())
    return by_name


def _by_number(table: pa.Table) -> dict[int, tuple[Frame, ...]]:
    """Return the frames of each stack, by graph * _STACKS + stack."""
    frames, which = _frames(table)
    rows = list(map(frames.__getitem__, integers(which)))
    graph, stack = (flat(table[name]).cast(pa.uint64()) for name in ("graph", "stack"))
    numbers = pc.add(pc.multiply(graph, pa.scalar(_STACKS, pa.uint64())), stack)
    runs = pc.run_end_encode(numbers, run_end_type=pa.int64())
    ends = integers(runs.run_ends)
    starts = [0, *ends[:-1]]
    known = zip(runs.values.to_pylist(), starts, ends, strict=True)
    return {number: tuple(rows[start:end]) for number, start, end in known}


def _frames(table: pa.Table) -> tuple[list[Frame], Any]:
    """Return the distinct frames, and for each row the index of its frame."""
    which, room = pc.multiply(row_numbers(table.num_rows), integer(0)), 1
    for name in Frame._fields:
        codes = flat(table[name]).dictionary_encode()
        size = len(codes.dictionary)
        if room * size >= _ROOM:
            which, room = _dense(which), table.num_rows
        which, room = pc.add(pc.multiply(which, integer(size)), _wide(codes.indices)), room * size
    which = _dense(which)
    firsts = (
        pa.table({"which": which, "row": row_numbers(table.num_rows)}).group_by("which").aggregate([("row", "min")])
    )
    rows = table.select(list(Frame._fields)).take(firsts["row_min"].take(pc.sort_indices(firsts["which"])))
    return list(map(Frame, *(column.to_pylist() for column in rows.columns))), which


def _dense(numbers: Any) -> Any:
    """Return 0, 1, … for the distinct ``numbers`` in order of appearance."""
    return _wide(numbers.dictionary_encode().indices)


def _wide(column: Any) -> Any:
    return flat(column).cast(pa.int64())
