"""The channels that processes announce, until they are found or known to be lost."""

from collections.abc import Callable, Iterable
from typing import Final

from ...formats.errors import FormatError
from .. import launches, processes
from ..announcements import AnnounceFolder, Announcement
from .missing_channels import MissingChannels
from .refusals import Refusals


class ChannelGoneError(FormatError):
    """A process announced a channel that no process has open any more."""

    slug = "too-short"


#: The error that is reported for such a process.
CHANNEL_GONE: Final = ChannelGoneError("the process ended before the agent could read its records")


class AnnouncedChannels:
    """The announcements of an instance; the channels of those in `missing` are not found yet.

    ``refusals`` counts lost channels and the refusals of processes. ``open_uids`` returns the uids
    of the open channels.
    """

    def __init__(self, instance_dir: str, refusals: Refusals, open_uids: Callable[[], set[int]]) -> None:
        self.missing = MissingChannels()
        self._folder = AnnounceFolder(instance_dir)
        self._refusals = refusals
        self._open_uids = open_uids
        self._announcements: list[Announcement] = []
        self._lost: list[Announcement] = []

    def new_pids(self) -> Iterable[int]:
        """Read new announcements, and return the processes whose channels they are."""
        announcements = self._folder.take_new()
        if not announcements:
            return ()
        self._announcements += announcements
        open_uids = self._open_uids()
        for announcement in announcements:
            if announcement.refusal is not None:
                launch = announcement.launch or launches.launch_of(announcement.pid)
                self._refusals.add(launch, announcement.pid, **announcement.refusal)
            elif announcement.uid not in open_uids:
                self.missing.add(announcement)
        return dict.fromkeys(announcement.pid for announcement in announcements if announcement.refusal is None)

    def end_search(self) -> None:
        """Note that all channels of the last search were tried; count those that are now lost."""
        lost_announcements = self.missing.end_search()
        for announcement in lost_announcements:
            self._refusals.add(announcement.launch, announcement.pid, CHANNEL_GONE.slug, CHANNEL_GONE.args[0])
        self._announcements = [entry for entry in self._announcements if entry not in lost_announcements]
        self._lost += lost_announcements

    def take_lost(self) -> list[Announcement]:
        """Return the announcements of the channels that were lost since the last call.

        Each is removed when its loss is recorded (lost_processes.py).
        """
        lost_announcements, self._lost = self._lost, []
        return lost_announcements

    def remove(self, pid: int, uid: int) -> None:
        """Remove the announcement of channel ``uid`` by process ``pid``, if there is one."""
        self._folder.remove(pid, uid)

    def remove_stale(self) -> None:
        """Remove the announcements of ended processes, unless their channels are in use."""
        open_uids = self._open_uids()
        remaining_announcements = []
        for announcement in self._announcements:
            is_in_use = announcement.uid in open_uids or self.missing.awaits(announcement.uid)
            if not is_in_use and processes.process(announcement.pid) is None:
                self.remove(announcement.pid, announcement.uid)
            else:
                remaining_announcements.append(announcement)
        self._announcements = remaining_announcements
