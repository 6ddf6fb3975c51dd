"""Links to a collector: how the agent's socket connects to an endpoint, and why it does not."""

import contextlib
import math
import struct
from collections.abc import Mapping
from typing import Final

import zmq

from ...commands import key_files
from ...formats.addresses import IPC, TCP, USER, Endpoint
from ...formats.errors import TfprofError

#: Delay before a new attempt after the collector has refused the key, or without a key (seconds).
RETRY_S: Final = 5.0
#: Interval of heartbeats, and silence after which the connection counts as cut (ms).
_HEARTBEAT_MS: Final = 5_000
_CUT_MS: Final = 15_000

#: The first frame of an event of ZeroMQ: its number and a value. `zmq.utils.monitor` reads it, too,
#: but imports asyncio, which no agent needs.
_EVENT: Final = struct.Struct("=HI")
_WATCHED: Final = (
    zmq.EVENT_CONNECTED
    | zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_CLOSED
    | zmq.EVENT_DISCONNECTED
)
_TAKEN: Final = (zmq.EVENT_CONNECTED, zmq.EVENT_HANDSHAKE_SUCCEEDED)
#: Over a network they mean that the peer has another key.
_FAILED_HANDSHAKES: Final = (zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL, zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL)


class LocalLink:
    """A link to a socket of this user on this host: it needs no key."""

    failure: dict[str, str] | None = None
    is_attended = False

    def __init__(self, socket: "zmq.Socket[bytes]", endpoint: Endpoint, _key: str) -> None:
        socket.connect(endpoint.url)

    def check(self, now: float) -> bool:
        """Do nothing: the collector's start tells why it does not run."""
        del now
        return False

    def renew(self, now: float) -> None:
        """Do nothing: there is no key."""

    def close(self) -> None:
        """Do nothing."""


class RemoteLink:
    """A link to a collector on another host, or to a service of this host.

    ``key`` is the setting `collector-key`. A service of this host needs none. ``failure``: the
    reason why there is no connection, if known. ``is_attended``: whether a service of this host has
    taken the connection. It starts the collector if none runs.
    """

    def __init__(self, socket: "zmq.Socket[bytes]", endpoint: Endpoint, key: str) -> None:
        self.failure: dict[str, str] | None = None
        self.is_attended = False
        self._socket = socket
        self._endpoint = endpoint
        self._key = key
        self._node = ""
        self._retry_s = -math.inf
        socket.setsockopt(zmq.HEARTBEAT_IVL, _HEARTBEAT_MS)
        socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, _CUT_MS)
        socket.setsockopt(zmq.IPV6, 1)
        self._monitor = socket.get_monitor_socket(_WATCHED)

    def check(self, now: float) -> bool:
        """Connect if that is due; return whether a connection was made since the last call."""
        has_connected = False
        while self._monitor.poll(0):
            event, _value = _EVENT.unpack(self._monitor.recv_multipart()[0])
            has_connected = has_connected or event == zmq.EVENT_HANDSHAKE_SUCCEEDED
            self._note(event, now)
        if now >= self._retry_s:
            self._retry_s = math.inf
            self._connect(now)
        return has_connected

    def renew(self, now: float) -> None:
        """Connect anew after a while, with the key as it is then."""
        with contextlib.suppress(zmq.ZMQError):  # ZeroMQ itself has given up after a refusal
            self._socket.disconnect(self._endpoint.url)
        self._retry_s = now + RETRY_S

    def close(self) -> None:
        """Close the monitor."""
        self._socket.disable_monitor()

    def _connect(self, now: float) -> None:
        try:
            self._use_key()
        except TfprofError as error:
            self.failure = {"slug": error.slug, "text": error.args[0]}
            self._retry_s = now + RETRY_S
            return
        self._socket.connect(self._endpoint.url)

    def _use_key(self) -> None:
        """Set the key of the next connection; TfprofError if there is no usable one."""
        if self._endpoint.scheme == USER:
            return
        if self._key == key_files.NO_KEY:
            if not self._endpoint.is_loopback:
                raise key_files.KeyFileError(
                    f"collector-key = {key_files.NO_KEY} is for an address of this host only, not {self._endpoint.url}"
                )
            self._node = "this host without a key"
            return
        key = key_files.node_key(key_files.node_key_path(self._key))
        self._node = key.node
        self._socket.curve_publickey = key.pair.public.encode()
        self._socket.curve_secretkey = key.pair.secret.encode()
        self._socket.curve_serverkey = key.collector.encode()

    def _note(self, event: int, now: float) -> None:
        self.is_attended = self._endpoint.scheme == USER and event in _TAKEN
        if event == zmq.EVENT_HANDSHAKE_SUCCEEDED or self.is_attended:
            self.failure = None
        elif event == zmq.EVENT_CONNECTED:  # over a network, it may still be refused
            return
        elif event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
            text = f"the collector at {self._endpoint.place} does not know the key of {self._node}, or has revoked it"
            self.failure = {"slug": "key-refused", "text": text}
            self.renew(now)
        elif self._endpoint.scheme == TCP and event in _FAILED_HANDSHAKES:
            text = f"what answers at {self._endpoint.place} does not have the collector's key that this host knows"
            self.failure = {"slug": "collector-key", "text": text}
            self.renew(now)
        elif event == zmq.EVENT_CLOSED or self.failure is None:
            text = f"no collector answers at {self._endpoint.place}"
            self.failure = {"slug": "collector-away", "text": text}


#: The link for each scheme.
LINKS: Final[Mapping[str, type[LocalLink] | type[RemoteLink]]] = {IPC: LocalLink, USER: RemoteLink, TCP: RemoteLink}
