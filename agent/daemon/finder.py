"""Finds the channels of an instance through announcements and scans of /proc."""

import os
import resource
import time
from collections import Counter
from typing import Final, NamedTuple

from ...commands import daemons
from ...formats.errors import FormatError, VersionError
from .. import launches, processes
from ..channels import ChannelReader, open_file, read_identity
from ..launches import Launch
from ..processes import DescriptorHolder, Inode, Process
from .announced_channels import AnnouncedChannels
from .refusals import Refusals

#: Share of a core for scans, and the bounds of their interval (seconds).
SCAN_SHARE: Final = 0.0004
SCAN_BOUNDS_S: Final = (2.0, 20.0)
#: Interval of scans while an announced channel is not found (seconds). A process in a container
#: announces a pid that differs from its pid on the host, so only a scan finds its channel.
SEARCH_SCAN_S: Final = 0.25
#: Attempts before an invalid channel is refused: it may still be under construction.
TRIES: Final = 3
#: Limits of one call: channels opened, and time spent (seconds).
OPENED_PER_CALL_MAX: Final = 32
OPENING_S: Final = 0.05
#: Maximum channels per process: it has one, and one more after each exec.
CHANNELS_PER_PROCESS_MAX: Final = 16
#: Maximum open channels; further ones wait. Fewer are open if the limit of open files is low: a
#: channel takes descriptors for its file, its mapping and its process, and the agent has others.
OPEN_CHANNELS_MAX: Final = 1000
_DESCRIPTORS_EACH: Final = 3
_DESCRIPTORS_OTHER: Final = 64


class FoundChannel(NamedTuple):
    """A channel and the process that owns it; `owner` is None when that process is gone."""

    channel: ChannelReader
    inode: Inode
    owner: Process | None


class _OpenChannel(NamedTuple):
    """An open channel: the process that owns it, the pid in it, and its uid."""

    owner_pid: int
    channel_pid: int
    uid: int


class TooManyChannelsError(FormatError):
    """A process has more channels than any normal program creates."""

    slug = "too-many-channels"


class Finder:
    """Finds the channels of the instance's launches that user ``user_id`` may open, each once."""

    def __init__(self, instance_dir: str, user_id: int) -> None:
        self._instance_dir = instance_dir
        self._user_id = user_id
        self._queue: dict[Inode, list[DescriptorHolder]] = {}
        self._open_channels: dict[Inode, _OpenChannel] = {}
        self._ignored_inodes: set[Inode] = set()
        self._tries: dict[Inode, int] = {}
        self._next_scan_s = 0.0
        self._last_scan_s = 0.0
        self.refusals = Refusals()
        self.announced = AnnouncedChannels(instance_dir, self.refusals, self._open_uids)
        self.holders: dict[Inode, list[DescriptorHolder]] = {}
        self._second_scan: dict[Inode, list[DescriptorHolder]] | None = None
        self.scans = 0

    def open_announced(self) -> list[FoundChannel]:
        """Open announced and queued channels, a few at a time, from each process in turn."""
        for pid in self.announced.new_pids():
            channels = processes.channels_of(pid)
            self._enqueue({inode: [DescriptorHolder(pid, path)] for inode, path in channels.items()})
            if channels.keys() & self._ignored_inodes:
                self.announced.missing.note_refused(pid)
            if not channels:
                self._next_scan_s = min(self._next_scan_s, self._last_scan_s + SEARCH_SCAN_S)
        return self._open_queued()

    def scan_is_due(self, now: float) -> bool:
        """Whether it is time for the next scan of /proc."""
        return now >= self._next_scan_s

    def make_scan_due(self) -> None:
        """Make the next scan due now."""
        self._next_scan_s = 0.0

    def scan(self) -> list[FoundChannel]:
        """Scan /proc and return new channels, OPENED_PER_CALL_MAX at most; others stay queued."""
        start_s = time.thread_time()
        self.announced.missing.begin_search()
        self.holders = processes.scan(self._user_id)
        self._ignored_inodes &= self.holders.keys()
        self._tries = {inode: tries for inode, tries in self._tries.items() if inode in self.holders}
        self._enqueue(self.holders)
        self.announced.remove_stale()
        self.scans += 1
        now = self._last_scan_s = time.monotonic()
        took_s = time.thread_time() - start_s
        channels = self._open_queued()
        interval_s = SEARCH_SCAN_S if self.is_searching else daemons.interval_s(took_s, SCAN_SHARE, SCAN_BOUNDS_S)
        self._next_scan_s = now + interval_s
        return channels

    @property
    def queue_length(self) -> int:
        """The number of queued channels."""
        return len(self._queue)

    @property
    def has_waiting_channels(self) -> bool:
        """Whether channels are queued, or announced and neither found nor known to be lost."""
        return bool(self._queue) or bool(self.announced.missing)

    @property
    def is_searching(self) -> bool:
        """Whether an announced channel is missing and the next scan may show that it is lost."""
        return bool(self.announced.missing) and not self._queue

    def awaits(self, launch: int) -> bool:
        """Whether a channel of ``launch`` is announced and neither found nor known to be lost."""
        return self.announced.missing.has_launch(launch)

    def holds(self, pid: int, inode: Inode) -> bool:
        """Whether process ``pid`` had the channel open at the last scan or still maps it."""
        return any(holder.pid == pid for holder in self.holders.get(inode, ())) or processes.still_maps(pid, inode)

    def ignore(self, inode: Inode) -> None:
        """Record that the channel ``inode`` is closed; scans do not open it again."""
        self._open_channels.pop(inode, None)
        self._ignored_inodes.add(inode)

    def finish(self, inode: Inode) -> None:
        """Record that all data of the channel ``inode`` is stored or given up.

        Its announcement is removed at once; otherwise a later agent counts the channel as lost.
        """
        channel = self._open_channels.get(inode)
        if channel is not None:
            self.announced.remove(channel.channel_pid, channel.uid)
        self.ignore(inode)

    def refuse(self, inode: Inode, launch: int, pid: int, error: FormatError) -> None:
        """Ignore the channel ``inode`` from now on and count the refusal."""
        self.ignore(inode)
        self.refusals.add(launch, pid, error.slug, error.args[0])

    def _enqueue(self, holders: dict[Inode, list[DescriptorHolder]]) -> None:
        new_inodes = holders.keys() - self._open_channels.keys() - self._ignored_inodes
        self._queue.update((inode, holders[inode]) for inode in holders if inode in new_inodes)

    def _open_queued(self) -> list[FoundChannel]:
        """Open queued channels in turn by process, so that one process cannot block the others."""
        channels: list[FoundChannel] = []
        self._second_scan = None
        channels_max = _channels_max()
        deadline = time.monotonic() + OPENING_S
        for inode in _round_robin(self._queue):
            if (
                len(channels) == OPENED_PER_CALL_MAX
                or len(self._open_channels) >= channels_max
                or time.monotonic() > deadline
            ):
                break
            channel = self._try_open(inode, self._queue.pop(inode))
            if channel is not None:
                channels.append(channel)
        if not self._queue:
            self.announced.end_search()
        return channels

    def _try_open(self, inode: Inode, holders: list[DescriptorHolder]) -> FoundChannel | None:
        try:
            return self._open_channel(inode, holders)
        except OSError:
            return None
        except FormatError as error:
            self.announced.missing.note_refused(holders[0].pid)
            self._tries[inode] = self._tries.get(inode, 0) + 1
            if self._tries[inode] >= TRIES or isinstance(error, (TooManyChannelsError, VersionError)):
                launch = launches.launch_of(holders[0].pid)
                if not launch and isinstance(error, VersionError):
                    launch = self._launched_by(holders[0].pid)
                if launches.read(self._instance_dir, launch) is not None:
                    self.refuse(inode, launch, holders[0].pid, error)
                else:
                    self._ignored_inodes.add(inode)
            return None

    def _open_channel(self, inode: Inode, holders: list[DescriptorHolder]) -> FoundChannel | None:
        fd = open_file(holders[0].path, os.O_RDWR)
        info = os.fstat(fd)
        if (info.st_dev, info.st_ino) != inode:
            os.close(fd)
            return None
        try:
            channel_identity = read_identity(fd)
            self.announced.missing.note_found(channel_identity.uid)
            launch = launches.read(self._instance_dir, channel_identity.launch)
        except (OSError, FormatError):
            os.close(fd)
            raise
        if launch is None:
            os.close(fd)
            self._ignored_inodes.add(inode)
            return None
        # A scan may read a job just before the job creates its channel. It then finds the channel
        # only in the process of `tfprof attach`, which has opened the channel meanwhile.
        owner = _owner(holders, channel_identity.pid, launch) or _owner(
            self._rescanned_holders(inode), channel_identity.pid, launch
        )
        owner_pid = owner.pid if owner else channel_identity.pid
        if (
            sum(open_channel.owner_pid == owner_pid for open_channel in self._open_channels.values())
            >= CHANNELS_PER_PROCESS_MAX
        ):
            os.close(fd)
            raise TooManyChannelsError(f"more than {CHANNELS_PER_PROCESS_MAX} channels of one process")
        channel = ChannelReader(fd)
        self._open_channels[inode] = _OpenChannel(owner_pid, channel_identity.pid, channel_identity.uid)
        return FoundChannel(channel, inode, owner)

    def _rescanned_holders(self, inode: Inode) -> list[DescriptorHolder]:
        """Return the holders of a channel from a second scan.

        Each call of `_open_queued` makes one second scan at most.
        """
        if self._second_scan is None:
            self._second_scan = processes.scan(self._user_id)
        return self._second_scan.get(inode, [])

    def _launched_by(self, pid: int) -> int:
        """Return the launch whose launcher is process ``pid``, 0 when there is none.

        A launcher keeps the channels of its processes open after they have ended.
        """
        for number in launches.list_launches(self._instance_dir):
            launch = launches.read(self._instance_dir, number)
            if launch is not None and launch.pid == pid and processes.ran_at(pid, launch.started_ns):
                return number
        return 0

    def _open_uids(self) -> set[int]:
        return {channel.uid for channel in self._open_channels.values()}


def _channels_max() -> int:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return OPEN_CHANNELS_MAX
    return min(OPEN_CHANNELS_MAX, (limit - _DESCRIPTORS_OTHER) // _DESCRIPTORS_EACH)


def _round_robin(queue: dict[Inode, list[DescriptorHolder]]) -> list[Inode]:
    """Return the channels of ``queue`` in round-robin order of their processes."""
    turns: Counter[int] = Counter()
    inode_turns = {}
    for inode, holders in queue.items():
        pid = holders[0].pid
        inode_turns[inode] = turns[pid]
        turns[pid] += 1
    return sorted(inode_turns, key=inode_turns.__getitem__)


def _owner(holders: list[DescriptorHolder], ns_pid: int, launch: Launch) -> Process | None:
    """Return the process that created the channel, None when it is gone.

    Forked children hold the channel, too, and so does the launcher unless it became the job.
    """
    for holder in holders:
        if (holder.pid != launch.pid or launch.has_become_job) and processes.ns_pid(holder.pid) == ns_pid:
            return processes.process(holder.pid)
    return None
