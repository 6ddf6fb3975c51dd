"""Imports a job from its archive (archive.py).

The file may come from anywhere. A process with limits on memory and time unpacks it and reads every
row of it before the job appears in the store.
"""

import contextlib
import json
import os
import re
import resource
import signal
import stat
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, NoReturn

import pyarrow as pa

from ..errors import StoreError, TfprofError
from . import catalog, durable, segment
from .archive import ARCHIVE_VERSION, HOST_SAMPLES, MANIFEST
from .catalog import JobInfo
from .job_import import exists_error, own_collector, staged_job
from .schema import JOB_TABLES, READABLE
from .snapshot import Snapshot
from .writer import LocalJobWriter

_BAD_FILE: Final = "bad-file"
_LOG_NAME: Final = re.compile(r"wal-(\d{6,})\.log")
_CHUNK: Final = 1 << 20
_MANIFEST_MAX: Final = 64 << 10
#: Memory of the process: fixed, and by the size of the largest file in the archive (bytes).
_MEMORY: Final = 512 << 20
_MEMORY_FACTOR: Final = 32
#: CPU time of the process, fixed and by the size of the archive (seconds, bytes).
_CPU_S: Final = 60
_BYTES_PER_CPU_S: Final = 1 << 20
#: The first bytes of a ZIP archive.
_ZIP: Final = b"PK"
#: Exit codes of the process.
_DONE, _REFUSED, _FAILED = 0, 70, 71
_TOO_COSTLY: Final = "it takes more memory or time to read than a file of its size should"
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class ImportedJob(NamedTuple):
    """An imported job: its job file, and its numbers of nodes and traced steps."""

    info: JobInfo
    nodes: int
    steps: int


def import_archive(store: Path, path: str, host: str) -> ImportedJob:
    """Write the job in the archive at ``path`` into ``store``, with all rows and the same uid.

    After any exception, no part of the job is left. TfprofError ``io`` if the file cannot be read,
    ``bad-file`` if it is no whole archive, ``file-version`` and ``store-version`` if a newer tfprof
    wrote it, ``job-exists`` if the store has the job.
    """
    with _opened(path) as file, staged_job(store) as folder:
        _in_process(lambda: _unpack(file, store, folder, path), path)
        writer = LocalJobWriter(folder, catalog.load(folder).uid, own_collector(host))
        try:
            samples = folder / HOST_SAMPLES
            if samples.exists():
                writer.append({"host_samples": segment.read(samples, "host_samples")})
                samples.unlink()
            writer.close(writer.info.state, writer.info.end)
            rows = writer.info.rows
            return ImportedJob(writer.info, rows.get("graph_nodes", 0), rows.get("traces", 0))
        finally:
            writer.release()


def _bad(path: str, reason: str) -> TfprofError:
    return TfprofError(f"{path} is not a whole file of `tfprof export`: {reason}", slug=_BAD_FILE)


@contextlib.contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise TfprofError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}", slug="io") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _bad(path, "it is not a regular file")
    with os.fdopen(descriptor, "rb") as file:
        if file.read(len(_ZIP)) != _ZIP:
            text = (
                f"{path} is not a file of `tfprof export -o JOB.tfprof`, and not called HOST.xplane.pb; "
                "other files need an option: --profile_path or --graph_path"
            )
            raise TfprofError(text, slug=_BAD_FILE)
        file.seek(0)
        yield file


def _entries(archive: zipfile.ZipFile, size: int, path: str) -> list[zipfile.ZipInfo]:
    """Return the entries of the files, after checks of names, kinds and sizes.

    ``size``: that of the archive.
    """
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    if MANIFEST not in names or catalog.JOB_FILE not in names:
        raise _bad(path, f"it has no {MANIFEST if MANIFEST not in names else catalog.JOB_FILE}")
    if len(set(names)) < len(names):
        raise _bad(path, "it has two files of one name")
    for entry in entries:
        mode = stat.S_IFMT(entry.external_attr >> 16)
        if not _is_known(entry.filename) or mode not in (0, stat.S_IFREG):
            raise _bad(path, f"it has {entry.filename!r}, which is no file of a job")
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1 or entry.compress_size != entry.file_size:
            raise _bad(path, f"{entry.filename} in it is compressed or encrypted")
    if sum(entry.file_size for entry in entries) > size:
        raise _bad(path, "its files claim to be larger than it is")
    return [entry for entry in entries if entry.filename != MANIFEST]


def _is_known(name: str) -> bool:
    is_data = segment.parse_name(name) is not None or _LOG_NAME.fullmatch(name) is not None
    return is_data or name in (MANIFEST, HOST_SAMPLES, catalog.JOB_FILE, catalog.TAGS_FILE)


def _uid(archive: zipfile.ZipFile, path: str) -> int:
    """Return the uid in the manifest, after checks of the versions."""
    try:
        with archive.open(MANIFEST) as file:
            manifest = json.loads(file.read(_MANIFEST_MAX))
        version, store_version = manifest["version"], manifest["store_version"]
        is_valid = manifest["format"] == "tfprof" and type(version) is type(store_version) is int
    except (ValueError, KeyError, TypeError, RecursionError):
        is_valid = False
    if not is_valid:
        raise _bad(path, f"its {MANIFEST} is damaged")
    if version > ARCHIVE_VERSION:
        text = f"{path} has version {version} of the format, and this tfprof reads version {ARCHIVE_VERSION}"
        raise TfprofError(f"{text}: use the tfprof that wrote it, or a newer one", slug="file-version")
    if store_version > max(READABLE):
        versions = " and ".join(map(str, sorted(READABLE)))
        text = f"{path} has data of store version {store_version}, and this tfprof reads versions {versions}"
        raise StoreError(f"{text}: use the tfprof that wrote it, or a newer one", "store-version")
    uid = manifest.get("job")
    if not isinstance(uid, str) or not re.fullmatch(r"[0-9a-f]{16}", uid) or not int(uid, 16):
        raise _bad(path, f"its {MANIFEST} names no job")
    return int(uid, 16)


def _unpack(file: BinaryIO, store: Path, folder: Path, path: str) -> None:
    """Write the files of the archive into ``folder`` and read every row of them.

    This runs in a process of its own, whose limits it sets.
    """
    size = os.fstat(file.fileno()).st_size
    _confine(_MEMORY, _CPU_S + size // _BYTES_PER_CPU_S)
    try:
        with zipfile.ZipFile(file) as archive:
            entries = _entries(archive, size, path)
            uid = _uid(archive, path)
            if catalog.job_folder(store, uid).exists():
                raise exists_error(uid)
            _confine(_MEMORY + _MEMORY_FACTOR * max(entry.file_size for entry in entries))
            for entry in entries:
                _write(archive, entry, folder / entry.filename)
        _check_rows(folder, uid, path)
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, EOFError, ValueError) as error:
        raise _bad(path, f"it is damaged or truncated ({error})") from None
    except (MemoryError, pa.ArrowMemoryError):
        raise _bad(path, _TOO_COSTLY) from None


def _write(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path) -> None:
    with archive.open(entry) as source, durable.store_errors(target):
        descriptor = durable.open_own(target, os.O_WRONLY | os.O_EXCL)
        with os.fdopen(descriptor, "wb") as file:
            while chunk := source.read(_CHUNK):
                file.write(chunk)
            file.flush()
            os.fsync(descriptor)


def _check_rows(folder: Path, uid: int, path: str) -> None:
    """Read every row of the files in ``folder``, the job ``uid``."""
    try:
        snapshot = Snapshot(folder)
        if snapshot.info.uid != uid or snapshot.info.state in catalog.MAY_CONTINUE:
            raise _bad(path, f"its {catalog.JOB_FILE} is of another job, or of a running one")
        _read_rows(snapshot)
        if (folder / HOST_SAMPLES).exists():
            segment.read(folder / HOST_SAMPLES, "host_samples")
    except FileNotFoundError as error:
        raise _bad(path, f"{Path(error.filename).name if error.filename else 'a file'} is missing") from None
    except StoreError as error:
        reason = str(error.args[0]).replace(f"{folder}/", "")
        raise error if error.slug == "store-version" else _bad(path, reason) from None


def _read_rows(snapshot: Snapshot) -> None:
    """Read each segment and the log; their numbers of rows must be those in the job file."""
    for name in segment.SCHEMAS:
        rows = 0
        for _, path in snapshot.segments(name):
            if name == segment.TOTAL_TIMES_NAME and not path.exists():
                continue
            rows += segment.read(path, name).num_rows
        expected = snapshot.info.rows.get(name, 0) - snapshot.info.removed.get(name, 0)
        if name not in (*segment.TOTALS, segment.ROLLUP_NAME, segment.TIMES_NAME) and rows != expected:
            raise StoreError(f"the table {name} has {rows} rows in place of {expected}", "store-damaged")
        if name in JOB_TABLES:
            snapshot.log.table(name)


def _in_process(action: Callable[[], None], path: str) -> None:
    """Run ``action``, which sets limits, in a process of its own; raise its TfprofError."""
    message_fd = os.memfd_create("refusal", os.MFD_CLOEXEC)
    try:
        pid = os.fork()
        if not pid:
            _act_and_exit(action, message_fd)
        code = os.waitstatus_to_exitcode(_ended(pid))
        if code == _REFUSED:
            slug, text = json.loads(os.pread(message_fd, _CHUNK, 0))
            raise TfprofError(text, slug=slug)
    finally:
        os.close(message_fd)
    if code != _DONE:  # a library did not check malloc's result, or the process used too much CPU time
        raise _bad(path, _TOO_COSTLY)


def _ended(pid: int) -> int:
    """Wait for the end of a process, and return its status; an interrupt ends the process, too."""
    try:
        return os.waitpid(pid, 0)[1]
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise


def _act_and_exit(action: Callable[[], None], message_fd: int) -> NoReturn:
    code = _FAILED
    try:
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signal_number, signal.SIG_DFL)
        action()
        code = _DONE
    except TfprofError as error:
        os.pwrite(message_fd, json.dumps((error.slug, error.args[0])).encode(), 0)
        code = _REFUSED
    finally:
        os._exit(code)


def _confine(memory: int, cpu_s: int | None = None) -> None:
    """Limit the further memory of this process (bytes), and its CPU time (seconds)."""
    # The limit would have no effect on the default pool, which has already reserved its address
    # space.
    pa.set_memory_pool(pa.system_memory_pool())
    data = int(Path("/proc/self/statm").read_text().split()[5]) * _PAGE
    limits = [(resource.RLIMIT_DATA, data + memory), (resource.RLIMIT_CORE, 0)]
    limits += [] if cpu_s is None else [(resource.RLIMIT_CPU, cpu_s)]
    for kind, limit in limits:
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
