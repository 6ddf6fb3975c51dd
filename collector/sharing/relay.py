"""Passes bytes between a user's connection and the user's collector, without reading them."""

import contextlib
import selectors
import socket
from collections.abc import Callable
from typing import Final

#: Maximum bytes that are read at a time, and that wait in each direction.
_CHUNK: Final = 64 << 10


class Relay:
    """One connection: ``near`` is the user's socket, ``far`` that of the collector.

    Nothing is read from one side until the other side has taken what was read before. When one side
    closes, both are closed, and ``on_close`` is called.
    """

    def __init__(
        self,
        selector: selectors.BaseSelector,
        near: socket.socket,
        far: socket.socket,
        on_close: Callable[[], None],
    ) -> None:
        self._selector = selector
        self._other = {near: far, far: near}
        self._unsent = {near: b"", far: b""}
        self._on_close = on_close
        self._is_closed = False
        for end in (near, far):
            selector.register(end, selectors.EVENT_READ, self)

    def handle(self, end: socket.socket, events: int) -> None:
        """Move what can be moved now; ``events``: those of the socket ``end``."""
        if self._is_closed:
            return
        try:
            if events & selectors.EVENT_WRITE:
                self._write(end)
            if events & selectors.EVENT_READ and not self._unsent[self._other[end]]:
                self._read(end)
        except BlockingIOError:
            pass
        except OSError:  # one side has left
            self.close()
        for side in () if self._is_closed else self._other:
            self._watch(side)

    def close(self) -> None:
        """Close both sides."""
        if self._is_closed:
            return
        self._is_closed = True
        for end in self._other:
            with contextlib.suppress(KeyError):
                self._selector.unregister(end)
            end.close()
        self._on_close()

    def _read(self, end: socket.socket) -> None:
        data = end.recv(_CHUNK)
        if not data:
            self.close()
            return
        other = self._other[end]
        self._unsent[other] = data
        self._write(other)

    def _write(self, end: socket.socket) -> None:
        self._unsent[end] = self._unsent[end][end.send(self._unsent[end]) :]

    def _watch(self, end: socket.socket) -> None:
        """Wait until ``end`` gives bytes, if the other side took all, or takes those that wait."""
        events = 0 if self._unsent[self._other[end]] else selectors.EVENT_READ
        events |= selectors.EVENT_WRITE if self._unsent[end] else 0
        registered = self._selector.get_map().get(end)
        if registered is None:
            if events:
                self._selector.register(end, events, self)
        elif not events:
            self._selector.unregister(end)
        elif registered.events != events:
            self._selector.modify(end, events, self)
