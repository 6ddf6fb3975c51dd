"""Announced channels that have not been found: their processes may have ended too soon."""

from typing import Final

from ..announcements import Announcement

#: Number of failed searches after which a channel counts as lost. The first search may look at the
#: launcher before the launcher opens the channel, and at the process only after its end. A channel
#: gets no new holder once its process is gone, so the second search is conclusive.
SEARCHES: Final = 2


class MissingChannels:
    """Announcements whose channel has not been opened, each with its number of failed searches."""

    def __init__(self) -> None:
        self._announcements: dict[int, Announcement] = {}
        self._searches: dict[int, int] = {}
        self._searched_uids: set[int] = set()

    def add(self, announcement: Announcement) -> None:
        """Await the announced channel."""
        self._announcements[announcement.uid] = announcement
        self._searches[announcement.uid] = 0

    def note_found(self, uid: int) -> None:
        """Stop awaiting channel ``uid``: it was opened, refused or lost."""
        self._announcements.pop(uid, None)
        self._searches.pop(uid, None)

    def note_refused(self, pid: int) -> None:
        """Stop awaiting the channels of process ``pid``: one was closed, refused or unreadable."""
        for uid in [uid for uid, announcement in self._announcements.items() if announcement.pid == pid]:
            self.note_found(uid)

    def begin_search(self) -> None:
        """Note that a search of all processes begins."""
        self._searched_uids = set(self._announcements)

    def end_search(self) -> list[Announcement]:
        """Note that all channels of the last search were tried; return those that are now lost."""
        searched_uids, self._searched_uids = self._searched_uids & self._announcements.keys(), set()
        for uid in searched_uids:
            self._searches[uid] += 1
        lost_announcements = [self._announcements[uid] for uid in searched_uids if self._searches[uid] >= SEARCHES]
        for announcement in lost_announcements:
            self.note_found(announcement.uid)
        return lost_announcements

    def awaits(self, uid: int) -> bool:
        """Whether channel ``uid`` is announced and neither found nor lost."""
        return uid in self._announcements

    def has_launch(self, launch: int) -> bool:
        """Whether a channel of ``launch`` is awaited."""
        return any(announcement.launch == launch for announcement in self._announcements.values())

    def __len__(self) -> int:
        return len(self._announcements)
