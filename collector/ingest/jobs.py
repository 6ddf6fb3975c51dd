"""The open jobs of a collector."""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from ...formats import wire
from ...formats.ids import hex_id
from ...formats.wire import Head
from ..decoders.decode import Decoder
from ..errors import FormatError, StoreError, TfprofError
from ..records import document
from ..store.columns import pc
from ..store.shared import Owner
from ..store.writer import LocalStoreWriter
from .failures import FAILURES_MAX, Failures
from .guarded_detector import GuardedDetector
from .job import OpenJob
from .parsing import TEXT_MAX, Event, event_rows
from .rows import RowMaker
from .worker_process import WorkerSlot

#: Maximum number of remembered ended jobs. A repeated CLOSE of such a job is acked, and its late
#: samples are dropped.
ENDED_MAX: Final = 4_096
#: The entry of a job's identity with its verified node; jobs of this host have none.
_NODE: Final = "node"


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

    A failure of one job does not affect the others. After too many of them a job is quarantined: it
    ends as lost, and its messages are refused. `busy` has the uids of jobs with work left, in
    round-robin order. ``owner``: the verified user of all jobs, in a shared store.
    """

    def __init__(
        self,
        store: LocalStoreWriter,
        decoder: Decoder,
        failures: Failures,
        detector: GuardedDetector,
        owner: Owner | None = None,
    ) -> None:
        self.open: dict[int, OpenJob] = {}
        self.busy: OrderedDict[int, None] = OrderedDict()
        self._rows_of_ended = 0
        self._store = store
        self._owner = owner
        self._decoder = decoder
        self._failures = failures
        self._detector = detector
        self._slot = WorkerSlot()
        self._ended_jobs: OrderedDict[int, None] = OrderedDict()
        self._removed_jobs: dict[int, dict[int, int]] = {}  # uid -> type -> last number stored in the removed store
        self._failed_opens: set[int] = set()  # jobs whose OPEN failed; the agent sends it again

    @property
    def rows(self) -> int:
        """Node executions stored since this collector started."""
        return self._rows_of_ended + sum(job.appender.rows for job in self.open.values())

    def has_ended(self, uid: int) -> bool:
        """Whether this collector has closed job ``uid`` or put it in quarantine."""
        return uid in self._ended_jobs or uid in self._failures.quarantined

    def knows(self, uid: int) -> bool:
        """Whether job ``uid`` is open, has ended, or failed to open."""
        return uid in self.open or uid in self._failed_opens or self.has_ended(uid)

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
        self._failures.check(head.uid)
        try:
            return self._handle(head, body, node)
        except StoreError:
            if not self.drop_if_removed(head.uid):
                raise
            return [Head(wire.REOPEN, head.uid)]
        except TfprofError:
            raise
        except Exception as error:  # noqa: BLE001  # the failure stays within this job
            self._failures.count_failure(head.uid, error)
            raise MessageError(f"{type(error).__name__}: {error}"[:TEXT_MAX]) from None
        finally:
            self.update(head.uid)

    def _handle(self, head: Head, body: memoryview, node: str | None) -> list[Head]:
        if head.type == wire.OPEN:
            return self._open(head, body, node)
        job = self.open.get(head.uid)
        if job is None:
            if head.type == wire.CLOSE and head.uid in self._ended_jobs:
                return [Head(wire.ACK, head.uid, wire.CLOSE, head.first, head.last)]
            return [Head(wire.REOPEN, head.uid)]
        return job.take(head, body)

    def drop_if_removed(self, uid: int) -> bool:
        """Drop job ``uid`` if its folder was removed; return whether it was.

        The agent opens the job again.
        """
        job = self.open.get(uid)
        if job is None or not job.writer.is_gone:
            return False
        self._remove(job)
        self._store.forget(job.writer)
        self._removed_jobs[uid] = {about: job.writer.acked(about) for about in (wire.RECORDS, wire.SPANS)}
        return True

    def _report_removed(self, job: OpenJob) -> None:
        """Record in the new folder of ``job`` what was lost with its removed folder."""
        for about, last in self._removed_jobs.get(job.uid, {}).items():
            job.note_lost(about, last, "store-removed")
        self._removed_jobs.pop(job.uid, None)

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
        host, training = str(identity.get("host") or ""), str(identity.get("group") or identity.get("name") or "")
        self._detector.open(head.uid, host, training, has_rows=has_rows)
        if is_new and job.writer.acked(wire.RECORDS):
            self._detector.add_names(head.uid, job.writer.table("names"))
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
        maker = RowMaker(self._decoder, writer.table("names"), next_trace, nodes)
        return OpenJob(uid, writer, maker, self._slot, self._failures, self._detector)

    def update(self, uid: int) -> None:
        """Update a job's state after a message or a slice: quarantine it, end it, or queue it."""
        if self._failures.quarantine_if_due(uid):
            self._end_as_lost(uid)
        job = self.open.get(uid)
        if job is None:
            return
        if job.is_closed:
            self._end(job)
        elif job.is_busy:
            self.busy.setdefault(uid)
        else:
            self.busy.pop(uid, None)

    def _remove(self, job: OpenJob) -> None:
        del self.open[job.uid]
        self.busy.pop(job.uid, None)
        self._detector.close(job.uid)
        job.drop()
        self._rows_of_ended += job.appender.rows

    def _end(self, job: OpenJob) -> None:
        self._remove(job)
        self._try(job.uid, lambda: self._store.release(job.uid))
        self._ended_jobs[job.uid] = None
        self._failures.forget(job.uid)
        if len(self._ended_jobs) > ENDED_MAX:
            self._ended_jobs.popitem(last=False)

    def _end_as_lost(self, uid: int) -> None:
        """End the quarantined job ``uid`` as lost, if its store can be written."""
        reason = self._failures.quarantined[uid]
        self._failed_opens.discard(uid)
        job = self.open.get(uid)
        if job is None:
            return
        self._remove(job)
        text = f"{FAILURES_MAX} internal errors, the last one {reason}: the job's messages are refused from now on"
        event = Event(time.time_ns(), "quarantined", text[:TEXT_MAX])
        for action in (
            lambda: job.writer.append({"events": event_rows([event])}),
            job.appender.hand_over_counters,
            lambda: job.writer.close("lost"),
            lambda: self._store.release(uid),
        ):
            self._try(uid, action)

    def _try(self, uid: int, action: Callable[[], object]) -> None:
        try:
            action()
        except Exception as error:  # noqa: BLE001  # the failure stays within this job
            self._failures.report_failure(uid, error)


def _is_foreign(job: OpenJob, node: str | None) -> bool:
    return job.writer.info.identity.get(_NODE) != node
