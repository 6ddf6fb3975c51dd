"""Appends the rows of one job to the store, with its events, alerts, losses and counters."""

import time
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from ...formats import layout, wire
from ..alerts.alert import Alert
from ..decoders.columns import saturated
from ..errors import StoreError
from ..records import Record
from ..store.columns import as_table, constant, pc
from ..store.protocols import Rows
from ..store.writer import LocalJobWriter
from .guarded_detector import GuardedDetector
from .parsing import TEXT_MAX, Event, alert_rows, event_rows, integer
from .rows import UNDECODABLE

#: The collector's counter of records and span entries that did not arrive or could not be stored.
NEVER_STORED: Final = "never_stored"
#: Reasons for losses of data that arrived in part, or not at all: slug -> text.
LOSSES: Final = {
    "gap": "records and span entries that the agent gave up or never sent",
    "store-removed": "records and span entries lost with a store that was removed or moved away",
    "given-up": "records and span entries that were not stored before the agent ended",
}
_UNDECODABLE: Final = constant(UNDECODABLE, pa.string())
RowsByTable = Mapping[str, Rows]


class Appender:
    """The rows of job ``uid`` on their way to ``writer``.

    After a StoreError the rows are kept, and stored before all others by `retry`. ``detector`` gets
    the stored names.
    """

    def __init__(self, uid: int, writer: LocalJobWriter, detector: GuardedDetector) -> None:
        self.uid = uid
        self.writer = writer
        self.rows = 0
        self.lag_s = 0.0
        self.lost_count = max(saturated(integer(writer.info.counters, NEVER_STORED, 0)), _lost_by_events(writer))
        self._detector = detector
        self._new_counters: dict[str, Any] | None = None
        self._events: list[Event] = []
        self._alerts: list[Alert] = []
        self._pending_append: tuple[RowsByTable, int, int] | None = None

    @property
    def is_stalled(self) -> bool:
        """Whether rows wait after a failed append."""
        return self._pending_append is not None

    def retry(self) -> None:
        """Repeat the last append if it failed."""
        if self._pending_append is None:
            return
        try:
            self.writer.append(*self._pending_append)
            if (names := self._pending_append[0].get("names")) is not None:
                self._detector.add_names(self.uid, as_table(names))
        except StoreError:
            raise
        except Exception:  # the failure stays within this job
            self._pending_append = None  # a second attempt would fail, too
            raise
        self._pending_append = None

    def append(self, tables: RowsByTable, about: int, last: int) -> None:
        """Store rows, as `LocalJobWriter.append`, and the events and alerts that wait for rows."""
        if self._events:
            new_events, self._events = as_table(event_rows(self._events)), []
            decoded_events = [as_table(tables["events"])] if "events" in tables else []
            tables = {**tables, "events": pa.concat_tables([*decoded_events, new_events])}
        if self._alerts:
            tables, self._alerts = {**tables, "alerts": alert_rows(self._alerts)}, []
        self._pending_append = (tables, about, last)
        self.rows += tables["ops"].num_rows if "ops" in tables else 0
        self.retry()

    def append_records(self, tables: RowsByTable, last_record: Record) -> None:
        """Append the rows up to ``last_record``; an internal error changes no counter."""
        state_before = self._events, self._alerts, self.lost_count, self.rows
        if "events" in tables:
            events = as_table(tables["events"])
            self._count_lost(pc.sum(pc.equal(events["slug"], _UNDECODABLE)).as_py())
        try:
            self.append(tables, wire.RECORDS, last_record.seq)
        except StoreError:
            raise
        except Exception:
            self._events, self._alerts, self.lost_count, self.rows = state_before
            raise
        self.lag_s = max(0.0, (time.time_ns() - last_record.start_real_ns - last_record.duration_ns) / 1e9)

    def flush(self) -> None:
        """Store the events, alerts and counters that wait for rows."""
        if self._events or self._alerts:
            self.append({}, 0, 0)
        self.hand_over_counters()

    # -- what is stored with the next rows -------------------------------------------------------
    def add_event(self, event: Event) -> None:
        """Store ``event`` with the next rows."""
        self._events.append(event)

    def alert(self, alert: Alert) -> None:
        """Store an alert about this job; after a StoreError it is stored with the next rows."""
        self._alerts.append(alert)
        self.retry()
        self.append({}, 0, 0)

    def give_up(self, record: Record, reason: str, slug: str = UNDECODABLE) -> None:
        """Store an event about ``record``, which could not be decoded."""
        name = layout.RECORD_NAMES.get(record.kind, str(record.kind))
        text = f"{name} of {len(record.body)} bytes, record {record.seq}: {reason}"
        self._events.append(Event(time.time_ns(), slug=slug, text=text[:TEXT_MAX]))
        self._count_lost(1)
        self.append({}, wire.RECORDS, record.seq)

    def add_loss(self, count: int, slug: str) -> None:
        """Add an event about ``count`` lost entries, and count them; ``slug``: one of LOSSES."""
        if count:
            self._events.append(Event(time.time_ns(), slug=slug, text=LOSSES[slug], times=saturated(count)))
            self._count_lost(count)

    # -- counters --------------------------------------------------------------------------------
    def set_counters(self, counters: dict[str, Any]) -> None:
        """Keep the agent's ``counters`` for `hand_over_counters`."""
        self._new_counters = counters

    def hand_over_counters(self) -> bool:
        """Pass new counters to the store; return whether there were any."""
        if self._new_counters is None:
            return False
        lost = {NEVER_STORED: self.lost_count} if self.lost_count else {}
        self.writer.set_counters({**self._new_counters, **lost})
        self._new_counters = None
        return True

    def _count_lost(self, count: int) -> None:
        """Add ``count`` to the counter NEVER_STORED."""
        if count:
            self.lost_count = saturated(self.lost_count + count)
            self._new_counters = dict(self.writer.info.counters if self._new_counters is None else self._new_counters)


def _lost_by_events(writer: LocalJobWriter) -> int:
    """Return the number of lost entries, as counted by the job's events.

    A collector that is killed may have stored such an event, but not yet the counter.
    """
    events = writer.table("events", ["slug", "count"])
    loss_events = events.filter(pc.is_in(events["slug"], pa.array([UNDECODABLE, "internal", *LOSSES])))
    return saturated(pc.sum(loss_events["count"]).as_py() or 0)
