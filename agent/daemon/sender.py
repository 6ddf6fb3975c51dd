"""Sends what jobs and samples have for the collector, directly or by way of the spool."""

import math
import time
from typing import Final

from ...formats import wire
from ..spool.spooling import Spooling
from ..transport.connection import CollectorConnection
from ..transport.message_queue import Send
from .given_up_jobs import GivenUpJobs
from .job import Job
from .jobs import Jobs
from .samples import Sampler

#: Maximum bytes in flight, all jobs together. Each running job has its share, so that it does not
#: wait for the others.
WINDOW_BYTES: Final = 16 << 20
#: Maximum number of ended jobs that send at a time, so that they do not delay running jobs.
DRAINING_MAX: Final = 16
#: Maximum time for writing data of ended jobs to the disk when the agent ends (seconds).
SPOOL_AT_END_S: Final = 10.0


class Sender:
    """Sends the messages of ``jobs`` and ``sampler`` on the route that ``spooling`` chooses.

    ``given_up_jobs`` is None if the collector finds them itself.
    """

    def __init__(
        self,
        connection: CollectorConnection,
        spooling: Spooling,
        jobs: Jobs,
        sampler: Sampler,
        given_up_jobs: GivenUpJobs | None,
    ) -> None:
        self._connection = connection
        self._spooling = spooling
        self._jobs = jobs
        self._sampler = sampler
        self._given_up_jobs = given_up_jobs
        self._draining_uids: set[int] = set()  # ended jobs that send

    def send_due(self, now: float) -> bool:
        """Greet, then send due messages of each job in turn, then the samples.

        Return whether the last of what was in the spool has been delivered meanwhile.
        When the socket is full, the jobs that have waited longest come first in the next turn.
        """
        was_spooled = not self._spooling.is_empty
        self._connection.greet(now)
        jobs = list(self._jobs)
        self._jobs.queue_changes(now)
        is_available = self._connection.is_accepting(now) and self._connection.failure is None
        is_urgent = self._spooling.is_enabled and any(job.is_filling for job in jobs)
        # What has ended waits for a collector that starts; a ring that fills does not.
        is_pressing = is_urgent and (
            not self._connection.is_starting(now) or any(job.is_running and job.is_filling for job in jobs)
        )
        if self._spooling.choose(now, is_available=is_available, has_jobs=bool(jobs), is_urgent=is_pressing):
            self.send_all_again()
        send = self._spooling.send(self._connection.send)
        self._send_jobs(jobs, send, now)
        self._sampler.send_due(send, now)
        self._note_durable(now, at_once=is_urgent)
        self._spooling.deliver(now, self._connection.send)
        self._jobs.close_stored()
        return was_spooled and self._spooling.is_empty

    def _send_jobs(self, jobs: list[Job], send: Send, now: float) -> None:
        room = WINDOW_BYTES - sum(job.outbox.records.in_flight for job in jobs)
        self._draining_uids &= {job.uid for job in jobs if job.is_ending}
        share = WINDOW_BYTES // (sum(job.is_running for job in jobs) + DRAINING_MAX)
        self._connection.is_full = False
        for job in sorted(jobs, key=lambda job: (not job.is_running, job.served_s, job.outbox.records.last_sent_s)):
            if self._connection.is_full or self._spooling.is_blocked:
                break
            if job.is_running or job.uid in self._draining_uids or len(self._draining_uids) < DRAINING_MAX:
                room -= job.send_due(now, send, max(0, room), share)
                if job.is_ending:
                    self._draining_uids.add(job.uid)
                if not self._connection.is_full:
                    job.served_s = now

    def send_given_up_jobs(self, now: float) -> None:
        """Send what is known of jobs that were given up; OSError on failure."""
        if self._given_up_jobs is not None and self._spooling.is_empty:
            self._given_up_jobs.send_due(now, self._connection.send)

    @property
    def has_data(self) -> bool:
        """Whether something waits for the collector that only this agent sends."""
        if self._jobs or not self._spooling.is_empty:
            return True
        return self._given_up_jobs is not None and not self._given_up_jobs.is_empty

    def send_all_again(self) -> None:
        """Send all that is not acked again."""
        for job in self._jobs:
            if self._spooling.is_empty:
                job.outbox.note_delivered()
            job.outbox.rewind()
        self._sampler.rewind()

    def _note_durable(self, now: float, *, at_once: bool) -> None:
        """Release what has become durable in the spool."""
        for head in self._spooling.durable(now, at_once=at_once):
            if head.type == wire.SAMPLES:
                self._sampler.note_acked(head.last)
            elif head.uid in self._jobs.by_uid:
                self._jobs.by_uid[head.uid].outbox.note_spooled(head.type, head.last)

    def spool_ended_jobs(self) -> None:
        """Spool what would be lost with this agent, as far as it fits and time allows."""
        deadline = time.monotonic() + SPOOL_AT_END_S
        jobs = self._jobs.abandoned
        if not jobs or not self._spooling.divert(time.monotonic()):
            return
        self.send_all_again()
        send = self._spooling.send(self._connection.send)
        for job in jobs:
            progress = -1
            while not job.outbox.is_closed and progress < job.outbox.progress and time.monotonic() < deadline:
                progress = job.outbox.progress
                self._jobs.queue_end(job)
                job.send_due(math.inf, send, WINDOW_BYTES, 0)
                self._note_durable(math.inf, at_once=True)
        self._jobs.close_stored()
        for _ in range(2):  # one sample, and after it the others
            self._sampler.send_due(send, math.inf)
            self._note_durable(math.inf, at_once=True)
