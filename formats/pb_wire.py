"""The protobuf wire format of one message: its fields, and varints.

This module needs no protobuf in the job, and reads messages that are too large to parse at once.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, TypeVar

    Data = TypeVar("Data", bytes, memoryview)

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_FIXED = {FIXED64: 8, FIXED32: 4}
_VARINT_BITS = 70  # ten bytes of seven bits, for a value of 64 bits


class InvalidMessageError(ValueError):
    """A message ends within a field, or has an invalid field."""


def varint(data: Data, at: int) -> tuple[int, int]:
    """Return (value, end offset) of the varint at ``at``; InvalidMessageError if there is none."""
    value, shift, size = 0, 0, len(data)
    while at < size and shift < _VARINT_BITS:
        byte = data[at]
        at += 1
        if byte < 0x80:
            return value | byte << shift, at
        value |= (byte & 0x7F) << shift
        shift += 7
    raise InvalidMessageError("not a varint")


def encode_varint(value: int) -> bytes:
    """Return ``value`` (0 or more) as a varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def bytes_field(number: int, data: bytes) -> bytes:
    """Return ``data`` as the field ``number``, which is below 16."""
    return bytes((number << 3 | BYTES,)) + encode_varint(len(data)) + data


def wire_type(data: Data, start: int) -> int:
    """Return the type of the field at ``start``: VARINT, FIXED64, BYTES or FIXED32."""
    return data[start] & 7


def fields(data: Data) -> Iterator[tuple[int, int, int, int]]:
    """Yield (number, start, content, end) of each field, without copying.

    The field begins at ``start`` with its tag and, for BYTES, its length. Its content begins at
    ``content``. InvalidMessageError if the message is cut short, or has a field of an unknown type
    or without a number.
    """
    at, size = 0, len(data)
    while at < size:
        start = at
        tag, at = data[at], at + 1
        if tag > 0x7F:  # two bytes, which is rare; a call for each tag would take longer than the rest of the loop
            tag, at = varint(data, start)
        kind, content = tag & 7, at
        if kind == BYTES:
            length, content = varint(data, at)
            at = content + length
        elif kind == VARINT:
            _, at = varint(data, at)
        elif kind in _FIXED:
            at += _FIXED[kind]
        else:
            raise InvalidMessageError("a field of type %d" % kind)
        if at > size or not tag >> 3:
            raise InvalidMessageError("a field is cut short, or has no number")
        yield tag >> 3, start, content, at


def field_contents(data: Data, number: int) -> Iterator[Data]:
    """Yield the content of each length-delimited field ``number``; errors are those of `fields`."""
    for field, start, content, end in fields(data):
        if field == number and wire_type(data, start) == BYTES:
            yield data[content:end]


def without_field(data: Data, number: int) -> bytes:
    """Return ``data`` without the fields ``number``; errors are those of `fields`."""
    return b"".join([data[start:end] for field, start, _, end in fields(data) if field != number])


def last_varint(data: Data, number: int, default: int = 0) -> int:
    """Return the value of the last varint field ``number``, ``default`` if there is none.

    In protobuf the last of equal fields counts. Errors are those of `fields`.
    """
    for field, start, content, _ in fields(data):
        if field == number and wire_type(data, start) == VARINT:
            default, _ = varint(data, content)
    return default
