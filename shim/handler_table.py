"""The exception table of a code since Python 3.11: entries (start, length, target, depth).

Offsets are in units of two bytes. Depths are doubled: the lowest bit of a depth tells whether the
index of the last instruction is pushed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator


def move(table: bytes, units: int, kept_values: int) -> bytes:
    """Return the exception table for code that begins ``units`` later.

    The stack of each handler has ``kept_values`` further values at its bottom.
    """
    return b"".join(
        encode(start + units, length, target + units, depth + 2 * kept_values)
        for start, length, target, depth in entries(table)
    )


def with_handler(table: bytes, start: int, handler: int, cleanup: int, kept_values: int) -> bytes:
    """Return the exception table with a further handler, for units that have none.

    It covers the units from ``start`` up to ``handler``, where its own code begins. Its cleanup
    begins at ``cleanup``.
    """
    out, at = b"", start
    for entry in entries(table):
        if entry[0] > at:
            out += encode(at, entry[0] - at, handler, 2 * kept_values)
        out += encode(*entry)
        at = entry[0] + entry[1]
    if handler > at:
        out += encode(at, handler - at, handler, 2 * kept_values)
    # The cleanup finds the previous exception on the stack, and the index of the last instruction.
    return out + encode(handler, cleanup - handler, cleanup, 2 * (kept_values + 1) | 1)


def entries(table: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield (start, length, target, depth) of each entry of an exception table."""
    numbers: list[int] = []
    value = 0
    for byte in table:
        value = value << 6 | byte & 0x3F
        if not byte & 0x40:
            numbers.append(value)
            value = 0
    for at in range(0, len(numbers), 4):
        start, length, target, depth = numbers[at : at + 4]
        yield start, length, target, depth


def encode(start: int, length: int, target: int, depth: int) -> bytes:
    """Return an entry of an exception table."""
    entry = b"".join(map(_encode_number, (start, length, target, depth)))
    return bytes((entry[0] | 0x80,)) + entry[1:]


def _encode_number(value: int) -> bytes:
    """Return ``value`` in groups of six bits, the highest first."""
    groups = [value & 0x3F]
    while value > 0x3F:
        value >>= 6
        groups.append(value & 0x3F | 0x40)
    return bytes(reversed(groups))
