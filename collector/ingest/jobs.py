"""The open jobs of a collector, and the samples that come for several of them at once."""

import re
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import pyarrow.compute as pc

from ...formats import wire
from ...formats.wire import Head
from ..decoders.decode import Decoder
from ..errors import FormatError, StoreError, TfprofError
from ..records import document
from ..store.writer import StoreWriter
from .apart import Workshop
from .job import Job, Shared
from .parsing import INT64_MAX, TEXT_MAX, Event, event_rows, sample_row, whole
from .rows import RowMaker

#: Ended jobs whose repeated CLOSE is answered and whose late samples are let go.
ENDED_MAX: Final = 4_096
#: So many exceptions that should not be, and a job is quarantined.
FAILURES_MAX: Final = 20
#: How often is looked whether another process has done its part.
_WORK_MS: Final = 20
#: Is told the job and the exception, or what another process said of one.
Failed = Callable[[int, Exception | str], None]
_UID: Final = re.compile(r"[0-9a-fA-F]{1,16}")


class Stored(NamedTuple):
    """What job ``uid`` is to be answered now that something of it was stored, or why it was not."""

    uid: int
    answers: list[Head] | StoreError


class QuarantinedError(FormatError):
    """A message of a job that is listened to no more."""

    slug = "quarantined"


class InternalError(FormatError):
    """A message that no code of ours can take."""

    slug = "internal"


class Jobs:
    """The jobs that agents have opened and not closed.

    Whatever goes wrong with one of them is no other one's trouble: `failed` is told of every exception that should not be, and a job
    with FAILURES_MAX of them is quarantined: it ends as lost, and its messages are refused. `quarantined` has its last one.
    """

    def __init__(self, store: StoreWriter, decoder: Decoder, failed: Failed) -> None:
        self.open: dict[int, Job] = {}
        self.rows_of_ended = 0
        self.quarantined: dict[int, str] = {}
        self._store = store
        self._decoder = decoder
        self._tell_failure = failed
        self._shared = Shared(Workshop(), self._failed)
        self._failures: Counter[int] = Counter()
        self._last_failure: dict[int, str] = {}
        self._ended: OrderedDict[int, None] = OrderedDict()
        self._removed: dict[int, dict[int, int]] = {}  # up to where they were stored in a store that is gone
        self._turned_away: set[int] = set()  # their OPEN failed, and is sent again
        self._busy: OrderedDict[int, None] = OrderedDict()  # in the order in which they have their turn

    @property
    def rows(self) -> int:
        """Node executions stored since this collector started."""
        return self.rows_of_ended + sum(job.rows for job in self.open.values())

    @property
    def lag_s(self) -> float:
        """The longest that any open job's last record took from the end of its step to the store, in seconds."""
        return max((job.lag_s for job in self.open.values()), default=0.0)

    @property
    def is_waiting(self) -> bool:
        """Whether any job has records, or an end, that are not stored."""
        return any(job.is_busy for job in self.open.values())

    def patience_ms(self, most: int) -> int:
        """Return how long may be waited for messages, ``most`` at most, before ``work`` is called."""
        if not self._busy:
            return most
        ready = any(self.open[uid].is_ready for uid in self._busy if uid in self.open)
        return 0 if ready else min(most, _WORK_MS)

    def take(self, head: Head, body: memoryview) -> list[Head]:
        """Return the answers to one message about job ``head.uid``."""
        if head.uid in self.quarantined:
            raise QuarantinedError(f"job {head.uid:016x} is in quarantine: {self.quarantined[head.uid]}")
        try:
            return self._taken(head, body)
        except StoreError:
            if not self._bereaved(head.uid):
                raise
            return [Head(wire.REOPEN, head.uid)]
        except TfprofError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever it is, it is one job's
            self._failed(head.uid, error)
            raise InternalError(f"{type(error).__name__}: {error}"[:TEXT_MAX]) from None
        finally:
            self._look_after(head.uid)

    def _taken(self, head: Head, body: memoryview) -> list[Head]:
        if head.type == wire.OPEN:
            return self._open(head, body)
        job = self.open.get(head.uid)
        if job is None:
            if head.type == wire.CLOSE and head.uid in self._ended:
                return [Head(wire.ACK, head.uid, wire.CLOSE, head.first, head.last)]
            return [Head(wire.REOPEN, head.uid)]
        return job.take(head, body)

    def samples(self, host: str, head: Head, body: memoryview) -> list[Head]:
        """Store the samples of ``host`` and of the jobs on it; those of jobs that are not open any more are let go."""
        values = document(body)
        t_ns = whole(values, "t_ns", -1)
        of_jobs, of_host = values.get("jobs", {}), values.get("host", {})
        if not 0 <= t_ns < INT64_MAX or not isinstance(of_jobs, dict) or not isinstance(of_host, dict):
            raise FormatError("samples without a time, a host or jobs")
        by_uid = {_uid(text): _object(sample) for text, sample in of_jobs.items()}
        known = self.open.keys() | self._ended.keys() | self._turned_away | self.quarantined.keys()
        if strangers := by_uid.keys() - known:
            return [Head(wire.REOPEN, uid) for uid in strangers]
        failures = []
        if of_host:
            failures += _failures(partial(self._sample_host, host, head.last, t_ns, of_host))
        for uid in by_uid.keys() & self.open.keys():
            failures += _failures(partial(self.open[uid].sample, head.last, t_ns, by_uid[uid]))
        if failures:
            raise failures[0]
        return [Head(wire.ACK, 0, wire.SAMPLES, head.first, head.last)]

    def retry(self) -> Iterator[Stored]:
        """Store what could not be stored before; yield the answer about jobs whose folder is gone."""
        for uid in [uid for uid, job in self.open.items() if job.is_stalled]:
            try:
                self.open[uid].retry()
            except StoreError:  # told when it was tried first, and when the agent sends again
                if self._bereaved(uid):
                    yield Stored(uid, [Head(wire.REOPEN, uid)])
                continue
            except Exception as error:  # noqa: BLE001  # whatever it is, it is one job's
                self._failed(uid, error)
            self._look_after(uid)

    def work(self, seconds: float) -> Iterator[Stored]:
        """Store a slice of each job that has something to do, those first that waited longest, for about so long; yield as above.

        Where something cannot be stored, the reason is yielded.
        """
        ends = time.monotonic() + seconds
        for uid in list(self._busy):
            if time.monotonic() >= ends:
                return
            self._busy.move_to_end(uid)
            yield from self._pumped(uid)

    def _pumped(self, uid: int) -> Iterator[Stored]:
        job = self.open.get(uid)
        if job is None:
            return
        answers: list[Head] = []
        try:
            answers = job.pump()
        except StoreError as error:
            self._busy.pop(uid, None)
            yield Stored(uid, [Head(wire.REOPEN, uid)] if self._bereaved(uid) else error)
            return
        except Exception as error:  # noqa: BLE001  # whatever it is, it is one job's
            self._failed(uid, error)
        self._look_after(uid)
        if answers:
            yield Stored(uid, answers)

    def tick(self, now: float) -> None:
        """Have the store do what is due (store.writer), ``now`` of the monotonic clock; StoreError as it says."""

        def failed(uid: int, error: Exception) -> None:
            self._failed(uid, error)
            self._look_after(uid)

        if self._store.is_gone:
            self._renew()
        self._store.tick(now, failed)

    def _renew(self) -> None:
        """Make the store anew, which was removed or moved; all that the jobs have not been acked comes again."""
        self._store.renew()
        self._tell_failure(0, f"{self._store.path} was removed or moved away, and is made anew")
        for writer in self._store.lost_hosts:
            self._store.forget(writer)
        for uid in list(self.open):
            self._bereaved(uid)

    def _bereaved(self, uid: int) -> bool:
        """Let go of job ``uid`` if its folder is gone; it is to be opened again, and says then what was lost."""
        job = self.open.get(uid)
        if job is None or not job.writer.is_gone:
            return False
        del self.open[uid]
        self._busy.pop(uid, None)
        job.drop()
        self._store.forget(job.writer)
        self.rows_of_ended += job.rows
        self._removed[uid] = {about: job.writer.acked(about) for about in (wire.RECORDS, wire.SPANS)}
        return True

    def _tell_removed(self, job: Job) -> None:
        """Say in its new folder what of ``job`` was stored in the one that is gone; and that it is not to be sent again."""
        for about, last in self._removed.get(job.uid, {}).items():
            job.lost_before(about, last)
        self._removed.pop(job.uid, None)

    def close(self) -> None:
        """Let go of what is being decoded: it was not acked, and the next collector is sent it."""
        for job in self.open.values():
            job.drop()

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
        job.opened(identity)
        self.open[head.uid] = job
        self._tell_removed(job)
        self._turned_away.discard(head.uid)
        self._ended.pop(head.uid, None)
        return [Head(wire.ACK, head.uid, wire.OPEN, head.first, head.last)]

    def _opened(self, uid: int) -> Job:
        if not uid:
            raise FormatError("a job without an id")
        writer = self._store.job(uid)
        last_trace = pc.max(writer.table("traces", ["trace"])["trace"]).as_py()
        next_trace = 0 if last_trace is None else last_trace + 1
        nodes = writer.table("graph_nodes", ["name", "device"])
        maker = RowMaker(self._decoder, writer.names(), next_trace, nodes)
        return Job(uid, writer, maker, self._shared)

    def _look_after(self, uid: int) -> None:
        """Do what follows from a job's message or work: end it, or give it its turns, or quarantine it."""
        if self._failures[uid] >= FAILURES_MAX and uid not in self.quarantined:
            self._quarantine(uid)
        job = self.open.get(uid)
        if job is None:
            return
        if job.is_closed:
            self._end(job)
        elif job.is_busy:
            self._busy.setdefault(uid)
        else:
            self._busy.pop(uid, None)

    def _end(self, job: Job) -> None:
        del self.open[job.uid]
        self._busy.pop(job.uid, None)
        job.drop()
        self._store.release(job.uid)
        self.rows_of_ended += job.rows
        self._ended[job.uid] = None
        self._failures.pop(job.uid, None)
        self._last_failure.pop(job.uid, None)
        if len(self._ended) > ENDED_MAX:
            self._ended.popitem(last=False)

    def _failed(self, uid: int, error: Exception | str) -> None:
        """Take note of what should not have happened with job ``uid``."""
        self._failures[uid] += 1
        self._last_failure[uid] = _line(error)
        self._tell_failure(uid, error)

    def _quarantine(self, uid: int) -> None:
        """End job ``uid`` as lost, as far as its store can be written, and listen to it no more."""
        why = self.quarantined[uid] = self._last_failure.pop(uid)
        self._turned_away.discard(uid)
        self._busy.pop(uid, None)
        job = self.open.pop(uid, None)
        if job is None:
            return
        job.drop()
        self.rows_of_ended += job.rows
        text = f"{FAILURES_MAX} internal failures, the last one {why}: the job's messages are refused from here on"
        event = Event(time.time_ns(), "quarantined", text[:TEXT_MAX])
        actions: tuple[Callable[[], None], ...] = (
            lambda: job.writer.append({"events": event_rows([event])}),
            lambda: job.writer.close("lost"),
            lambda: self._store.release(uid),
        )
        for action in actions:
            try:
                action()
            except Exception as error:  # noqa: BLE001  # it is here because nothing works with it
                self._tell_failure(uid, error)

    def _sample_host(self, host: str, number: int, t_ns: int, values: Mapping[str, Any]) -> None:
        row = sample_row(values, t_ns, "host_samples")
        writer = self._store.host(host)
        if number <= writer.acked(wire.SAMPLES):
            return
        try:
            writer.append({"host_samples": row}, wire.SAMPLES, number)
        except StoreError:
            if not writer.is_gone:
                raise
            self._store.forget(writer)
            self._store.host(host).append({"host_samples": row}, wire.SAMPLES, number)


def _line(error: Exception | str) -> str:
    """Return the last line of what is said of an exception."""
    if isinstance(error, str):
        return (error.splitlines() or [""])[-1]
    return f"{type(error).__name__}: {error}"


def _failures(action: Callable[[], None]) -> list[StoreError]:
    """Return why ``action`` could not store something, nothing when it could: one job's trouble is not the next one's."""
    try:
        action()
    except StoreError as error:
        return [error]
    return []


def _uid(text: str) -> int:
    if not _UID.fullmatch(text):
        raise FormatError(f"{text[:40]!r} is no job")
    return int(text, 16)


def _object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise FormatError("a sample that is no object")
    return value
