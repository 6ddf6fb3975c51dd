"""Large records are decoded in a process of their own, bounded in memory and time, while the collector serves the other jobs."""

import contextlib
import json
import mmap
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

import pyarrow as pa

from ..records import Record
from .rows import RowMaker, Tables

#: What collector, process and the rows that it makes may take together; of it the least that the process may, and the rows.
MEMORY_MAX: Final = 240 << 20
LEAST: Final = 32 << 20
ROWS_BYTES_MAX: Final = 32 << 20
#: How long it may compute, and how long that may take on a busy machine.
CPU_S: Final = 20
WALL_S: Final = 60.0
#: Bytes of records of all jobs that may wait for it; one record of any size may.
WAITING_MAX: Final = 32 << 20
#: So much of a job may wait whatever the others have there.
ALWAYS: Final = 1 << 20
#: Of a failure within: more of its traceback is cut.
_TOLD_MAX: Final = 8_000
_DONE, _FAILED, _NO_MEMORY, _TOO_MUCH = 0, 70, 71, 72
_NEEDS_MEMORY: Final = f"the collector would take more than {MEMORY_MAX >> 20} MiB of memory to decode it"
_NEEDS_TIME: Final = f"it takes more than {CPU_S} s to decode"
_WHY: Final = {
    _NO_MEMORY: _NEEDS_MEMORY,
    -signal.SIGSEGV: _NEEDS_MEMORY,  # libraries that do not look at what malloc returns
    -signal.SIGABRT: _NEEDS_MEMORY,
    -signal.SIGXCPU: _NEEDS_TIME,
    -signal.SIGKILL: _NEEDS_TIME,
    _TOO_MUCH: f"it makes more than {ROWS_BYTES_MAX >> 20} MiB of rows",
}
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class Outcome(NamedTuple):
    """The rows of the records and the number of the next trace; or why there are none, and where in the code that was."""

    tables: Tables
    next_trace: int
    why: str = ""
    trace: str = ""


class Workshop:
    """What the jobs share: the one process, and the room for what waits for it."""

    def __init__(self) -> None:
        self._waiting = 0
        self._work: Work | None = None

    @property
    def is_taken(self) -> bool:
        """Whether the process is at work on something."""
        return self._work is not None

    def start(self, maker: RowMaker, records: Sequence[Record], now_ns: int) -> "Work | None":
        """Begin to make rows of ``records``, None while something else is at work; OSError when there can be no process."""
        if self._work is not None:
            return None
        self._work = Work(maker, records, now_ns)
        return self._work

    def outcome(self, work: "Work") -> Outcome | None:
        """Return what became of ``work``, None while it goes on."""
        found = work.outcome()
        if found is not None:
            self._work = None
        return found

    def drop(self, work: "Work") -> None:
        """End ``work``, whose outcome nobody wants."""
        work.kill()
        self._work = None

    def has_room(self, size: int, own: int) -> bool:
        """Whether ``size`` more bytes may wait; ``own``: what waits of the same job."""
        if own + size <= ALWAYS:
            return True
        return (not own or own + size <= WAITING_MAX // 2) and (
            not self._waiting or self._waiting + size <= WAITING_MAX
        )

    def waits(self, more: int) -> None:
        """Take note that so many bytes more wait."""
        self._waiting += more


class Work:
    """A process that makes rows of some records of a job; it has a copy of all that the collector knows."""

    def __init__(self, maker: RowMaker, records: Sequence[Record], now_ns: int) -> None:
        self._ends = time.monotonic() + WALL_S
        self._result = os.memfd_create("rows", os.MFD_CLOEXEC)
        sys.stderr.flush()
        try:
            self._pid = os.fork()
        except OSError:
            os.close(self._result)
            raise
        if not self._pid:
            _work(self._result, maker, records, now_ns)

    def outcome(self) -> Outcome | None:
        """Return what became of it, None while it goes on; the process is gone then."""
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if not pid and time.monotonic() < self._ends:
            return None
        if not pid:
            os.kill(self._pid, signal.SIGKILL)
            _, status = os.waitpid(self._pid, 0)
        try:
            return self._read(os.waitstatus_to_exitcode(status))
        finally:
            os.close(self._result)

    def kill(self) -> None:
        """End it."""
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._result)

    def _read(self, code: int) -> Outcome:
        if code == _DONE:
            return _read(self._result)
        if code == _FAILED:
            text = os.pread(self._result, _TOLD_MAX, 0).decode("utf-8", "replace")
            return Outcome({}, 0, (text.splitlines() or ["unknown"])[-1], text)
        why = _WHY.get(code) or f"the process that decoded it ended with status {code}"
        return Outcome({}, 0, why)


def _work(result: int, maker: RowMaker, records: Sequence[Record], now_ns: int) -> NoReturn:
    """Write the rows of ``records`` to ``result`` and end this process, the child; nothing of the parent's is touched."""
    code = _FAILED
    try:
        _confine(result)
        tables = maker.make(records, now_ns)
        _write(result, tables, maker.next_trace)
        code = _DONE
    except (MemoryError, pa.ArrowMemoryError):
        code = _NO_MEMORY
    except OSError:
        code = _TOO_MUCH
    except BaseException:  # noqa: BLE001  # whatever it is, the collector's own code must not go on in this process
        with contextlib.suppress(BaseException):
            os.ftruncate(result, 0)
            os.pwrite(result, traceback.format_exc()[-_TOLD_MAX:].encode("utf-8", "replace"), 0)
    finally:
        os._exit(code)


def _confine(result: int) -> None:
    """Let go of what the collector has open, its locks above all, and bound what this process can take."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    for first, last in ((3, result), (result + 1, os.sysconf("SC_OPEN_MAX"))):
        os.closerange(first, last)
    # The other pool has its address space already, and no limit would hold it.
    pa.set_memory_pool(pa.system_memory_pool())
    shared, data = (int(Path("/proc/self/statm").read_text().split()[column]) * _PAGE for column in (1, 5))
    limits = (
        (resource.RLIMIT_DATA, data + max(LEAST, MEMORY_MAX - ROWS_BYTES_MAX - shared)),
        (resource.RLIMIT_CPU, CPU_S),
        (resource.RLIMIT_FSIZE, ROWS_BYTES_MAX),
        (resource.RLIMIT_CORE, 0),
    )
    for what, limit in limits:
        _, hard = resource.getrlimit(what)
        resource.setrlimit(what, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def _write(result: int, tables: Tables, next_trace: int) -> None:
    """Write what ``_read`` reads: a line that says what follows, then each table as an Arrow stream."""
    head = json.dumps({"next_trace": next_trace, "tables": list(tables)}).encode() + b"\n"
    with os.fdopen(result, "wb", closefd=False) as file:
        file.write(head)
        for table in tables.values():
            with pa.ipc.new_stream(file, table.schema) as writer:
                writer.write_table(table)


def _read(result: int) -> Outcome:
    data = mmap.mmap(result, 0, mmap.MAP_SHARED, mmap.PROT_READ)
    line = data.find(b"\n")
    head = json.loads(data[:line])
    source = pa.BufferReader(pa.py_buffer(data))
    source.seek(line + 1)
    tables = {name: pa.ipc.open_stream(source).read_all() for name in head["tables"]}
    return Outcome(tables, head["next_trace"])
