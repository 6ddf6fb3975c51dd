"""The agent: one process per user and instance that drains all channels into the collector."""

import os
import secrets
import signal
import socket
import time
from functools import partial
from types import FrameType
from typing import Any, Final

from ...commands import daemons
from ...formats import runtime_dir, wire
from ...formats.settings import SETTINGS
from ...formats.version import VERSION
from .. import identity
from ..folder_watch import FolderWatch
from ..spool.spooling import Spooling
from ..transport.connection import CollectorConnection
from . import collectors, lost_processes, remote_orders
from .answers import Answers
from .event_waiter import NO_EVENT, EventWaiter
from .finder import Finder
from .given_up_jobs import GivenUpJobs
from .instance import Instance
from .jobs import ENDING_POLL_S, POLL_S, Jobs
from .launch_results import LaunchResults
from .node_requests import NodeRequests
from .pending_orders import PendingOrders
from .samples import Sampler
from .sender import Sender

#: Poll interval while a job has not applied an order yet, and the time for which answers are
#: collected before they are read (seconds).
ORDER_POLL_S: Final = 0.02
COLLECT_S: Final = 0.02
#: Intervals of checks for ended jobs and launch results, and of the status file (seconds).
CHECK_S: Final = 1.0
STATUS_S: Final = 2.0
#: Limit of open files to ask for: each job takes three descriptors.
DESCRIPTORS: Final = 4096


class Agent:
    """The daemon of the instance that serves ``store``; its lock is already held.

    Call `serve` and then `stop`. The agent ends after ``idle_s`` without a running job, without a
    living launcher, and without a collector that accepts the data of ended jobs.
    """

    def __init__(self, store: str, idle_s: float) -> None:
        self.instance_dir = runtime_dir.make_instance(store)
        self._is_stopping = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_stop_signal)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self._store = store
        self._idle_s = idle_s
        self._host = socket.gethostname()
        self._started_ns = time.time_ns()
        self._living_launches: set[int] = set()
        self._next_check_s = self._next_status_s = 0.0
        self._last_busy_s = time.monotonic()
        self._destination = collectors.destination(store, self.instance_dir)
        self._collector = self._destination.supervisor
        endpoint, key = self._destination.endpoint, SETTINGS["collector-key"].read()
        self._connection = CollectorConnection(endpoint, _greeting(self._host), key)
        send = self._connection.send
        announcements = FolderWatch(os.path.join(self.instance_dir, runtime_dir.ANNOUNCE))
        self._waiter = EventWaiter(self._connection.socket, announcements)
        self._finder = Finder(self.instance_dir, os.geteuid())
        self._results = LaunchResults(self.instance_dir)
        self._instance = Instance(self.instance_dir, self._finder, self._results)
        sampler = self._sampler = Sampler()
        jobs = self._jobs = Jobs(self.instance_dir, self._host, self._finder, self._waiter, self._results, sampler)
        given_up_jobs = None if endpoint.is_own else GivenUpJobs(self.instance_dir)
        self._orders = PendingOrders(jobs.by_uid, send, partial(remote_orders.refusal, endpoint, key, self._host))
        self._requests = NodeRequests(store, send, partial(remote_orders.request_refusal, endpoint, key, self._host))
        report = partial(self._finder.refusals.add, 0, 0)
        self._spooling = Spooling(endpoint, key, SETTINGS["spool-bytes"].read(), report, time.monotonic())
        self._sender = Sender(self._connection, self._spooling, jobs, sampler, given_up_jobs)
        commands = {wire.ORDER: self._orders.take, wire.ASK: self._requests.take}
        self._answers = Answers(self._connection, self._spooling, self._sender, jobs, sampler, commands, given_up_jobs)

    def _on_stop_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._is_stopping = True

    def serve(self) -> None:
        """Run the main loop until the agent is stopped or idle."""
        self._write_status()
        while not self._is_over:
            start_s = time.monotonic()
            self._turn(start_s)
            wait_s = self._destination.wait_s if self._jobs or not self._spooling.is_empty else 0.0
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
        is_accepting = self._connection.is_accepting(now)
        if (
            (self._connection.is_full and is_accepting)
            or (self._spooling.is_writing and any(job.is_filling for job in self._jobs))
            or self._results.wants_scan(self._finder.scans)
            or self._finder.is_searching
            or self._orders.has_unstored_steps
            or self._requests.has_pending
        ):
            return ENDING_POLL_S
        return self._jobs.poll_s(now, is_taken=is_accepting or self._spooling.is_writing)

    def _wait_until(self, deadline: float) -> None:
        """Wait for the next turn; return early on an urgent answer or an event."""
        while not self._is_over:
            remaining_s = deadline - time.monotonic()
            # Many acks arrive at about the same time: wait a little and read them together.
            collect_s = 0.0 if self._wants_answers() else min(COLLECT_S, remaining_s)
            wakeup = self._waiter.wait(collect_s, listening=False) if collect_s > 0 else NO_EVENT
            if not wakeup.begins_turn:
                wakeup = self._waiter.wait(remaining_s - collect_s, listening=True)
            if wakeup.has_process_end:
                self._next_check_s = 0.0
            if wakeup.begins_turn or (wakeup.has_answer and self._receive(time.monotonic())):
                return
            if time.monotonic() >= deadline:
                return

    def _wants_answers(self) -> bool:
        return self._connection.collector is None or any(job.wants_answers for job in self._jobs)

    def stop(self) -> None:
        """Close everything; unacked data of running jobs stays in the rings for the next agent."""
        self._sender.spool_ended_jobs()
        abandoned_jobs = self._jobs.abandoned
        if abandoned_jobs:
            lost_records = sum(job.unsaved_records for job in abandoned_jobs)
            stall = self._stall() or {"text": "the agent was stopped"}
            self._instance.error = (
                f"{len(abandoned_jobs)} ended jobs given up, {lost_records} records not stored: {stall['text']}"
            )
        self._requests.close()
        for job in abandoned_jobs:
            self._instance.attempt(partial(self._jobs.give_up, job))
        self._write_status()
        for part in (self._jobs, self._waiter, self._connection, self._spooling):
            part.close()

    @property
    def _is_over(self) -> bool:
        return self._is_stopping or self._instance.is_gone

    def has_new_launch(self) -> bool:
        """Return whether a launch began while this idle agent was ending."""
        return not self._is_over and bool(self._instance.living_launches()) and not self._is_over

    def _turn(self, now: float) -> None:
        """Do one turn: receive, find channels, check jobs, send."""
        self._receive(now)
        self._jobs.adopt(self._finder.open_announced())
        if self._finder.scan_is_due(now):
            self._jobs.adopt(self._finder.scan())
            self._jobs.check_for_exec(now)
        for announcement in self._finder.announced.take_lost():
            self._instance.attempt(partial(lost_processes.record, self.instance_dir, announcement, self._host))
            self._next_check_s = 0.0
        if now >= self._next_check_s:
            self._check(now)
            tick_s = self._tick_s(now)
            self._next_check_s = now + (tick_s if tick_s < POLL_S else CHECK_S)
        self._orders.check(now)
        self._requests.check(now)
        if self._sender.send_due(now):
            self._results.note_delivered()
            self._check(now)
        self._instance.attempt(partial(self._sender.send_given_up_jobs, now))
        if now >= self._next_status_s:
            self._next_status_s = now + STATUS_S
            self._write_status()

    def _receive(self, now: float) -> bool:
        """Handle all answers; return whether one of them was urgent."""
        failure = self._connection.failure
        is_urgent = self._answers.handle(now)
        if self._connection.failure is None or failure is not None:
            return is_urgent
        self._next_check_s = 0.0  # report to launchers why nothing is stored
        return True

    def _check(self, now: float) -> None:
        """Detect ended processes, update launch results, keep the collector running."""
        self._jobs.check_for_end(now)
        living_launches = self._instance.living_launches()
        if living_launches - self._living_launches:
            self._collector.reset_delay()
        self._living_launches = living_launches
        if self._jobs or lost_processes.has_waiting_jobs(self.instance_dir):
            try:
                self._collector.ensure_running()
            except daemons.DaemonError as error:
                self._instance.error = str(error)
            self._connection.note_collector(self._collector.pid)
        if (
            living_launches
            or self._requests.has_pending
            or any(job.is_running for job in self._jobs)
            or (self._sender.has_data and self._connection.is_accepting(now))
        ):
            self._last_busy_s = now
        self._instance.write_results(self._jobs, self._stall())
        self._instance.tidy_if_due(now, self._jobs)

    def _stall(self) -> dict[str, str] | None:
        """Return the reason why no job's data is stored, None if none is known."""
        return self._spooling.stall(self._connection.failure or self._collector.failure)

    def _write_status(self) -> None:
        self._instance.write_status(
            {
                "pid": os.getpid(),
                "started_ns": self._started_ns,
                "written_ns": time.time_ns(),
                "version": VERSION,
                "store": self._store,
                "stopped": self._is_over,
                "waiting_channels": self._finder.queue_length,
                "collector": (self._connection.collector or {}).get("pid"),
                **self._jobs.status(),
                **self._finder.refusals.status(),
                "samples_dropped": self._sampler.queue.dropped,
                **self._spooling.status(),
                "stall": self._stall() or self._jobs.stall,
                "rss_bytes": daemons.resident_bytes(),
                "cpu_s": time.process_time(),
            }
        )


def _greeting(host: str) -> dict[str, Any]:
    return {
        "agent": secrets.token_hex(8),
        "host": host,
        "boot": _boot_id(),
        "pid": os.getpid(),
        "user": identity.user_name(os.geteuid()),
        "version": VERSION,
        "requests": True,
    }


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
    daemons.allow_descriptors(DESCRIPTORS)
    while True:
        agent = Agent(store, idle_s)
        try:
            agent.serve()
        finally:
            agent.stop()
        if not agent.has_new_launch():
            return 0
