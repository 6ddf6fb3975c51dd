"""Writes fields of protobuf messages, where the library is too slow for the number of messages."""

import struct

from ...formats.pb_wire import BYTES, FIXED64, VARINT, encode_varint
from ..tfviews.encoding import valid_utf8

_WORD = 1 << 64
_PAIR_BITS = 14
_PAIR = 1 << _PAIR_BITS
#: The varints of small numbers, which are most of all.
_SMALL = tuple(encode_varint(value) for value in range(_PAIR))
#: Two bytes of a varint that continues.
_CONTINUED = tuple(bytes((value & 0x7F | 0x80, value >> 7 | 0x80)) for value in range(_PAIR))


def varint(value: int) -> bytes:
    """Return ``value`` as a varint; negative numbers have ten bytes, as in an int64."""
    if 0 <= value < _PAIR:
        return _SMALL[value]
    value %= _WORD
    head = b""
    while value >= _PAIR:
        head += _CONTINUED[value % _PAIR]
        value >>= _PAIR_BITS
    return head + _SMALL[value]


def tag(number: int, kind: int) -> bytes:
    """Return the tag of field ``number`` with a wire type of pb_wire."""
    return varint(number << 3 | kind)


def number_field(number: int, value: int) -> bytes:
    """Return a field with a whole number or a bool."""
    return tag(number, VARINT) + varint(value)


def bytes_field(number: int, value: bytes) -> bytes:
    """Return a field with bytes or a message."""
    return tag(number, BYTES) + varint(len(value)) + value


def text_field(number: int, value: str) -> bytes:
    """Return a field with a text, in which invalid UTF-8 is replaced."""
    return bytes_field(number, valid_utf8(value).encode())


def fixed_field(number: int, value: int) -> bytes:
    """Return a field with a whole number in 64 bits."""
    return tag(number, FIXED64) + value.to_bytes(8, "little")


def double_field(number: int, value: float) -> bytes:
    """Return a field with a double."""
    return tag(number, FIXED64) + struct.pack("<d", value)
