"""Holds new channels open while the job runs, and keeps the agent alive."""

import contextlib
import functools
import os
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ...commands import daemons
from ...formats import runtime_dir
from ...formats.errors import FormatError, TfprofError
from ...formats.ids import hex_id
from .. import daemon_start, identity, launches, processes
from ..announcements import TIMESTAMP_LAG_NS, AnnounceFolder, Announcement
from ..channels import ChannelIdentity, ChannelReader, agent_pid_of, is_drained, open_file, read_identity
from ..folder_watch import FolderWatch
from ..launches import Launch, LeftChannel

#: Poll intervals for new channels, and for the agent (seconds). The first interval of each line
#: applies for ACTIVE_S after the start or a new announcement, the second one at other times.
POLL_S, IDLE_POLL_S = 0.1, 0.5
AGENT_POLL_S, IDLE_AGENT_POLL_S = 0.25, 1.0
#: Time for which the short intervals apply (seconds).
ACTIVE_S: Final = 10.0


class _HeldChannel(NamedTuple):
    """A held channel, and its process; None if the process was gone."""

    fd: int
    identity: ChannelIdentity
    process: processes.Process | None

    @property
    def has_ended(self) -> bool:
        return self.process is None or not self.process.is_alive

    def read(self) -> LeftChannel:
        """Return the state of the channel; OSError or FormatError when it cannot be read."""
        channel = ChannelReader(open_file(f"/proc/self/fd/{self.fd}", os.O_RDWR))
        try:
            return LeftChannel(self.identity.uid, channel.hello(), channel.counters())
        finally:
            channel.close()


def leave_orphaned(instance_dir: str, launch: int, fds: list[int]) -> None:
    """Write down the last state of the channels ``fds``, as far as they are of ``launch``.

    Their process was killed with the launcher. An agent that has them does not need it.
    """
    for fd in fds:
        with contextlib.suppress(OSError, FormatError):  # nothing is known about the channel then
            channel_identity = read_identity(fd)
            if channel_identity.launch == launch:
                launches.write_left(instance_dir, launch, _HeldChannel(fd, channel_identity, None).read())


_ChannelsOf = Callable[[int], dict[processes.Inode, str]]
_Scan = Callable[[int], dict[processes.Inode, list[processes.DescriptorHolder]]]


class ChannelHolder:
    """Holds the channels of ``launch`` open: they outlive their processes even without an agent."""

    def __init__(self, instance_dir: str, launch: Launch) -> None:
        self._instance_dir = instance_dir
        self._launch = launch.launch
        self._since_ns = launch.started_ns - TIMESTAMP_LAG_NS
        self._folder = AnnounceFolder(instance_dir)
        #: Wakes the launcher for announcements; without inotify they are polled.
        self.announcements = FolderWatch(os.path.join(instance_dir, runtime_dir.ANNOUNCE))
        self._channels: dict[processes.Inode, _HeldChannel] = {}
        self._supervisor = daemon_start.DaemonSupervisor(instance_dir, launch.store, daemon_start.AGENT)
        self._next_check_s = 0.0
        self._active_until_s = time.monotonic() + ACTIVE_S
        self._has_checked_agent = False
        #: The latest refusal of a channel, or failure to hold channels or to start the agent.
        self.refusal: dict[str, str] | None = None
        #: The uids (hex) of the closed channels: all their data is stored.
        self.stored_uids: set[str] = set()
        #: Number of channels and refusals of this launch.
        self.launch_announcements = 0
        #: Number of announcements whose channel was not found. Announcements that name no launch
        #: (by jobs of release 0.2.0 and by `tfprof attach`) may be of another launch.
        self.unmatched_announcements = 0

    def update(self) -> float:
        """Open newly announced channels, check the agent, return the seconds to the next call.

        Never fails, since the job's exit status must not depend on it.
        """
        try:
            return self._update()
        except OSError as error:
            self.refusal = {"slug": "agent", "text": f"the channels cannot be held: {error.strerror}"}
            return IDLE_POLL_S

    def _update(self) -> float:
        now = time.monotonic()
        self.announcements.clear()
        # The results are cached: each process is searched once per call, even for many channels.
        channels_of, scan = functools.cache(processes.channels_of), functools.cache(processes.scan)
        for announcement in self._folder.take_new():
            if announcement.modified_ns >= self._since_ns:
                self._active_until_s = now + ACTIVE_S
                self._handle(announcement, channels_of, scan)
        self._close_stored()
        is_active = now < self._active_until_s
        if now >= self._next_check_s:
            self._next_check_s = now + (AGENT_POLL_S if is_active else IDLE_AGENT_POLL_S)
            if not (self._supervisor.is_running() or (self._has_checked_agent and self._supervisor.was_stopped)):
                self.ensure_agent()
            self._has_checked_agent = True
        return POLL_S if is_active else IDLE_POLL_S

    def _close_stored(self) -> None:
        """Close the channels whose processes have ended and whose data is stored.

        The agent then removes the announcement. A channel with unacked data stays open without one,
        too: another agent may still read it.
        """
        for inode, channel in list(self._channels.items()):
            uid, pid = channel.identity.uid, channel.identity.pid
            if not self._folder.has(pid, uid) and channel.has_ended and is_drained(channel.fd):
                os.close(channel.fd)
                del self._channels[inode]
                self.stored_uids.add(hex_id(uid))

    def ensure_agent(self) -> bool:
        """Return whether the agent runs; start it when it does not."""
        try:
            return self._supervisor.ensure_running()
        except TfprofError as error:
            self.refusal = {"slug": error.slug, "text": error.args[0]}
            return False

    @property
    def agent_failure(self) -> dict[str, str] | None:
        """The reason why no agent comes up, None while an agent may still come up."""
        return self._supervisor.failure

    @property
    def agent_has_all_channels(self) -> bool:
        """Whether the running agent has all channels that are held here."""
        agent = daemons.running_pid(self._instance_dir, daemon_start.AGENT)
        return all(agent_pid_of(channel.fd) == agent != 0 for channel in self._channels.values())

    def leave(self, stored_uids: set[str]) -> None:
        """Write down the last state of the ended channels that are not among ``stored_uids`` (hex).

        The launcher ends, and with it the descriptors. If no agent stores the data of a channel, a
        later agent tells the collector how many steps the process ran and how much data is lost.
        """
        for channel in self._channels.values():
            if hex_id(channel.identity.uid) not in stored_uids and channel.has_ended:
                with contextlib.suppress(OSError, FormatError):  # nothing is known about the channel then
                    launches.write_left(self._instance_dir, self._launch, channel.read())

    def close(self) -> None:
        """Close the channels; their memory is freed unless the agent or the job has them, too."""
        for channel in self._channels.values():
            os.close(channel.fd)
        self._channels.clear()
        self.announcements.close()

    def _handle(self, announcement: Announcement, channels_of: _ChannelsOf, scan: _Scan) -> None:
        if announcement.launch not in (0, self._launch):
            return
        if announcement.refusal is not None:
            run = identity.environment_of(announcement.pid).get("TFPROF_RUN", "")
            if announcement.launch or run.startswith(f"{hex_id(self._launch)}@"):
                self.refusal = announcement.refusal
                self.launch_announcements += 1
            return
        pid = announcement.pid
        holders = ((inode, [processes.DescriptorHolder(pid, path)]) for inode, path in channels_of(pid).items())
        if not any(self._open(inode, holder, announcement.uid) for inode, holder in holders):
            self._find_by_scan(announcement.uid, scan)

    def _find_by_scan(self, uid: int, scan: _Scan) -> None:
        """Scan all processes for the channel ``uid``: in a container the announced pid differs."""
        for inode, holders in scan(os.geteuid()).items():
            if self._open(inode, holders, uid):
                return
        self.unmatched_announcements += 1

    def _open(self, inode: processes.Inode, holders: Sequence[processes.DescriptorHolder], uid: int) -> bool:
        """Return whether the channel of ``holders`` has ``uid``; hold it if it is of this launch.

        One of ``holders`` may be its process; the agent may be another one.
        """
        if inode in self._channels:
            return False
        try:
            fd = open_file(holders[0].path, os.O_RDONLY)
        except OSError:
            return False
        try:
            channel_identity = read_identity(fd)
        except (OSError, FormatError):
            channel_identity = None  # the agent reports what is wrong with it
        if channel_identity is not None and channel_identity.launch == self._launch:
            pids = (holder.pid for holder in holders if processes.ns_pid(holder.pid) == channel_identity.pid)
            self._channels[inode] = _HeldChannel(fd, channel_identity, processes.process(next(pids, 0)))
            self.launch_announcements += 1
        else:
            os.close(fd)
        return channel_identity is not None and channel_identity.uid == uid
