"""The page: memory in the job that contains the injected work and its answer.

| bytes | what |
|---|---|
| 0 - 3 | progress: a `State` |
| 4 - 7 | written by tfprof: 1 after the answer is read, or is no longer waited for; 2: and the page stays |
| 8 - 15 | offset and size of the archive |
| 16 - 4095 | the answer: UTF-8, terminated by a zero |
| 4096 - | the text to run, terminated by a zero, an empty text, then the archive |
| last 4096 | machine code for a callback, if needed |
"""

import enum
import marshal
import struct
import time
import zlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from . import injected
from .call import Memory

PAGE: Final = 4096
_WORDS: Final = struct.Struct("<IIII")
_TOLD_AT: Final = 16
_TOLD_MAX: Final = PAGE - _TOLD_AT - 1
#: Time for which the job keeps its answer (seconds).
_KEPT_S: Final = 5.0
_POLL_S: Final = 0.002
_READ, _STAYS = 1, 2
_NOTHING: Final = b"pass\0"
#: An address with the maximum number of digits.
_HIGHEST: Final = 1 << 47


class State(enum.IntEnum):
    """Progress of the work in the job."""

    QUEUED = 0
    BEGUN = 1
    DONE = 2
    FAILED = 3


class Answer(NamedTuple):
    """The progress or result of the work, and its answer."""

    state: State
    text: str


class Page:
    """The page of process memory for ``work``: at first its size, then its address and contents.

    ``work`` is the content of the archive: its `code` runs with all of it as `data`, and may bind the
    answer as `told`, a text.
    """

    def __init__(self, work: Mapping[str, Any]) -> None:
        # Version 2 of the format is read by every Python 3.
        self._archive = zlib.compress(marshal.dumps(dict(work), 2), 6)
        self.size = -(-(PAGE + len(self._text(_HIGHEST, _HIGHEST)) + len(_NOTHING) + len(self._archive)) // PAGE) * PAGE
        self.at = 0

    def place(self, memory: Memory, at: int) -> None:
        """Fill the page at the address ``at``."""
        text = self._text(at, self.size + PAGE)
        self.at, self.text_at = at, at + PAGE
        self.nothing_at = self.text_at + len(text)
        archive_at = self.nothing_at + len(_NOTHING)
        memory.write(self.text_at, text + _NOTHING + self._archive)
        memory.write(at, _WORDS.pack(State.QUEUED, 0, archive_at - at, len(self._archive)))

    def wait(self, memory: Memory, patience_s: float, until: State = State.DONE) -> Answer:
        """Wait until the work reaches ``until``, at most ``patience_s``; return its progress and answer."""
        deadline = time.monotonic() + patience_s
        while True:
            answer = self._answer(memory)
            if answer.state >= until or time.monotonic() > deadline:
                return answer
            time.sleep(_POLL_S)

    def release(self, memory: Memory, *, stays: bool = False) -> None:
        """Let the job free the page, unless it ``stays``; work that has not started then does nothing."""
        if self.at:
            memory.write(self.at + 4, (_STAYS if stays else _READ).to_bytes(4, "little"))

    def _answer(self, memory: Memory) -> Answer:
        data = memory.read(self.at, PAGE)
        state = State(min(_WORDS.unpack_from(data)[0], State.FAILED))
        return Answer(state, data[_TOLD_AT:].partition(b"\0")[0].decode("utf-8", "replace"))

    def _text(self, at: int, size: int) -> bytes:
        return injected.text(at, size, _TOLD_AT, _TOLD_MAX, _KEPT_S).encode() + b"\0"
