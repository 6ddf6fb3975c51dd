"""The records of one job that wait to be decoded: at once, in slices, or in a worker process."""

import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from ...formats import layout
from ..decoders.decode import TooManyRowsError
from ..errors import StoreError, TfprofError
from ..records import Record
from .appender import Appender, RowsByTable
from .failures import Failures
from .rows import RowMaker
from .worker_process import Worker, WorkerSlot

#: Limits of estimated decoding times (seconds) and of sizes (bytes). A message of up to AT_ONCE_S
#: and LARGE_BYTES is decoded on arrival if no other record of its job waits. Other messages are
#: decoded in slices of SLICE_S, between the slices of other jobs. A record above LARGE_S or
#: LARGE_BYTES is decoded in a worker process.
AT_ONCE_S: Final = 0.015
SLICE_S: Final = 0.05
LARGE_S: Final = 0.1
LARGE_BYTES: Final = 8 << 20


class BusyError(TfprofError):
    """The queue of records to decode is full; the agent sends the message again."""

    slug = "collector-busy"


class WaitingRecords:
    """A queue of records whose rows ``maker`` makes and ``appender`` stores.

    ``slot`` is shared by all jobs. ``failures`` counts every internal error.
    """

    def __init__(self, maker: RowMaker, appender: Appender, slot: WorkerSlot, failures: Failures) -> None:
        self._maker = maker
        self._appender = appender
        self._slot = slot
        self._failures = failures
        self._records: deque[Record] = deque()
        self._bytes = 0
        self._worker: Worker | None = None

    def __bool__(self) -> bool:
        """Return whether any records wait, or are being decoded in the worker process."""
        return self._worker is not None or bool(self._records)

    @property
    def is_ready(self) -> bool:
        """Whether `store_slice` need not wait for a worker process."""
        if self._worker is not None:
            return False
        batch = self._next_batch()
        return not (batch and self._is_large(batch[0]) and self._slot.is_running)

    def admit(self, records: Sequence[Record], size: int) -> bool:
        """Return whether a message of ``size`` bytes is to be stored at once.

        BusyError if neither that is possible nor the records may wait.
        """
        if not self and sum(map(self._maker.cost, records)) <= AT_ONCE_S and size <= LARGE_BYTES:
            return True
        if not self._slot.has_room(size, self._bytes):
            raise BusyError("other records are being decoded")
        return False

    def add(self, records: Iterable[Record]) -> None:
        """Queue ``records``."""
        self._records.extend(records)
        self._update_bytes()

    def drop(self) -> None:
        """Discard all records."""
        if self._worker is not None:
            self._slot.drop(self._worker)
            self._worker = None
        self._records.clear()
        self._update_bytes()

    def store_slice(self) -> bool:
        """Store a slice of the records, or a worker's rows; return whether any record was stored.

        A record that cannot be decoded counts as stored.
        """
        count_before = len(self._records)
        if self._worker is not None:
            self._finish_work(self._worker)
        elif batch := self._next_batch():
            self._start_worker(batch) if self._is_large(batch[0]) else self._store(batch)
        return len(self._records) < count_before

    def _next_batch(self) -> list[Record]:
        """Return the records to decode next; a large record is alone in its batch."""
        batch: list[Record] = []
        cost = 0.0
        for record in self._records:
            cost += self._maker.cost(record)
            is_large = self._is_large(record)
            if batch and (cost > SLICE_S or is_large):
                break
            batch.append(record)
            if is_large:
                break
        return batch

    def _is_large(self, record: Record) -> bool:
        return self._maker.cost(record) > LARGE_S or len(record.body) > LARGE_BYTES

    def _store(self, batch: list[Record]) -> bool:
        """Decode and store ``batch``, the first records.

        Return whether that succeeded at the first attempt.
        After an internal error each record is stored by itself. A record that causes an error again
        becomes an event.
        """
        mark = self._maker.mark()
        try:
            tables = self._decoded(batch)
            self._remove(batch)
            self._appender.append_records(tables, batch[-1])
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001  # the failure stays within this job
            self._maker.rollback(mark)
            self._remove(batch)
            if len(batch) == 1:
                self._failures.count_failure(self._appender.uid, error)
                self._give_up(batch[0], error)
                return False
            self._records.extendleft(reversed(batch))
            failed_records = [record for record in batch if not self._store([record])]
            if not failed_records:
                self._failures.count_failure(self._appender.uid, error)
            return False
        return True

    def _decoded(self, batch: list[Record]) -> RowsByTable:
        """Return the rows of ``batch``.

        While ``batch`` makes too many rows, its second half is removed from it.
        """
        mark = self._maker.mark()
        while True:
            try:
                return self._maker.make(batch, time.time_ns())
            except TooManyRowsError:
                self._maker.rollback(mark)
                del batch[len(batch) // 2 :]

    def _start_worker(self, batch: list[Record]) -> None:
        """Start a worker on the only record of ``batch``, unless one is running."""
        try:
            self._worker = self._slot.start(self._maker, batch, time.time_ns())
        except OSError as error:
            self._remove(batch)
            self._appender.give_up(batch[0], f"no process can be started to decode it: {error.strerror}")

    def _finish_work(self, worker: Worker) -> None:
        """If the worker has ended, store its rows, which are those of the first record."""
        result = self._slot.result(worker)
        if result is None:
            return
        self._worker = None
        record = self._records[0]
        self._remove([record])
        if result.traceback:
            self._failures.count_failure(self._appender.uid, result.traceback)
        if result.failure:
            self._appender.give_up(record, result.failure)
            return
        try:
            self._maker.continue_after(result.tables, result.next_trace)
            self._appender.append_records(result.tables, record)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001  # the failure stays within this job
            self._failures.count_failure(self._appender.uid, error)
            self._give_up(record, error)

    def _give_up(self, record: Record, error: Exception) -> None:
        self._appender.give_up(record, f"{type(error).__name__}: {error}", "internal")

    def _remove(self, batch: list[Record]) -> None:
        """Remove ``batch``, if it is still there."""
        while self._records and self._records[0].seq <= batch[-1].seq:
            self._records.popleft()
        self._update_bytes()

    def _update_bytes(self) -> None:
        waiting = sum(layout.RECORD.size + len(record.body) for record in self._records)
        self._slot.add_waiting(waiting - self._bytes)
        self._bytes = waiting
