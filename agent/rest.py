"""How the agent rests: it wakes for what the collector says, and for the end of a process that it watches."""

import os
from typing import NamedTuple

import zmq


class Woken(NamedTuple):
    """Why a rest is over; neither when its time is."""

    answered: bool
    ended: bool


class Rest:
    """The wait between two turns."""

    def __init__(self, socket: "zmq.Socket[bytes]") -> None:
        self._poller = zmq.Poller()
        self._poller.register(socket, zmq.POLLIN)
        self._fds: dict[int, int] = {}

    def watch(self, uid: int, pid: int) -> None:
        """Wake at the end of process ``pid``, once; a system that cannot tell it is no error: it is looked for anyway."""
        try:
            fd = os.pidfd_open(pid)
        except (OSError, AttributeError):  # an old kernel, or a Python that was built on one
            return
        self._fds[uid] = fd
        self._poller.register(fd, zmq.POLLIN)

    def forget(self, uid: int) -> None:
        """Wake for this process no more."""
        fd = self._fds.pop(uid, None)
        if fd is not None:
            self._poller.unregister(fd)
            os.close(fd)

    def wait(self, seconds: float) -> Woken:
        """Return when there is something to do, or after ``seconds``."""
        ready = {source for source, _ in self._poller.poll(round(1000 * max(0.0, seconds)))}
        ended = [uid for uid, fd in self._fds.items() if fd in ready]
        for uid in ended:
            self.forget(uid)
        return Woken(len(ready) > len(ended), bool(ended))

    def close(self) -> None:
        """Let go of all processes."""
        for uid in list(self._fds):
            self.forget(uid)
