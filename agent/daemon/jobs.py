"""The jobs of an agent: which channels are open, and what happens when a process or a job ends."""

import math
import time
from collections.abc import Iterable, Iterator
from typing import Any, Final

from ...formats import wire
from ...formats.errors import FormatError
from ...formats.ids import hex_id
from ...formats.wire import Head
from .. import launches
from . import leftovers
from .event_waiter import EventWaiter
from .finder import Finder, FoundChannel
from .job import Job
from .launch_results import LaunchResults
from .samples import Sampler

#: Poll interval of rings and announcements (seconds): idle; transferring; job ending or more to
#: send than fits into the socket.
POLL_S: Final = 0.5
BUSY_POLL_S: Final = 0.2
ENDING_POLL_S: Final = 0.05


class Jobs:
    """The jobs whose channels the agent has open; `by_uid` is changed by this class only."""

    def __init__(
        self,
        instance_dir: str,
        host: str,
        finder: Finder,
        waiter: EventWaiter,
        results: LaunchResults,
        sampler: Sampler,
    ) -> None:
        self.by_uid: dict[int, Job] = {}
        self._instance_dir = instance_dir
        self._host = host
        self._finder = finder
        self._waiter = waiter
        self._results = results
        self._sampler = sampler

    def __iter__(self) -> Iterator[Job]:
        return iter(list(self.by_uid.values()))

    def __len__(self) -> int:
        return len(self.by_uid)

    @property
    def abandoned(self) -> list[Job]:
        """The ended jobs that no launcher holds and whose data only this agent has."""
        living_launches = self._results.living_launches
        return [job for job in self if not job.is_running and job.launch not in living_launches]

    def poll_s(self, now: float, *, is_taken: bool) -> float:
        """Return the time until the jobs need the next turn (seconds).

        ``is_taken``: whether anything takes their data now.
        """
        jobs = [job for job in self if job.is_active(now)] if is_taken else []
        if any(job.has_just_ended(now) for job in self) or any(not job.is_running for job in jobs):
            return ENDING_POLL_S
        return BUSY_POLL_S if any(job.is_transferring for job in jobs) else POLL_S

    # -- the begin -------------------------------------------------------------------------------
    def adopt(self, channels: Iterable[FoundChannel]) -> None:
        """Take the jobs of ``channels``, unless their launch is unknown or their uid is taken."""
        for found_channel in channels:
            channel, inode, owner = found_channel
            launch = launches.read(self._instance_dir, channel.identity.launch)
            if launch is None:
                channel.close()
                self._finder.ignore(inode)
            elif channel.identity.uid in self.by_uid:
                channel.close()
                error = FormatError("a channel with the uid of another channel", "bad-channel")
                pid = owner.pid if owner else channel.identity.pid
                self._finder.refuse(inode, channel.identity.launch, pid, error)
            else:
                job = self.by_uid[channel.identity.uid] = Job(found_channel, launch, self._host)
                job.queue_changes(time.monotonic())
                if owner is None:
                    job.note_gone(time.monotonic())
                else:
                    self._waiter.watch(job.uid, owner)
                self._sampler.make_due()

    # -- each turn -------------------------------------------------------------------------------
    def queue_changes(self, now: float) -> None:
        """Queue what has changed since the last turn, the ends of jobs included, and a sample."""
        for job in self:
            if job.is_running:
                job.queue_changes(now)
            else:
                job.close_if_over(self._instance_dir, now)
        self._sampler.take(list(self), now)

    def queue_end(self, job: Job) -> None:
        """Queue all that is known of the ended ``job`` now, without waiting for its launcher."""
        job.queue_changes(math.inf)
        job.close_if_over(self._instance_dir, math.inf)

    def check_for_exec(self, now: float) -> None:
        """Find jobs whose process executed another program and so lost its channel."""
        for job in self:
            if job.is_running and job.owner is not None and not self._finder.holds(job.owner.pid, job.inode):
                job.note_gone(now)

    def check_for_end(self, now: float) -> None:
        """Find jobs whose process has ended or was detached."""
        for job in self:
            is_watched = self._waiter.watches(job.uid)
            if job.is_running and (
                job.is_detached or (not is_watched and (job.owner is None or not job.owner.is_alive))
            ):
                job.note_gone(now)
                self._sampler.make_due()

    def note_answer(self, head: Head, reason: dict[str, str], now: float) -> bool:
        """Handle an answer about one job; return whether the next turn is to follow at once.

        ``reason`` is that of a STALL or REFUSE.
        """
        job = self.by_uid.get(head.uid)
        if head.type == wire.REOPEN:
            self._reopen(job, head.uid, now)
            return True
        if job is None:
            return False
        if head.type == wire.ACK:
            job.outbox.note_acked(head.about, head.last)
        elif head.type == wire.STALL:
            job.outbox.note_stalled(reason, now)
        elif head.type == wire.REFUSE and head.about == wire.OPEN:  # all further messages would be refused, too
            self._drop(job)
            self._finder.refuse(job.inode, job.launch, job.pid, FormatError(reason["text"], reason["slug"]))
            return False
        elif head.type == wire.REFUSE:
            self._finder.refusals.add(job.launch, job.pid, **reason)
            job.outbox.note_refused(head.about, head.last)
        return job.has_more_to_do

    def _reopen(self, job: Job | None, uid: int, now: float) -> None:
        if job is None:
            self._sampler.forget(hex_id(uid))
        else:
            job.outbox.note_reopened(now)
            self._sampler.note_reopened(now)

    # -- the end ---------------------------------------------------------------------------------
    def close_stored(self) -> None:
        """Close the jobs whose end is stored."""
        for job in self:
            if job.outbox.is_closed:
                self._results.note_closed(job)
                if job.state != "exited" and job.owner is not None and job.owner.pid == job.channel.identity.pid:
                    leftovers.remove_exports(job.owner.pid)
                self._finder.finish(job.inode)
                self._drop(job)

    def give_up(self, job: Job) -> None:
        """Leave a file about the end of ``job`` to the collector.

        On failure (OSError), the next agent learns from the announcement that data is lost.
        """
        job.give_up(self._instance_dir)
        self._finder.finish(job.inode)

    def close(self) -> None:
        """Close all channels; unacked data stays in their rings."""
        for job in self:
            job.channel.close()

    def _drop(self, job: Job) -> None:
        del self.by_uid[job.uid]
        self._waiter.forget(job.uid)
        job.channel.close()
        self._finder.ignore(job.inode)

    # -- reports ---------------------------------------------------------------------------------
    @property
    def stall(self) -> dict[str, str] | None:
        """The reason why the data of some job is not stored, None if none is known."""
        return next((job.outbox.stall for job in self if job.outbox.stall), None)

    def status(self) -> dict[str, Any]:
        """Return the jobs for the status file."""
        jobs = {job.hex: job.summary() for job in self}
        return {"jobs": jobs, "lag_bytes": sum(job["lag_bytes"] for job in jobs.values())}
