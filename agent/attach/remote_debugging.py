"""The remote debugging interface of CPython 3.14 (PEP 768).

The path of a file is written into the memory of the process. The main thread runs the file between
two of its instructions, at the next check for events. No thread is stopped.
"""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from .memory import Memory

#: The interpreter's variable that begins with the table of offsets.
RUNTIME: Final = "_PyRuntime"

_COOKIE: Final = b"xdebugpy"
_HEAD: Final = struct.Struct("<8sQQ")  # cookie, version, whether it is a free-threaded build
_TABLE_MAX: Final = 1024
_INTERPRETERS_MAX: Final = 64
_MAIN_ID: Final = 0  # id of the main interpreter
_PATH_MAX: Final = 4096
#: Bits of a thread's events (the eval breaker of CPython), all in one byte: a signal, a pending
#: call, an exception from another thread, and a stop request. The thread looks for the file when it
#: handles a stop request.
_SIGNAL, _CALLS, _EXCEPTION, _STOP_REQUEST = 1 << 1, 1 << 2, 1 << 3, 1 << 5


class Offsets(NamedTuple):
    """Offsets of fields in the interpreter (bytes), or the positions of the offsets in a table."""

    interpreters_head: int
    interpreter_id: int
    interpreter_next: int
    main_thread: int
    events: int
    debugger_support: int
    enabled_flag: int
    pending_flag: int
    path: int
    path_size: int


#: Positions of the offsets, by version; another version may order its table differently.
TABLES: Final = {(3, 14): Offsets(40, 56, 64, 80, 712, 720, 728, 736, 744, 752)}


class RemoteDebugging:
    """The interface of the main thread: addresses of its events, pending request and path."""

    def __init__(self, memory: Memory, events_at: int, pending_at: int, path_at: int, path_size: int) -> None:
        self._memory = memory
        self._events_at = events_at
        self._pending_at = pending_at
        self._path_at = path_at
        self._path_size = path_size

    @property
    def is_busy(self) -> bool:
        """Whether a file of another debugger waits to be run."""
        return _word(self._memory, self._pending_at, 4) != 0

    def request(self, path: bytes) -> bool:
        """Make the main thread run the file ``path`` soon; return False if the path is too long."""
        if len(path) >= self._path_size:
            return False
        self._memory.write(self._path_at, path + b"\0")
        self._memory.write(self._pending_at, (1).to_bytes(4, "little"))
        # The job may set an event between the read and the write, which the write then clears. So
        # the write sets each event that the job would not set again. An event without a cause has
        # no effect.
        events = self._memory.read(self._events_at, 1)[0]
        self._memory.write(self._events_at, bytes([events | _SIGNAL | _CALLS | _EXCEPTION | _STOP_REQUEST]))
        return True

    def withdraw(self) -> None:
        """Take the request back."""
        self._memory.write(self._pending_at, bytes(4))


def find(memory: Memory, runtime_at: int) -> RemoteDebugging | None:
    """Return the interface of an interpreter; ``runtime_at`` is the address of its `_PyRuntime`.

    None if this Python has no such interface, or if the interface is disabled. OSError if
    the memory cannot be read.
    """
    table = memory.read(runtime_at, _TABLE_MAX)
    if len(table) < _TABLE_MAX:
        return None
    cookie, version, is_free_threaded = _HEAD.unpack_from(table)
    positions = TABLES.get((version >> 24 & 0xFF, version >> 16 & 0xFF))
    if cookie != _COOKIE or is_free_threaded or positions is None:
        return None
    offsets = Offsets(*(int.from_bytes(table[position : position + 8], "little") for position in positions))
    for interpreter in _interpreters(memory, runtime_at, offsets):
        if _word(memory, interpreter + offsets.interpreter_id) == _MAIN_ID:
            return _interface_of(memory, interpreter, offsets)
    return None


def _interpreters(memory: Memory, runtime_at: int, offsets: Offsets) -> Iterator[int]:
    interpreter = _word(memory, runtime_at + offsets.interpreters_head)
    for _ in range(_INTERPRETERS_MAX):
        if not interpreter:
            return
        yield interpreter
        interpreter = _word(memory, interpreter + offsets.interpreter_next)


def _interface_of(memory: Memory, interpreter: int, offsets: Offsets) -> RemoteDebugging | None:
    thread = _word(memory, interpreter + offsets.main_thread)
    if (
        _word(memory, interpreter + offsets.enabled_flag, 4) != 1
        or not thread
        or not 0 < offsets.path_size <= _PATH_MAX
    ):
        return None
    support = thread + offsets.debugger_support
    return RemoteDebugging(
        memory, thread + offsets.events, support + offsets.pending_flag, support + offsets.path, offsets.path_size
    )


def _word(memory: Memory, address: int, size: int = 8) -> int:
    return int.from_bytes(memory.read(address, size), "little")
