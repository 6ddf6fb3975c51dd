"""Reads sorted string tables, the format of LevelDB and of TensorFlow's checkpoint index."""

import struct
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from ...formats.pb_wire import varint
from .checksum import crc32c, masked_crc

_MAGIC: Final = 0xDB4775248B80FB57
_FOOTER_SIZE: Final = 48
_UINT32: Final = struct.Struct("<I")
#: Size of a block's trailer: compression type and checksum.
_TRAILER_SIZE: Final = 5
_PLAIN, _SNAPPY = 0, 1
#: Maximum bytes of an uncompressed block; TensorFlow's blocks have a few kilobytes.
_BLOCK_MAX: Final = 1 << 26


class DamagedTableError(ValueError):
    """The bytes are not a valid sorted string table."""


def entries(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys and values of the table in ``data``; DamagedTableError if it is invalid."""
    if len(data) < _FOOTER_SIZE or int.from_bytes(data[-8:], "little") != _MAGIC:
        raise DamagedTableError("it lacks the footer of a table")
    try:
        footer = data[-_FOOTER_SIZE:]
        _, offset = _block_handle(footer, 0)
        index, _ = _block_handle(footer, offset)
        for _, handle in _block_entries(_block_content(data, *index)):
            yield from _block_entries(_block_content(data, *_block_handle(handle, 0)[0]))
    except DamagedTableError:
        raise
    except (IndexError, ValueError, struct.error):
        raise DamagedTableError("it is truncated") from None


def _block_handle(data: bytes, start: int) -> tuple[tuple[int, int], int]:
    """Return offset and size of a block from its handle at ``start``, and the end of the handle."""
    offset, end = varint(data, start)
    size, end = varint(data, end)
    return (offset, size), end


def _block_content(data: bytes, offset: int, size: int) -> bytes:
    end = offset + size
    if end + _TRAILER_SIZE > len(data):
        raise DamagedTableError("a block lies beyond the end of the file")
    block = memoryview(data)[offset:end]
    if masked_crc(crc32c(data[end : end + 1], crc32c(block))) != _UINT32.unpack_from(data, end + 1)[0]:
        raise DamagedTableError("the checksum of a block is wrong")
    compression = data[end]
    if compression not in {_PLAIN, _SNAPPY}:
        raise DamagedTableError(f"a block has the unknown compression type {compression}")
    return bytes(block) if compression == _PLAIN else decompress(bytes(block))


def _block_entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the entries of a block; each key shares a prefix with the previous one."""
    (restart_count,) = _UINT32.unpack_from(block, len(block) - _UINT32.size)
    end = len(block) - _UINT32.size * (restart_count + 1)
    offset, key = 0, b""
    while offset < end:
        shared_size, offset = varint(block, offset)
        unshared_size, offset = varint(block, offset)
        value_size, offset = varint(block, offset)
        value_start = offset + unshared_size
        if shared_size > len(key) or value_start + value_size > end:
            raise DamagedTableError("an entry lies beyond the end of its block")
        key = key[:shared_size] + block[offset:value_start]
        yield key, block[value_start : value_start + value_size]
        offset = value_start + value_size


def decompress(data: bytes) -> bytes:
    """Decompress a Snappy block; DamagedTableError if it is larger than _BLOCK_MAX or damaged."""
    size, _ = varint(data, 0)
    if size > _BLOCK_MAX:
        raise DamagedTableError(f"a block has {size} bytes, too many")
    try:
        block: bytes = pa.decompress(data, size, "snappy", asbytes=True)
    except (pa.ArrowException, OSError):
        raise DamagedTableError("a block cannot be decompressed") from None
    return block
