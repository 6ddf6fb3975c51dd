"""ClickHouse's format Native, which every release reads and writes.

A block has its number of columns and of rows, then of each column the name, the type and the
values. Numbers are little-endian; a text has its size before it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import pyarrow as pa

from .columns import flat, pc


class _Number(NamedTuple):
    """A type of numbers: that of Arrow, and the bytes of a value."""

    arrow: pa.DataType
    width: int


_NUMBERS: Final = {
    "UInt8": _Number(pa.uint8(), 1),
    "Bool": _Number(pa.uint8(), 1),
    "UInt16": _Number(pa.uint16(), 2),
    "UInt32": _Number(pa.uint32(), 4),
    "DateTime": _Number(pa.uint32(), 4),
    "UInt64": _Number(pa.uint64(), 8),
    "Int8": _Number(pa.int8(), 1),
    "Int16": _Number(pa.int16(), 2),
    "Int32": _Number(pa.int32(), 4),
    "Int64": _Number(pa.int64(), 8),
    "Float64": _Number(pa.float64(), 8),
}
_FIXED: Final = re.compile(r"FixedString\(([1-9]\d{0,3})\)")
_ARRAY: Final = re.compile(r"Array\((\w+)\)")
#: Most bytes of a number of rows or bytes.
_SIZE_BYTES: Final = 9


def decode(data: bytes) -> pa.Table:
    """Return the blocks of ``data``; texts are binary columns.

    Without rows there may be no block, thus no columns. ValueError if ``data`` is not of the format
    or was cut off.
    """
    source, blocks = _Source(data), list[pa.Table]()
    while not source.is_at_end:
        width, rows = source.size(), source.size()
        columns: dict[str, Any] = {}
        for _ in range(width):
            name, kind = source.text().decode(), source.text().decode()
            columns[name] = source.column(kind, rows)
        if len(columns) != width or not columns:
            raise ValueError("a block has no columns, or two of one name")
        blocks.append(pa.table(columns))
    return pa.concat_tables(blocks) if blocks else pa.table({})


def encode(rows: pa.Table, types: Mapping[str, str]) -> bytes:
    """Return ``rows`` as one block. ``types``: column -> type of ClickHouse."""
    parts = [_size(rows.num_columns), _size(rows.num_rows)]
    for name in rows.column_names:
        parts += [*_text(name.encode()), *_text(types[name].encode()), *_values(flat(rows[name]), types[name])]
    return b"".join(parts)


class _Source:
    """Bytes that are read from the first to the last."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def is_at_end(self) -> bool:
        return self._at == len(self._data)

    def size(self) -> int:
        """Return the next number of variable length: 7 bits a byte, the lowest first."""
        value = 0
        for shift in range(0, 7 * _SIZE_BYTES, 7):
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise ValueError("a number is too long")

    def text(self) -> bytes:
        return self._take(self.size())

    def column(self, kind: str, rows: int) -> Any:
        """Return a column of ``rows`` values of the type ``kind``."""
        if number := _NUMBERS.get(kind):
            values = pa.py_buffer(self._take(rows * number.width))
            return pa.Array.from_buffers(number.arrow, rows, [None, values])
        if kind == "String":
            return pa.array(self._texts(rows), pa.binary())
        if match := _FIXED.fullmatch(kind):
            values = pa.py_buffer(self._take(rows * int(match[1])))
            return pa.Array.from_buffers(pa.binary(int(match[1])), rows, [None, values]).cast(pa.binary())
        if match := _ARRAY.fullmatch(kind):
            ends = self.column("UInt64", rows)
            offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends.cast(pa.int32())])
            values = self.column(match[1], offsets[-1].as_py())
            lists = pa.ListArray.from_arrays(offsets, values)
            lists.validate(full=True)
            return lists
        raise ValueError(f"it has a column of the type {kind}")

    def _texts(self, rows: int) -> list[bytes]:
        """Return the next texts. Most have less than 128 bytes, so one byte has their size."""
        data, at, texts = self._data, self._at, list[bytes]()
        for _ in range(rows):
            if at < len(data) and (size := data[at]) < 0x80:
                at += 1
            else:
                self._at = at
                size, at = self.size(), self._at
            texts.append(data[at : at + size])
            at += size
        if at > len(data):
            raise ValueError("a text is cut off")
        self._at = at
        return texts

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise ValueError("it is cut off")
        data, self._at = self._data[self._at : end], end
        return data


def _values(column: Any, kind: str) -> Iterator[bytes]:
    """Yield the bytes of the values of ``column``, which has the type ``kind``."""
    if number := _NUMBERS.get(kind):
        numbers = column.cast(number.arrow)
        start = numbers.offset * number.width
        yield memoryview(numbers.buffers()[1])[start : start + len(numbers) * number.width].tobytes()
    elif match := _ARRAY.fullmatch(kind):
        ends = pc.cumulative_sum(pc.list_value_length(column).cast(pa.uint64()))
        yield from _values(ends, "UInt64")
        yield from _values(column.flatten(), match[1])
    else:
        is_fixed = _FIXED.fullmatch(kind)
        for text in column.cast(pa.binary()).to_pylist():
            yield from (text,) if is_fixed else _text(text)


def _text(text: bytes) -> tuple[bytes, bytes]:
    return _size(len(text)), text


def _size(value: int) -> bytes:
    """Return ``value`` as a number of variable length."""
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*data, value])
