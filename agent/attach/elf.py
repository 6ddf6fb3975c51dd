"""Reads dynamic symbols of ELF files; every length in a file is checked."""

import os
import re
import struct
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from .errors import AttachError

_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")
_DYNAMIC: Final = struct.Struct("<QQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_MAGIC_64_LITTLE: Final = b"\x7fELF\x02\x01"
_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_STRTAB, _DT_SYMTAB, _DT_STRSZ = 5, 6, 10
#: Limits: segments, dynamic entries, and bytes of the two tables.
_SEGMENTS_MAX: Final = 128
_DYNAMIC_MAX: Final = 1 << 16
_TABLE_MAX: Final = 64 << 20

#: Machines by their number in the header.
MACHINES: Final = {3: "x86", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64", 21: "ppc64", 22: "s390x"}


class ElfError(AttachError):
    """The file is not a 64-bit ELF file, or is damaged."""

    slug = "bad-elf"


class _Segment(NamedTuple):
    kind: int
    offset: int
    address: int
    size: int


class Elf:
    """An open ELF file; addresses are relative to the mapping of its first byte."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        self.inode = os.fstat(self._fd).st_ino
        try:
            self._read_header()
        except BaseException:
            self.close()
            raise

    def _read_header(self) -> None:
        head = self._read(0, _HEADER.size)
        ident, _, machine, _, _, offset, _, _, _, size, count, _, _, _ = _HEADER.unpack(head)
        if not ident.startswith(_MAGIC_64_LITTLE) or size != _SEGMENT.size or count > _SEGMENTS_MAX:
            raise ElfError(f"{self._path} is no ELF file of 64 bits")
        self.machine = MACHINES.get(machine, f"machine {machine}")
        table = self._read(offset, size * count)
        self._segments = [
            _Segment(kind, at, address, length) for kind, _, at, address, _, length, _, _ in _SEGMENT.iter_unpack(table)
        ]
        loads = [segment for segment in self._segments if segment.kind == _PT_LOAD]
        if not loads:
            raise ElfError(f"{self._path} has no segment to load")
        self._base = loads[0].address - loads[0].offset

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def symbols(self, wanted: frozenset[str]) -> Mapping[str, int]:
        """Return the addresses of those ``wanted`` dynamic symbols that the file defines."""
        tags = dict(self._dynamic())
        if not {_DT_STRTAB, _DT_SYMTAB, _DT_STRSZ} <= tags.keys() or tags[_DT_STRSZ] > _TABLE_MAX:
            return {}
        texts_at, table_at = self._offset(tags[_DT_STRTAB]), self._offset(tags[_DT_SYMTAB])
        texts = self._read(texts_at, tags[_DT_STRSZ])
        # A name may be stored as the suffix of another one.
        names = {match.start(): name for name in wanted for match in re.finditer(b"%s\0" % name.encode(), texts)}
        size = texts_at - table_at if texts_at > table_at else _TABLE_MAX
        table = os.pread(self._fd, min(size, _TABLE_MAX), table_at)
        found: dict[str, int] = {}
        for name, _, _, section, value, _ in _SYMBOL.iter_unpack(table[: len(table) // _SYMBOL.size * _SYMBOL.size]):
            if section and name in names:
                found.setdefault(names[name], value - self._base)
                if len(found) == len(wanted):
                    break
        return found

    def _dynamic(self) -> Iterator[tuple[int, int]]:
        for segment in self._segments:
            if segment.kind == _PT_DYNAMIC:
                data = self._read(segment.offset, min(segment.size, _DYNAMIC_MAX) // _DYNAMIC.size * _DYNAMIC.size)
                for tag, value in _DYNAMIC.iter_unpack(data):
                    if not tag:
                        return
                    yield tag, value

    def _offset(self, address: int) -> int:
        for segment in self._segments:
            if segment.kind == _PT_LOAD and segment.address <= address < segment.address + segment.size:
                return segment.offset + address - segment.address
        raise ElfError(f"{self._path} has a table outside of its segments")

    def _read(self, at: int, size: int) -> bytes:
        data = os.pread(self._fd, size, at) if at < 1 << 62 else b""
        if len(data) != size:
            raise ElfError(f"{self._path} ends early")
        return data
