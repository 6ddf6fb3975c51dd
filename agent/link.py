"""The agent's end of the wire: one DEALER, greeting until it is welcomed (docs/wire.md)."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import zmq
from tfprof.shim import wire
from tfprof.shim.errors import FormatError, VersionError
from tfprof.shim.wire import Head

from .outbox import encode

#: A collector that says nothing for this long is greeted again, once in as long.
GREET_S: Final = 1.0
_ANSWER_MAX: Final = 1 << 20
_QUEUED_MESSAGES: Final = 1000


class Link:
    """The connection to the collector of one instance; it reconnects by itself whenever a collector is there."""

    def __init__(self, address: str, greeting: Mapping[str, Any]) -> None:
        self._context = zmq.Context()
        socket = self.socket = self._context.socket(zmq.DEALER)
        # Only to a collector that is there: what waits for one waits in the rings.
        socket.setsockopt(zmq.IMMEDIATE, 1)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.SNDHWM, _QUEUED_MESSAGES)
        socket.setsockopt(zmq.MAXMSGSIZE, _ANSWER_MAX)
        socket.setsockopt(zmq.RECONNECT_IVL, 100)
        socket.connect(address)
        self._greeting = encode(greeting)
        self._greeted_s = 0.0
        self.heard_s = 0.0
        self.collector: dict[str, Any] | None = None
        self.refusal: dict[str, str] | None = None

    def close(self) -> None:
        """Drop the connection with whatever was on its way."""
        self._context.destroy(linger=0)

    def greet(self, now: float) -> None:
        """Greet when nothing was heard for a second."""
        if self.refusal is None and now >= max(self._greeted_s, self.heard_s) + GREET_S:
            self._greeted_s = now
            self._put(Head(wire.GREETING), self._greeting)

    def send(self, head: Head, body: bytes) -> bool:
        """Hand a message on; False when there is no collector to take it now."""
        return self.collector is not None and self.refusal is None and self._put(head, body)

    def _put(self, head: Head, body: bytes) -> bool:
        try:
            self.socket.send_multipart((wire.pack(head), body), zmq.DONTWAIT)
        except zmq.Again:
            return False
        return True

    def answers(self, now: float) -> Iterator[tuple[Head, dict[str, Any]]]:
        """Yield what the collector said; a WELCOME only from a collector that is another one than the last.

        VersionError of its answers, and its refusal of our version, end all sending and are kept in `refusal`.
        """
        while True:
            try:
                frames = self.socket.recv_multipart(zmq.DONTWAIT)
            except zmq.Again:
                return
            try:
                head, body = _parse(frames)
            except VersionError as error:
                self.refusal = {"slug": error.slug, "text": error.args[0]}
                continue
            except FormatError:
                continue
            self.heard_s = now
            if head.type == wire.WELCOME and not self._is_new(body):
                continue
            if head.type == wire.REFUSE and head.about in (0, wire.GREETING):
                self.refusal = {"slug": str(body.get("slug")), "text": str(body.get("text"))}
                continue
            yield head, body

    def _is_new(self, welcome: dict[str, Any]) -> bool:
        last, self.collector = self.collector, welcome
        return last is None or last.get("collector") != welcome.get("collector")


def _parse(frames: list[bytes]) -> tuple[Head, dict[str, Any]]:
    """Return head and body of an answer; FormatError when it is none."""
    if len(frames) != 2:
        raise FormatError(f"a message of {len(frames)} frames")
    head = wire.unpack(frames[0])
    try:
        body = json.loads(frames[1]) if frames[1] else {}
    except (ValueError, RecursionError):
        raise FormatError("an answer that is no JSON") from None
    if not isinstance(body, dict):
        raise FormatError("an answer that is no JSON object")
    return head, body
