"""The agent: one process per user and instance that drains all channels into the collector."""

import math
import os
import resource
import secrets
import signal
import socket
import time
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any, Final

from ...commands import daemons
from ...formats import runtime_dir, wire
from ...formats.errors import FormatError
from ...formats.ids import hex_id
from ...formats.settings import SETTINGS
from ...formats.version import VERSION
from ...formats.wire import Head
from .. import announcements, identity, launches
from ..folder_watch import FolderWatch
from ..spool.spooling import Route, Spooling
from ..transport.connection import CollectorConnection
from . import collectors, leftovers, lost_processes, remote_orders
from .event_waiter import NO_EVENT, EventWaiter
from .finder import Finder, FoundChannel
from .given_up_jobs import GivenUpJobs
from .job import Job
from .launch_results import LaunchResults
from .node_requests import NodeRequests
from .pending_orders import PendingOrders
from .samples import Sampler

#: Poll interval of rings and announcements (seconds): idle; transferring; job ending or more to
#: send than fits into the socket.
POLL_S: Final = 0.5
BUSY_POLL_S: Final = 0.2
ENDING_POLL_S: Final = 0.05
#: Poll interval while a job has not applied an order yet, and the time for which answers are
#: collected before they are read (seconds).
ORDER_POLL_S: Final = 0.02
COLLECT_S: Final = 0.02
#: Intervals of checks for ended jobs and launch results, and of the status file (seconds).
CHECK_S: Final = 1.0
STATUS_S: Final = 2.0
#: Maximum bytes in flight, all jobs together. Each running job has its share, so that it does not
#: wait for the others.
WINDOW_BYTES: Final = 16 << 20
#: Maximum number of ended jobs that send at a time, so that they do not delay running jobs.
DRAINING_MAX: Final = 16
#: Interval of the removal of old launch files and stale folders (seconds).
TIDY_S: Final = 600.0
#: Maximum time for writing data of ended jobs to the disk when the agent ends (seconds).
SPOOL_AT_END_S: Final = 10.0
#: Limit of open files to ask for: each job takes two descriptors.
DESCRIPTORS: Final = 4096


class Agent:
    """The daemon of the instance that serves ``store``; its lock is already held.

    Call `start`, `serve` and `stop`, in this order. The agent ends after ``idle_s`` without a
    running job, without a living launcher, and without a collector that accepts the data of ended
    jobs.
    """

    def __init__(self, store: str, idle_s: float) -> None:
        self.instance_dir = runtime_dir.make_instance(store)
        self.jobs: dict[int, Job] = {}
        self._store = store
        self._idle_s = idle_s
        self._status = daemons.StatusFile(os.path.join(self.instance_dir, "agent.json"))
        self._destination = collectors.destination(store, self.instance_dir)
        self._collector = self._destination.supervisor
        self._finder = Finder(self.instance_dir, os.geteuid())
        self._given_up_jobs = None if self._destination.endpoint.is_own else GivenUpJobs(self.instance_dir)
        self._results = LaunchResults(self.instance_dir)
        self._sampler = Sampler()
        self._host = socket.gethostname()
        self._started_ns = time.time_ns()
        self._living_launches: set[int] = set()
        self._draining_uids: set[int] = set()  # ended jobs that send
        self._stopping = False
        self._error: str | None = None
        self._launches_changed_ns = -1
        self._next_check_s = self._next_status_s = self._next_tidy_s = 0.0
        self._last_busy_s = time.monotonic()

    def start(self) -> None:
        """Install signal handlers and connect."""
        _raise_limit(DESCRIPTORS)
        signal.signal(signal.SIGTERM, self._on_stop_signal)
        signal.signal(signal.SIGINT, self._on_stop_signal)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        endpoint, key = self._destination.endpoint, SETTINGS["collector-key"].read()
        self._connection = CollectorConnection(endpoint, self._greeting(), key)
        self._waiter = EventWaiter(
            self._connection.socket, FolderWatch(os.path.join(self.instance_dir, runtime_dir.ANNOUNCE))
        )
        refuse_order = partial(remote_orders.refusal, endpoint, key, self._host)
        self._orders = PendingOrders(self.jobs, self._connection.send, refuse_order)
        refuse_request = partial(remote_orders.request_refusal, endpoint, key, self._host)
        self._requests = NodeRequests(self._store, self._connection.send, refuse_request)
        self._commands = {wire.ORDER: self._orders.take, wire.ASK: self._requests.take}
        report = partial(self._finder.refusals.add, 0, 0)
        self._spooling = Spooling(endpoint, key, SETTINGS["spool-bytes"].read(), report, time.monotonic())
        self._write_status()

    def _on_stop_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._stopping = True

    def _greeting(self) -> dict[str, Any]:
        return {
            "agent": secrets.token_hex(8),
            "host": self._host,
            "boot": _boot_id(),
            "pid": os.getpid(),
            "user": identity.user_name(os.geteuid()),
            "version": VERSION,
            "requests": True,
        }

    def serve(self) -> None:
        """Run the main loop until the agent is stopped or idle."""
        while not self._stopping:
            start_s = time.monotonic()
            self.turn(start_s)
            wait_s = self._destination.wait_s if self.jobs or not self._spooling.is_empty else 0.0
            if start_s - self._last_busy_s > max(self._idle_s, wait_s):
                break
            self._wait_until(start_s + self._tick_s(start_s))

    def _tick_s(self, now: float) -> float:
        """Return the time to the next turn (seconds).

        It is short while something is in progress or has just ended, and long when the collector
        accepts nothing.
        """
        if self._orders.has_pending:
            return ORDER_POLL_S
        if self._connection.is_full and self._connection.is_accepting(now):
            return ENDING_POLL_S
        if self._spooling.is_writing and any(job.is_filling for job in self.jobs.values()):
            return ENDING_POLL_S
        wants_scan = self._results.wants_scan(self._finder.scans)
        if (
            wants_scan
            or self._finder.is_searching
            or self._orders.has_unstored_steps
            or self._requests.has_pending
            or any(job.has_just_ended(now) for job in self.jobs.values())
        ):
            return ENDING_POLL_S
        is_taken = self._connection.is_accepting(now) or self._spooling.is_writing
        jobs = [job for job in self.jobs.values() if job.is_active(now)] if is_taken else []
        if any(not job.is_running for job in jobs):
            return ENDING_POLL_S
        return BUSY_POLL_S if any(job.is_transferring for job in jobs) else POLL_S

    def _wait_until(self, deadline: float) -> None:
        """Wait for the next turn; return early on an urgent answer or an event."""
        remaining_s = deadline - time.monotonic()
        while not self._stopping:
            # Many acks arrive at about the same time: wait a little and read them together.
            collect_s = 0.0 if self._wants_answers() else min(COLLECT_S, remaining_s)
            wakeup = self._waiter.wait(collect_s, listening=False) if collect_s > 0 else NO_EVENT
            if not wakeup.has_process_end and not wakeup.has_announcement:
                wakeup = self._waiter.wait(remaining_s - collect_s, listening=True)
            if wakeup.has_process_end:
                self._next_check_s = 0.0
            if (
                (wakeup.has_answer and self._receive(time.monotonic()))
                or wakeup.has_process_end
                or wakeup.has_announcement
            ):
                return
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                return

    def _wants_answers(self) -> bool:
        return self._connection.collector is None or any(job.wants_answers for job in self.jobs.values())

    def stop(self) -> None:
        """Close everything; unacked data of running jobs stays in the rings for the next agent."""
        self._spool_ended_jobs()
        abandoned_jobs = self._abandoned_jobs()
        if abandoned_jobs:
            lost_records = sum(job.unsaved_records for job in abandoned_jobs)
            stall = self._stall() or {"text": "the agent was stopped"}
            self._error = (
                f"{len(abandoned_jobs)} ended jobs given up, {lost_records} records not stored: {stall['text']}"
            )
        self._requests.close()
        for job in abandoned_jobs:
            self._attempt(partial(job.give_up, self.instance_dir))
            self._finder.finish(job.inode)
        self._write_status()
        for job in self.jobs.values():
            job.channel.close()
        self._waiter.close()
        self._connection.close()
        self._spooling.close()

    def _abandoned_jobs(self) -> list[Job]:
        """Return the ended jobs that no launcher holds and whose data only this agent has."""
        living_launches = self._results.living_launches
        return [job for job in self.jobs.values() if not job.is_running and job.launch not in living_launches]

    def _spool_ended_jobs(self) -> None:
        """Spool what would be lost with this agent, as far as it fits and time allows."""
        deadline = time.monotonic() + SPOOL_AT_END_S
        jobs = self._abandoned_jobs()
        if not jobs or not self._spooling.divert(time.monotonic()):
            return
        self._send_all_again()
        send = self._spooling.send(self._connection.send)
        for job in jobs:
            progress = -1
            while not job.outbox.is_closed and progress < job.outbox.progress and time.monotonic() < deadline:
                progress = job.outbox.progress
                job.queue_changes(math.inf)
                job.close_if_over(self.instance_dir, math.inf)
                job.send_due(math.inf, send, WINDOW_BYTES, 0)
                self._note_durable(math.inf, at_once=True)
            if job.outbox.is_closed:
                self._close(job)
        for _ in range(2):  # one sample, and after it the others
            self._sampler.send_due(send, math.inf)
            self._note_durable(math.inf, at_once=True)

    def has_new_launch(self) -> bool:
        """Return whether a launch began while this idle agent was ending."""
        if not self._stopping:
            self._attempt(self._check_launches)
        return not self._stopping and bool(self._results.living_launches)

    def turn(self, now: float) -> None:
        """Do one turn: receive, find channels, check jobs, send."""
        self._receive(now)
        self._adopt(self._finder.open_announced())
        if self._finder.scan_is_due(now):
            self._adopt(self._finder.scan())
            self._check_for_exec(now)
        for announcement in self._finder.take_lost():
            self._attempt(partial(lost_processes.record, self.instance_dir, announcement, self._host))
            self._next_check_s = 0.0
        if now >= self._next_check_s:
            self._check(now)
            tick_s = self._tick_s(now)
            self._next_check_s = now + (tick_s if tick_s < POLL_S else CHECK_S)
        self._orders.check(now)
        self._requests.check(now)
        self._send_due(now)
        if self._given_up_jobs is not None and self._spooling.is_empty:
            self._attempt(partial(self._given_up_jobs.send_due, now, self._connection.send))
        if now >= self._next_status_s:
            self._next_status_s = now + STATUS_S
            self._write_status()

    # -- the collector ---------------------------------------------------------------------------
    def _receive(self, now: float) -> bool:
        """Handle all answers; return whether one of them was urgent."""
        failure = self._connection.failure
        is_urgent = self._handle_answers(now)
        if self._connection.failure is not None and failure is None:  # report to launchers why nothing is stored
            self._next_check_s = 0.0
            is_urgent = True
        return is_urgent

    def _handle_answers(self, now: float) -> bool:
        is_urgent = False
        for head, body in self._connection.answers(now):
            if head.type == wire.WELCOME:
                self._spooling.restart(now)
                if self._spooling.route is Route.DIRECT:
                    self._send_all_again()
                is_urgent = True
            elif head.type in self._commands:
                self._commands[head.type](head, body, now)
                is_urgent = True
            elif head.about == wire.GIVEN_UP:
                self._on_given_up_answer(head)
            elif self._spooling.handle(head, partial(_reason, body), now):
                is_urgent = True
            elif head.type == wire.REOPEN:
                self._reopen(head.uid, now)
                is_urgent = True
            elif head.about == wire.SAMPLES:
                self._on_samples_answer(head, now)
            elif head.uid in self.jobs:
                job = self.jobs[head.uid]
                self._on_job_answer(job, head, body, now)
                is_urgent = is_urgent or (head.uid in self.jobs and job.has_more_to_do)
        return is_urgent

    def _on_given_up_answer(self, head: Head) -> None:
        if self._given_up_jobs is not None:
            self._given_up_jobs.note_answer(head)

    def _on_samples_answer(self, head: Head, now: float) -> None:
        if head.type == wire.STALL:
            self._sampler.note_stalled(now)
        elif head.type in (wire.ACK, wire.REFUSE):
            self._sampler.note_acked(head.last, now)

    def _on_job_answer(self, job: Job, head: Head, body: dict[str, Any], now: float) -> None:
        if head.type == wire.ACK:
            job.outbox.note_acked(head.about, head.last)
        elif head.type == wire.STALL:
            job.outbox.note_stalled(_reason(body), now)
        elif head.type == wire.REFUSE and head.about == wire.OPEN:
            reason = _reason(body)
            self._refuse(job, FormatError(reason["text"], reason["slug"]))
        elif head.type == wire.REFUSE:
            self._finder.refusals.add(job.launch, job.pid, **_reason(body))
            job.outbox.note_refused(head.about, head.last)

    def _send_all_again(self) -> None:
        for job in self.jobs.values():
            if self._spooling.is_empty:
                job.outbox.note_delivered()
            job.outbox.rewind()
        self._sampler.rewind()

    def _reopen(self, uid: int, now: float) -> None:
        job = self.jobs.get(uid)
        if job is None:
            self._sampler.forget(hex_id(uid))
        else:
            job.outbox.note_reopened(now)
            self._sampler.note_reopened(now)

    def _send_due(self, now: float) -> None:
        """Greet, then send due messages of each job in turn, then the samples.

        When the socket is full, the jobs that have waited longest come first in the next turn.
        """
        self._connection.greet(now)
        jobs = list(self.jobs.values())
        self._queue_changes(jobs, now)
        is_available = self._connection.is_accepting(now) and self._connection.failure is None
        is_urgent = self._spooling.is_enabled and any(job.is_filling for job in jobs)
        if self._spooling.choose(now, is_available=is_available, has_jobs=bool(jobs), is_urgent=is_urgent):
            self._send_all_again()
        send = self._spooling.send(self._connection.send)
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
        self._sampler.send_due(send, now)
        self._note_durable(now, at_once=is_urgent)
        self._spooling.deliver(now, self._connection.send)
        for job in jobs:
            if job.outbox.is_closed:
                self._close(job)

    def _queue_changes(self, jobs: list[Job], now: float) -> None:
        for job in jobs:
            if job.is_running:
                job.queue_changes(now)
            else:
                job.close_if_over(self.instance_dir, now)
        self._sampler.take(jobs, now)

    def _note_durable(self, now: float, *, at_once: bool) -> None:
        """Release what has become durable in the spool."""
        for head in self._spooling.durable(now, at_once=at_once):
            if head.type == wire.SAMPLES:
                self._sampler.note_acked(head.last, now)
            elif head.uid in self.jobs:
                self.jobs[head.uid].outbox.note_spooled(head.type, head.last)

    # -- jobs ------------------------------------------------------------------------------------
    def _adopt(self, channels: list[FoundChannel]) -> None:
        for found_channel in channels:
            channel_identity = found_channel.channel.identity
            launch = launches.read(self.instance_dir, channel_identity.launch)
            if launch is None or channel_identity.uid in self.jobs:
                found_channel.channel.close()
                if launch is None:
                    self._finder.ignore(found_channel.inode)
                else:
                    error = FormatError("a channel with the uid of another channel", "bad-channel")
                    self._finder.refuse(
                        found_channel.inode,
                        channel_identity.launch,
                        found_channel.owner.pid if found_channel.owner else channel_identity.pid,
                        error,
                    )
                continue
            job = self.jobs[found_channel.channel.identity.uid] = Job(found_channel, launch, self._host)
            job.queue_changes(time.monotonic())
            if found_channel.owner is None:
                job.note_gone(time.monotonic())
            else:
                self._waiter.watch(job.uid, found_channel.owner)
            self._sampler.make_due()

    def _close(self, job: Job) -> None:
        self._results.note_closed(job)
        if job.state != "exited" and job.owner is not None and job.owner.pid == job.channel.identity.pid:
            leftovers.remove_exports(job.owner.pid)
        self._finder.finish(job.inode)
        self._drop(job)

    def _refuse(self, job: Job, error: FormatError) -> None:
        """Drop a job that the collector refuses.

        The collector would refuse all further messages about it.
        """
        self._drop(job)
        self._finder.refuse(job.inode, job.launch, job.pid, error)

    def _drop(self, job: Job) -> None:
        del self.jobs[job.uid]
        self._waiter.forget(job.uid)
        job.channel.close()
        self._finder.ignore(job.inode)

    def _check_for_exec(self, now: float) -> None:
        """Find jobs whose process executed another program and so lost its channel."""
        for job in self.jobs.values():
            if job.is_running and job.owner is not None and not self._finder.holds(job.owner.pid, job.inode):
                job.note_gone(now)

    def _check(self, now: float) -> None:
        """Detect ended processes, update launch results, keep the collector running."""
        for job in self.jobs.values():
            is_watched = self._waiter.watches(job.uid)
            if job.is_running and (
                job.is_detached or (not is_watched and (job.owner is None or not job.owner.is_alive))
            ):
                job.note_gone(now)
                self._sampler.make_due()
        self._attempt(self._check_launches)
        living_launches = self._results.living_launches
        if living_launches - self._living_launches:
            self._collector.reset_delay()
        self._living_launches = living_launches
        if self.jobs or lost_processes.has_waiting_jobs(self.instance_dir):
            self._ensure_collector()
        if (
            living_launches
            or self._requests.has_pending
            or any(job.is_running for job in self.jobs.values())
            or (self._has_data_to_send() and self._connection.is_accepting(now))
        ):
            self._last_busy_s = now
        jobs, finder, stall = self.jobs.values(), self._finder, self._stall()
        self._attempt(lambda: self._results.write(jobs, finder.refusals, stall, finder.scans, finder.awaits))
        if now >= self._next_tidy_s:
            self._next_tidy_s = now + TIDY_S
            self._attempt(lambda: launches.remove_old_files(self.instance_dir, time.time(), living_launches))
            leftovers.remove_exports()
            leftovers.remove_instances(self.instance_dir)

    def _has_data_to_send(self) -> bool:
        """Whether something waits for the collector that only this agent sends."""
        return (
            bool(self.jobs)
            or not self._spooling.is_empty
            or (self._given_up_jobs is not None and lost_processes.has_waiting_jobs(self.instance_dir))
        )

    def _check_launches(self) -> None:
        changed_ns = os.stat(os.path.join(self.instance_dir, runtime_dir.LAUNCHES)).st_mtime_ns
        if changed_ns == self._launches_changed_ns:
            return
        is_settled = abs(time.time_ns() - changed_ns) > announcements.TIMESTAMP_LAG_NS
        self._launches_changed_ns = changed_ns if is_settled else -1
        if self._results.refresh(self._finder.scans):
            self._finder.make_scan_due()

    def _ensure_collector(self) -> None:
        try:
            self._collector.ensure_running()
        except daemons.DaemonError as error:
            self._error = str(error)
        self._connection.note_collector(self._collector.pid)

    def _stall(self) -> dict[str, str] | None:
        """Return the reason why no job's data is stored, None if none is known."""
        stall, on_disk = self._connection.failure or self._collector.failure, self._spooling.failure
        if stall is None or on_disk is None or on_disk["text"] == stall["text"]:
            return stall
        return {
            "slug": on_disk["slug"],
            "text": f"{stall['text']}, and nothing more is kept on disk: {on_disk['text']}",
        }

    def _write_status(self) -> None:
        jobs = {job.hex: job.summary() for job in self.jobs.values()}
        stalls = [job.outbox.stall for job in self.jobs.values() if job.outbox.stall]
        collector = self._connection.collector or {}
        status = {
            "pid": os.getpid(),
            "started_ns": self._started_ns,
            "written_ns": time.time_ns(),
            "version": VERSION,
            "store": self._store,
            "stopped": self._stopping,
            "waiting_channels": self._finder.queue_length,
            "collector": collector.get("pid"),
            "jobs": jobs,
            "lag_bytes": sum(job["lag_bytes"] for job in jobs.values()),
            "refused": self._finder.refusals.total,
            "refusals": [refusal._asdict() for refusal in list(self._finder.refusals)[-20:]],
            "samples_dropped": self._sampler.queue.dropped,
            **self._spooling.status(),
            "stall": self._stall() or (stalls[0] if stalls else None),
            "rss_bytes": daemons.resident_bytes(),
            "cpu_s": time.process_time(),
            "last_error": self._error,
        }
        self._attempt(lambda: self._status.write(status))

    def _attempt(self, action: Callable[[], None]) -> None:
        """Run ``action``, which reads or writes files of the instance.

        An OSError is recorded; the agent stops only when the instance folder itself is gone.
        """
        try:
            action()
        except OSError as error:
            self._error = f"cannot read or write files in {self.instance_dir}: {error.strerror}"
            self._stopping = self._stopping or not os.path.isdir(self.instance_dir)


def _reason(body: dict[str, Any]) -> dict[str, str]:
    return {"slug": str(body.get("slug")), "text": str(body.get("text"))}


def _raise_limit(descriptors: int) -> None:
    """Raise the limit of open files to ``descriptors``, or as far as allowed."""
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = descriptors if hard_limit == resource.RLIM_INFINITY else min(descriptors, hard_limit)
    if soft_limit != resource.RLIM_INFINITY and soft_limit < target:
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard_limit))


def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def serve(store: str, idle_s: float) -> int:
    """Run an agent of ``store``, whose lock is held, until it is stopped or idle.

    If a launch began while an idle agent was ending, run another one. Return the exit status.
    """
    while True:
        agent = Agent(store, idle_s)
        agent.start()
        try:
            agent.serve()
        finally:
            agent.stop()
        if not agent.has_new_launch():
            return 0
