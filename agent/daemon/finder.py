"""Finds the channels of an instance through announcements and scans of /proc."""

import os
import time
from collections import Counter
from typing import Final, NamedTuple

from ...formats.errors import FormatError, VersionError
from .. import identity, launches, processes
from ..announcements import AnnounceFolder, Announcement
from ..channels import ChannelReader, open_file, read_identity
from ..launches import Launch
from ..processes import DescriptorHolder, Inode, Process
from .missing_channels import MissingChannels
from .refusals import Refusals

#: Share of a core for scans, and the bounds of their interval (seconds).
SCAN_SHARE: Final = 0.0004
SCAN_BOUNDS_S: Final = (2.0, 20.0)
#: Minimum interval of scans for processes in containers (seconds): they announce a pid that differs
#: from their pid on the host.
SCAN_SOONEST_S: Final = 0.25
#: Attempts before an invalid channel is refused: it may still be under construction.
TRIES: Final = 3
#: Limits of one call: channels opened, and time spent (seconds).
OPENED_MAX: Final = 32
OPENING_S: Final = 0.05
#: Maximum channels per process: it has one, and one more after each exec.
PROCESS_MAX: Final = 16
#: Maximum open channels; further ones wait.
OPEN_MAX: Final = 1000


class Found(NamedTuple):
    """A channel and the process that owns it; None when that process is gone."""

    channel: ChannelReader
    inode: Inode
    owner: Process | None


class _Open(NamedTuple):
    """An open channel: the process that owns it, its announced pid, and its uid."""

    maker: int
    announced_pid: int
    uid: int


class TooManyError(FormatError):
    """A process has more channels than any normal program creates."""

    slug = "too-many-channels"


class GoneError(FormatError):
    """A process announced a channel that no process has open any more."""

    slug = "too-short"


#: The reason that is reported for such a process; how many steps it ran is unknown.
GONE: Final = GoneError("the process ended before the agent could read its records")


class Finder:
    """Finds the channels of the instance's launches that user ``user_id`` may open, each once."""

    def __init__(self, instance_dir: str, user_id: int) -> None:
        self._instance_dir = instance_dir
        self._user_id = user_id
        self._folder = AnnounceFolder(instance_dir)
        self._announced: list[Announcement] = []
        self._waiting: dict[Inode, list[DescriptorHolder]] = {}
        self._missing = MissingChannels()
        self._lost: list[Announcement] = []
        self._open: dict[Inode, _Open] = {}
        self._not_ours: set[Inode] = set()
        self._tries: dict[Inode, int] = {}
        self._next_scan_s = 0.0
        self._last_scan_s = 0.0
        self.refusals = Refusals()
        self.holders: dict[Inode, list[DescriptorHolder]] = {}
        self._second_scan: dict[Inode, list[DescriptorHolder]] | None = None
        self.scans = 0

    def announced(self) -> list[Found]:
        """Return announced and queued channels, a few at a time, from each process in turn."""
        news = self._folder.news()
        self._announced += news
        open_uids = {one.uid for one in self._open.values()} if news else set()
        for one in news:
            if one.refusal is not None:
                self.refusals.add(one.launch or _launch_of(one.pid), one.pid, **one.refusal)
            elif one.uid not in open_uids:
                self._missing.add(one)
        for pid in dict.fromkeys(one.pid for one in news if one.refusal is None):
            channels = processes.channels_of(pid)
            self._wait_for({inode: [DescriptorHolder(pid, path)] for inode, path in channels.items()})
            if channels.keys() & self._not_ours:
                self._missing.refused(pid)
            if not channels:
                self._next_scan_s = min(self._next_scan_s, self._last_scan_s + SCAN_SOONEST_S)
        return self._next()

    def scan_is_due(self, now: float) -> bool:
        """Whether it is time for the next scan of /proc."""
        return now >= self._next_scan_s

    def make_scan_due(self) -> None:
        """Make the next scan due now."""
        self._next_scan_s = 0.0

    def scan(self) -> list[Found]:
        """Scan /proc and return at most OPENED_MAX new channels; the others stay queued."""
        started = time.monotonic()
        self._missing.begin_search()
        self.holders = processes.scan(self._user_id)
        self._not_ours &= self.holders.keys()
        self._tries = {inode: tries for inode, tries in self._tries.items() if inode in self.holders}
        self._wait_for(self.holders)
        self._sweep()
        self.scans += 1
        now = self._last_scan_s = time.monotonic()
        low, high = SCAN_BOUNDS_S
        found = self._next()
        interval_s = SCAN_SOONEST_S if self.is_searching else min(high, max(low, (now - started) / SCAN_SHARE))
        self._next_scan_s = now + interval_s
        return found

    @property
    def waiting(self) -> int:
        """The number of queued channels."""
        return len(self._waiting)

    @property
    def is_searching(self) -> bool:
        """Whether an announced channel is missing and the next scan may show that it is lost."""
        return bool(self._missing) and not self._waiting

    def awaits(self, launch: int) -> bool:
        """Whether a channel of ``launch`` is announced and neither found nor known to be lost."""
        return self._missing.has_launch(launch)

    def take_lost(self) -> list[Announcement]:
        """Return the announcements that were found to be without a channel since the last call."""
        lost, self._lost = self._lost, []
        return lost

    def holds(self, pid: int, inode: Inode) -> bool:
        """Whether process ``pid`` had the channel open at the last scan or still maps it."""
        return any(holder.pid == pid for holder in self.holders.get(inode, ())) or processes.still_maps(pid, inode)

    def forget(self, inode: Inode) -> None:
        """Record that the channel ``inode`` is closed and not to be opened again."""
        self._open.pop(inode, None)
        self._not_ours.add(inode)

    def finish(self, inode: Inode) -> None:
        """Record that all about the channel ``inode`` is stored or given up.

        Its announcement is removed at once: a later agent would take the channel for lost.
        """
        one = self._open.get(inode)
        if one is not None:
            self._folder.remove(one.announced_pid, one.uid)
        self.forget(inode)

    def refuse(self, inode: Inode, launch: int, pid: int, error: FormatError) -> None:
        """Ignore the channel ``inode`` from now on and count the refusal."""
        self.forget(inode)
        self.refusals.add(launch, pid, error.slug, error.args[0])

    def _wait_for(self, holders: dict[Inode, list[DescriptorHolder]]) -> None:
        news = holders.keys() - self._open.keys() - self._not_ours
        self._waiting.update((inode, holders[inode]) for inode in holders if inode in news)

    def _next(self) -> list[Found]:
        """Open queued channels in turn by process, so that one process cannot block the others."""
        found: list[Found] = []
        self._second_scan = None
        until = time.monotonic() + OPENING_S
        for inode in _in_turn(self._waiting):
            if len(found) == OPENED_MAX or len(self._open) >= OPEN_MAX or time.monotonic() > until:
                break
            one = self._try(inode, self._waiting.pop(inode))
            if one is not None:
                found.append(one)
        if not self._waiting:
            self._note_lost(self._missing.end_search())
        return found

    def _note_lost(self, lost: list[Announcement]) -> None:
        for one in lost:
            self.refusals.add(one.launch, one.pid, GONE.slug, GONE.args[0])
            self._folder.remove(one.pid, one.uid)
        self._lost += lost

    def _try(self, inode: Inode, holders: list[DescriptorHolder]) -> Found | None:
        try:
            return self._opened(inode, holders)
        except OSError:
            return None
        except FormatError as error:
            self._missing.refused(holders[0].pid)
            self._tries[inode] = self._tries.get(inode, 0) + 1
            if self._tries[inode] >= TRIES or isinstance(error, (TooManyError, VersionError)):
                launch = _launch_of(holders[0].pid)
                if not launch and isinstance(error, VersionError):
                    launch = self._launched_by(holders[0].pid)
                if launches.read(self._instance_dir, launch) is not None:
                    self.refuse(inode, launch, holders[0].pid, error)
                else:
                    self._not_ours.add(inode)
            return None

    def _opened(self, inode: Inode, holders: list[DescriptorHolder]) -> Found | None:
        fd = open_file(holders[0].path, os.O_RDWR)
        info = os.fstat(fd)
        if (info.st_dev, info.st_ino) != inode:
            os.close(fd)
            return None
        try:
            page = read_identity(fd)
            self._missing.found(page.uid)
            launch = launches.read(self._instance_dir, page.launch)
        except (OSError, FormatError):
            os.close(fd)
            raise
        if launch is None:
            os.close(fd)
            self._not_ours.add(inode)
            return None
        # A scan may pass a process just before it creates its channel, and then find the channel
        # only in the command that attached to the process.
        owner = _owner(holders, page.pid, launch) or _owner(self._holders_now(inode), page.pid, launch)
        maker = owner.pid if owner else page.pid
        if sum(one.maker == maker for one in self._open.values()) >= PROCESS_MAX:
            os.close(fd)
            raise TooManyError(f"more than {PROCESS_MAX} channels of one process")
        channel = ChannelReader(fd)
        self._open[inode] = _Open(maker, page.pid, page.uid)
        return Found(channel, inode, owner)

    def _holders_now(self, inode: Inode) -> list[DescriptorHolder]:
        """Return the holders of a channel from another scan, which is made once for each turn."""
        if self._second_scan is None:
            self._second_scan = processes.scan(self._user_id)
        return self._second_scan.get(inode, [])

    def _launched_by(self, pid: int) -> int:
        """Return the launch whose launcher is process ``pid``, 0 when there is none.

        A launcher holds the channels that its processes leave.
        """
        for number in launches.listed(self._instance_dir):
            launch = launches.read(self._instance_dir, number)
            if launch is not None and launch.pid == pid and processes.ran_at(pid, launch.started_ns):
                return number
        return 0

    def _sweep(self) -> None:
        """Remove the announcements of processes that are gone."""
        kept = []
        for one in self._announced:
            if processes.process(one.pid) is None and not self._missing.awaits(one.uid):
                self._folder.remove(one.pid, one.uid)
            else:
                kept.append(one)
        self._announced = kept


def _in_turn(waiting: dict[Inode, list[DescriptorHolder]]) -> list[Inode]:
    """Return ``waiting`` in round-robin order of the processes."""
    turns: Counter[int] = Counter()
    order = {}
    for inode, holders in waiting.items():
        pid = holders[0].pid
        order[inode] = turns[pid]
        turns[pid] += 1
    return sorted(order, key=order.__getitem__)


def _owner(holders: list[DescriptorHolder], inner: int, launch: Launch) -> Process | None:
    """Return the process that created the channel, None when it is gone.

    Forked children hold the channel, too, and so does the launcher unless it became the job.
    """
    for holder in holders:
        if (holder.pid != launch.pid or launch.has_become_job) and processes.ns_pid(holder.pid) == inner:
            return processes.process(holder.pid)
    return None


def _launch_of(pid: int) -> int:
    """Return the launch that started process ``pid``, 0 when it is unknown."""
    launch, _, _ = identity.environment_of(pid).get("TFPROF_RUN", "").partition("@")
    try:
        return int(launch, 16)
    except ValueError:
        return 0
