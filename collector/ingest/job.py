"""One open job: handles its messages in order, each exactly once."""

import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from ...formats import layout, span_kinds, wire
from ...formats.wire import Head
from ..errors import FormatError, StoreError
from ..records import Record, cut_records, cut_spans, document
from ..store.columns import pc
from ..store.writer import LocalJobWriter
from .appender import NEVER_STORED, Appender
from .failures import Failures
from .guarded_detector import GuardedDetector
from .parsing import Event, busy_thread_rows, event_of, integer, sample_row, span_rows
from .rows import RowMaker
from .sequence import SequenceTracker
from .waiting_records import BusyError, WaitingRecords
from .worker_process import WorkerSlot

#: States of an ended job that CLOSE may contain.
END_STATES: Final = ("exited", "killed", "ended", "detached", "lost")
#: The keys of CLOSE that are not counters of the agent.
END_KEYS: Final = ("state", "status", "signal", "t_ns", NEVER_STORED)
#: Wire types of a job's entries -> the key of CLOSE with the number of the last one.
LAST_NUMBERS: Final = ((wire.RECORDS, "records"), (wire.SPANS, "span_head"))
#: Slugs of events that an agent may repeat after another agent: the text has the order's id.
_ANSWERS: Final = ("order-given", "order-ended")
#: Records of traced steps: their flags hold the kind of the step.
_OF_STEPS: Final = (layout.RUN_METADATA, layout.XSPACE)


class OpenJob:
    """State of one job between messages.

    `take` returns the heads of the answers. It raises FormatError if a message is invalid, and
    BusyError if the agent must send it again. ``slot`` is shared by all jobs; ``failures`` counts
    internal errors in decoding records.
    """

    def __init__(
        self,
        uid: int,
        writer: LocalJobWriter,
        maker: RowMaker,
        slot: WorkerSlot,
        failures: Failures,
        detector: GuardedDetector,
    ) -> None:
        self.uid = uid
        self.writer = writer
        self.is_closed = False
        self.appender = Appender(uid, writer, detector)
        self._detector = detector
        self._maker = maker
        self._waiting = WaitingRecords(maker, self.appender, slot, failures)
        self._sequences = {kind: SequenceTracker(writer.acked(kind)) for kind in (wire.RECORDS, wire.SPANS)}
        self._pending_close: tuple[Head, Mapping[str, Any]] | None = None
        self._use(writer.info.identity)

    @property
    def is_busy(self) -> bool:
        """Whether any work is left, even if it must wait for the worker process."""
        return bool(self._waiting) or self._pending_close is not None

    @property
    def is_ready(self) -> bool:
        """Whether work can be done now."""
        return self.is_busy and self._waiting.is_ready

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
        self.appender.retry()
        lost = last - self.writer.acked(about)
        if lost > 0:
            self.appender.add_loss(lost, slug)
            self.appender.append({}, about, last)
            self._sequences[about] = SequenceTracker(last)

    def take(self, head: Head, body: memoryview) -> list[Head]:
        """Handle one message of this job; return the answers."""
        try:
            self.appender.retry()
            return self._HANDLERS[head.type](self, head, body)
        except (BusyError, StoreError):
            if head.type in self._sequences:
                self._sequences[head.type].note_stalled(time.monotonic())
            raise

    def drop(self) -> None:
        """Discard all waiting records; the job must not be used afterwards."""
        self._waiting.drop()

    def store_slice(self) -> list[Head]:
        """Store a slice of the waiting records, or a worker's rows, and return the acks.

        If a CLOSE is pending, also store the job's end after the last waiting record.
        """
        self.appender.retry()
        acks = [self._ack(wire.RECORDS)] if self._waiting.store_slice() else []
        if self._pending_close is not None and not self._waiting:
            acks.append(self._finish(*self._pending_close))
        return acks

    def sample(self, number: int, t_ns: int, values: Mapping[str, object]) -> None:
        """Store one sample of the job's processes, taken at ``t_ns``, from message ``number``."""
        self.appender.retry()
        if not wire.is_repeated(number, self.writer.acked(wire.SAMPLES)):
            names = ("samples", "thread_samples") if "main_cpu_s" in values else ("samples",)
            rows = {name: sample_row(values, t_ns, name) for name in names}
            if busy := values.get("busy_threads"):
                rows["busy_threads"] = busy_thread_rows(busy, t_ns)
            self.appender.append(rows, wire.SAMPLES, number)
            self._detector.add_sample(self.uid, t_ns, values)

    def _records(self, head: Head, body: memoryview) -> list[Head]:
        records = cut_records(body, head.first, head.last)
        at_once = self._waiting.admit(records, len(body))
        first_new, answers = self._first_new(head)
        if not first_new:
            return answers
        self._waiting.add(self._with_known_kind(record) for record in records if record.seq >= first_new)
        return self.store_slice() if at_once else []

    def _first_new(self, head: Head) -> tuple[int, list[Head]]:
        """Return the first new number of a message, or 0 and the answers if there is none.

        What was lost before it is counted.
        """
        result = self._sequences[head.type].admit(head.first, head.last, time.monotonic())
        if result.is_after_gap:
            return 0, [] if result.is_held else [Head(wire.REOPEN, self.uid)]
        self.appender.add_loss(result.lost, slug="gap")
        return result.first_new, [] if result.first_new else [self._ack(head.type)]

    def _with_known_kind(self, record: Record) -> Record:
        """Return ``record`` with the collector's number of the kind of its step, if it has one."""
        if record.kind not in _OF_STEPS or record.flags not in self._kind_numbers:
            return record
        return record._replace(flags=self._kind_numbers[record.flags])

    def _spans(self, head: Head, body: memoryview) -> list[Head]:
        offset, entries = cut_spans(body, head.first, head.last)
        first_new, answers = self._first_new(head)
        if not first_new:
            return answers
        spans = list(entries)[first_new - head.first :]
        if numbers := self._kind_numbers:
            spans = [span._replace(kind=numbers.get(span.kind, span.kind)) for span in spans]
        self.appender.append({"spans": span_rows(spans, offset)}, wire.SPANS, head.last)
        self._detector.add_spans(self.uid, spans, offset, time.time_ns())
        return [self._ack(wire.SPANS)]

    def _counters(self, head: Head, body: memoryview) -> list[Head]:
        counters = {name: value for name, value in document(body).items() if name != NEVER_STORED}
        self.appender.set_counters(counters)
        self._detector.add_counters(self.uid, {**counters, NEVER_STORED: self.appender.lost_count}, time.time_ns())
        return [Head(wire.ACK, self.uid, wire.COUNTERS, head.first, head.last)]

    def _event(self, head: Head, body: memoryview) -> list[Head]:
        event = event_of(document(body), time.time_ns())
        if not wire.is_repeated(head.last, self.writer.acked(wire.EVENT)):
            if not self._is_stored_answer(event):
                self.appender.add_event(event)
            self.appender.append({}, wire.EVENT, head.last)
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
        for _, name in LAST_NUMBERS:
            integer(values, name, 0)
        if counters := {key: value for key, value in values.items() if key not in END_KEYS}:
            self.appender.set_counters(counters)
        self._pending_close = head, values  # stored in `store_slice`: sealing is slow, and many jobs may end at once
        return []

    def _finish(self, head: Head, values: Mapping[str, Any]) -> Head:
        """Store the job's end and return the ack of CLOSE; count what the job wrote and never came.

        If that fails, the agent sends CLOSE again.
        """
        self._pending_close = None
        if values["state"] != "lost":  # then the numbers are not the last ones
            for about, name in LAST_NUMBERS:
                self.note_lost(about, integer(values, name, 0), "gap")
        self.appender.flush()
        self.writer.close(values["state"], values)
        self.is_closed = True
        return Head(wire.ACK, self.uid, wire.CLOSE, head.first, head.last)

    def _ack(self, about: int) -> Head:
        return Head(wire.ACK, self.uid, about, 0, self.writer.acked(about))

    _HANDLERS: ClassVar[dict[int, Callable[["OpenJob", Head, memoryview], list[Head]]]] = {
        wire.RECORDS: _records,
        wire.SPANS: _spans,
        wire.COUNTERS: _counters,
        wire.EVENT: _event,
        wire.CLOSE: _close,
    }
