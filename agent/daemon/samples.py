"""Queues samples: one message a second for the host and all jobs of the agent."""

import json
import time
from typing import Any, Final

from ...commands import daemons
from ...formats import wire
from ...formats.wire import Head
from ..processes import ProcessTree, all_pids, process_tree
from ..transport.message_queue import MessageQueue, Send, encode
from ..transport.resending import Resending
from .host import HostSampler
from .job import Job

SAMPLE_S: Final = 1.0
#: Share of a core for reading the process tree of the host, and the bounds of its interval
#: (seconds).
TREE_SHARE: Final = 0.0004
TREE_BOUNDS_S: Final = (5.0, 30.0)
#: Maximum number of queued samples; beyond it the oldest are dropped and counted.
QUEUE_MAX: Final = 600
#: Maximum number of unanswered messages. After a resend it is PROBES_MAX until the next ACK shows
#: that the collector answers.
UNANSWERED_MAX: Final = 64
PROBES_MAX: Final = 1


class Sampler:
    """Takes a sample each second, and at once when a job begins or ends."""

    def __init__(self) -> None:
        self.queue = MessageQueue(wire.SAMPLES, 0, QUEUE_MAX)
        self._host = HostSampler()
        self._next_s = 0.0
        self._next_tree_s = 0.0
        self._tree = ProcessTree({}, {})
        self._resending = Resending()
        self._unanswered_max = UNANSWERED_MAX
        self._finished_uids: set[int] = set()  # jobs whose last sample is taken

    def make_due(self) -> None:
        """Make the next sample due now: even a short job needs two samples."""
        self._next_s = self._next_tree_s = 0.0

    def take(self, jobs: list[Job], now: float) -> None:
        """Queue a message if one is due; each job is in one more message after its end."""
        if now < self._next_s or not jobs:
            return
        self._next_s = now + SAMPLE_S
        owner_pids = frozenset(job.owner.pid for job in jobs if job.owner is not None and job.is_running)
        tree = self._process_tree(now)
        rows = {job.hex: job.sample(tree, owner_pids) for job in jobs if job.uid not in self._finished_uids}
        self._finished_uids = {job.uid for job in jobs if not job.is_running}
        self.queue.put(
            {
                "t_ns": time.time_ns(),
                "host": self._host.sample(),
                "jobs": {uid: row for uid, row in rows.items() if row},
            }
        )

    def _process_tree(self, now: float) -> ProcessTree:
        """Return the process tree of the host, which is read again at intervals in `TREE_BOUNDS_S`.

        Processes that have ended since are noticed when they are measured.
        """
        if now >= self._next_tree_s:
            start_s = time.thread_time()
            self._tree = process_tree(all_pids())
            took_s = time.thread_time() - start_s
            self._next_tree_s = now + daemons.interval_s(took_s, TREE_SHARE, TREE_BOUNDS_S)
        return self._tree

    def send_due(self, send: Send, now: float) -> None:
        """Send queued messages; send them again after a silence."""
        if not self._resending.may_send(now):
            return
        if self.queue.is_due:
            self._resending.note_sending(now)
            self.queue.send_due(send, self._unanswered_max)
        if self._resending.is_silent(now, is_waiting=self.queue.unanswered > 0):
            self.rewind()

    def note_acked(self, last: int) -> None:
        """Forget the messages up to number ``last``: they are stored, or lost."""
        self._resending.note_answered()
        self._unanswered_max = UNANSWERED_MAX
        self.queue.note_acked(last)

    def note_answer(self, head: Head, now: float) -> None:
        """Handle an answer about samples; after a STALL they are sent again, STALL_S later."""
        if head.type == wire.STALL:
            self._resending.note_stalled(now)
            self.rewind()
        elif head.type in (wire.ACK, wire.REFUSE):
            self.note_acked(head.last)

    def note_reopened(self, now: float) -> None:
        """Handle a REOPEN of a job: try again, REOPEN_S after the last sending.

        A message is answered with REOPENs for some of its jobs that the collector does not know.
        """
        if self._resending.note_reopened(now):
            self.rewind()

    def rewind(self) -> None:
        """Send all unacked messages again: first a single one, and after its ACK the others."""
        self._unanswered_max = PROBES_MAX
        self.queue.rewind()

    def forget(self, uid: str) -> None:
        """Remove the job ``uid`` from queued messages: the collector does not know it."""
        self.queue.rewrite(lambda body: encode(_without_job(json.loads(body), uid)))


def _without_job(message: dict[str, Any], uid: str) -> dict[str, Any]:
    return {**message, "jobs": {job_uid: row for job_uid, row in message["jobs"].items() if job_uid != uid}}
