"""The tables of a code object, changed for moved instructions: lines, locations and handlers.

``new_offsets`` has the new offset of each old instruction, and of the end.
"""

from __future__ import annotations

from types import CodeType
from typing import Any, Iterator, Mapping

# -- the line table before Python 3.11 -----------------------------------------------------------

_NO_LINE = 0x80  # line increment of a range without a line, in Python 3.10
_RANGE_MAX = 254  # maximum bytes in an entry, in Python 3.10


def lnotab(table: bytes, new_offsets: Mapping[int, int]) -> bytes:
    """Return ``table``, of Python 3.7 to 3.9: pairs (byte increment, line increment)."""
    out, at, last = bytearray(), 0, 0
    for size, lines in zip(table[::2], table[1::2]):
        at += size
        if lines:
            new_at = new_offsets[at] if at else 0  # the inserted code is on the first line of the body
            out += b"\xff\0" * ((new_at - last) // 255) + bytes(((new_at - last) % 255, lines))
            last = new_at
    return bytes(out)


def linetable(table: bytes, new_offsets: Mapping[int, int]) -> bytes:
    """Return ``table``, of Python 3.10: pairs (bytes, line increment)."""
    out, at, last = bytearray(), 0, 0
    for size, lines in zip(table[::2], table[1::2]):
        at += size
        # A pair that ends within an instruction gets no bytes: the next one is on the same line.
        new_at = new_offsets.get(at, last) if at else 0
        for begin in range(last, new_at, _RANGE_MAX) or (last,):
            out += bytes((min(new_at - begin, _RANGE_MAX), lines))
            lines = lines if lines == _NO_LINE else 0  # noqa: PLW2901 - of the rest of the range
        last = new_at
    return bytes(out)


# -- the location table since Python 3.11 --------------------------------------------------------
# It consists of entries for one to eight units of two bytes. The first byte of an entry has the
# highest bit set, the form of the entry, and the number of units.

#: Forms of an entry: a line without or with columns, or no location.
_LINE, _LINE_AND_COLUMNS, _NO_LOCATION = 13, 14, 15


def locations(code: CodeType, new_offsets: Mapping[int, int], head_at: int, head_size: int) -> bytes:
    """Return the table of ``code`` with ``head_size`` bytes inserted at ``head_at``.

    The inserted code gets the line of the code after it.
    """
    positions: Any = list(code.co_positions())  # of each unit
    offsets = sorted(new_offsets)
    out, line = b"", code.co_firstlineno
    for begin, end in zip(offsets, offsets[1:]):
        size = new_offsets[end] - new_offsets[begin]
        ranges = [(size, positions[begin // 2])]
        if end == head_at:
            ranges = [
                (size - head_size, positions[begin // 2]),
                (head_size, (positions[end // 2][0], None, None, None)),
            ]
        for range_size, position in ranges:
            for units in range(range_size // 2, 0, -8):
                out += _entry(min(units, 8), line, *position)
                line = line if position[0] is None else position[0]
    return out


def _entry(units: int, last_line: int, line: int | None, end_line: int, column: int | None, end_column: int) -> bytes:
    """Return an entry; ``last_line`` is the line of the entry before, or the first of the code."""
    form = _NO_LOCATION if line is None else _LINE if column is None else _LINE_AND_COLUMNS
    numbers: list[int] = []
    if line is not None:
        numbers.append(abs(line - last_line) << 1 | (line < last_line))
    if line is not None and column is not None:
        numbers += [end_line - line, column + 1, end_column + 1]
    return bytes((0x80 | form << 3 | units - 1,)) + b"".join(_encoded_number(number, -1) for number in numbers)


# -- the exception table since Python 3.11 -------------------------------------------------------
# It consists of entries (start, length, target, depth). Offsets are in units of two bytes. Depths
# are doubled: the lowest bit of a depth tells whether the index of the last instruction is pushed.


def handlers(table: bytes, new_offsets: Mapping[int, int], kept_values: int) -> bytes:
    """Return ``table``; the stack of each handler has ``kept_values`` more at its bottom."""
    out, numbers = b"", _numbers(table)
    for start, length, target, depth in zip(numbers, numbers, numbers, numbers):
        new_start, new_end, new_target = (new_offsets[2 * unit] // 2 for unit in (start, start + length, target))
        values = (new_start, new_end - new_start, new_target, depth + 2 * kept_values)
        entry = b"".join(map(_encoded_number, values))
        out += bytes((entry[0] | 0x80,)) + entry[1:]
    return out


def _numbers(table: bytes) -> Iterator[int]:
    """Yield the numbers in an exception table, which are in groups of six bits."""
    value = 0
    for byte in table:
        value = value << 6 | byte & 0x3F
        if not byte & 0x40:
            yield value
            value = 0


def _encoded_number(value: int, order: int = 1) -> bytes:
    """Return ``value`` in groups of six bits, the highest first; the lowest if ``order`` is -1."""
    groups = [value & 0x3F]
    while value > 0x3F:
        value >>= 6
        groups.append(value & 0x3F)
    groups = groups[::-order]
    return bytes([group | 0x40 for group in groups[:-1]] + groups[-1:])
