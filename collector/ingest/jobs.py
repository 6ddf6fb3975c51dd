"""The open jobs of a collector, and the samples that come for several of them at once."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import pyarrow.compute as pc
from tfprof.collector.errors import FormatError, StoreError
from tfprof.collector.ingest.decode import Decoder
from tfprof.collector.ingest.job import Job
from tfprof.collector.ingest.parsing import sample_row, whole
from tfprof.collector.ingest.rows import RowMaker
from tfprof.collector.ingest.windows import TracedSteps
from tfprof.collector.records import document
from tfprof.collector.store.writer import StoreWriter
from tfprof.shim import wire
from tfprof.shim.wire import Head

#: Ended jobs whose repeated CLOSE is answered and whose late samples are let go.
ENDED_MAX: Final = 4_096


class Jobs:
    """The jobs that agents have opened and not closed."""

    def __init__(self, store: StoreWriter, decoder: Decoder) -> None:
        self.open: dict[int, Job] = {}
        self.rows_of_ended = 0
        self._store = store
        self._decoder = decoder
        self._ended: OrderedDict[int, None] = OrderedDict()
        self._turned_away: set[int] = set()  # their OPEN failed, and is sent again

    @property
    def rows(self) -> int:
        """Node executions stored since this collector started."""
        return self.rows_of_ended + sum(job.rows for job in self.open.values())

    @property
    def lag_s(self) -> float:
        """The longest that any open job's last record took from the end of its step to the store, in seconds."""
        return max((job.lag_s for job in self.open.values()), default=0.0)

    def take(self, head: Head, body: memoryview) -> list[Head]:
        """Return the answers to one message about job ``head.uid``."""
        if head.type == wire.OPEN:
            return self._open(head, body)
        job = self.open.get(head.uid)
        if job is None:
            if head.type == wire.CLOSE and head.uid in self._ended:
                return [Head(wire.ACK, head.uid, wire.CLOSE, head.first, head.last)]
            return [Head(wire.REOPEN, head.uid)]
        answers = job.take(head, body)
        if head.type == wire.CLOSE:
            self._end(job)
        return answers

    def samples(self, host: str, head: Head, body: memoryview) -> list[Head]:
        """Store the samples of ``host`` and of the jobs on it; those of jobs that are not open any more are let go."""
        values = document(body)
        t_ns = whole(values, "t_ns", -1)
        of_jobs, of_host = values.get("jobs", {}), values.get("host", {})
        if t_ns < 0 or not isinstance(of_jobs, dict) or not isinstance(of_host, dict):
            raise FormatError("samples without a time, a host or jobs")
        by_uid = {_uid(text): _object(sample) for text, sample in of_jobs.items()}
        if strangers := by_uid.keys() - self.open.keys() - self._ended.keys() - self._turned_away:
            return [Head(wire.REOPEN, uid) for uid in strangers]
        failures = []
        if of_host:
            failures += _failures(partial(self._sample_host, host, head.last, t_ns, of_host))
        for uid in by_uid.keys() & self.open.keys():
            failures += _failures(partial(self.open[uid].sample, head.last, t_ns, by_uid[uid]))
        if failures:
            raise failures[0]
        return [Head(wire.ACK, 0, wire.SAMPLES, head.first, head.last)]

    def pump(self) -> Iterator[tuple[int, list[Head]]]:
        """Store what waited long enough or could not be stored before; yield job and answers where something was."""
        for uid, job in self.open.items():
            try:
                answers = job.pump()
            except StoreError:
                continue  # told to the agent when it sends again
            if answers:
                yield uid, answers

    def hand_over_counters(self, at_most: int) -> None:
        """Give the store the latest counters of so many jobs, those first that waited longest.

        Each costs the replacement of a file, so that with many jobs they are written less often.
        """
        for uid in list(self.open):
            if at_most <= 0:
                return
            if self.open[uid].hand_over_counters():
                self.open[uid] = self.open.pop(uid)
                at_most -= 1

    def _open(self, head: Head, body: memoryview) -> list[Head]:
        identity = document(body)
        self._turned_away.add(head.uid)
        job = self.open.get(head.uid) or self._opened(head.uid)
        job.writer.identity(identity)
        self.open[head.uid] = job
        self._turned_away.discard(head.uid)
        self._ended.pop(head.uid, None)
        return [Head(wire.ACK, head.uid, wire.OPEN, head.first, head.last)]

    def _opened(self, uid: int) -> Job:
        if not uid:
            raise FormatError("a job without an id")
        known = self._store.knows(uid)
        writer = self._store.job(uid)
        steps = TracedSteps((lambda: writer.table("spans")) if known else None)
        last_trace = pc.max(writer.table("traces", ["trace"])["trace"]).as_py()
        next_trace = 0 if last_trace is None else last_trace + 1
        return Job(uid, writer, RowMaker(self._decoder, writer.names(), next_trace, steps), steps)

    def _end(self, job: Job) -> None:
        del self.open[job.uid]
        self._store.release(job.uid)
        self.rows_of_ended += job.rows
        self._ended[job.uid] = None
        if len(self._ended) > ENDED_MAX:
            self._ended.popitem(last=False)

    def _sample_host(self, host: str, number: int, t_ns: int, values: Mapping[str, Any]) -> None:
        writer = self._store.host(host)
        if number > writer.acked(wire.SAMPLES):
            row = sample_row(values, t_ns, "host_samples")
            writer.append({"host_samples": row}, wire.SAMPLES, number)


def _failures(action: Callable[[], None]) -> list[StoreError]:
    """Return why ``action`` could not store something, nothing when it could: one job's trouble is not the next one's."""
    try:
        action()
    except StoreError as error:
        return [error]
    return []


def _uid(text: str) -> int:
    try:
        return int(text, 16)
    except ValueError:
        raise FormatError(f"{text[:40]!r} is no job") from None


def _object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise FormatError("a sample that is no object")
    return value
