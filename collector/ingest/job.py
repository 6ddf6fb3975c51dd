"""One open job: its messages in order, each once, into its store."""

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

import pyarrow as pa
from tfprof.collector.errors import FormatError
from tfprof.collector.ingest.parsing import Event, event_of, event_rows, sample_row, span_rows, whole
from tfprof.collector.ingest.rows import RowMaker
from tfprof.collector.ingest.sequence import Sequence
from tfprof.collector.ingest.windows import TracedSteps
from tfprof.collector.records import Record, cut_records, cut_spans, document
from tfprof.collector.store.columns import as_table
from tfprof.collector.store.wal import Rows
from tfprof.collector.store.writer import JobWriter
from tfprof.shim import layout, wire
from tfprof.shim.wire import Head

#: How long a profiler window waits for the spans of its steps, and how much may wait behind it.
WINDOW_PATIENCE_S: Final = 2.0
WAITING_MAX: Final = 64 << 20
#: What CLOSE may say of a job's end.
END_STATES: Final = ("exited", "killed", "ended", "lost")
#: The keys of CLOSE itself; the others are those of COUNTERS.
END_KEYS: Final = ("state", "status", "signal", "t_ns")
Tables = Mapping[str, Rows]


class Job:
    """What is known of one job between its messages; small, and dropped at its end.

    `take` returns the heads to answer with; FormatError means that the message will never be taken,
    StoreError that it cannot be stored now: what was decoded of it is kept and stored first, as soon as that is possible.
    """

    def __init__(self, uid: int, writer: JobWriter, maker: RowMaker, steps: TracedSteps) -> None:
        self.uid = uid
        self.writer = writer
        self.rows = 0
        self.lag_s = 0.0
        self._maker = maker
        self._steps = steps
        self._sequences = {kind: Sequence(writer.acked(kind)) for kind in (wire.RECORDS, wire.SPANS)}
        self._counters_now: dict[str, Any] | None = None
        self._events: list[Event] = []
        self._unsent: tuple[Tables, int, int] | None = None
        self._waiting: deque[Record] = deque()
        self._patience_ends = 0.0

    def take(self, head: Head, body: memoryview) -> list[Head]:
        """Take one message of this job."""
        self.retry()
        return self._TAKERS[head.type](self, head, body)

    def retry(self) -> None:
        """Store what could not be stored before."""
        if self._unsent is not None:
            self.writer.append(*self._unsent)
            self._unsent = None

    def pump(self, patience_s: float = WINDOW_PATIENCE_S) -> list[Head]:
        """Store the records that need to wait no longer; a window waits ``patience_s`` for the spans of its steps."""
        self.retry()
        ready: list[Record] = []
        while self._waiting and self._ripe(self._waiting[0], patience_s):
            ready.append(self._waiting.popleft())
            self._patience_ends = 0.0
        if not ready:
            return []
        tables = self._maker.make(ready, time.time_ns())
        self._append(tables, wire.RECORDS, ready[-1].seq)
        self.lag_s = max(0.0, (time.time_ns() - ready[-1].start_real_ns - ready[-1].duration_ns) / 1e9)
        return [self._ack(wire.RECORDS)]

    def hand_over_counters(self) -> bool:
        """Give the store the latest counters, if there are any that it does not have; return whether there were."""
        if self._counters_now is None:
            return False
        self.writer.counters(self._counters_now)
        self._counters_now = None
        return True

    def sample(self, number: int, t_ns: int, values: Mapping[str, object]) -> None:
        """Store one sample of the job's processes, taken at ``t_ns``, from message ``number``."""
        self.retry()
        if number > self.writer.acked(wire.SAMPLES):
            self._append({"samples": sample_row(values, t_ns, "samples")}, wire.SAMPLES, number)

    def _records(self, head: Head, body: memoryview) -> list[Head]:
        records = cut_records(body, head.first, head.last)
        verdict = self._sequences[wire.RECORDS].admit(head.first, head.last)
        if verdict.doubtful:
            return [Head(wire.REOPEN, self.uid)]
        if not verdict.fresh:
            return [self._ack(wire.RECORDS)]
        self._lost(verdict.lost, "records")
        self._waiting.extend(record for record in records if record.seq >= verdict.fresh)
        return self.pump()

    def _spans(self, head: Head, body: memoryview) -> list[Head]:
        offset, entries = cut_spans(body, head.first, head.last)
        verdict = self._sequences[wire.SPANS].admit(head.first, head.last)
        if verdict.doubtful:
            return [Head(wire.REOPEN, self.uid)]
        if not verdict.fresh:
            return [self._ack(wire.SPANS)]
        self._lost(verdict.lost, "span entries")
        spans = list(entries)[verdict.fresh - head.first :]
        self._steps.remember(spans, offset)
        self._append({"spans": span_rows(spans, offset)}, wire.SPANS, head.last)
        return [self._ack(wire.SPANS), *self.pump()]

    def _counters(self, head: Head, body: memoryview) -> list[Head]:
        self._counters_now = document(body)
        return [Head(wire.ACK, self.uid, wire.COUNTERS, head.first, head.last)]

    def _event(self, head: Head, body: memoryview) -> list[Head]:
        event = event_of(document(body), time.time_ns())
        if head.last > self.writer.acked(wire.EVENT):
            self._events.append(event)
            self._append({}, wire.EVENT, head.last)
        return [Head(wire.ACK, self.uid, wire.EVENT, head.first, head.last)]

    def _close(self, head: Head, body: memoryview) -> list[Head]:
        values = document(body)
        if values.get("state") not in END_STATES:
            raise FormatError(f"no end of a job is called {values.get('state')!r}")
        whole(values, "t_ns", 0)
        self._counters_now = {k: v for k, v in values.items() if k not in END_KEYS} or self._counters_now
        acks = self.pump(patience_s=0)
        if self._events:
            self._append({}, 0, 0)
        self.hand_over_counters()
        self.writer.close(values["state"], values)
        return [*acks, Head(wire.ACK, self.uid, wire.CLOSE, head.first, head.last)]

    def _ripe(self, record: Record, patience_s: float) -> bool:
        if record.kind != layout.XSPACE or self._steps.complete(record):
            return True
        if sum(len(other.body) for other in self._waiting) > WAITING_MAX:
            return True
        if not self._patience_ends:
            self._patience_ends = time.monotonic() + WINDOW_PATIENCE_S
        return patience_s <= 0 or time.monotonic() >= self._patience_ends

    def _append(self, tables: Tables, about: int, last: int) -> None:
        if self._events:
            events = [as_table(tables["events"])] if "events" in tables else []
            tables = {**tables, "events": pa.concat_tables([*events, as_table(event_rows(self._events))])}
            self._events = []
        self._unsent = (tables, about, last)
        self.rows += tables["ops"].num_rows if "ops" in tables else 0
        self.retry()

    def _lost(self, count: int, what: str) -> None:
        if count:
            text = f"{what} that the agent never sent or gave up"
            self._events.append(Event(time.time_ns(), slug="gap", text=text, times=count))

    def _ack(self, about: int) -> Head:
        return Head(wire.ACK, self.uid, about, 0, self.writer.acked(about))

    _TAKERS: ClassVar[dict[int, Callable[["Job", Head, memoryview], list[Head]]]] = {
        wire.RECORDS: _records,
        wire.SPANS: _spans,
        wire.COUNTERS: _counters,
        wire.EVENT: _event,
        wire.CLOSE: _close,
    }
