"""Decodes large records in a forked process with limits on memory and time.

The collector serves other jobs meanwhile.
"""

import contextlib
import errno
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

from ...commands.descriptors import close_all_except
from ..records import Record
from .rows import DecodedTables, RowMaker

#: Limits of memory (bytes): the maximum of collector, worker and rows together; what a worker may
#: use in any case; the maximum of the rows.
MEMORY_MAX: Final = 240 << 20
PROCESS_MEMORY_MIN: Final = 32 << 20
ROWS_BYTES_MAX: Final = 32 << 20
#: Limits of a worker's CPU time and wall time (seconds). Wall time is longer on a busy machine.
CPU_S: Final = 20
WALL_S: Final = 60.0
#: Maximum bytes of records that wait to be decoded in all jobs together; one job may have half of
#: this maximum. A message may exceed a limit if no other message that counts towards the limit is
#: waiting.
WAITING_BYTES_MAX: Final = 32 << 20
#: Bytes of waiting records that each job may have even if the maximum is reached.
JOB_WAITING_MIN: Final = 1 << 20
#: Maximum characters of a worker's traceback.
_TRACEBACK_MAX: Final = 8_000
#: Exit codes of a worker.
_DONE, _FAILED, _NO_MEMORY, _TOO_MANY_ROWS = 0, 70, 71, 72
_NEEDS_MEMORY: Final = f"the collector would take more than {MEMORY_MAX >> 20} MiB of memory to decode it"
_NEEDS_TIME: Final = f"it takes more than {CPU_S} s of CPU time to decode"
_FAILURES: Final = {
    _NO_MEMORY: _NEEDS_MEMORY,
    -signal.SIGSEGV: _NEEDS_MEMORY,  # libraries that do not check malloc's result
    -signal.SIGABRT: _NEEDS_MEMORY,
    -signal.SIGXCPU: _NEEDS_TIME,
    -signal.SIGKILL: "the process that decoded it was killed, perhaps for lack of memory",
    _TOO_MANY_ROWS: f"it makes more than {ROWS_BYTES_MAX >> 20} MiB of rows",
}
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class WorkerResult(NamedTuple):
    """Result of a worker: rows and the next trace number, or a failure.

    ``failure``: its reason, empty if there was none. ``traceback``: its traceback, if known.
    """

    tables: DecodedTables
    next_trace: int
    failure: str = ""
    traceback: str = ""


class WorkerSlot:
    """The one worker process that all jobs share, and the size of their waiting records (bytes)."""

    def __init__(self) -> None:
        self._waiting_bytes = 0
        self._worker: Worker | None = None

    @property
    def is_running(self) -> bool:
        """Whether a worker is running."""
        return self._worker is not None

    def start(self, maker: RowMaker, records: Sequence[Record], now_ns: int) -> "Worker | None":
        """Start a worker on ``records`` and return it, None while another one runs.

        OSError if fork fails.
        """
        if self._worker is not None:
            return None
        self._worker = Worker(maker, records, now_ns)
        return self._worker

    def result(self, worker: "Worker") -> WorkerResult | None:
        """Return the result of ``worker``, None while it runs."""
        worker_result = worker.result()
        if worker_result is not None:
            self._worker = None
        return worker_result

    def drop(self, worker: "Worker") -> None:
        """Kill ``worker`` and discard its result."""
        worker.kill()
        self._worker = None

    def has_room(self, size: int, job_waiting_bytes: int) -> bool:
        """Whether ``size`` more bytes may wait; ``job_waiting_bytes``: those of the same job."""
        if job_waiting_bytes + size <= JOB_WAITING_MIN:
            return True
        return (not job_waiting_bytes or job_waiting_bytes + size <= WAITING_BYTES_MAX // 2) and (
            not self._waiting_bytes or self._waiting_bytes + size <= WAITING_BYTES_MAX
        )

    def add_waiting(self, growth: int) -> None:
        """Add ``growth`` to the number of waiting bytes."""
        self._waiting_bytes += growth


class Worker:
    """A forked process that decodes some records of a job, with a copy of the collector's state."""

    def __init__(self, maker: RowMaker, records: Sequence[Record], now_ns: int) -> None:
        self._deadline = time.monotonic() + WALL_S
        self._result_fd = os.memfd_create("rows", os.MFD_CLOEXEC)
        sys.stderr.flush()
        try:
            self._pid = os.fork()
        except OSError:
            os.close(self._result_fd)
            raise
        if not self._pid:
            _decode_and_exit(self._result_fd, maker, records, now_ns)

    def result(self) -> WorkerResult | None:
        """Return the result once the process has ended, None while it runs.

        After WALL_S the process is killed, and the result is a failure.
        """
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if not pid and time.monotonic() < self._deadline:
            return None
        if not pid:
            self.kill()
            return WorkerResult({}, 0, f"it takes more than {WALL_S:.0f} s to decode")
        try:
            return self._read_result(os.waitstatus_to_exitcode(status))
        except (OSError, ValueError, LookupError, MemoryError, pa.ArrowException) as error:
            return WorkerResult({}, 0, f"its rows cannot be read: {type(error).__name__}: {error}")
        finally:
            os.close(self._result_fd)

    def kill(self) -> None:
        """Kill the process."""
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._result_fd)

    def _read_result(self, code: int) -> WorkerResult:
        if code == _DONE:
            return _read_rows(self._result_fd)
        if code == _FAILED:
            text = os.pread(self._result_fd, _TRACEBACK_MAX, 0).decode("utf-8", "replace")
            return WorkerResult({}, 0, (text.splitlines() or ["unknown"])[-1], text)
        failure = _FAILURES.get(code) or f"the process that decoded it ended with status {code}"
        return WorkerResult({}, 0, failure)


def _decode_and_exit(result_fd: int, maker: RowMaker, records: Sequence[Record], now_ns: int) -> NoReturn:
    """Write the rows of ``records`` to ``result_fd`` and exit; runs in the child process."""
    code = _FAILED
    try:
        confine(result_fd)
        tables = maker.make(records, now_ns)
        write_rows(result_fd, tables, maker.next_trace)
        code = _DONE
    except (MemoryError, pa.ArrowMemoryError):
        code = _NO_MEMORY
    except BaseException as error:  # noqa: BLE001  # the child must not continue in the collector's code
        if isinstance(error, OSError) and error.errno == errno.EFBIG:
            code = _TOO_MANY_ROWS
        else:
            with contextlib.suppress(BaseException):
                os.ftruncate(result_fd, 0)
                os.pwrite(result_fd, traceback.format_exc()[-_TRACEBACK_MAX:].encode("utf-8", "replace"), 0)
    finally:
        os._exit(code)


def confine(result_fd: int) -> None:
    """Reset signal handlers, close the collector's descriptors (lock files, too), set limits."""
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signal_number, signal.SIG_DFL)
    close_all_except(result_fd)
    # A limit has no effect on the default pool, which has already reserved its address space.
    pa.set_memory_pool(pa.system_memory_pool())
    shared, data = (int(Path("/proc/self/statm").read_text().split()[column]) * _PAGE for column in (1, 5))
    limits = (
        (resource.RLIMIT_DATA, data + max(PROCESS_MEMORY_MIN, MEMORY_MAX - ROWS_BYTES_MAX - shared)),
        (resource.RLIMIT_CPU, CPU_S),
        (resource.RLIMIT_FSIZE, ROWS_BYTES_MAX),
        (resource.RLIMIT_CORE, 0),
    )
    for kind, limit in limits:
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def write_rows(result_fd: int, tables: DecodedTables, next_trace: int) -> None:
    """Write a JSON line that lists the tables, then each table as an Arrow stream."""
    head = json.dumps({"next_trace": next_trace, "tables": list(tables)}).encode() + b"\n"
    with os.fdopen(result_fd, "wb", closefd=False) as file:
        file.write(head)
        for table in tables.values():
            with pa.ipc.new_stream(file, table.schema) as writer:
                writer.write_table(table)


def _read_rows(result_fd: int) -> WorkerResult:
    data = mmap.mmap(result_fd, 0, mmap.MAP_SHARED, mmap.PROT_READ)
    line = data.find(b"\n")
    head = json.loads(data[:line])
    source = pa.BufferReader(pa.py_buffer(data))
    source.seek(line + 1)
    tables = {name: pa.ipc.open_stream(source).read_all() for name in head["tables"]}
    return WorkerResult(tables, head["next_trace"])
