"""Reads one job's channel; nothing in it is trusted (docs/channel.md)."""

import errno
import fcntl
import json
import mmap
import os
import stat
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from ..formats import layout, span_kinds
from ..formats.errors import FormatError, VersionError
from ..formats.layout import WORD
from ..formats.span_kinds import Kind
from ..formats.version import CHANNEL_VERSION
from .old_channels import adapter_of
from .rings import InvalidChannelError, RecordRing, SpanRing

_HELLO_WORDS: Final = ("hello_size", "hello_generation")
#: Words of the control page that COUNTERS and CLOSE contain.
COUNTER_WORDS: Final = tuple(name for name in layout.JOB_WORDS if name not in _HELLO_WORDS)
#: Positions in the control page of three tables with a word for each kind of spans.
_TABLES: Final = {"counts": layout.COUNTS_AT // 8, "times": layout.TIMES_AT // 8, "failed": layout.FAILED_AT // 8}


class ChannelIdentity(NamedTuple):
    """Identity of a channel, read before it is mapped."""

    uid: int
    pid: int
    launch: int


def read_identity(fd: int) -> ChannelIdentity:
    """Return the identity of the channel ``fd``.

    FormatError if it is not a channel, VersionError if its version is unknown.
    """
    data = os.pread(fd, layout.PAGE, 0)
    if len(data) < layout.PAGE:
        raise InvalidChannelError(f"a channel of {len(data)} bytes")
    magic, version, page_size = layout.START.unpack_from(data)
    if magic != layout.MAGIC:
        raise InvalidChannelError("no channel: its magic is wrong")
    if not version:
        raise InvalidChannelError("a channel without a version")  # not set up yet
    if version != CHANNEL_VERSION and adapter_of(version) is None:
        raise VersionError("channel", version, CHANNEL_VERSION)
    if page_size != layout.PAGE:
        raise InvalidChannelError(f"a channel with pages of {page_size} bytes")
    uid, pid, launch = (
        int.from_bytes(data[offset : offset + 8], "little")
        for offset in (layout.JOB_WORDS[word] for word in ChannelIdentity._fields)
    )
    if not uid:
        raise InvalidChannelError("a channel without a uid")  # in messages, uid 0 means no job
    return ChannelIdentity(uid, pid, launch)


def agent_pid_of(fd: int) -> int:
    """Return the pid of the agent that last opened the channel ``fd``, 0 if none has."""
    return int.from_bytes(os.pread(fd, 8, layout.AGENT_WORDS["agent_pid"]), "little")


def is_drained(fd: int) -> bool:
    """Return whether all records and span entries in the channel ``fd`` are acked."""
    page = os.pread(fd, layout.PAGE, 0)
    at = layout.JOB_WORDS | layout.AGENT_WORDS
    head, tail, span_head, span_tail = (
        int.from_bytes(page[at[word] : at[word] + 8], "little") for word in ("head", "tail", "span_head", "span_tail")
    )
    return tail == head and span_tail >= span_head  # an ended job's last entry may not count in span_head


def open_file(path: str, flags: int) -> int:
    """Return a descriptor of the channel at ``path``, a link below /proc.

    The link may lead to another file by now, for example a device. OSError if that file is not a
    regular one: it is not opened.
    """
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(place).st_mode):
            raise OSError(errno.ESTALE, "not a regular file", path)
        return os.open(f"/proc/self/fd/{place}", flags | os.O_CLOEXEC)
    finally:
        os.close(place)


class ChannelReader:
    """Reads the channel of the descriptor ``fd``, and owns the descriptor.

    Only the control page is mapped; everything else, the rings `records` and `spans` included, is
    read by pread. So the rings of many jobs do not count as this process's memory. FormatError if
    the file is not a channel of a known version. Later reads raise InvalidChannelError if the
    content is invalid.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._map: mmap.mmap | None = None
        self._kinds: Mapping[int, Kind] = span_kinds.UNDECLARED
        self._kinds_generation = 0  # of the hello that declared them
        try:
            self._open()
        except (OSError, ValueError) as error:
            self.close()
            raise InvalidChannelError(f"a channel that cannot be mapped: {error}") from None
        except FormatError:
            self.close()
            raise

    def _open(self) -> None:
        self.identity = read_identity(self._fd)
        self._adapter = adapter_of(int.from_bytes(os.pread(self._fd, 4, 8), "little"))
        if self._adapter is not None:  # in version 1 the reader seals the file
            fcntl.fcntl(self._fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        # No page of an unsealed file may be touched: if the file is truncated, SIGBUS ends
        # this process or the job.
        if not fcntl.fcntl(self._fd, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK:
            raise InvalidChannelError("a channel that is not sealed against truncation")
        info = os.fstat(self._fd)
        if info.st_size < layout.RING_AT:
            raise InvalidChannelError(f"a channel of {info.st_size} bytes")
        os.posix_fallocate(self._fd, 0, layout.PAGE)
        self._map = mmap.mmap(self._fd, layout.PAGE)
        self._view = memoryview(self._map)
        self._words = self._view.cast("Q")
        self.records = RecordRing(self._fd, self._words, self._adapter)
        self.spans = SpanRing(self._fd, self._words)
        self.user_id = info.st_uid
        self.created_real_ns = self._words[WORD["created_real_ns"]]

    def close(self) -> None:
        """Unmap and close; unacked data stays in the rings."""
        if self._map is not None:
            self._words.release()
            self._view.release()
            self._map.close()
            self._map = None
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def word(self, name: str) -> int:
        """Return the word ``name`` of the control page."""
        return self._words[WORD[name]]

    def set_word(self, name: str, value: int) -> None:
        """Write one of the agent's words."""
        if name not in layout.AGENT_WORDS:
            raise KeyError(name)
        self._words[WORD[name]] = value

    def set_ranges(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Write ``ranges``, at most `RANGES_MAX` pairs of first and last step, into the table."""
        for index, step in enumerate(step for step_range in ranges[: layout.RANGES_MAX] for step in step_range):
            self._words[layout.RANGES_AT // 8 + index] = step

    @property
    def version(self) -> int:
        """The version of the channel."""
        return int.from_bytes(self._view[8:12], "little")

    def counters(self) -> dict[str, Any]:
        """Return the job's words by name, and `counts`, `times` (ns) and `failed` by span kind.

        A channel of an earlier version lacks the newer counters.
        """
        words = self._words
        kinds = self.kinds()
        counters: dict[str, Any] = {name: words[WORD[name]] for name in COUNTER_WORDS}
        for table, start in _TABLES.items():
            counters[table] = {kind.name: words[start + number] for number, kind in kinds.items()}
        return counters if self._adapter is None else self._adapter.counters(counters)

    # -- hello -----------------------------------------------------------------------------------
    def hello_generation(self) -> int:
        """Return a number that changes with the hello, 0 while no hello is complete."""
        return self._words[WORD["hello_generation"]] if self._words[WORD["hello_size"]] else 0

    def hello(self) -> dict[str, Any]:
        """Return the job's hello, empty if it is no JSON object or is being rewritten."""
        size, generation = self._words[WORD["hello_size"]], self.hello_generation()
        if not 0 < size <= layout.HELLO_MAX:
            return {}
        text = os.pread(self._fd, size, layout.HELLO_AT)
        if generation != self.hello_generation():
            return {}
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    def kinds(self) -> Mapping[int, Kind]:
        """Return the kinds of the job's spans by number; by default those of TensorFlow."""
        generation = self.hello_generation()
        if generation != self._kinds_generation and (hello := self.hello()):
            self._kinds = span_kinds.declared(hello.get("kinds")) or span_kinds.UNDECLARED
            self._kinds_generation = generation
        return self._kinds
