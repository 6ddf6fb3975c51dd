"""One open job: stores its messages in order, each exactly once."""

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, NamedTuple

import pyarrow as pa

from ...formats import layout, span_kinds, wire
from ...formats.wire import Head
from ..alerts.alert import Alert
from ..decoders.columns import saturated
from ..decoders.decode import TooManyRowsError
from ..errors import FormatError, StoreError, TfprofError
from ..records import Record, cut_records, cut_spans, document
from ..store.columns import as_table, constant, pc
from ..store.protocols import JobWriter, Rows
from .guarded_detector import GuardedDetector
from .parsing import TEXT_MAX, Event, alert_rows, busy_thread_rows, event_of, event_rows, integer, sample_row, span_rows
from .rows import UNDECODABLE, RowMaker
from .sequence import SequenceTracker
from .worker_process import Worker, WorkerSlot

#: Limits of estimated decoding times (seconds) and of sizes (bytes). A message of up to AT_ONCE_S
#: and LARGE_BYTES is decoded on arrival if no other record of its job waits. Other messages are
#: decoded in slices of SLICE_S, between the slices of other jobs. A record above LARGE_S or
#: LARGE_BYTES is decoded in a worker process.
AT_ONCE_S: Final = 0.015
SLICE_S: Final = 0.05
LARGE_S: Final = 0.1
LARGE_BYTES: Final = 8 << 20
#: States of an ended job that CLOSE may contain.
END_STATES: Final = ("exited", "killed", "ended", "detached", "lost")
#: The keys of CLOSE that are not counters of the agent.
END_KEYS: Final = ("state", "status", "signal", "t_ns", "never_stored")
#: The collector's counter of records and span entries that did not arrive or could not be stored.
NEVER_STORED: Final = "never_stored"
#: Reasons for a loss that `note_lost` counts: slug -> text.
LOSSES: Final = {
    "store-removed": "records and span entries lost with a store that was removed or moved away",
    "given-up": "records and span entries that were not stored before the agent ended",
}
_NOT_SENT: Final = "records and span entries that the agent gave up or never sent"
#: Slugs of events that an agent may repeat after another agent: the text has the order's id.
_ANSWERS: Final = ("order-given", "order-ended")
#: Records of traced steps: their flags hold the kind of the step.
_OF_STEPS: Final = (layout.RUN_METADATA, layout.XSPACE)
_UNDECODABLE: Final = constant(UNDECODABLE, pa.string())
RowsByTable = Mapping[str, Rows]


class SharedServices(NamedTuple):
    """What all jobs share: the worker slot, the callback for internal errors, and the detector."""

    slot: WorkerSlot
    count_failure: Callable[[int, Exception | str], None]
    detector: GuardedDetector


class BusyError(TfprofError):
    """The queue of records to decode is full; the agent sends the message again."""

    slug = "collector-busy"


class OpenJob:
    """State of one job between messages.

    `take` returns the heads of the answers. It raises FormatError if a message is invalid, and
    BusyError if the agent must send it again. After a StoreError the decoded rows are kept, and
    stored before all others as soon as possible. `SharedServices.count_failure` is called with
    every internal error.
    """

    def __init__(self, uid: int, writer: JobWriter, maker: RowMaker, shared: SharedServices) -> None:
        self.uid = uid
        self.writer = writer
        self.rows = 0
        self.lag_s = 0.0
        self.is_closed = False
        self._maker = maker
        self._shared = shared
        self._sequences = {kind: SequenceTracker(writer.acked(kind)) for kind in (wire.RECORDS, wire.SPANS)}
        self._new_counters: dict[str, Any] | None = None
        self._lost_count = max(saturated(integer(writer.info.counters, NEVER_STORED, 0)), _lost_by_events(writer))
        self._events: list[Event] = []
        self._alerts: list[Alert] = []
        self._pending_append: tuple[RowsByTable, int, int] | None = None
        self._waiting_records: deque[Record] = deque()
        self._waiting_bytes = 0
        self._worker: Worker | None = None
        self._pending_close: tuple[Head, Mapping[str, Any]] | None = None
        self._use(writer.info.identity)

    @property
    def is_busy(self) -> bool:
        """Whether any work is left, even if it must wait for the worker process."""
        return self.is_waiting or self._pending_close is not None

    @property
    def is_ready(self) -> bool:
        """Whether work can be done now."""
        if self._worker is not None or not self.is_busy:
            return False
        batch = self._next_batch()
        return not (batch and self._is_large(batch[0]) and self._shared.slot.is_running)

    @property
    def is_waiting(self) -> bool:
        """Whether records wait to be stored."""
        return self._worker is not None or bool(self._waiting_records)

    @property
    def is_stalled(self) -> bool:
        """Whether rows wait after a failed append."""
        return self._pending_append is not None

    def set_identity(self, identity: Mapping[str, Any]) -> None:
        """Store the identity from an OPEN, and discard a pending CLOSE, since the job continues."""
        self.writer.set_identity(identity)
        self._use(identity)
        self._pending_close = None

    def _use(self, identity: Mapping[str, Any]) -> None:
        """Use the names and numbers in ``identity`` for what follows."""
        self._kind_numbers = span_kinds.declare(identity.get("kinds"))
        functions = identity.get("functions")
        self._maker.functions = functions if isinstance(functions, Mapping) else {}

    def note_lost(self, about: int, last: int, slug: str) -> None:
        """Count the entries up to number ``last`` as lost; ``slug`` is the reason, among LOSSES.

        ``about``: the wire type of the entries, RECORDS or SPANS. Stored entries do not count.
        """
        self.retry()
        if last <= self.writer.acked(about):
            return
        self._record_loss(last - self.writer.acked(about), LOSSES[slug], slug=slug)
        self._append({}, about, last)
        self._sequences[about] = SequenceTracker(last)

    def take(self, head: Head, body: memoryview) -> list[Head]:
        """Handle one message of this job; return the answers."""
        self.retry()
        return self._HANDLERS[head.type](self, head, body)

    def retry(self) -> None:
        """Append the rows of the last failed append again, if there are any."""
        if self._pending_append is None:
            return
        try:
            self.writer.append(*self._pending_append)
            if (names := self._pending_append[0].get("names")) is not None:
                self._shared.detector.add_names(self.uid, as_table(names))
        except StoreError:
            raise
        except Exception:  # the failure stays within this job
            self._pending_append = None  # a second attempt would fail, too
            raise
        self._pending_append = None

    def drop(self) -> None:
        """Discard all waiting records; the job must not be used afterwards."""
        if self._worker is not None:
            self._shared.slot.drop(self._worker)
            self._worker = None
        self._shared.slot.add_waiting(-self._waiting_bytes)
        self._waiting_records.clear()
        self._waiting_bytes = 0

    def store_slice(self) -> list[Head]:
        """Store a slice of the waiting records, or a worker's rows, and return the acks.

        If a CLOSE is pending, also store the job's end after the last waiting record.
        """
        self.retry()
        waiting_before = len(self._waiting_records)
        if self._worker is not None:
            self._finish_work(self._worker)
        elif batch := self._next_batch():
            self._start_worker(batch) if self._is_large(batch[0]) else self._store(batch)
        acks = [self._ack(wire.RECORDS)] if len(self._waiting_records) < waiting_before else []
        if self._pending_close is not None and not self.is_waiting:
            acks.append(self._finish(*self._pending_close))
        return acks

    def hand_over_counters(self) -> bool:
        """Pass new counters to the store; return whether there were any."""
        if self._new_counters is None:
            return False
        lost = {NEVER_STORED: self._lost_count} if self._lost_count else {}
        self.writer.set_counters({**self._new_counters, **lost})
        self._new_counters = None
        return True

    def sample(self, number: int, t_ns: int, values: Mapping[str, object]) -> None:
        """Store one sample of the job's processes, taken at ``t_ns``, from message ``number``."""
        self.retry()
        if not wire.is_repeated(number, self.writer.acked(wire.SAMPLES)):
            names = ("samples", "thread_samples") if "main_cpu_s" in values else ("samples",)
            rows: dict[str, Rows] = {name: sample_row(values, t_ns, name) for name in names}
            if busy := values.get("busy_threads"):
                rows["busy_threads"] = busy_thread_rows(busy, t_ns)
            self._append(rows, wire.SAMPLES, number)
            self._shared.detector.add_sample(self.uid, t_ns, values)

    def alert(self, alert: Alert) -> None:
        """Store an alert about this job; after a StoreError it is stored with the next rows."""
        self._alerts.append(alert)
        self.retry()
        self._append({}, 0, 0)

    def _records(self, head: Head, body: memoryview) -> list[Head]:
        records = cut_records(body, head.first, head.last)
        at_once = not self.is_waiting and sum(map(self._maker.cost, records)) <= AT_ONCE_S and len(body) <= LARGE_BYTES
        if not at_once and not self._shared.slot.has_room(len(body), self._waiting_bytes):
            raise BusyError("other records are being decoded")
        try:
            result = self._sequences[wire.RECORDS].admit(head.first, head.last)
            if result.is_after_gap:
                return [Head(wire.REOPEN, self.uid)]
            if not result.first_new:
                return [self._ack(wire.RECORDS)]
            self._record_loss(result.lost, _NOT_SENT, slug="gap")
            self._waiting_records.extend(
                self._with_known_kind(record) for record in records if record.seq >= result.first_new
            )
            return self.store_slice() if at_once else []
        finally:
            self._update_waiting_bytes()

    def _with_known_kind(self, record: Record) -> Record:
        """Return ``record`` with the collector's number of the kind of its step, if it has one."""
        if record.kind not in _OF_STEPS or record.flags not in self._kind_numbers:
            return record
        return record._replace(flags=self._kind_numbers[record.flags])

    def _spans(self, head: Head, body: memoryview) -> list[Head]:
        offset, entries = cut_spans(body, head.first, head.last)
        result = self._sequences[wire.SPANS].admit(head.first, head.last)
        if result.is_after_gap:
            return [Head(wire.REOPEN, self.uid)]
        if not result.first_new:
            return [self._ack(wire.SPANS)]
        self._record_loss(result.lost, _NOT_SENT, slug="gap")
        spans = list(entries)[result.first_new - head.first :]
        if numbers := self._kind_numbers:
            spans = [span._replace(kind=numbers.get(span.kind, span.kind)) for span in spans]
        self._append({"spans": span_rows(spans, offset)}, wire.SPANS, head.last)
        self._shared.detector.add_spans(self.uid, spans, offset, time.time_ns())
        return [self._ack(wire.SPANS)]

    def _counters(self, head: Head, body: memoryview) -> list[Head]:
        self._new_counters = {name: value for name, value in document(body).items() if name != NEVER_STORED}
        counters = {**self._new_counters, NEVER_STORED: self._lost_count}
        self._shared.detector.add_counters(self.uid, counters, time.time_ns())
        return [Head(wire.ACK, self.uid, wire.COUNTERS, head.first, head.last)]

    def _event(self, head: Head, body: memoryview) -> list[Head]:
        event = event_of(document(body), time.time_ns())
        if not wire.is_repeated(head.last, self.writer.acked(wire.EVENT)):
            if not self._is_stored_answer(event):
                self._events.append(event)
            self._append({}, wire.EVENT, head.last)
        return [Head(wire.ACK, self.uid, wire.EVENT, head.first, head.last)]

    def _is_stored_answer(self, event: Event) -> bool:
        """Return whether ``event`` is an answer to an order that an earlier agent has sent, too."""
        if event.slug not in _ANSWERS:
            return False
        stored = self.writer.table("events", ["slug", "text"])
        is_same = pc.and_(pc.equal(stored["slug"], event.slug), pc.equal(stored["text"], event.text))
        return bool(pc.any(is_same).as_py())

    def _close(self, head: Head, body: memoryview) -> list[Head]:
        values = document(body)
        if values.get("state") not in END_STATES:
            raise FormatError(f"unknown end state {values.get('state')!r}")
        for name in ("t_ns", "status", "signal"):
            if values.get(name) is not None:
                integer(values, name, 0)
        self._new_counters = {key: value for key, value in values.items() if key not in END_KEYS} or self._new_counters
        self._pending_close = head, values  # stored in `store_slice`: sealing is slow, and many jobs may end at once
        return []

    def _finish(self, head: Head, values: Mapping[str, Any]) -> Head:
        """Store the job's end and return the ack of CLOSE.

        If that fails, the agent sends CLOSE again.
        """
        self._pending_close = None
        if self._events or self._alerts:
            self._append({}, 0, 0)
        self.hand_over_counters()
        self.writer.close(values["state"], values)
        self.is_closed = True
        return Head(wire.ACK, self.uid, wire.CLOSE, head.first, head.last)

    def _next_batch(self) -> list[Record]:
        """Return the waiting records to decode next; a large record is alone in its batch."""
        batch: list[Record] = []
        cost = 0.0
        for record in self._waiting_records:
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
        """Decode and store ``batch``, the first waiting records.

        Return whether that succeeded at the first attempt.
        After an internal error each record is stored by itself. A record that causes an error again
        becomes an event.
        """
        mark = self._maker.mark()
        try:
            tables = self._decoded(batch)
            self._remove_waiting(batch)
            self._append_records(tables, batch[-1])
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001  # the failure stays within this job
            self._maker.rollback(mark)
            self._remove_waiting(batch)
            if len(batch) == 1:
                self._shared.count_failure(self.uid, error)
                self._give_up(batch[0], f"{type(error).__name__}: {error}", "internal")
                return False
            for record in reversed(batch):
                self._waiting_records.appendleft(record)
            failed_records = [record for record in batch if not self._store([record])]
            if not failed_records:
                self._shared.count_failure(self.uid, error)
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
            self._worker = self._shared.slot.start(self._maker, batch, time.time_ns())
        except OSError as error:
            self._remove_waiting(batch)
            self._give_up(batch[0], f"no process can be started to decode it: {error.strerror}")

    def _finish_work(self, worker: Worker) -> None:
        """If the worker has ended, store its rows, which are those of the first waiting record."""
        result = self._shared.slot.result(worker)
        if result is None:
            return
        self._worker = None
        record = self._waiting_records[0]
        self._remove_waiting([record])
        if result.traceback:
            self._shared.count_failure(self.uid, result.traceback)
        if result.failure:
            self._give_up(record, result.failure)
            return
        try:
            self._maker.continue_after(result.tables, result.next_trace)
            self._append_records(result.tables, record)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001  # the failure stays within this job
            self._shared.count_failure(self.uid, error)
            self._give_up(record, f"{type(error).__name__}: {error}", "internal")

    def _append_records(self, tables: RowsByTable, last_record: Record) -> None:
        """Append the rows up to ``last_record``; an internal error changes no counter."""
        state_before = self._events, self._alerts, self._lost_count, self.rows
        if "events" in tables:
            events = as_table(tables["events"])
            self._count_lost(pc.sum(pc.equal(events["slug"], _UNDECODABLE)).as_py())
        try:
            self._append(tables, wire.RECORDS, last_record.seq)
        except StoreError:
            raise
        except Exception:
            self._events, self._alerts, self._lost_count, self.rows = state_before
            raise
        self.lag_s = max(0.0, (time.time_ns() - last_record.start_real_ns - last_record.duration_ns) / 1e9)

    def _remove_waiting(self, batch: list[Record]) -> None:
        """Remove ``batch`` from the waiting records, if it is still there."""
        while self._waiting_records and self._waiting_records[0].seq <= batch[-1].seq:
            self._waiting_records.popleft()
        self._update_waiting_bytes()

    def _update_waiting_bytes(self) -> None:
        """Update the number of waiting bytes."""
        waiting = sum(layout.RECORD.size + len(record.body) for record in self._waiting_records)
        self._shared.slot.add_waiting(waiting - self._waiting_bytes)
        self._waiting_bytes = waiting

    def _give_up(self, record: Record, reason: str, slug: str = UNDECODABLE) -> None:
        """Store an event about ``record``, which could not be decoded."""
        name = layout.RECORD_NAMES.get(record.kind, str(record.kind))
        text = f"{name} of {len(record.body)} bytes, record {record.seq}: {reason}"
        self._events.append(Event(time.time_ns(), slug=slug, text=text[:TEXT_MAX]))
        self._count_lost(1)
        self._append({}, wire.RECORDS, record.seq)

    def _append(self, tables: RowsByTable, about: int, last: int) -> None:
        if self._events:
            new_events, self._events = as_table(event_rows(self._events)), []
            decoded_events = [as_table(tables["events"])] if "events" in tables else []
            tables = {**tables, "events": pa.concat_tables([*decoded_events, new_events])}
        if self._alerts:
            tables, self._alerts = {**tables, "alerts": alert_rows(self._alerts)}, []
        self._pending_append = (tables, about, last)
        self.rows += tables["ops"].num_rows if "ops" in tables else 0
        self.retry()

    def _record_loss(self, count: int, event_text: str, slug: str) -> None:
        """Add an event about ``count`` lost entries, and count them."""
        if count:
            self._events.append(Event(time.time_ns(), slug=slug, text=event_text, times=saturated(count)))
            self._count_lost(count)

    def _count_lost(self, count: int) -> None:
        """Add ``count`` to the counter NEVER_STORED."""
        if count:
            self._lost_count = saturated(self._lost_count + count)
            self._new_counters = dict(self.writer.info.counters if self._new_counters is None else self._new_counters)

    def _ack(self, about: int) -> Head:
        return Head(wire.ACK, self.uid, about, 0, self.writer.acked(about))

    _HANDLERS: ClassVar[dict[int, Callable[["OpenJob", Head, memoryview], list[Head]]]] = {
        wire.RECORDS: _records,
        wire.SPANS: _spans,
        wire.COUNTERS: _counters,
        wire.EVENT: _event,
        wire.CLOSE: _close,
    }


def _lost_by_events(writer: JobWriter) -> int:
    """Return the number of lost entries, as counted by the job's events.

    A collector that is killed may have stored such an event, but not yet the counter.
    """
    events = writer.table("events", ["slug", "count"])
    loss_events = events.filter(pc.is_in(events["slug"], pa.array(["gap", UNDECODABLE, "internal", *LOSSES])))
    return saturated(pc.sum(loss_events["count"]).as_py() or 0)
