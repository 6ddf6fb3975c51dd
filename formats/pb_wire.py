"""The protobuf wire format of top-level fields, without protobuf in the job."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return (value, end offset) of the varint at ``at``; ValueError when there is none."""
    value = shift = 0
    while shift < 70:
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("not a varint")


def encoded(value: int) -> bytes:
    """Return the bytes of ``value`` (0 or more) as a varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def fields(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield (number, start, end, value) for each field.

    The value is a varint's value, else the offset of the content. ValueError when a field is cut
    short or of an unknown type.
    """
    at = 0
    while at < len(data):
        start = at
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == VARINT:
            value, at = varint(data, at)
        elif kind == BYTES:
            length, value = varint(data, at)
            at = value + length
        elif kind in (FIXED64, FIXED32):
            value = at
            at += 8 if kind == FIXED64 else 4
        else:
            raise ValueError("field of unknown type %d" % kind)
        if at > len(data):
            raise ValueError("field cut short")
        yield tag >> 3, start, at, value


def without(data: bytes, number: int) -> bytes:
    """Return ``data`` without the fields ``number``."""
    return b"".join(data[start:end] for field, start, end, _ in fields(data) if field != number)


def last(data: bytes, number: int, default: int = 0) -> int:
    """Return the value of the last field ``number`` in ``data``: in protobuf the last counts."""
    for field, _, _, value in fields(data):
        if field == number:
            default = value
    return default
