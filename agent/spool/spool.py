"""The spool for one collector and node: locked folders with segments, of bounded size."""

import fcntl
import os
import stat
import time
from collections import deque
from typing import Final, NamedTuple

from ...formats import runtime_dir
from ...formats.errors import TfprofError
from ...formats.private_files import open_regular
from ...formats.wire import Head
from . import segment
from .segment_writer import SegmentWriter
from .spooled_jobs import SpooledJobs

#: Folders of a spool. An agent writes to the first one that no other agent has locked: hosts may
#: share a home and the name of their node.
FOLDERS_MAX: Final = 16
_LOCK: Final = "lock"
#: The variable that moves all spools.
_VARIABLE: Final = "XDG_STATE_HOME"
#: Free space that stays on the disk: this share of it, but no more than FREE_BYTES.
FREE_SHARE: Final = 0.05
FREE_BYTES: Final = 1 << 30
#: Time until the disk is tried again after a failure (seconds).
RETRY_S: Final = 5.0
#: Interval of making messages durable, unless there are SYNC_BYTES of them (seconds).
SYNC_S: Final = 1.0
SYNC_BYTES: Final = 4 << 20


class SpoolError(TfprofError):
    """The spool cannot be used now."""

    slug = "spool"


class _Segment(NamedTuple):
    path: str
    size: int
    created_ns: int


def folders(root: str, name: str) -> list[str]:
    """Return the paths of the folders that the spool ``name`` may have; few of them exist."""
    return [os.path.join(root, f"{name}-{number}") for number in range(1, FOLDERS_MAX + 1)]


class Spool:
    """Messages on disk, in the order of `put`.

    ``name`` names collector and node, ``root`` is the folder of all spools of this user, and
    ``bytes_max`` the limit of all segments together. The segments of earlier agents come first.
    ``rejected``: paths that have the name of a segment and cannot be read as one, with the reason.
    SpoolError or FolderError if no folder can be used.
    """

    def __init__(self, root: str, name: str, bytes_max: int) -> None:
        self.failure: dict[str, str] | None = None
        self.rejected: list[tuple[str, TfprofError]] = []
        self._bytes_max = bytes_max
        self._locks: list[int] = []
        self._segments: deque[_Segment] = deque()  # without the one that is written
        self._writer: SegmentWriter | None = None
        self._retry_s = 0.0
        self._last_sync_s = 0.0
        self._unsynced: list[Head] = []
        self._synced: list[Head] = []
        self._jobs = SpooledJobs()
        try:
            runtime_dir.make_private(root, _VARIABLE)
            self._folder, *other_folders = self._lock_folders(root, name)
            for folder in [*other_folders, self._folder]:
                self._add_segments(folder)
        except (OSError, TfprofError) as error:
            self.close()
            if isinstance(error, TfprofError):
                raise
            raise SpoolError(f"cannot use {error.filename or root}: {error.strerror}") from None

    def _lock_folders(self, root: str, name: str) -> list[str]:
        """Return the first folder that could be locked, and further ones with segments."""
        locked_folders: list[str] = []
        for folder in folders(root, name):
            if locked_folders and not _has_segments(folder):
                continue
            fd = _locked(runtime_dir.make_private(folder, _VARIABLE))
            if fd is not None:
                self._locks.append(fd)
                locked_folders.append(folder)
        if not locked_folders:
            raise SpoolError(f"other agents use all {FOLDERS_MAX} folders of {os.path.join(root, name)}")
        return locked_folders

    def _add_segments(self, folder: str) -> None:
        for number in segment.list_numbers(folder):
            path = os.path.join(folder, segment.name(number))
            try:
                reader = segment.SegmentReader(path)
            except TfprofError as error:
                self.rejected.append((path, error))
                continue
            reader.close()
            self._segments.append(_Segment(path, reader.size, reader.created_ns))

    def close(self) -> None:
        """Close the files; the segments stay for the next agent."""
        self.sync()
        self._close_segment()
        for fd in self._locks:
            os.close(fd)
        self._locks.clear()

    # -- what is in it ---------------------------------------------------------------------------
    def __len__(self) -> int:
        """Return the number of segments."""
        return len(self._segments) + (self._writer is not None)

    @property
    def size(self) -> int:
        """The bytes of all segments."""
        return sum(one.size for one in self._segments) + (0 if self._writer is None else self._writer.size)

    @property
    def oldest_ns(self) -> int | None:
        """The real time at which the first segment began, None without one."""
        first = self._segments[0] if self._segments else self._writer
        return None if first is None else first.created_ns

    # -- writing ---------------------------------------------------------------------------------
    def put(self, head: Head, body: bytes) -> bool:
        """Write a message, as `send` of a connection does; return False if it cannot be kept now.

        A job's last OPEN is repeated before its first message in each segment. So each segment can
        be delivered to a collector that knows nothing of the others.
        """
        now = time.monotonic()
        if self.is_waiting or not self._jobs.takes(head, now):
            return False
        try:
            if self._writer is not None and self._writer.size >= segment.SEGMENT_BYTES:
                self.end_segment()
            writer = self._writer or self._begin_segment()
            messages = self._jobs.messages(head, body)
            data = b"".join(segment.packed(*message) for message in messages)
            self._check_room(len(data))
            self._append(writer, data)
        except (OSError, SpoolError) as error:
            self._note_failure(error)
            return False
        self.failure = None
        self._jobs.note_written(messages, now)
        self._unsynced.append(head)
        return True

    @property
    def is_waiting(self) -> bool:
        """Whether the disk is not tried now, after a failure."""
        return time.monotonic() < self._retry_s

    def _check_room(self, size: int) -> None:
        """Raise SpoolError if ``size`` more bytes are too many for the spool or the disk."""
        if self.size + size > self._bytes_max:
            raise SpoolError(f"{self._folder} has reached its limit, {self._bytes_max} bytes", "spool-full")
        disk = os.statvfs(self._folder)
        kept_bytes = min(FREE_BYTES, int(FREE_SHARE * disk.f_blocks * disk.f_frsize))
        if disk.f_bavail * disk.f_frsize - size < kept_bytes:
            raise SpoolError(f"the disk of {self._folder} is full except for {kept_bytes} bytes", "spool-full")

    def _begin_segment(self) -> SegmentWriter:
        number = max([0, *segment.list_numbers(self._folder)]) + 1
        writer = self._writer = SegmentWriter(os.path.join(self._folder, segment.name(number)))
        self._jobs.begin_segment()
        self._append(writer, segment.header())
        _sync_folder(self._folder)
        return writer

    def _append(self, writer: SegmentWriter, data: bytes) -> None:
        try:
            writer.append(data)
        except OSError:
            self.end_segment()
            raise

    def _note_failure(self, error: OSError | TfprofError) -> None:
        if isinstance(error, OSError):
            error = SpoolError(f"cannot write in {self._folder}: {error.strerror}")
        self.failure = {"slug": error.slug, "text": error.args[0]}
        self._retry_s = time.monotonic() + RETRY_S

    def forget_jobs(self) -> None:
        """Forget which jobs are open: all that still run are opened again."""
        self._jobs.forget()

    # -- making durable --------------------------------------------------------------------------
    def sync_is_due(self, now: float) -> bool:
        """Return whether messages have waited for `sync` long enough, or are many."""
        is_large = self._writer is not None and self._writer.unsynced_bytes >= SYNC_BYTES
        return bool(self._synced or (self._unsynced and (is_large or now >= self._last_sync_s + SYNC_S)))

    def sync(self) -> list[Head]:
        """Return the heads of the messages that have become durable, each once.

        The others are lost if the disk fails; who put them puts them again.
        """
        self._last_sync_s = time.monotonic()
        if self._unsynced and self._writer is not None:
            try:
                self._writer.sync()
            except OSError as error:
                self._unsynced.clear()
                self._close_segment()
                self._note_failure(error)
            self._synced += self._unsynced
            self._unsynced.clear()
        durable_heads, self._synced = self._synced, []
        return durable_heads

    def end_segment(self) -> None:
        """Let no message be added to the segment that is written."""
        self._synced = self.sync()
        self._close_segment()

    def _close_segment(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None and writer.close():
            self._segments.append(_Segment(writer.path, writer.size, writer.created_ns))

    # -- delivery --------------------------------------------------------------------------------
    def first_path(self) -> str | None:
        """Return the path of the first segment, which grows no more; None if there is none."""
        if not self._segments:
            self.end_segment()
        return self._segments[0].path if self._segments else None

    def skip_first(self) -> None:
        """Leave out the first segment; what is in its place now stays there."""
        self._segments.popleft()

    def remove_first(self) -> None:
        """Remove the first segment, durably: it must not come back after later data."""
        path = self._segments.popleft().path
        try:
            os.unlink(path)
            _sync_folder(os.path.dirname(path))
        except OSError as error:
            self._note_failure(error)


def _has_segments(folder: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(folder).st_mode) and bool(segment.list_numbers(folder))
    except OSError:
        return False


def _locked(folder: str) -> int | None:
    """Return the descriptor of the lock of ``folder``, None if another agent has it."""
    fd = open_regular(os.path.join(folder, _LOCK), os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(fd)
        if isinstance(error, BlockingIOError):
            return None
        raise
    return fd


def _sync_folder(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
