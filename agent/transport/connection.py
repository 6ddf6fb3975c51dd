"""The agent's end of the wire (docs/wire.md).

A DEALER socket sends GREETING until the collector sends WELCOME, and again after a silence.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import zmq

from ...formats import wire
from ...formats.addresses import Endpoint
from ...formats.errors import FormatError, VersionError
from ...formats.wire import Head
from .links import LINKS
from .message_queue import encode

#: Silence of the collector after which it is greeted again (seconds). While the collector refuses
#: this agent, the interval doubles with each greeting, up to REFUSED_GREET_S. This maximum exceeds
#: the default idle time of a collector. So greetings do not keep a collector of another version
#: running: it ends when it is idle, and one of this version can replace it.
GREET_S: Final = 1.0
REFUSED_GREET_S: Final = 128.0
#: Time since the last message after which a collector counts as absent (seconds).
ABSENT_AFTER_S: Final = 3.0
#: Shortest and longest interval of reconnection attempts (ms).
_RECONNECT_MS: Final = (100, 400)
_ANSWER_MAX: Final = 1 << 20
#: Limits of the messages in the socket, and of their bytes in the kernel. They are small, since
#: messages are sent in order: a new message waits for those of all other jobs.
_QUEUED_MESSAGES: Final = 64
_KERNEL_BYTES: Final = 32 << 10


class CollectorConnection:
    """The connection to the collector at ``endpoint``; it reconnects automatically.

    ``key``: the setting `collector-key`, for a collector on another host.
    """

    def __init__(self, endpoint: Endpoint, greeting: Mapping[str, Any], key: str = "") -> None:
        self._context = zmq.Context()
        socket = self.socket = self._context.socket(zmq.DEALER)
        # Send only while a collector is connected: otherwise the data waits in the rings.
        socket.setsockopt(zmq.IMMEDIATE, 1)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.SNDHWM, _QUEUED_MESSAGES)
        socket.setsockopt(zmq.SNDBUF, _KERNEL_BYTES)
        socket.setsockopt(zmq.MAXMSGSIZE, _ANSWER_MAX)
        socket.setsockopt(zmq.RECONNECT_IVL, _RECONNECT_MS[0])
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, _RECONNECT_MS[1])
        self._link = LINKS[endpoint.scheme](socket, endpoint, key)
        self._greeting = encode({**greeting, "wire": wire.SUPPORTED_VERSIONS})
        self.last_greeting_s = 0.0
        self._refused_interval_s = GREET_S
        self._collector_pid = 0
        self.last_answer_s = 0.0
        self.collector: dict[str, Any] | None = None
        self.refusal: dict[str, str] | None = None
        self.is_full = False  # the last message did not fit into the socket

    def close(self) -> None:
        """Close the connection and drop messages in transit."""
        self._link.close()
        self._context.destroy(linger=0)

    @property
    def failure(self) -> dict[str, str] | None:
        """The reason why the collector takes nothing, as slug and text; None if none is known."""
        return self.refusal or self._link.failure

    def is_starting(self, now: float) -> bool:
        """Whether a service of this host has taken the connection, and its collector is silent."""
        return self._link.is_attended and not self.is_accepting(now)

    def _check_link(self, now: float) -> None:
        if self._link.check(now):
            self._refused_interval_s = GREET_S

    def greet(self, now: float) -> None:
        """Greet after a silence; a collector that refused us may have been replaced meanwhile."""
        if now < max(self.last_greeting_s, self.last_answer_s) + (
            GREET_S if self.refusal is None else self._refused_interval_s
        ):
            return
        self.last_greeting_s = now
        if self.refusal is not None:
            self._refused_interval_s = min(2 * self._refused_interval_s, REFUSED_GREET_S)
        self._put(Head(wire.GREETING), self._greeting)

    def note_collector(self, pid: int) -> None:
        """Reset the delay after a refusal if ``pid``, the current collector, is a new process."""
        if pid and pid != self._collector_pid:
            self._collector_pid = pid
            self._refused_interval_s = GREET_S

    def is_accepting(self, now: float) -> bool:
        """Whether a collector of our version answers."""
        return self.collector is not None and self.refusal is None and now < self.last_answer_s + ABSENT_AFTER_S

    def send(self, head: Head, body: bytes) -> bool:
        """Send a message; False if there is no collector to take it now."""
        return self.collector is not None and self.refusal is None and self._put(head, body)

    def _put(self, head: Head, body: bytes) -> bool:
        try:
            self.socket.send_multipart((wire.pack(head), body), zmq.DONTWAIT)
        except zmq.Again:
            self.is_full = True
            return False
        self.is_full = False
        return True

    def answers(self, now: float) -> Iterator[tuple[Head, dict[str, Any]]]:
        """Yield the answers of the collector; a WELCOME only from a new collector.

        After an answer of another version, or the refusal of our greeting, only greetings are sent
        until a collector sends WELCOME; `refusal` has the reason.
        """
        self._check_link(now)
        while True:
            try:
                frames = self.socket.recv_multipart(zmq.DONTWAIT)
            except zmq.Again:
                return
            try:
                head, body = _parse(frames)
            except VersionError as error:
                self._note_refusal(error.slug, error.args[0])
                continue
            except FormatError:
                continue
            self.last_answer_s = now
            if head.type == wire.ACK:  # the collector stores data, which a WELCOME does not prove
                self._refused_interval_s = GREET_S
            try:
                self._check_version(head, body)
            except FormatError as error:
                self._note_refusal(error.slug, error.args[0])
                continue
            if head.type == wire.WELCOME and not self._accept_welcome(body):
                continue
            if head.type == wire.WELCOME and "wire" not in body:  # it has not read our greeting, or is 0.2.0
                self._put(Head(wire.GREETING), self._greeting)
            if head.type == wire.REFUSE and self._is_refusal_of_all(head, body, now):
                continue
            yield head, body

    def _is_refusal_of_all(self, head: Head, body: dict[str, Any], now: float) -> bool:
        """Note a refusal that concerns all messages, not one; return whether it does."""
        if body.get("slug") == wire.KEY_REVOKED:
            self._link.renew(now)
        elif head.about not in (0, wire.GREETING):
            return False
        self._note_refusal(str(body.get("slug")), str(body.get("text")))
        return True

    @staticmethod
    def _check_version(head: Head, body: dict[str, Any]) -> None:
        """Raise FormatError if a WELCOME names an unknown version.

        A WELCOME of release 0.2.0 names no version: the version in its head counts.
        """
        wire_version = body.get("wire") if head.type == wire.WELCOME else None
        if wire_version is not None:
            wire.common_version([wire_version] if isinstance(wire_version, int) else [])

    def _note_refusal(self, slug: str, text: str) -> None:
        self.collector = None
        self.refusal = {"slug": slug, "text": text}

    def _accept_welcome(self, welcome: dict[str, Any]) -> bool:
        """Record the WELCOME; return whether it is from a new collector."""
        self.refusal = None
        previous_collector, self.collector = self.collector, welcome
        return previous_collector is None or previous_collector.get("collector") != welcome.get("collector")


def _parse(frames: list[bytes]) -> tuple[Head, dict[str, Any]]:
    """Return head and body of an answer; FormatError if it is invalid."""
    if len(frames) != 2:
        raise FormatError(f"a message of {len(frames)} frames")
    head = wire.unpack(frames[0])
    try:
        body = json.loads(frames[1]) if frames[1] else {}
    except (ValueError, RecursionError):
        raise FormatError("an answer that is not JSON") from None
    if not isinstance(body, dict):
        raise FormatError("an answer that is not a JSON object")
    return head, body
