"""A job as one file (`.tfprof`): a ZIP file with the files of its folder (docs/store.md)."""

import json
import os
import stat
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, cast

import pyarrow as pa

from ..errors import StoreError
from . import catalog, segment, small_segments, store_files
from .catalog import JobInfo
from .columns import pc
from .schema import STORE_VERSION
from .snapshot import Snapshot

#: Version of the files that this build writes and reads.
ARCHIVE_VERSION: Final = 1
#: The first entry, which names the versions; the samples of the job's host.
MANIFEST: Final = "tfprof.json"
HOST_SAMPLES: Final = "host_samples.parquet"
#: State of the copy of a job that was running, or whose collector had ended before the job.
_STATES: Final = {catalog.RUNNING: "detached", catalog.STALE: catalog.LOST}
#: Samples of the host are kept from this time before the job to this time after it (ns).
MARGIN_NS: Final = 60_000_000_000
_CHUNK: Final = 1 << 20
#: Date of all entries: the times of a job are in its job file.
_DATE: Final = (1980, 1, 1, 0, 0, 0)
_MODE: Final = stat.S_IFREG | 0o600


class _Stream:
    """The file that a ZipFile writes to.

    It can neither seek nor tell, so the ZipFile writes each byte once.
    """

    def __init__(self) -> None:
        self._chunks: list[bytes] = []

    def write(self, data: bytes) -> int:
        """Take ``data``."""
        self._chunks.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Do nothing."""

    def take(self) -> bytes:
        """Return what was written since the last call."""
        chunks, self._chunks = self._chunks, []
        return b"".join(chunks)


class Contents(NamedTuple):
    """The files of a job by name: their bytes, or the path of a file that stays until it is read.

    ``info``: the content of its job file, which was written at ``saved_ns``.
    """

    info: JobInfo
    saved_ns: int
    files: Mapping[str, bytes | Path]


def contents(snapshot: Snapshot) -> Contents:
    """Return the files of ``snapshot``; FileNotFoundError if a file is replaced meanwhile."""
    files: dict[str, bytes | Path] = {}
    # Writers remove the total before its histogram. If the total is there and the histogram is not,
    # the histogram was never written.
    for name in sorted(segment.SCHEMAS, key=lambda name: (name not in segment.TOTALS, name == segment.TOTAL_NAME)):
        for _, path in snapshot.segments(name):
            if name == segment.TOTAL_TIMES_NAME and not path.exists():
                continue
            files[path.name] = path if _stays(name, path) else store_files.read(path, store_files.SEGMENT)
    if snapshot.log.end:
        path = snapshot.log.path
        files[path.name] = store_files.read(path, store_files.LOG)[: snapshot.log.end]
    return Contents(snapshot.info, (snapshot.folder / catalog.JOB_FILE).stat().st_mtime_ns, files)


def pieces(job: Contents, state: str, tags: Iterable[str], host_samples: pa.Table) -> Iterator[bytes]:
    """Yield the archive of ``job``.

    ``state``: its state as it is shown; the copy of a running job counts as ended.
    ``host_samples``: those of its host. StoreError if a file cannot be read.
    """
    now_ns = time.time_ns()
    info = _ended(job, state, now_ns)
    manifest = {"format": "tfprof", "version": ARCHIVE_VERSION, "store_version": STORE_VERSION}
    identity = {"job": info.hex, "name": info.name, "exported_ns": now_ns}
    files: dict[str, bytes | Path | memoryview] = {
        MANIFEST: json.dumps({**manifest, **identity}).encode(),
        catalog.JOB_FILE: info.dump(),
        catalog.TAGS_FILE: json.dumps({"tags": list(tags)}).encode(),
        **job.files,
    }
    samples = samples_of_job(info, host_samples)
    if samples.num_rows and not info.rows.get("host_samples"):
        files[HOST_SAMPLES] = segment.encode("host_samples", samples)
    stream = _Stream()
    with zipfile.ZipFile(cast("IO[bytes]", stream), "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _DATE)
            entry.external_attr = _MODE << 16
            with archive.open(entry, "w", force_zip64=True) as file:
                for chunk in _chunks(content):
                    file.write(chunk)
                    yield stream.take()
    yield stream.take()


def _ended(job: Contents, state: str, now_ns: int) -> JobInfo:
    """Return the job file of the copy; its `end` has the time."""
    info = replace(job.info, state=_STATES.get(state, state))
    last_ns = now_ns if state == catalog.RUNNING else info.closed_ns or job.saved_ns
    return replace(info, end={"t_ns": last_ns, **info.end}, closed_ns=now_ns)


def _stays(name: str, path: Path) -> bool:
    """Whether no writer replaces a segment, since it is too large or is never merged."""
    is_replaced = name in segment.TOTALS or small_segments.is_merged(name)
    return not is_replaced or path.lstat().st_size > small_segments.FULL_BYTES


def _chunks(content: bytes | memoryview | Path) -> Iterator[bytes | memoryview]:
    if not isinstance(content, Path):
        yield content
        return
    try:
        descriptor = store_files.open_file(content, store_files.SEGMENT)
    except FileNotFoundError:
        raise StoreError(f"{content} is gone: the job was removed", "store-removed") from None
    with os.fdopen(descriptor, "rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def first_sample_ns(info: JobInfo) -> int:
    """Return the time from which samples of its host belong to a job (ns, real time)."""
    return _clamped(info.started_ns - MARGIN_NS)


def samples_of_job(info: JobInfo, samples: pa.Table) -> pa.Table:
    """Return the samples of the host from the time of the job."""
    first = first_sample_ns(info)
    ended: Any = info.end.get("t_ns", info.closed_ns)
    last = _clamped((ended if isinstance(ended, int) else time.time_ns()) + MARGIN_NS)
    times = samples["t_ns"]
    begin, end = (pa.scalar(ns, pa.int64()) for ns in (first, last))  # `integer` would keep them for ever
    return samples.filter(pc.and_(pc.greater_equal(times, begin), pc.less_equal(times, end)))


def _clamped(ns: int) -> int:
    """Return the time next to ``ns`` that a column has: an imported job may claim any number."""
    return max(-(1 << 63), min(ns, (1 << 63) - 1))
