"""Decodes the JSON of a `frames` record: the Python stacks of nodes, and the variables."""

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ..errors import DecodeError
from ..store.schema import STATE, TRAINABLE, UNTRAINED
from .auxiliary_files import is_auxiliary
from .columns import from_rows

#: Maximum rows and characters of text in the frames of one graph. A small record can make a large
#: table, since its stacks are lists of indexes.
ROWS_MAX: Final = 1 << 20
TEXT_MAX: Final = 64 << 20
#: Upper bound of the number of a record's first stack; a record has fewer stacks than that, too.
_FIRST_MAX: Final = 1 << 31

#: Label of variables, by the key of the record that lists them.
_VARIABLES: Final = {"variables": TRAINABLE, "others": UNTRAINED, "state": STATE}

#: (file, line, function, start line)
_FrameRow = tuple[str, int, str, int]


class FrameRows(NamedTuple):
    """Rows of FRAMES, STACKS and OP_LOG from one record."""

    frames: pa.RecordBatch
    stacks: pa.RecordBatch
    op_log: pa.RecordBatch


def frames(data: bytes | memoryview, graph: int) -> FrameRows:
    """Return the rows of the `frames` record ``data`` of graph number ``graph``.

    DecodeError if ``data`` is malformed or makes too large a table.
    """
    try:
        record = json.loads(bytes(data))
        entries = _checked_list(record["frames"])
        starts = _checked_list(record.get("starts", [-1] * len(entries)))
        frame_table = _frame_table(record["files"], record["functions"], entries, starts)
        stacks = [_elements_at(frame_table, stack) for stack in _checked_list(record["stacks"])]
        nodes = {str(name): _checked_index(number, len(stacks)) for name, number in record["nodes"].items()}
        first = _checked_index(record.get("first_stack", 0), _FIRST_MAX)
        _check_size(stacks)
        variables = [
            row for key, label in _VARIABLES.items() for row in _variables(record.get(key, {}), graph, [label])
        ]
        parameters = {name for _, name, *_ in variables}
        variable_ops = [str(name) for name in _checked_list(record.get("variable_ops", [])) if name not in parameters]
        auxiliary = dict.fromkeys(name for name in variable_ops if _is_auxiliary(stacks[nodes[name]]))
        variables += _variables(auxiliary, graph, [STATE])
        return FrameRows(
            _frame_rows(stacks, graph, first), _stack_rows(nodes, graph, first), from_rows(variables, "op_log")
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, pa.ArrowException) as error:
        raise DecodeError(f"the frames of graph {graph} cannot be read: {error!r}") from error


def _frame_table(files: Any, functions: Any, entries: Any, starts: Any) -> list[_FrameRow]:
    """Return all frames of a record."""
    files, functions = _storable(files), _storable(functions)
    return [
        (
            _elements_at(files, [file])[0],
            _checked_number(line),
            _elements_at(functions, [function])[0],
            _checked_number(start),
        )
        for (file, line, function), start in zip(entries, starts, strict=True)
    ]


def _storable(texts: Any) -> list[str]:
    """Return ``texts`` as valid UTF-8; the path of a file may contain any bytes."""
    return [text.encode("utf-8", "replace").decode() for text in _checked_list(texts)]


def _checked_number(value: Any) -> int:
    if type(value) is not int or abs(value) >> 62:
        raise ValueError(f"{value!r} is not a line or a size")
    return value


def _checked_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError("not a list")
    return value


def _checked_index(number: Any, length: int) -> int:
    if type(number) is not int or not 0 <= number < length:
        raise ValueError(f"{number!r} is not an index into {length} entries")
    return number


def _elements_at(values: Sequence[Any], indexes: Any) -> list[Any]:
    return [values[_checked_index(number, len(values))] for number in _checked_list(indexes)]


def _check_size(stacks: Sequence[Sequence[_FrameRow]]) -> None:
    if sum(map(len, stacks)) > ROWS_MAX:
        raise ValueError(f"more than {ROWS_MAX} frames")
    if sum(len(file) + len(function) for stack in stacks for file, _, function, _ in stack) > TEXT_MAX:
        raise ValueError(f"more than {TEXT_MAX} characters of text")


def _frame_rows(stacks: Sequence[Sequence[_FrameRow]], graph: int, first: int) -> pa.RecordBatch:
    rows = [
        (graph, number, position, *row, "")
        for number, stack in enumerate(stacks, first)
        for position, row in enumerate(stack)
    ]
    return from_rows(rows, "frames")


def _stack_rows(nodes: dict[str, int], graph: int, first: int) -> pa.RecordBatch:
    return from_rows([(graph, name, first + stack) for name, stack in nodes.items()], "stacks")


def _is_auxiliary(stack: Sequence[_FrameRow]) -> bool:
    """Return whether an optimizer, an average or a metric made the variable of an op."""
    return any(is_auxiliary(file) for file, *_ in stack)


def _variables(variables: Any, graph: int, types: list[str]) -> list[tuple[Any, ...]]:
    """Return rows of OP_LOG for ``variables``.

    ``variables`` maps the name of a placeholder to the shape of the variable behind it, and the
    name of any other node to None.
    """
    if not isinstance(variables, dict):
        raise TypeError("not an object")
    return [(graph, str(name), 0, types, False, _shape(sizes)) for name, sizes in variables.items()]


def _shape(sizes: Any) -> list[int]:
    return [] if sizes is None else [_checked_number(size) for size in _checked_list(sizes)] or [1]
