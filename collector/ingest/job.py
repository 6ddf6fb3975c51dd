"""One open job: its messages in order, each once, into its store."""

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, NamedTuple

import pyarrow as pa

from ...formats import layout, wire
from ...formats.wire import Head
from ..decoders.decode import TooManyRowsError
from ..errors import FormatError, StoreError, TfprofError
from ..records import Record, cut_records, cut_spans, document
from ..store.columns import as_table, constant, pc
from ..store.wal import Rows
from ..store.writer import JobWriter
from .apart import Work, Workshop
from .parsing import TEXT_MAX, Event, event_of, event_rows, fits, sample_row, span_rows, whole
from .rows import UNDECODABLE, RowMaker
from .sequence import Sequence

#: Records that take no longer than this to decode (seconds) are decoded as they come; others in slices of so long, so that every
#: job has its turn; those that take longer, or have more bytes, in a process of their own.
AT_ONCE_S: Final = 0.015
SLICE_S: Final = 0.05
LARGE_S: Final = 0.1
LARGE_BYTES: Final = 8 << 20
#: What CLOSE may say of a job's end.
END_STATES: Final = ("exited", "killed", "ended", "lost")
#: The keys of CLOSE itself; the others are those of COUNTERS.
END_KEYS: Final = ("state", "status", "signal", "t_ns", "never_stored")
#: The counter that is the collector's own: records and span entries that never came, or of which nothing is stored, or no more.
LOST: Final = "never_stored"
_REMOVED: Final = {
    wire.RECORDS: "records that were in a store that was removed or moved away",
    wire.SPANS: "span entries that were in a store that was removed or moved away",
}
_UNDECODABLE: Final = constant(UNDECODABLE, pa.string())
Tables = Mapping[str, Rows]


class Shared(NamedTuple):
    """What all jobs share: where large records are decoded, and who is told of what should not have happened with a job."""

    workshop: Workshop
    failed: Callable[[int, Exception | str], None]


class BusyError(TfprofError):
    """A message finds no room beside what waits to be decoded: it is to be sent again."""

    slug = "collector-busy"


class Job:
    """What is known of one job between its messages; small, and dropped at its end.

    `take` returns the heads to answer with; FormatError means that the message will never be taken, BusyError
    that it is to come again, StoreError that it cannot be stored now: what was decoded of it is kept and stored first, as soon
    as that is possible. `failed` is told of every exception that should not be.
    """

    def __init__(self, uid: int, writer: JobWriter, maker: RowMaker, shared: Shared) -> None:
        self.uid = uid
        self.writer = writer
        self.rows = 0
        self.lag_s = 0.0
        self.is_closed = False
        self._maker = maker
        self._shared = shared
        self._sequences = {kind: Sequence(writer.acked(kind)) for kind in (wire.RECORDS, wire.SPANS)}
        self._counters_now: dict[str, Any] | None = None
        self._lost_count = fits(whole(writer.info.counters, LOST, 0))
        self._events: list[Event] = []
        self._unsent: tuple[Tables, int, int] | None = None
        self._waiting: deque[Record] = deque()
        self._waiting_bytes = 0
        self._work: Work | None = None
        self._end: tuple[Head, Mapping[str, Any]] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether there is something to do, now or as soon as another process has done its part."""
        return self.is_waiting or self._end is not None

    @property
    def is_ready(self) -> bool:
        """Whether there is something to do now."""
        if self._work is not None or not self.is_busy:
            return False
        lot = self._lot()
        return not (lot and self._is_large(lot[0]) and self._shared.workshop.is_taken)

    @property
    def is_waiting(self) -> bool:
        """Whether there are records that are not stored."""
        return self._work is not None or bool(self._waiting)

    @property
    def is_stalled(self) -> bool:
        """Whether there are rows that could not be stored."""
        return self._unsent is not None

    def opened(self, identity: Mapping[str, Any]) -> None:
        """Take what an OPEN says: the job goes on, whatever was said of its end."""
        self.writer.identity(identity)
        self._end = None

    def lost_before(self, about: int, last: int) -> None:
        """Take note that messages of type ``about`` up to ``last`` were stored, and that this is gone."""
        if last <= self.writer.acked(about):
            return
        self._lost(last - self.writer.acked(about), _REMOVED[about], slug="store-removed")
        self._append({}, about, last)
        self._sequences[about] = Sequence(last)

    def take(self, head: Head, body: memoryview) -> list[Head]:
        """Take one message of this job."""
        self.retry()
        return self._TAKERS[head.type](self, head, body)

    def retry(self) -> None:
        """Store what could not be stored before."""
        if self._unsent is None:
            return
        try:
            self.writer.append(*self._unsent)
        except StoreError:
            raise
        except Exception:  # whatever it is, it is one job's
            self._unsent = None  # it will never be taken
            raise
        self._unsent = None

    def drop(self) -> None:
        """Let go of all that waits; the job is not to be used any more."""
        if self._work is not None:
            self._shared.workshop.drop(self._work)
            self._work = None
        self._shared.workshop.waits(-self._waiting_bytes)
        self._waiting.clear()
        self._waiting_bytes = 0

    def pump(self) -> list[Head]:
        """Store a slice of the records that wait, and the job's end after the last."""
        self.retry()
        before = len(self._waiting)
        if self._work is not None:
            self._take_from(self._work)
        elif lot := self._lot():
            self._begin(lot) if self._is_large(lot[0]) else self._store(lot)
        acks = [self._ack(wire.RECORDS)] if len(self._waiting) < before else []
        if self._end is not None and not self.is_waiting:
            acks.append(self._finish(*self._end))
        return acks

    def hand_over_counters(self) -> bool:
        """Give the store the latest counters, if there are any that it does not have; return whether there were."""
        if self._counters_now is None:
            return False
        lost = {LOST: self._lost_count} if self._lost_count else {}
        self.writer.counters({**self._counters_now, **lost})
        self._counters_now = None
        return True

    def sample(self, number: int, t_ns: int, values: Mapping[str, object]) -> None:
        """Store one sample of the job's processes, taken at ``t_ns``, from message ``number``."""
        self.retry()
        if number > self.writer.acked(wire.SAMPLES):
            self._append({"samples": sample_row(values, t_ns, "samples")}, wire.SAMPLES, number)

    def _records(self, head: Head, body: memoryview) -> list[Head]:
        records = cut_records(body, head.first, head.last)
        at_once = not self.is_waiting and sum(map(self._maker.cost, records)) <= AT_ONCE_S and len(body) <= LARGE_BYTES
        if not at_once and not self._shared.workshop.has_room(len(body), self._waiting_bytes):
            raise BusyError("other records are being decoded")
        try:
            verdict = self._sequences[wire.RECORDS].admit(head.first, head.last)
            if verdict.doubtful:
                return [Head(wire.REOPEN, self.uid)]
            if not verdict.fresh:
                return [self._ack(wire.RECORDS)]
            self._lost(verdict.lost, "records that the agent never sent or gave up", slug="gap")
            self._waiting.extend(record for record in records if record.seq >= verdict.fresh)
            return self.pump() if at_once else []
        finally:
            self._count_waiting()

    def _spans(self, head: Head, body: memoryview) -> list[Head]:
        offset, entries = cut_spans(body, head.first, head.last)
        verdict = self._sequences[wire.SPANS].admit(head.first, head.last)
        if verdict.doubtful:
            return [Head(wire.REOPEN, self.uid)]
        if not verdict.fresh:
            return [self._ack(wire.SPANS)]
        self._lost(verdict.lost, "span entries that the agent never sent or gave up", slug="gap")
        spans = list(entries)[verdict.fresh - head.first :]
        self._append({"spans": span_rows(spans, offset)}, wire.SPANS, head.last)
        return [self._ack(wire.SPANS)]

    def _counters(self, head: Head, body: memoryview) -> list[Head]:
        self._counters_now = {k: v for k, v in document(body).items() if k != LOST}
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
        for name in ("t_ns", "status", "signal"):
            if values.get(name) is not None:
                whole(values, name, 0)
        self._counters_now = {k: v for k, v in values.items() if k not in END_KEYS} or self._counters_now
        self._end = head, values  # sealing takes a while: when it is this job's turn, as where many end at once
        return []

    def _finish(self, head: Head, values: Mapping[str, Any]) -> Head:
        """Store the job's end; return the answer to the CLOSE that told of it. Where that fails it is to come again."""
        self._end = None
        if self._events:
            self._append({}, 0, 0)
        self.hand_over_counters()
        self.writer.close(values["state"], values)
        self.is_closed = True
        return Head(wire.ACK, self.uid, wire.CLOSE, head.first, head.last)

    def _lot(self) -> list[Record]:
        """Return the records that are to be decoded next, together."""
        lot: list[Record] = []
        cost = 0.0
        for record in self._waiting:
            cost += self._maker.cost(record)
            if lot and (cost > SLICE_S or self._is_large(record)):
                break
            lot.append(record)
        return lot

    def _is_large(self, record: Record) -> bool:
        return self._maker.cost(record) > LARGE_S or len(record.body) > LARGE_BYTES

    def _store(self, lot: list[Record]) -> None:
        """Make rows of ``lot``, the first that wait, and store them; a record that no code of ours can take is an event."""
        moment = self._maker.mark()
        try:
            tables = self._made(lot)
            self._taken(lot)
            self._append_records(tables, lot[-1])
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever it is, it is one job's
            self._maker.rollback(moment)
            self._taken(lot)
            if len(lot) == 1:
                self._shared.failed(self.uid, error)
                self._give_up(lot[0], f"{type(error).__name__}: {error}", "internal")
                return
            for record in reversed(lot):
                self._waiting.appendleft(record)
            for record in lot:
                self._store([record])

    def _made(self, lot: list[Record]) -> Tables:
        """Return the rows of ``lot``, from which records are taken as long as they are too many."""
        while True:
            try:
                return self._maker.make(lot, time.time_ns())
            except TooManyRowsError:
                del lot[len(lot) // 2 :]

    def _begin(self, lot: list[Record]) -> None:
        """Have the one record of ``lot`` decoded in a process of its own, as soon as there can be one."""
        try:
            self._work = self._shared.workshop.start(self._maker, lot, time.time_ns())
        except OSError as error:
            self._taken(lot)
            self._give_up(lot[0], f"no process can be started to decode it: {error.strerror}")

    def _take_from(self, work: Work) -> None:
        """Store what another process made of the first record that waits, once it is done."""
        outcome = self._shared.workshop.outcome(work)
        if outcome is None:
            return
        self._work = None
        record = self._waiting[0]
        self._taken([record])
        if outcome.why:
            self._shared.failed(self.uid, outcome.trace or outcome.why)
            self._give_up(record, outcome.why)
            return
        self._maker.made_apart(outcome.tables, outcome.next_trace)
        self._append_records(outcome.tables, record)

    def _append_records(self, tables: Tables, last: Record) -> None:
        if "events" in tables:
            events = as_table(tables["events"])
            self._count_lost(pc.sum(pc.equal(events["slug"], _UNDECODABLE)).as_py())
        self._append(tables, wire.RECORDS, last.seq)
        self.lag_s = max(0.0, (time.time_ns() - last.start_real_ns - last.duration_ns) / 1e9)

    def _taken(self, lot: list[Record]) -> None:
        """Take ``lot`` from the records that wait, unless that was done."""
        while self._waiting and self._waiting[0].seq <= lot[-1].seq:
            self._waiting.popleft()
        self._count_waiting()

    def _count_waiting(self) -> None:
        """Tell what waits now: messages stay in memory as long as any record of theirs does."""
        waiting = sum(layout.RECORD.size + len(record.body) for record in self._waiting)
        self._shared.workshop.waits(waiting - self._waiting_bytes)
        self._waiting_bytes = waiting

    def _give_up(self, record: Record, why: str, slug: str = UNDECODABLE) -> None:
        """Store that no rows could be made of ``record``."""
        name = layout.RECORD_NAMES.get(record.kind, str(record.kind))
        text = f"{name} of {len(record.body)} bytes, record {record.seq}: {why}"
        self._events.append(Event(time.time_ns(), slug=slug, text=text[:TEXT_MAX]))
        self._count_lost(1)
        self._append({}, wire.RECORDS, record.seq)

    def _append(self, tables: Tables, about: int, last: int) -> None:
        if self._events:
            more, self._events = as_table(event_rows(self._events)), []
            events = [as_table(tables["events"])] if "events" in tables else []
            tables = {**tables, "events": pa.concat_tables([*events, more])}
        self._unsent = (tables, about, last)
        self.rows += tables["ops"].num_rows if "ops" in tables else 0
        self.retry()

    def _lost(self, count: int, what: str, slug: str) -> None:
        """Count what will never be here: in an event, and among what the job has lost."""
        if count:
            self._events.append(Event(time.time_ns(), slug=slug, text=what, times=fits(count)))
            self._count_lost(count)

    def _count_lost(self, count: int) -> None:
        """Count records or entries of which nothing is stored; the counters tell of them."""
        if count:
            self._lost_count = fits(self._lost_count + count)
            self._counters_now = dict(self.writer.info.counters if self._counters_now is None else self._counters_now)

    def _ack(self, about: int) -> Head:
        return Head(wire.ACK, self.uid, about, 0, self.writer.acked(about))

    _TAKERS: ClassVar[dict[int, Callable[["Job", Head, memoryview], list[Head]]]] = {
        wire.RECORDS: _records,
        wire.SPANS: _spans,
        wire.COUNTERS: _counters,
        wire.EVENT: _event,
        wire.CLOSE: _close,
    }
