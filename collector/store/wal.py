"""The write-ahead log of a job, which holds unsealed appends (docs/store.md)."""

import os
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa

from ..errors import StoreError
from . import store_files
from .durable import open_own, store_errors, sync_folder
from .protocols import Rows
from .schema import JOB_TABLES, TABLES_OF_LOG_1

WAL_VERSION: Final = 2
MAGIC: Final = b"TFPWAL"
HEADER: Final = struct.Struct("<6sH")
#: Length of the payload, CRC-32 of everything after the CRC, table, flags, reserved, about, last.
FRAME: Final = struct.Struct("<IIHHIQQ")
#: Flag of every frame of an append but the last one.
MORE_FRAMES: Final = 1
#: Table id in the frame of an append without rows.
NO_TABLE: Final = 0xFFFF

_HEADER_BYTES = HEADER.pack(MAGIC, WAL_VERSION)
#: Offset in a frame of the bytes that the CRC covers.
_CRC_START = 8
_TABLES: Final = tuple(JOB_TABLES)
_TABLE_IDS: Final = {name: number for number, name in enumerate(_TABLES)}
#: Schema message with which an Arrow stream begins, by version of the log and by table. Messages of
#: batches follow it.
_SCHEMAS: Final = {
    version: {name: schema.serialize().to_pybytes() for name, schema in tables.items()}
    for version, tables in ((1, TABLES_OF_LOG_1), (WAL_VERSION, JOB_TABLES))
}
#: Bytes of the mark that ends an Arrow stream.
_END_SIZE = 8
_WRITE_OPTIONS: Final = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
#: Without threads: the columns of a batch are small, and passing them to a thread costs twice as
#: much as decompressing them.
_READ_OPTIONS: Final = pa.ipc.IpcReadOptions(use_threads=False)
#: A batch is compressed from this size on (bytes). Compressing a smaller one hardly saves space,
#: and takes six times as long as writing it uncompressed.
_COMPRESSED_MIN: Final = 4096
#: Bytes of payloads that are decoded together: about a thousand rows, or one append.
GROUP_BYTES: Final = 64 << 10
#: Maximum buffers of one writev.
_IOV_MAX = 512


class Append(NamedTuple):
    """One append of a log: batches by table, and the wire message that it completes.

    ``about`` and ``last``: type and number of this message, 0 for none.
    """

    batches: list[tuple[str, memoryview]]
    about: int
    last: int


class Contents(NamedTuple):
    """The valid content of the log at ``path``.

    ``appends``: its appends in order. ``end``: the end of the last one. ``version``: the version
    of the log.
    """

    path: Path
    appends: list[Append]
    end: int
    version: int = WAL_VERSION

    def table(self, name: str) -> pa.Table:
        """Return table ``name`` in order of arrival.

        StoreError if a payload is not a batch of the table.
        """
        return self._decoded(name, self.appends)

    def pieces(self, name: str, rows: int) -> Iterator[pa.Table]:
        """Yield table ``name`` in order of arrival, in pieces of at least ``rows`` rows.

        Each piece consists of whole appends. The last piece may have fewer rows.
        """
        parts: list[pa.Table] = []
        row_count = 0
        for appends in self._groups(name):
            parts.append(self._decoded(name, appends))
            row_count += parts[-1].num_rows
            if row_count >= rows:
                yield pa.concat_tables(parts)
                parts, row_count = [], 0
        if row_count:
            yield pa.concat_tables(parts)

    def _groups(self, name: str) -> Iterator[list[Append]]:
        """Yield the appends in groups, in order.

        Each group but the last has at least GROUP_BYTES of table ``name``, so the overhead is
        small.
        """
        group: list[Append] = []
        size = 0
        for append in self.appends:
            group.append(append)
            size += sum(len(payload) for table, payload in append.batches if table == name)
            if size >= GROUP_BYTES:
                yield group
                group, size = [], 0
        if group:
            yield group

    def _decoded(self, name: str, appends: Sequence[Append]) -> pa.Table:
        payloads = [payload for append in appends for table, payload in append.batches if table == name]
        stream = pa.py_buffer(b"".join((_SCHEMAS[self.version][name], *payloads)))
        try:
            reader = pa.ipc.open_stream(stream, options=_READ_OPTIONS)
            batches = list(reader)
        except (pa.ArrowException, OSError) as error:
            raise StoreError(f"{self.path} is damaged: {error}", "store-damaged") from None
        if len(batches) != len(payloads):
            raise StoreError(f"{self.path} is damaged: a payload is not a batch of {name}", "store-damaged")
        table = pa.Table.from_batches(batches, reader.schema).select(JOB_TABLES[name].names)
        try:
            table.validate(full=True)  # forged offsets and lengths would lead outside of the log
        except pa.ArrowException as error:
            raise StoreError(f"{self.path} is damaged: {error}", "store-damaged") from None
        return table


def encode(tables: Mapping[str, Rows], about: int, last: int) -> list[bytes | memoryview]:
    """Return the frames of one append as buffers, in the order of writing."""
    payloads = [(_TABLE_IDS[name], payload) for name, rows in tables.items() for payload in _payloads(name, rows)]
    if not payloads:
        return [_frame(NO_TABLE, 0, about, last, b"")]
    pieces: list[bytes | memoryview] = []
    for position, (table_id, payload) in enumerate(payloads, 1):
        is_last = position == len(payloads)
        fields = (0, about, last) if is_last else (MORE_FRAMES, 0, 0)
        pieces += (_frame(table_id, *fields, payload), payload)
    return pieces


def decode(data: bytes | memoryview, path: Path) -> Contents:
    """Return the valid content of ``data``, the bytes of the log at ``path``.

    StoreError if it is not a log of a readable version.
    """
    header = bytes(data[: HEADER.size])
    if not any(header) or (len(header) < HEADER.size and MAGIC.startswith(header[: len(MAGIC)])):
        return Contents(path, [], 0)  # the header did not reach the disk
    return _appends(memoryview(data), HEADER.size, path, _version(header, path))


def read(path: Path) -> Contents:
    """Return the valid content of the log at ``path``.

    FileNotFoundError if there is none, StoreError if it is not a log of a readable version.
    """
    return decode(store_files.read(path, store_files.LOG), path)


def read_after(before: Contents) -> Contents:
    """Return the appends of a log after those of ``before``; errors as in ``read``.

    `end` counts from the beginning of the file.
    """
    if not before.end:
        return read(before.path)
    data = store_files.read(before.path, store_files.LOG, before.end)
    contents = _appends(memoryview(data), 0, before.path, before.version)
    return contents._replace(end=before.end + contents.end)


def _appends(data: memoryview, start: int, path: Path, version: int) -> Contents:
    appends: list[Append] = []
    end = start
    pending: list[tuple[str, memoryview]] = []
    for flags, append, position in _frames(data, start):
        pending += append.batches
        if not flags & MORE_FRAMES:
            appends.append(Append(pending, append.about, append.last))
            pending, end = [], position
    return Contents(path, appends, end, version)


class Log:
    """A log open for writing; ``size`` is the end of its last append."""

    def __init__(self, path: Path, size: int = 0) -> None:
        """Open ``path`` and truncate it to ``size`` bytes; 0 starts a new log."""
        self.path = path
        self.is_dirty = self._is_folder_dirty = True
        with store_errors(path):
            self._descriptor = open_own(path, os.O_RDWR)
            self.size = size
            try:
                if not size:
                    self._write([_HEADER_BYTES])
                os.ftruncate(self._descriptor, self.size)
            except OSError:
                os.close(self._descriptor)
                raise
        self._has_leftover = False

    @property
    def is_gone(self) -> bool:
        """Whether the file was unlinked, so that appends would be lost with this process."""
        return not os.fstat(self._descriptor).st_nlink

    def append(self, pieces: Sequence[bytes | memoryview]) -> None:
        """Write ``pieces`` at the end.

        A StoreError leaves ``size`` as it was. The next call removes any bytes beyond ``size``.
        """
        with store_errors(self.path):
            if self._has_leftover:
                self._truncate()
            try:
                self._write(pieces)
            except OSError:
                self._has_leftover = True
                self._truncate()
                raise
        self.is_dirty = True

    def take_back(self, size: int) -> None:
        """Remove what was appended after ``size``; errors as in `append`."""
        self.size, self._has_leftover = size, True
        with store_errors(self.path):
            self._truncate()

    def sync(self) -> None:
        """Sync the log, so that appends survive a crash of the machine."""
        with store_errors(self.path):
            if self.is_dirty:
                os.fdatasync(self._descriptor)
                self.is_dirty = False
            if self._is_folder_dirty:
                sync_folder(self.path.parent)
                self._is_folder_dirty = False

    def read(self) -> Contents:
        """Return the content of this log."""
        with store_errors(self.path):
            return decode(os.pread(self._descriptor, self.size, 0), self.path)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _truncate(self) -> None:
        os.ftruncate(self._descriptor, self.size)
        self._has_leftover = False

    def _write(self, pieces: Sequence[bytes | memoryview]) -> None:
        offset = self.size
        for start in range(0, len(pieces), _IOV_MAX):
            offset = _write_all(self._descriptor, pieces[start : start + _IOV_MAX], offset)
        self.size = offset


def _write_all(descriptor: int, pieces: Sequence[bytes | memoryview], offset: int) -> int:
    """Write ``pieces`` at ``offset``, and return their end.

    One call suffices if the kernel accepts all bytes.
    """
    size = sum(len(piece) for piece in pieces)
    written = os.pwritev(descriptor, pieces, offset)
    if written < size:
        unwritten = memoryview(b"".join(pieces))[written:]
        while unwritten:
            count = os.pwrite(descriptor, unwritten, offset + size - len(unwritten))
            unwritten = unwritten[count:]
    return offset + size


def _payloads(name: str, rows: Rows) -> Iterator[memoryview]:
    schema = JOB_TABLES[name]
    for batch in rows.to_batches() if isinstance(rows, pa.Table) else [rows]:
        if not batch.num_rows:
            continue
        if batch.get_total_buffer_size() >= _COMPRESSED_MIN:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, schema, options=_WRITE_OPTIONS) as writer:
                writer.write_batch(batch)
            yield memoryview(sink.getvalue())[len(_SCHEMAS[WAL_VERSION][name]) : -_END_SIZE]
        else:
            yield memoryview(batch.serialize())


def _frame(table_id: int, flags: int, about: int, last: int, payload: bytes | memoryview) -> bytes:
    frame = FRAME.pack(len(payload), 0, table_id, flags, 0, about, last)
    crc = zlib.crc32(payload, zlib.crc32(frame[_CRC_START:]))
    return frame[:4] + crc.to_bytes(4, "little") + frame[_CRC_START:]


def _frames(data: memoryview, offset: int) -> Iterator[tuple[int, Append, int]]:
    """Yield flags, content and end of each frame from ``offset`` up to the first invalid one."""
    while offset + FRAME.size <= len(data):
        length, crc, table_id, flags, _, about, last = FRAME.unpack_from(data, offset)
        end = offset + FRAME.size + length
        if end > len(data) or zlib.crc32(data[offset + _CRC_START : end]) != crc:
            return
        if table_id == NO_TABLE:
            yield flags, Append([], about, last), end
        elif table_id < len(_TABLES):
            yield flags, Append([(_TABLES[table_id], data[offset + FRAME.size : end])], about, last), end
        else:
            return
        offset = end


def _version(header: bytes, path: Path) -> int:
    """Return the version in the header of a log; StoreError if it is not readable."""
    if len(header) < HEADER.size or header[:6] != MAGIC:
        raise StoreError(f"{path} is not a write-ahead log of tfprof", "store-damaged")
    version: int = HEADER.unpack(header)[1]
    if version not in _SCHEMAS:
        versions = " and ".join(map(str, _SCHEMAS))
        message = f"{path} is a log of version {version}, and this tfprof reads versions {versions}"
        raise StoreError(f"{message}: use the tfprof that wrote it", "store-version")
    return version
