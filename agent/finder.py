"""Finds the channels of an instance: told by the announcements, and by looking through /proc."""

import os
import time
from collections import deque
from typing import Final, NamedTuple

from tfprof.shim.errors import FormatError

from . import identity, launches, processes
from .announcements import AnnounceFolder, Announcement
from .channels import Channel, read_page
from .launches import Launch
from .processes import Holder, Inode, Process

#: A scan may use this part of a core; and is never made more or less often than the bounds say (seconds).
SCAN_SHARE: Final = 0.0004
SCAN_BOUNDS_S: Final = (2.0, 20.0)
#: A process in a container announces itself by another number: it is looked for at once, but no more often than this.
SCAN_SOONEST_S: Final = 0.25
#: What looks wrong may be half made yet: so many scans must find it so.
TRIES: Final = 3
REFUSALS_MAX: Final = 1000


class Found(NamedTuple):
    """A channel and the process that it belongs to, None when that is gone already."""

    channel: Channel
    inode: Inode
    owner: Process | None


class Refusal(NamedTuple):
    """Why a process has no channel that can be read; ``launch`` is 0 where that is not known."""

    launch: int
    pid: int
    slug: str
    text: str


class Finder:
    """The channels of the launches of ``place`` that user ``uid`` may open, each found once."""

    def __init__(self, place: str, uid: int) -> None:
        self._place = place
        self._uid = uid
        self._folder = AnnounceFolder(place)
        self._announced: list[Announcement] = []
        self._open: set[Inode] = set()
        self._not_ours: set[Inode] = set()
        self._tries: dict[Inode, int] = {}
        self._next_scan_s = 0.0
        self._last_scan_s = 0.0
        self.refusals: deque[Refusal] = deque(maxlen=REFUSALS_MAX)
        self.holders: dict[Inode, list[Holder]] = {}
        self.scans = 0

    def announced(self) -> list[Found]:
        """Return the channels that were announced since the last call."""
        news = self._folder.news()
        self._announced += news
        found = []
        for one in news:
            if one.refusal is not None:
                self.refusals.append(Refusal(_launch_of(one.pid), one.pid, **one.refusal))
                continue
            channels = processes.channels_of(one.pid)
            found += [self._try(inode, [Holder(one.pid, path)]) for inode, path in channels.items()]
            if not channels:
                self._next_scan_s = min(self._next_scan_s, self._last_scan_s + SCAN_SOONEST_S)
        return [one for one in found if one is not None]

    def scan_is_due(self, now: float) -> bool:
        """Whether it is time to look through /proc again."""
        return now >= self._next_scan_s

    def scan_soon(self) -> None:
        """Have the next scan made at once."""
        self._next_scan_s = 0.0

    def scan(self) -> list[Found]:
        """Look through /proc and return the channels that were not known."""
        started = time.monotonic()
        self.holders = processes.scan(self._uid)
        self._not_ours &= self.holders.keys()
        self._tries = {inode: tries for inode, tries in self._tries.items() if inode in self.holders}
        found = [self._try(inode, holders) for inode, holders in self.holders.items()]
        self._sweep()
        self.scans += 1
        now = self._last_scan_s = time.monotonic()
        low, high = SCAN_BOUNDS_S
        self._next_scan_s = now + min(high, max(low, (now - started) / SCAN_SHARE))
        return [one for one in found if one is not None]

    def holds(self, pid: int, inode: Inode) -> bool:
        """Whether process ``pid`` had the channel open at the last scan, or has it mapped without."""
        return any(holder.pid == pid for holder in self.holders.get(inode, ())) or processes.still_maps(pid, inode)

    def forget(self, inode: Inode) -> None:
        """Note that the channel ``inode`` is dealt with and closed."""
        self._open.discard(inode)
        self._not_ours.add(inode)

    def _try(self, inode: Inode, holders: list[Holder]) -> Found | None:
        if inode in self._open or inode in self._not_ours:
            return None
        try:
            return self._opened(inode, holders)
        except OSError:
            return None
        except FormatError as error:
            self._tries[inode] = self._tries.get(inode, 0) + 1
            if self._tries[inode] >= TRIES:
                self._not_ours.add(inode)
                launch = _launch_of(holders[0].pid)
                if launches.read(self._place, launch) is not None:
                    self.refusals.append(Refusal(launch, holders[0].pid, error.slug, error.args[0]))
            return None

    def _opened(self, inode: Inode, holders: list[Holder]) -> Found | None:
        fd = os.open(holders[0].path, os.O_RDWR | os.O_CLOEXEC)
        info = os.fstat(fd)
        if (info.st_dev, info.st_ino) != inode:
            os.close(fd)
            return None
        try:
            page = read_page(fd)
            launch = launches.read(self._place, page.launch)
        except (OSError, FormatError):
            os.close(fd)
            raise
        if launch is None:
            os.close(fd)
            self._not_ours.add(inode)
            return None
        channel = Channel(fd)
        self._open.add(inode)
        return Found(channel, inode, _owner(holders, page.pid, launch))

    def _sweep(self) -> None:
        """Remove the announcements of processes that are gone."""
        kept = []
        for one in self._announced:
            if processes.process(one.pid) is None:
                self._folder.remove(one)
            else:
                kept.append(one)
        self._announced = kept


def _owner(holders: list[Holder], inner: int, launch: Launch) -> Process | None:
    """Return which of ``holders`` made the channel: forked children hold it too, and the launcher unless it is the job."""
    for holder in holders:
        if (holder.pid != launch.pid or launch.has_become_job) and processes.inner_pid(holder.pid) == inner:
            return processes.process(holder.pid)
    return None


def _launch_of(pid: int) -> int:
    """Return the launch that process ``pid`` was started by, 0 when that cannot be seen."""
    launch, _, _ = identity.environment_of(pid).get("TFPROF_RUN", "").partition("@")
    try:
        return int(launch, 16)
    except ValueError:
        return 0
