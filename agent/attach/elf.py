"""Reads the functions of an ELF file from the memory of a process that has it mapped.

Every length that is read is checked. `Image` opens no file: the path of a mapped file may lead
elsewhere by now, or nowhere, as in another mount namespace, below another root, or after an
upgrade.
"""

import re
import struct
from collections.abc import Mapping
from typing import Final, NamedTuple

from .errors import AttachError
from .memory import Memory

_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")
_DYNAMIC: Final = struct.Struct("<QQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_MAGIC_64_LITTLE: Final = b"\x7fELF\x02\x01"
_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_STRTAB, _DT_SYMTAB, _DT_STRSZ = 5, 6, 10
#: Limits: segments, bytes of the dynamic section, and bytes of the tables of strings and symbols.
_SEGMENTS_MAX: Final = 128
_DYNAMIC_MAX: Final = 1 << 16
_TABLE_MAX: Final = 64 << 20
_ADDRESS_MAX: Final = 1 << 47


class ElfError(AttachError):
    """The bytes are not a 64-bit ELF file, or the file is damaged."""


class _Segment(NamedTuple):
    kind: int
    offset: int
    address: int
    size: int


class Image:
    """An ELF file in ``memory``, with its first byte at ``address``."""

    def __init__(self, memory: Memory, address: int) -> None:
        self._memory = memory
        head = self._read(address, _HEADER.size)
        ident, _, _, _, _, table_offset, _, _, _, size, count, _, _, _ = _HEADER.unpack(head)
        if not ident.startswith(_MAGIC_64_LITTLE) or size != _SEGMENT.size or count > _SEGMENTS_MAX:
            raise ElfError("not a 64-bit ELF file")
        table = self._read(address + table_offset, size * count)
        segments = [
            _Segment(kind, offset, segment_address, length)
            for kind, _, offset, segment_address, _, _, length, _ in _SEGMENT.iter_unpack(table)
        ]
        self._load_segments = [segment for segment in segments if segment.kind == _PT_LOAD]
        if not self._load_segments:
            raise ElfError("no segment to load")
        #: Difference between addresses in the process and those in the file.
        self._load_bias = address - (self._load_segments[0].address - self._load_segments[0].offset)
        self._dynamic = next((segment for segment in segments if segment.kind == _PT_DYNAMIC), None)

    def symbols(self, symbol_names: frozenset[str]) -> Mapping[str, range]:
        """Return the addresses that the dynamic symbols ``symbol_names`` occupy in the process.

        Symbols that the file does not define are left out.
        """
        tags = self._tags()
        if not {_DT_STRTAB, _DT_SYMTAB, _DT_STRSZ} <= tags.keys() or tags[_DT_STRSZ] > _TABLE_MAX:
            return {}
        strings_at, table_at = self._address(tags[_DT_STRTAB]), self._address(tags[_DT_SYMTAB])
        strings = self._read(strings_at, tags[_DT_STRSZ])
        # A name may be stored as the suffix of another name.
        names = {
            match.start(): name for name in symbol_names for match in re.finditer(b"%s\0" % name.encode(), strings)
        }
        size = (strings_at if strings_at > table_at else self._end(table_at)) - table_at
        table = self._memory.read(table_at, min(size, _TABLE_MAX))
        addresses: dict[str, range] = {}
        for name, _, _, section, value, length in _SYMBOL.iter_unpack(
            table[: len(table) // _SYMBOL.size * _SYMBOL.size]
        ):
            if section and name in names:
                start = value + self._load_bias
                addresses.setdefault(names[name], range(start, start + length))
                if len(addresses) == len(symbol_names):
                    break
        return addresses

    def _tags(self) -> dict[int, int]:
        """Return the values of the dynamic section by tag."""
        if self._dynamic is None:
            return {}
        size = min(self._dynamic.size, _DYNAMIC_MAX) // _DYNAMIC.size * _DYNAMIC.size
        tags: dict[int, int] = {}
        for tag, value in _DYNAMIC.iter_unpack(self._read(self._dynamic.address + self._load_bias, size)):
            if not tag:
                break
            tags[tag] = value
        return tags

    def _address(self, value: int) -> int:
        """Return the address in the process of the table at ``value``.

        Some dynamic linkers write that address into the dynamic section. Others leave the file's
        value there.
        """
        for address in (value, value + self._load_bias):
            if self._end(address):
                return address
        raise ElfError("a table outside of the segments")

    def _end(self, address: int) -> int:
        """Return the end of the segment that contains ``address``, 0 if there is none."""
        ends = (
            segment.address + self._load_bias + segment.size
            for segment in self._load_segments
            if 0 <= address - segment.address - self._load_bias < segment.size
        )
        return next(ends, 0)

    def _read(self, address: int, size: int) -> bytes:
        data = self._memory.read(address, size) if address < _ADDRESS_MAX else b""
        if len(data) != size:
            raise ElfError("an ELF file that ends early")
        return data
