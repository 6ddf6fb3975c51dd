"""The open jobs of a collector, and the SAMPLES messages, which cover several jobs."""

import json
import re
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple

import pyarrow.compute as pc

from ...commands.streams import log
from ...formats import wire
from ...formats.ids import hex_id
from ...formats.wire import Head
from ..alerts.alert import Alert
from ..decoders.columns import INT64_MAX
from ..decoders.decode import Decoder
from ..errors import FormatError, StoreError, TfprofError
from ..records import document
from ..store.protocols import StoreWriter
from ..store.shared import Owner
from .guarded_detector import GuardedDetector
from .job import OpenJob, SharedServices
from .parsing import TEXT_MAX, Event, event_rows, integer, sample_row
from .rows import RowMaker
from .worker_process import WorkerSlot

#: Maximum number of remembered ended jobs. A repeated CLOSE of such a job is acked, and its late
#: samples are dropped.
ENDED_MAX: Final = 4_096
#: Maximum number of REOPENs that answer one SAMPLES message. The agent sends the message again and
#: then gets the others. Hundreds of REOPENs for each message would fill the agent's queue, and
#: ZeroMQ would drop other answers to this agent.
REOPENS_MAX: Final = 16
#: Slugs of StoreErrors that do not end by themselves.
_LASTING: Final = frozenset({"store-damaged", "store-foreign", "store-version"})
#: Internal errors after which a job is quarantined.
FAILURES_MAX: Final = 20
#: Poll interval while a worker process runs (milliseconds).
_WORKER_POLL_MS: Final = 20
#: Callback with the job's uid, and the exception or the worker's traceback.
FailureCallback = Callable[[int, Exception | str], None]
#: The entry of a job's identity with its verified node; jobs of this host have none.
_NODE: Final = "node"
_UID: Final = re.compile(r"[0-9a-fA-F]{1,16}")


class JobAnswers(NamedTuple):
    """Answers about job ``uid`` after its records were stored, or the error of storing them."""

    uid: int
    answers: list[Head] | StoreError


class QuarantinedError(FormatError):
    """A message of a quarantined job."""

    slug = "quarantined"


class ForeignJobError(FormatError):
    """A message about job ``uid``, which is of another node or user."""

    slug = "foreign-job"

    def __init__(self, uid: int, owner: str = "node") -> None:
        super().__init__(f"job {hex_id(uid)} is of another {owner}")


class MessageError(FormatError):
    """A message that raised an internal error."""

    slug = "internal"


class OpenJobs:
    """The jobs that agents have opened and not closed.

    A failure of one job does not affect the others. ``report_failure`` is called with every
    internal error. After FAILURES_MAX of them a job is quarantined: it ends as lost, and its
    messages are refused. `quarantined` maps the uid to the last error. `lost_samples`: number of
    samples that could not be stored because a file of their host or job is damaged. ``owner``: the
    verified user of all jobs, in a shared store.
    """

    def __init__(
        self, store: StoreWriter, decoder: Decoder, report_failure: FailureCallback, owner: Owner | None = None
    ) -> None:
        self.open: dict[int, OpenJob] = {}
        self.rows_of_ended = 0
        self.quarantined: dict[int, str] = {}
        self.lost_samples = 0
        self._store = store
        self._owner = owner
        self._decoder = decoder
        self._report_failure = report_failure
        self._detector = GuardedDetector(report_failure)
        self._shared = SharedServices(WorkerSlot(), self._count_failure, self._detector)
        self._failures: Counter[int] = Counter()
        self._last_failure: dict[int, str] = {}
        self._ended_jobs: OrderedDict[int, None] = OrderedDict()
        self._removed_jobs: dict[int, dict[int, int]] = {}  # uid -> type -> last number stored in the removed store
        self._failed_opens: set[int] = set()  # jobs whose OPEN failed; the agent sends it again
        self._busy_jobs: OrderedDict[int, None] = OrderedDict()  # uids in round-robin order

    @property
    def rows(self) -> int:
        """Node executions stored since this collector started."""
        return self.rows_of_ended + sum(job.appender.rows for job in self.open.values())

    @property
    def lag_s(self) -> float:
        """Largest delay in seconds from the end of a step until it was stored.

        Only the last stored record of each open job counts.
        """
        return max((job.appender.lag_s for job in self.open.values()), default=0.0)

    @property
    def is_waiting(self) -> bool:
        """Whether any job has records or a CLOSE that wait to be stored."""
        return any(job.is_busy for job in self.open.values())

    def has_ended(self, uid: int) -> bool:
        """Whether this collector has closed job ``uid`` or put it in quarantine."""
        return uid in self._ended_jobs or uid in self.quarantined

    def poll_timeout_ms(self, timeout_max_ms: int) -> int:
        """Return the poll timeout before the next ``work``, at most ``timeout_max_ms``."""
        if not self._busy_jobs:
            return timeout_max_ms
        is_ready = any(self.open[uid].is_ready for uid in self._busy_jobs if uid in self.open)
        return 0 if is_ready else min(timeout_max_ms, _WORKER_POLL_MS)

    def node_of(self, uid: int) -> str | None:
        """Return the node of the open job ``uid``, None for a job of this host."""
        node: str | None = self.open[uid].writer.info.identity.get(_NODE)
        return node

    def check_node(self, uid: int, node: str | None) -> None:
        """Raise ForeignJobError if ``node`` (None: this host) may not send data of job ``uid``.

        The same holds for a job of another user of a shared store.
        """
        job = self.open.get(uid)
        if job is not None and _is_foreign(job, node):
            raise ForeignJobError(uid)
        self.check_owner(uid)

    def check_owner(self, uid: int) -> None:
        """Raise ForeignJobError if job ``uid`` is of another user of a shared store."""
        is_known = uid in self.open or self.has_ended(uid)
        if self._owner is not None and not is_known and self._owner.has_foreign_job(uid):
            raise ForeignJobError(uid, "user")

    def take(self, head: Head, body: memoryview, node: str | None = None) -> list[Head]:
        """Return the answers to one message of ``node`` about job ``head.uid``.

        ``node``: the verified name of another host, None for this host.
        """
        if head.uid in self.quarantined:
            raise QuarantinedError(f"job {hex_id(head.uid)} is in quarantine: {self.quarantined[head.uid]}")
        try:
            return self._handle(head, body, node)
        except StoreError:
            if not self._drop_if_removed(head.uid):
                raise
            return [Head(wire.REOPEN, head.uid)]
        except TfprofError:
            raise
        except Exception as error:  # noqa: BLE001  # the failure stays within this job
            self._count_failure(head.uid, error)
            raise MessageError(f"{type(error).__name__}: {error}"[:TEXT_MAX]) from None
        finally:
            self._update_job(head.uid)

    def _handle(self, head: Head, body: memoryview, node: str | None) -> list[Head]:
        if head.type == wire.OPEN:
            return self._open(head, body, node)
        job = self.open.get(head.uid)
        if job is None:
            if head.type == wire.CLOSE and head.uid in self._ended_jobs:
                return [Head(wire.ACK, head.uid, wire.CLOSE, head.first, head.last)]
            return [Head(wire.REOPEN, head.uid)]
        return job.take(head, body)

    def samples(self, host: str, head: Head, body: memoryview, node: str | None = None) -> list[Head]:
        """Store the samples of ``host`` and of the jobs on it, and return the answers.

        ``node``: as for `take`.
        Samples of jobs that have ended, are in quarantine or failed to open are dropped. If a job
        is unknown, nothing is stored, and the answers are REOPENs for at most REOPENS_MAX jobs.
        Samples of a damaged host or job are lost, so that the agent sends those of the others.
        """
        values = document(body)
        t_ns = integer(values, "t_ns", -1)
        job_samples, host_sample = values.get("jobs", {}), values.get("host", {})
        if not 0 <= t_ns < INT64_MAX or not isinstance(job_samples, dict) or not isinstance(host_sample, dict):
            raise FormatError("samples with an invalid time, host or jobs")
        samples_by_uid = {_uid(text): _object(sample) for text, sample in job_samples.items()}
        known_uids = self.open.keys() | self._ended_jobs.keys() | self._failed_opens | self.quarantined.keys()
        if unknown_uids := samples_by_uid.keys() - known_uids:
            return [Head(wire.REOPEN, uid) for uid in islice(unknown_uids, REOPENS_MAX)]
        for uid in samples_by_uid:
            self.check_node(uid, node)
        errors = []
        if host_sample:
            errors += self._try_to_store(0, partial(self._sample_host, host, head.last, t_ns, host_sample))
        for uid in samples_by_uid.keys() & self.open.keys():
            errors += self._try_to_store(uid, partial(self.open[uid].sample, head.last, t_ns, samples_by_uid[uid]))
        if temporary_errors := [error for error in errors if error.slug not in _LASTING]:
            raise temporary_errors[0]
        if errors and not self.lost_samples:
            log(f"tfprof: samples are lost: {errors[0]}")
        self.lost_samples += len(errors)
        return [Head(wire.ACK, 0, wire.SAMPLES, head.first, head.last)]

    def _try_to_store(self, uid: int, action: Callable[[], None]) -> list[StoreError]:
        """Run ``action``, which stores a sample of job ``uid``; return its StoreError, if any.

        ``uid`` is 0 for a sample of the host. Any other TfprofError is raised: the sample is
        invalid. All other errors are counted for job ``uid``, so that the other jobs are served.
        """
        try:
            action()
        except StoreError as error:
            return [error]
        except TfprofError:
            raise
        except Exception as error:  # noqa: BLE001  # the failure stays within this job
            self._count_failure(uid, error)
        return []

    def retry(self) -> Iterator[JobAnswers]:
        """Append again the rows of failed appends.

        Yield REOPEN for jobs whose folder was removed.
        """
        for uid in [uid for uid, job in self.open.items() if job.appender.is_stalled]:
            try:
                self.open[uid].appender.retry()
            except StoreError:  # reported at the first attempt, and again when the agent repeats the message
                if self._drop_if_removed(uid):
                    yield JobAnswers(uid, [Head(wire.REOPEN, uid)])
                continue
            except Exception as error:  # noqa: BLE001  # the failure stays within this job
                self._count_failure(uid, error)
            self._update_job(uid)

    def work(self, seconds: float) -> Iterator[JobAnswers]:
        """Store a slice of each busy job in turn, for about ``seconds``.

        Yield the acks of stored records, or the StoreError that prevented storing.
        """
        deadline = time.monotonic() + seconds
        for uid in list(self._busy_jobs):
            if time.monotonic() >= deadline:
                return
            self._busy_jobs.move_to_end(uid)
            yield from self._store_slice(uid)

    def _store_slice(self, uid: int) -> Iterator[JobAnswers]:
        job = self.open.get(uid)
        if job is None:
            return
        answers: list[Head] = []
        try:
            answers = job.store_slice()
        except StoreError as error:
            self._busy_jobs.pop(uid, None)
            yield JobAnswers(uid, [Head(wire.REOPEN, uid)] if self._drop_if_removed(uid) else error)
            return
        except Exception as error:  # noqa: BLE001  # the failure stays within this job
            self._count_failure(uid, error)
        self._update_job(uid)
        if answers:
            yield JobAnswers(uid, answers)

    def tick(self, now: float) -> None:
        """Run the store's periodic work (store.writer) at monotonic time ``now``.

        If the store was removed or moved, it is created again first.
        """

        def count_failure(uid: int, error: Exception) -> None:
            self._count_failure(uid, error)
            self._update_job(uid)

        if self._store.is_gone:
            self._renew()
        self._store.tick(now, count_failure)

    def store_alerts(self) -> list[tuple[int, Alert]]:
        """Store the new alerts, and return them with the uids of their jobs."""
        new_alerts = [(uid, alert) for uid, alert in self._detector.alerts(time.time_ns()) if uid in self.open]
        for uid, alert in new_alerts:
            try:
                self.open[uid].appender.alert(alert)
            except StoreError:  # the job keeps the alert
                pass
            except Exception as error:  # noqa: BLE001  # the failure stays within this job
                self._count_failure(uid, error)
        return new_alerts

    def _renew(self) -> None:
        """Recreate a store that was removed or moved; agents send unacked messages again."""
        self._store.renew()
        log(f"tfprof: {self._store.path} was removed or moved away, and is created again [store-removed]")
        for writer in self._store.lost_hosts:
            self._store.forget(writer)
        for uid in list(self.open):
            self._drop_if_removed(uid)

    def _drop_if_removed(self, uid: int) -> bool:
        """Drop job ``uid`` if its folder was removed; return whether it was.

        The agent opens the job again.
        """
        job = self.open.get(uid)
        if job is None or not job.writer.is_gone:
            return False
        del self.open[uid]
        self._busy_jobs.pop(uid, None)
        job.drop()
        self._detector.close(uid)
        self._store.forget(job.writer)
        self.rows_of_ended += job.appender.rows
        self._removed_jobs[uid] = {about: job.writer.acked(about) for about in (wire.RECORDS, wire.SPANS)}
        return True

    def _report_removed(self, job: OpenJob) -> None:
        """Record in the new folder of ``job`` what was lost with its removed folder."""
        for about, last in self._removed_jobs.get(job.uid, {}).items():
            job.note_lost(about, last, "store-removed")
        self._removed_jobs.pop(job.uid, None)

    def end_given_up_job(
        self,
        uid: int,
        identity: dict[str, Any],
        end: dict[str, Any],
        event: dict[str, Any] | None = None,
        node: str | None = None,
    ) -> bool:
        """End job ``uid``, whose remaining data an agent has given up, and count that data as lost.

        ``identity``, ``event`` and ``end`` are the bodies of OPEN, EVENT and CLOSE; ``node``: as
        for `take`. The job keeps
        what is stored of its identity and its end. Return whether the job has ended; otherwise the
        caller tries again. FormatError if one of the bodies is invalid.
        """
        if self.has_ended(uid):
            return True
        if uid in self.open and self.open[uid].is_busy:
            return False  # records that are being stored are not lost
        self.check_node(uid, node)
        info = self._store.job(uid).info
        if info.closed_ns is not None:
            self._store.release(uid)
            return True
        self.take(Head(wire.OPEN, uid), memoryview(json.dumps({**identity, **info.identity}).encode()), node)
        job = self.open.get(uid)
        if job is None:
            return False
        if event is not None:
            self.take(Head(wire.EVENT, uid, 0, 1, 1), memoryview(json.dumps(event).encode()), node)
        for about, name in ((wire.RECORDS, "records"), (wire.SPANS, "span_head")):
            job.note_lost(about, integer(end, name, 0), "given-up")
        self.take(Head(wire.CLOSE, uid), memoryview(json.dumps(end).encode()), node)
        for _ in self._store_slice(uid):  # no agent waits for the answers
            pass
        return self.has_ended(uid)

    def write_live(self, path: str, now: float) -> None:
        """Write the figures of the running jobs to ``path`` if due; OSError if that fails."""
        self._detector.write_live(path, str(self._store.collector["id"]), now)

    def close(self) -> None:
        """Discard the waiting records.

        They are not acked, so the next collector receives them again.
        """
        for job in self.open.values():
            job.drop()

    def hand_over_counters(self, jobs_max: int) -> None:
        """Pass new counters of at most ``jobs_max`` jobs to the store, longest waiting first.

        The store replaces one file per job. The more jobs there are, the less often a job's file is
        replaced.
        """
        for uid in list(self.open):
            if jobs_max <= 0:
                return
            if self.open[uid].appender.hand_over_counters():
                self.open[uid] = self.open.pop(uid)
                jobs_max -= 1

    def _open(self, head: Head, body: memoryview, node: str | None) -> list[Head]:
        identity = {name: value for name, value in document(body).items() if name != _NODE}
        if node is not None:
            identity |= {_NODE: node, "host": node or identity.get("host")}
        if self._owner is not None:
            identity["user"] = self._owner.name
        self._failed_opens.add(head.uid)
        job = self.open.get(head.uid) or self._new_job(head.uid)
        if head.uid not in self.open and job.writer.info.identity and _is_foreign(job, node):
            self._store.release(head.uid)
            raise ForeignJobError(head.uid)
        job.set_identity(identity)
        has_rows = any(map(job.writer.acked, (wire.RECORDS, wire.SPANS, wire.SAMPLES)))
        is_new = head.uid not in self.open
        self.open[head.uid] = job
        host, name = (str(identity.get(key) or "") for key in ("host", "name"))
        self._detector.open(head.uid, host, name, has_rows=has_rows)
        if is_new and job.writer.acked(wire.RECORDS):
            self._detector.add_names(head.uid, job.writer.names())
        self._report_removed(job)
        self._failed_opens.discard(head.uid)
        self._ended_jobs.pop(head.uid, None)
        return [Head(wire.ACK, head.uid, wire.OPEN, head.first, head.last)]

    def _new_job(self, uid: int) -> OpenJob:
        if not uid:
            raise FormatError("a job without an id")
        writer = self._store.job(uid)
        last_trace = pc.max(writer.table("traces", ["trace"])["trace"]).as_py()
        next_trace = 0 if last_trace is None else last_trace + 1
        nodes = writer.table("graph_nodes", ["name", "device"])
        maker = RowMaker(self._decoder, writer.names(), next_trace, nodes)
        return OpenJob(uid, writer, maker, self._shared)

    def _update_job(self, uid: int) -> None:
        """Update a job's state after a message or a slice: quarantine it, end it, or queue it."""
        if self._failures[uid] >= FAILURES_MAX and uid not in self.quarantined:
            self._quarantine(uid)
        job = self.open.get(uid)
        if job is None:
            return
        if job.is_closed:
            self._end(job)
        elif job.is_busy:
            self._busy_jobs.setdefault(uid)
        else:
            self._busy_jobs.pop(uid, None)

    def _end(self, job: OpenJob) -> None:
        del self.open[job.uid]
        self._busy_jobs.pop(job.uid, None)
        self._detector.close(job.uid)
        job.drop()
        try:
            self._store.release(job.uid)
        except Exception as error:  # noqa: BLE001  # the failure stays within this job
            self._report_failure(job.uid, error)
        self.rows_of_ended += job.appender.rows
        self._ended_jobs[job.uid] = None
        self._failures.pop(job.uid, None)
        self._last_failure.pop(job.uid, None)
        if len(self._ended_jobs) > ENDED_MAX:
            self._ended_jobs.popitem(last=False)

    def _count_failure(self, uid: int, error: Exception | str) -> None:
        """Count an internal error of job ``uid`` and report it."""
        self._failures[uid] += 1
        self._last_failure[uid] = _one_line(error)
        self._report_failure(uid, error)

    def _quarantine(self, uid: int) -> None:
        """End job ``uid`` as lost, if its store can be written, and refuse its messages."""
        reason = self.quarantined[uid] = self._last_failure.pop(uid)
        self._failed_opens.discard(uid)
        self._busy_jobs.pop(uid, None)
        job = self.open.pop(uid, None)
        if job is None:
            return
        self._detector.close(uid)
        job.drop()
        self.rows_of_ended += job.appender.rows
        text = f"{FAILURES_MAX} internal errors, the last one {reason}: the job's messages are refused from now on"
        event = Event(time.time_ns(), "quarantined", text[:TEXT_MAX])
        actions: tuple[Callable[[], object], ...] = (
            lambda: job.writer.append({"events": event_rows([event])}),
            job.appender.hand_over_counters,
            lambda: job.writer.close("lost"),
            lambda: self._store.release(uid),
        )
        for action in actions:
            try:
                action()
            except Exception as error:  # noqa: BLE001  # a quarantined job may fail anywhere
                self._report_failure(uid, error)

    def _sample_host(self, host: str, number: int, t_ns: int, values: Mapping[str, Any]) -> None:
        row = sample_row(values, t_ns, "host_samples")
        writer = self._store.host(host)
        if wire.is_repeated(number, writer.acked(wire.SAMPLES)):
            return
        try:
            writer.append({"host_samples": row}, wire.SAMPLES, number)
        except StoreError:
            if not writer.is_gone:
                raise
            self._store.forget(writer)
            self._store.host(host).append({"host_samples": row}, wire.SAMPLES, number)
        self._detector.add_host_sample(host, t_ns, values)


def _is_foreign(job: OpenJob, node: str | None) -> bool:
    return job.writer.info.identity.get(_NODE) != node


def _one_line(error: Exception | str) -> str:
    """Return the last line of a traceback, or the exception in one line."""
    if isinstance(error, str):
        return (error.splitlines() or [""])[-1]
    return f"{type(error).__name__}: {error}"


def _uid(text: str) -> int:
    if not _UID.fullmatch(text):
        raise FormatError(f"{text[:40]!r} is not the id of a job")
    return int(text, 16)


def _object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise FormatError("a sample is not an object")
    return value
