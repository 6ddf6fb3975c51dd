"""The JSON of a `frames` record to rows of `frames` and `stacks`: which Python code made which node."""

import json
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
from tfprof.collector.errors import DecodeError
from tfprof.collector.ingest.columns import from_rows
from tfprof.collector.store.schema import FRAMES, STACKS

#: Rows and bytes of text that the frames of one graph may come to: indexes make a small record a large table.
ROWS_MAX: Final = 1 << 20
TEXT_MAX: Final = 64 << 20


def frames(data: bytes | memoryview, graph: int) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Return the FRAMES and STACKS rows of graph number ``graph``; DecodeError when ``data`` is not what it should be."""
    try:
        record = json.loads(bytes(data))
        places = _places(record["files"], record["functions"], record["frames"])
        stacks = [_picked(places, stack) for stack in _listed(record["stacks"])]
        nodes = {str(name): _index(number, len(stacks)) for name, number in record["nodes"].items()}
        _check_size(stacks)
        return _frame_rows(stacks, graph), _stack_rows(nodes, graph)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, pa.ArrowException) as error:
        raise DecodeError(f"the frames of graph {graph} are not to be read: {error!r}") from error


def _places(files: Any, functions: Any, entries: Any) -> list[tuple[str, int, str]]:
    """Return (file, line, function) of every frame."""
    places = []
    for file, line, function in _listed(entries):
        if type(line) is not int or abs(line) >> 62:
            raise ValueError(f"line {line!r}")
        places.append((_picked(files, [file])[0], line, _picked(functions, [function])[0]))
    return places


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError("not a list")
    return value


def _index(number: Any, length: int) -> int:
    if type(number) is not int or not 0 <= number < length:
        raise ValueError(f"{number!r} is no index into {length}")
    return number


def _picked(values: Sequence[Any], indexes: Any) -> list[Any]:
    return [values[_index(number, len(values))] for number in _listed(indexes)]


def _check_size(stacks: Sequence[Sequence[tuple[str, int, str]]]) -> None:
    if sum(map(len, stacks)) > ROWS_MAX:
        raise ValueError(f"more than {ROWS_MAX} frames")
    if sum(len(file) + len(function) for stack in stacks for file, _, function in stack) > TEXT_MAX:
        raise ValueError(f"more than {TEXT_MAX} bytes of text")


def _frame_rows(stacks: Sequence[Sequence[tuple[str, int, str]]], graph: int) -> pa.RecordBatch:
    rows = [
        (graph, stack, position, *place) for stack, places in enumerate(stacks) for position, place in enumerate(places)
    ]
    return from_rows(rows, FRAMES)


def _stack_rows(nodes: dict[str, int], graph: int) -> pa.RecordBatch:
    return from_rows([(graph, name, stack) for name, stack in nodes.items()], STACKS)
