"""The tables of a code object, changed for moved instructions: lines, locations and handlers.

``new_offsets`` has the new offset of each old instruction, and of the end.
"""

from __future__ import annotations

from typing import Iterator, Mapping

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
# highest bit set, the form of the entry, and the number of units. The increment of the line is 0 in
# the forms up to _SAME_LINE, 1 or 2 in the next two, and a number after the first byte in the rest.
_SAME_LINE, _LINE, _NO_LOCATION = 10, 13, 15


def locations(table: bytes, new_offsets: Mapping[int, int], head_at: int, head_size: int) -> bytes:
    """Return ``table`` with ``head_size`` bytes at ``head_at``, on the line of the next code."""
    out, begin, end, entry = bytearray(), 0, 0, b""
    starts = [at for at, byte in enumerate(table) if byte & 0x80]
    for at, next_at in zip(starts, starts[1:] + [len(table)]):
        entry = entry or table[at:next_at]
        end += 2 * ((table[at] & 7) + 1)
        if end not in new_offsets:  # the rest of a long instruction has an entry of its own
            continue
        if begin == head_at:
            line, entry = _on_same_line(entry)
            out += _entries(bytes((0x80 | (_LINE if line else _NO_LOCATION) << 3,)) + line, head_size)
        out += _entries(entry, new_offsets[end] - new_offsets[begin] - (head_size if end == head_at else 0))
        begin, entry = end, b""
    return bytes(out)


def _entries(entry: bytes, size: int) -> bytes:
    """Return the location of ``entry`` for ``size`` bytes."""
    out = b""
    for units in range(size // 2, 0, -8):
        out += bytes((entry[0] & ~7 | min(units, 8) - 1,)) + entry[1:]
        entry = _on_same_line(entry)[1] if units > 8 else entry
    return out


def _on_same_line(entry: bytes) -> tuple[bytes, bytes]:
    """Return the increment of the line of ``entry``, and the entry without it."""
    form, end = entry[0] >> 3 & 15, 1
    if form < _SAME_LINE or form == _NO_LOCATION:
        return b"" if form == _NO_LOCATION else b"\0", entry
    if form < _LINE:
        return bytes(((form - _SAME_LINE) << 1,)), bytes((0x80 | _SAME_LINE << 3 | entry[0] & 7,)) + entry[1:]
    while entry[end] & 0x40:
        end += 1
    return entry[1 : end + 1], entry[:1] + b"\0" + entry[end + 1 :]


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


def _encoded_number(value: int) -> bytes:
    """Return ``value`` in groups of six bits, the highest first."""
    groups = [value & 0x3F]
    while value > 0x3F:
        value >>= 6
        groups.insert(0, value & 0x3F | 0x40)
    return bytes(groups)
