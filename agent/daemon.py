"""The agent: one process a user and instance that drains the channels of all jobs into the collector."""

import argparse
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from tfprof.shim import daemons, places, settings, wire
from tfprof.shim.errors import TfprofError
from tfprof.shim.version import VERSION
from tfprof.shim.wire import Head

from . import identity, launches, start
from .finder import Finder, Found
from .job import Job
from .link import Link
from .outbox import Outbox
from .rest import Rest
from .results import Results
from .samples import Sampler

#: How often rings and announcements are looked at (seconds): by default, while records are on their way, and while a job's last
#: words are; a host of quiet jobs is hardly woken.
TICK_S: Final = 0.5
BUSY_TICK_S: Final = 0.2
ENDING_TICK_S: Final = 0.05
#: How often is looked whether jobs still run, and what is told to launchers.
LOOK_S: Final = 0.5
STATUS_S: Final = 2.0
#: How much of all jobs together may be on its way, so that it may lie in this process's memory.
WINDOW_BYTES: Final = 16 << 20
FORGET_S: Final = 3600.0


class Agent:
    """The daemon of the instance that serves ``store``: `start`, `serve` until told to stop, `stop`.

    ``idle_s`` is how long it stays without a channel and without a living launcher.
    """

    def __init__(self, store: str, idle_s: float) -> None:
        self.place = places.make_instance(store)
        self.jobs: dict[int, Job] = {}
        self._store = store
        self._idle_s = idle_s
        self._lock = daemons.Lock(self.place, start.AGENT)
        self._status = daemons.StatusFile(os.path.join(self.place, "agent.json"))
        self._collector = start.Keeper(self.place, store, start.COLLECTOR)
        self._finder = Finder(self.place, os.geteuid())
        self._results = Results(self.place)
        self._sampler = Sampler()
        self._host = socket.gethostname()
        self._started_ns = time.time_ns()
        self._stopping = False
        self._error: str | None = None
        self._launches_changed_ns = -1
        self._look_s = self._status_s = self._forget_s = 0.0
        self._busy_s = time.monotonic()

    def start(self) -> bool:
        """Take the lock and the signals; False when another agent serves this instance."""
        if not self._lock.acquire():
            return False
        signal.signal(signal.SIGTERM, self._told_to_stop)
        signal.signal(signal.SIGINT, self._told_to_stop)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self._link = Link(f"ipc://{os.path.join(self.place, places.COLLECTOR_SOCKET)}", self._greeting())
        self._rest = Rest(self._link.socket)
        self._write_status()
        return True

    def _told_to_stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stopping = True

    def _greeting(self) -> dict[str, Any]:
        return {
            "agent": secrets.token_hex(8),
            "host": self._host,
            "boot": _boot_id(),
            "pid": os.getpid(),
            "user": identity.user_name(os.geteuid()),
            "version": VERSION,
        }

    def serve(self) -> None:
        """Go round until told to stop, or idle for long."""
        while not self._stopping:
            begun = time.monotonic()
            self.turn(begun)
            if begun - self._busy_s > self._idle_s:
                break
            self._rest_until(begun + self._tick_s())

    def _tick_s(self) -> float:
        jobs = self.jobs.values()
        if any(not job.is_running for job in jobs):
            return ENDING_TICK_S
        return BUSY_TICK_S if any(job.is_moving for job in jobs) else TICK_S

    def _rest_until(self, until: float) -> None:
        """Wait for the next turn; where an answer may let something go on, hear it at once, and rest no more if it does."""
        left = until - time.monotonic()
        while not self._stopping:
            woken = self._rest.wait(left, listening=self._wants_answers())
            if woken.ended:
                self._look_s = 0.0
            if (woken.answered and self._hear(time.monotonic())) or woken.ended:
                return
            left = until - time.monotonic()
            if left <= 0:
                return

    def _wants_answers(self) -> bool:
        return self._link.collector is None or any(job.wants_answers for job in self.jobs.values())

    def stop(self) -> None:
        """Let go of everything; what is not acked stays in the rings for a successor."""
        self._write_status()
        for job in self.jobs.values():
            job.channel.close()
        self._rest.close()
        self._link.close()
        self._lock.release()

    def hand_over(self) -> None:
        """Start a successor if a launch began while this agent, which seemed to be there for it, ended as idle."""
        if not self._stopping:
            self._try_write(self._look_at_launches)
        if not self._stopping and self._results.has_living:
            start.start(self.place, self._store, start.AGENT)

    def turn(self, now: float) -> None:
        """Do everything that is due, once."""
        self._hear(now)
        self._adopt(self._finder.announced())
        if self._finder.scan_is_due(now):
            self._adopt(self._finder.scan())
            self._look_for_exec(now)
        if now >= self._look_s:
            self._look(now)
            self._look_s = now + min(LOOK_S, self._tick_s())
        self._talk(now)
        if now >= self._status_s:
            self._status_s = now + STATUS_S
            self._write_status()

    # -- the collector ---------------------------------------------------------------------------
    def _hear(self, now: float) -> bool:
        """Take all answers; return whether something waited for one of them."""
        urgent = False
        for head, body in self._link.answers(now):
            if head.type == wire.WELCOME:
                self._send_all_again()
                urgent = True
            elif head.type == wire.REOPEN:
                self._reopen(head.uid)
                urgent = True
            elif head.about == wire.SAMPLES:
                self._hear_of_samples(head, now)
            elif head.uid in self.jobs:
                job = self.jobs[head.uid]
                self._hear_of_job(job.outbox, head, body, now)
                urgent = urgent or job.can_go_on
        return urgent

    def _hear_of_samples(self, head: Head, now: float) -> None:
        if head.type == wire.STALL:
            self._sampler.stalled(now)
        elif head.type in (wire.ACK, wire.REFUSE):
            self._sampler.landed(head.last, now)

    def _hear_of_job(self, outbox: Outbox, head: Head, body: dict[str, Any], now: float) -> None:
        if head.type == wire.ACK:
            outbox.landed(head.about, head.last)
        elif head.type == wire.STALL:
            outbox.stalled(_reason(body), now)
        elif head.type == wire.REFUSE:
            self._error = f"{body.get('text')} [{body.get('slug')}]"
            outbox.given_up(head.about, head.last)

    def _send_all_again(self) -> None:
        for job in self.jobs.values():
            job.outbox.rewind()
        self._sampler.letters.rewind()

    def _reopen(self, uid: int) -> None:
        job = self.jobs.get(uid)
        if job is None:
            self._sampler.forget(launches.name_of(uid))
        else:
            job.outbox.rewind()
            self._sampler.letters.rewind()

    def _talk(self, now: float) -> None:
        """Greet, then send what is due: identities and data of each job in turn, then the samples."""
        self._link.greet(now)
        jobs = list(self.jobs.values())
        for job in jobs:
            if job.is_running:
                job.tell(now)
            else:
                job.close_if_over(self.place, now)
        self._sampler.take(jobs, now)
        room = WINDOW_BYTES - sum(job.outbox.records.in_flight for job in jobs)
        for job in sorted(jobs, key=lambda job: job.outbox.records.last_sent_s):
            room -= job.pump(now, self._link.send, max(0, room))
        self._sampler.pump(self._link.send, now)
        for job in jobs:
            if job.outbox.is_closed:
                self._close(job)

    # -- jobs ------------------------------------------------------------------------------------
    def _adopt(self, found: list[Found]) -> None:
        for one in found:
            launch = launches.read(self.place, one.channel.page.launch)
            if launch is None or one.channel.page.uid in self.jobs:
                one.channel.close()
                self._finder.forget(one.inode)
                continue
            job = self.jobs[one.channel.page.uid] = Job(one, launch, self._host)
            job.tell(time.monotonic())
            if one.owner is None:
                job.gone(time.monotonic())
            else:
                self._rest.watch(job.uid, one.owner)
            self._sampler.soon()

    def _close(self, job: Job) -> None:
        self._results.closed(job)
        del self.jobs[job.uid]
        self._rest.forget(job.uid)
        job.channel.close()
        self._finder.forget(job.inode)

    def _look_for_exec(self, now: float) -> None:
        """Note the processes that run another program now: their channel is not theirs any more."""
        for job in self.jobs.values():
            if job.is_running and job.owner is not None and not self._finder.holds(job.owner.pid, job.inode):
                job.gone(now)

    def _look(self, now: float) -> None:
        """See who has ended, tell the launchers, keep the collector alive."""
        for job in self.jobs.values():
            if job.is_running and not self._rest.watches(job.uid) and (job.owner is None or not job.owner.is_alive):
                job.gone(now)
                self._sampler.soon()
        self._try_write(self._look_at_launches)
        if self.jobs:
            self._keep_collector()
        if self.jobs or self._results.has_living:
            self._busy_s = now
        jobs, refusals, stall, scans = self.jobs.values(), self._finder.refusals, self._stall(), self._finder.scans
        self._try_write(lambda: self._results.tell(jobs, refusals, stall, scans))
        if now >= self._forget_s:
            self._forget_s = now + FORGET_S
            self._try_write(lambda: launches.forget_old(self.place, time.time()))

    def _look_at_launches(self) -> None:
        changed_ns = os.stat(os.path.join(self.place, places.LAUNCHES)).st_mtime_ns
        if changed_ns == self._launches_changed_ns:
            return
        # A folder that changed just now may change again without a new time stamp.
        settled = changed_ns < time.time_ns() - 100_000_000
        self._launches_changed_ns = changed_ns if settled else -1
        if self._results.refresh(self._finder.scans):
            self._finder.scan_soon()

    def _keep_collector(self) -> None:
        try:
            self._collector.look()
        except daemons.DaemonError as error:
            self._error = str(error)

    def _stall(self) -> dict[str, str] | None:
        """Why nothing is stored for anybody, None when it is."""
        if self._link.refusal is not None:
            return self._link.refusal
        trouble = self._collector.trouble
        return {"slug": "collector", "text": trouble} if trouble else None

    def _write_status(self) -> None:
        jobs = {job.hex: job.summary() for job in self.jobs.values()}
        stalls = [job.outbox.stall for job in self.jobs.values() if job.outbox.stall]
        collector = self._link.collector or {}
        status = {
            "pid": os.getpid(),
            "started_ns": self._started_ns,
            "written_ns": time.time_ns(),
            "version": VERSION,
            "store": self._store,
            "stopped": self._stopping,
            "collector": collector.get("pid"),
            "jobs": jobs,
            "lag_bytes": sum(job["lag_bytes"] for job in jobs.values()),
            "refusals": [one._asdict() for one in list(self._finder.refusals)[-20:]],
            "samples_dropped": self._sampler.letters.dropped,
            "stall": self._stall() or (stalls[0] if stalls else None),
            "rss_bytes": _rss_bytes(),
            "cpu_s": time.process_time(),
            "last_error": self._error,
        }
        self._try_write(lambda: self._status.write(status))

    def _try_write(self, action: Callable[[], None]) -> None:
        """Write a runtime file; one that cannot be written stops nothing, a runtime folder that is gone does."""
        try:
            action()
        except OSError as error:
            self._error = f"cannot write in {self.place}: {error.strerror}"
            self._stopping = self._stopping or not os.path.isdir(self.place)


def _reason(body: dict[str, Any]) -> dict[str, str]:
    return {"slug": str(body.get("slug")), "text": str(body.get("text"))}


def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def _rss_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main(argv: list[str] | None = None) -> int:
    """Run an agent until it is told to stop or has nothing to do; 0 also when one runs already."""
    parser = argparse.ArgumentParser(prog="python -m tfprof.agent.daemon", description=main.__doc__)
    parser.add_argument("--store", default=None, help="folder that results are kept in")
    options = parser.parse_args(argv)
    try:
        idle_s = float(str(settings.SETTINGS["agent-idle"].read()))
        agent = Agent(os.path.abspath(options.store or places.default_store()), idle_s)
        if not agent.start():
            return 0
    except (TfprofError, OSError, ValueError) as error:
        print(f"tfprof agent: {error}", file=sys.stderr)
        return 1
    try:
        agent.serve()
    finally:
        agent.stop()
    agent.hand_over()
    return 0


if __name__ == "__main__":
    sys.exit(main())
