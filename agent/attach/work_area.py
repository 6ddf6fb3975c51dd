"""The work area: memory in the job, or a file, with the injected work and its answer.

| bytes | content |
|---|---|
| 0 - 3 | progress: a `WorkState` |
| 4 - 7 | 0 while tfprof waits for the answer; afterwards 1, or 2 if the job must keep the memory |
| 8 - 15 | offset and size of the archive |
| 16 - 4095 | the answer: UTF-8, terminated by a zero |
| 4096 - | in memory: the text to run, then `pass`, each terminated by a zero, then the archive |
| 4096 - | in a file: the archive |
| last 4096 | in memory: machine code for a callback, if needed |
"""

import contextlib
import enum
import marshal
import struct
import time
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from . import scripts
from .memory import Memory

#: Size of a memory page.
PAGE: Final = 4096
_WORDS: Final = struct.Struct("<IIII")
#: Time limit for the job to free the work area after its answer is read (seconds). A job takes this
#: long only if it gets no processor.
_FREE_TIMEOUT_S: Final = 5.0
_POLL_S: Final = 0.002
#: Values of bytes 4 - 7 once tfprof no longer waits for the answer.
_FREE_AREA, _KEEP_AREA = 1, 2
_EMPTY_TEXT: Final = b"pass\0"
#: Stands for the address of the work area in a text that is made before the address is known. No
#: address has more digits.
_ADDRESS_MAX: Final = 1 << 47


class WorkState(enum.IntEnum):
    """Progress of the work in the job."""

    QUEUED = 0
    BEGUN = 1
    DONE = 2
    FAILED = 3


class WorkProgress(NamedTuple):
    """The progress of the work, and the text of its answer or error."""

    state: WorkState
    text: str


def pack(work: Mapping[str, Any]) -> bytes:
    """Return the archive of ``work``.

    Its `code` runs with all of ``work`` as `data`. The code may bind a text to `answer`.
    """
    return zlib.compress(marshal.dumps(dict(work), 2), 6)  # every Python 3 reads version 2 of the format


def wait_while_mapped(probe: Callable[[], object]) -> None:
    """Wait until ``probe`` is false or raises OSError, at most _FREE_TIMEOUT_S.

    OSError means that the work area is freed or that the process has ended.
    """
    deadline = time.monotonic() + _FREE_TIMEOUT_S
    with contextlib.suppress(OSError):
        while probe() and time.monotonic() < deadline:
            time.sleep(_POLL_S)


class WorkArea:
    """The memory, or the file, for the work in ``archive``; `place` or `place_in_file` fills it."""

    def __init__(self, archive: bytes) -> None:
        self._archive = archive
        bytes_max = PAGE + len(_text(_ADDRESS_MAX)) + len(_EMPTY_TEXT) + len(archive)
        self.size = -(-bytes_max // PAGE) * PAGE
        self._text = _text(self.size + PAGE)
        self.address = 0
        self._memory: Memory | None = None

    def place(self, memory: Memory, address: int) -> None:
        """Fill the work area at ``address`` in the job."""
        text = self._text.replace(b"%d" % _ADDRESS_MAX, b"%d" % address)
        self.text_at = address + PAGE
        self.empty_text_at = self.text_at + len(text)
        self._put(memory, address, text + _EMPTY_TEXT)

    def place_in_file(self, file: Memory, path: str) -> bytes:
        """Fill the work area in ``file``, which is at ``path``; return the text to run."""
        self._put(file, 0, b"")
        return scripts.in_file(path).encode()

    def _put(self, memory: Memory, address: int, texts: bytes) -> None:
        self._memory, self.address = memory, address
        archive_at = PAGE + len(texts)
        memory.write(address + PAGE, texts + self._archive)
        memory.write(address, _WORDS.pack(WorkState.QUEUED, 0, archive_at, len(self._archive)))

    def wait(self, timeout_s: float, target: WorkState = WorkState.DONE) -> WorkProgress:
        """Wait until the work reaches ``target``, at most ``timeout_s``; return the progress."""
        deadline = time.monotonic() + timeout_s
        while True:
            progress = self._progress()
            if progress.state >= target or time.monotonic() > deadline:
                return progress
            time.sleep(_POLL_S)

    @property
    def has_begun(self) -> bool:
        """Whether the work has begun; OSError if the process has ended."""
        return self._memory is not None and self._progress().state != WorkState.QUEUED

    def release(self, *, keep_mapped: bool = False) -> None:
        """Let the job free the work area, unless it is to stay mapped (``keep_mapped``).

        Work that has not started does nothing afterwards.
        """
        if self._memory is not None:
            self._memory.write(self.address + 4, (_KEEP_AREA if keep_mapped else _FREE_AREA).to_bytes(4, "little"))

    def wait_until_freed(self) -> None:
        """Wait until the job has freed the work area.

        Freeing it is the last thing that the thread of the work does. Without this wait, that
        thread could turn the garbage collector on while the next work runs, and a finalizer of the
        job's could run in the thread of the next work.
        """
        memory = self._memory
        assert memory is not None
        wait_while_mapped(lambda: memory.read(self.address, 1))

    def _progress(self) -> WorkProgress:
        assert self._memory is not None
        data = self._memory.read(self.address, PAGE).ljust(PAGE, b"\0")  # a file may have been truncated
        state = WorkState(min(_WORDS.unpack_from(data)[0], WorkState.FAILED))
        return WorkProgress(state, data[scripts.ANSWER_AT :].partition(b"\0")[0].decode("utf-8", "replace"))


def _text(mapped_size: int) -> bytes:
    """Return the text for a work area of ``mapped_size`` bytes at the address _ADDRESS_MAX."""
    return scripts.in_memory(_ADDRESS_MAX, mapped_size).encode() + b"\0"
