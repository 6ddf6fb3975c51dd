"""Waits for events: new channels, ended processes and, on demand, the collector's answers."""

import os
import select
from typing import NamedTuple

import zmq

from ..folder_watch import FolderWatch
from ..processes import Process


class Wakeup(NamedTuple):
    """The events that ended a wait; all fields are False after a timeout."""

    has_answer: bool
    has_process_end: bool
    has_announcement: bool

    @property
    def begins_turn(self) -> bool:
        """Whether an event calls for a turn of the agent at once, whatever an answer says."""
        return self.has_process_end or self.has_announcement


NO_EVENT = Wakeup(has_answer=False, has_process_end=False, has_announcement=False)


class EventWaiter:
    """The wait between two turns of the agent."""

    def __init__(self, socket: "zmq.Socket[bytes]", announcements: FolderWatch) -> None:
        # Without descriptors select.poll still waits, but zmq's poller returns at once.
        self._poller = select.poll()
        self._poller_with_socket = zmq.Poller()
        self._poller_with_socket.register(socket, zmq.POLLIN)
        self._fds: dict[int, int] = {}
        self._announcements = announcements
        if announcements.fd >= 0:
            self._poller.register(announcements.fd, select.POLLIN)
            self._poller_with_socket.register(announcements.fd, zmq.POLLIN)

    def watch(self, uid: int, process: Process) -> None:
        """Wake once at the end of ``process`` if it still runs and the kernel has pidfds."""
        try:
            fd = os.pidfd_open(process.pid)
        except (OSError, AttributeError):  # the kernel is old, or Python was built on an old kernel
            return
        if not process.is_alive:  # another process may have its pid by now
            os.close(fd)
            return
        self.forget(uid)
        self._fds[uid] = fd
        self._poller.register(fd, select.POLLIN)
        self._poller_with_socket.register(fd, zmq.POLLIN)

    def watches(self, uid: int) -> bool:
        """Return whether the end of job ``uid`` wakes the agent; otherwise the job is polled."""
        return uid in self._fds

    def forget(self, uid: int) -> None:
        """Stop watching the process of job ``uid``."""
        fd = self._fds.pop(uid, None)
        if fd is not None:
            self._poller.unregister(fd)
            self._poller_with_socket.unregister(fd)
            os.close(fd)

    def wait(self, seconds: float, *, listening: bool) -> Wakeup:
        """Wait for an event, ``seconds`` at most, and return what happened.

        An event is the end of a process, an announcement or, if ``listening``, an answer.
        """
        timeout_ms = round(1000 * max(0.0, seconds))
        ready_sources = {
            source
            for source, _ in (self._poller_with_socket.poll(timeout_ms) if listening else self._poller.poll(timeout_ms))
        }
        ended_uids = [uid for uid, fd in self._fds.items() if fd in ready_sources]
        for uid in ended_uids:
            self.forget(uid)
        has_announcement = self._announcements.fd in ready_sources
        if has_announcement:
            self._announcements.clear()
        return Wakeup(len(ready_sources) > len(ended_uids) + has_announcement, bool(ended_uids), has_announcement)

    def close(self) -> None:
        """Stop watching everything."""
        for uid in list(self._fds):
            self.forget(uid)
        self._announcements.close()
