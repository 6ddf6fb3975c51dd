"""The location table of a code since Python 3.11: lines and columns of its instructions.

It consists of entries for one to eight units of two bytes. The first byte of an entry has the
highest bit set, the form of the entry, and the number of units.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping

#: Forms of an entry. The line offset is 0, 1 or 2 in the short forms; the next two forms have any
#: line offset, without or with columns.
_SHORT, _LINE, _LINE_AND_COLUMNS, _NO_LINE = (10, 11, 12), 13, 14, 15


def insert(table: bytes, at: int, units: int) -> bytes | None:
    """Return the location table for code with ``units`` inserted after its first ``at`` units.

    The inserted code gets the line of the code after it. Return None if no entry ends at ``at``.
    """
    covered = index = 0
    while covered < at and index < len(table):
        covered += (table[index] & 7) + 1
        index = _entry_end(table, index)
    if covered != at:
        return None
    line, following_entries = _split_line(table[index:])
    return table[:index] + _entries(_first_byte(_LINE) + line, units) + following_entries


def append(table: bytes, units: int, line: int | None) -> bytes:
    """Return entries for ``units`` after the end of the location table ``table``.

    ``line`` is relative to the first line of the code; None: the units have no line.
    """
    if line is None:
        return _entries(_first_byte(_NO_LINE), units)
    return _entries(_first_byte(_LINE) + _encode_signed(line - _last_line(table)), units)


def _first_byte(form: int) -> bytes:
    return bytes((0x80 | form << 3,))


def _last_line(table: bytes) -> int:
    """Return the line of the last entry that has one, relative to the first line of the code."""
    line = index = 0
    while index < len(table):
        form = table[index] >> 3 & 0xF
        if form in _SHORT:
            line += form - _SHORT[0]
        elif form in (_LINE, _LINE_AND_COLUMNS):
            line += _decode_signed(table, index + 1)
        index = _entry_end(table, index)
    return line


def _decode_signed(table: bytes, index: int) -> int:
    """Return the signed number at ``index``.

    It consists of groups of six bits, the lowest first. Its lowest bit is the sign.
    """
    value = shift = 0
    while True:
        value |= (table[index] & 0x3F) << shift
        if not table[index] & 0x40:
            return -(value >> 1) if value & 1 else value >> 1
        shift += 6
        index += 1


def _encode_signed(value: int) -> bytes:
    """Return the signed number ``value`` in the form that `_decode_signed` reads."""
    value = (-value << 1) | 1 if value < 0 else value << 1
    out = b""
    while value > 0x3F:
        out += bytes((value & 0x3F | 0x40,))
        value >>= 6
    return out + bytes((value,))


def extend(table: bytes, added_units: Mapping[int, int]) -> bytes:
    """Return the table for code in which instructions have become longer.

    ``added_units`` has the number of units added to the instruction at each unit. They get the
    location of the instruction.
    """
    out = b""
    begin = index = 0
    while index < len(table):
        end = _entry_end(table, index)
        size = (table[index] & 7) + 1
        out += _entries(table[index:end], size + sum(added_units.get(unit, 0) for unit in range(begin, begin + size)))
        begin, index = begin + size, end
    return out


def _entries(entry: bytes, units: int) -> bytes:
    """Return ``entry`` for another number of units; an entry has at most eight."""
    out = b""
    while units:
        size = min(units, 8)
        out += bytes((entry[0] & 0xF8 | size - 1,)) + entry[1:]
        units -= size
        entry = _split_line(entry)[1]
    return out


def _entry_end(table: bytes, index: int) -> int:
    """Return the end of the entry at ``index``; an entry's first byte has the highest bit set."""
    index += 1
    while index < len(table) and not table[index] & 0x80:
        index += 1
    return index


def _split_line(table: bytes) -> tuple[bytes, bytes]:
    """Return the encoded line offset of the first entry, and the table with 0 in its place."""
    form = table[0] >> 3 & 0xF
    if form in _SHORT:
        return bytes((2 * (form - _SHORT[0]),)), bytes((table[0] & 0x87 | _SHORT[0] << 3,)) + table[1:]
    if form not in (_LINE, _LINE_AND_COLUMNS):
        return b"\0", table
    end = 1
    while table[end] & 0x40:
        end += 1
    return table[1 : end + 1], table[:1] + b"\0" + table[end + 1 :]
