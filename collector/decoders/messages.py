"""Splits a protobuf message into its fields without copying.

This is for messages that are too large to parse at once.
"""

from collections.abc import Iterator
from typing import Final

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED: Final = {_FIXED64: 8, _FIXED32: 4}


class CutShortError(ValueError):
    """A message ends within a field, or has an invalid field."""


def field_offsets(data: memoryview) -> Iterator[tuple[int, int, int, int]]:
    """Yield (number, start, content, end) of each field.

    ``start`` and ``end`` are the offsets of the field. ``content`` is the offset of its content, 0
    if the field is not length-delimited. CutShortError if the message is truncated or invalid.
    """
    at, size = 0, len(data)
    while at < size:
        start = at
        tag, at = _varint(data, at)
        kind, content = tag & 7, 0
        if kind == _BYTES:
            length, content = _varint(data, at)
            at = content + length
        elif kind == _VARINT:
            _, at = _varint(data, at)
        elif kind in _FIXED:
            at += _FIXED[kind]
        else:
            raise CutShortError(f"a field of type {kind}")
        if at > size or not tag >> 3:
            raise CutShortError("a field is cut short, or has no number")
        yield tag >> 3, start, content, at


def parts(data: memoryview, number: int) -> Iterator[memoryview]:
    """Yield the content of each length-delimited field ``number``.

    CutShortError if the message is truncated or invalid.
    """
    for found, _, content, end in field_offsets(data):
        if found == number and content:
            yield data[content:end]


def without(data: memoryview, number: int) -> bytes:
    """Return ``data`` without its length-delimited fields ``number``.

    CutShortError if the message is truncated or invalid.
    """
    return b"".join(
        data[start:end] for found, start, content, end in field_offsets(data) if found != number or not content
    )


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """Return the varint at ``at`` and its end; CutShortError if it has no end."""
    value = shift = 0
    end = min(at + 10, len(data))
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise CutShortError("a number is cut short")
