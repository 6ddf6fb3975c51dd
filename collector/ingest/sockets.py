"""The sockets of a collector: one for this host, and one for nodes if it listens for them."""

from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import zmq

from ...commands.key_files import KeyPair
from ...formats import wire
from ...formats.addresses import IPC, TCP, Endpoint
from ...formats.wire import Head
from ..errors import TfprofError
from ..selfstats import CollectorStats
from .gate import UNVERIFIED, Gate

#: Maximum number of queued messages per agent, a few MiB each; further ones wait in the agent.
WAITING_MESSAGES: Final = 4
#: The same per node: its messages wait in the kernel and in the node.
WAITING_OF_NODE: Final = 2
#: Interval of heartbeats to nodes, and time limit for proving a key (milliseconds).
HEARTBEAT_MS: Final = 5_000
HANDSHAKE_MS: Final = 10_000

Answer = tuple[Head, bytes]


class ListenError(TfprofError):
    """An address at which the collector cannot listen."""

    slug = "listen"


class Listen(NamedTuple):
    """Where nodes send to, and the collector's keys; without keys nothing is encrypted."""

    endpoint: Endpoint
    pair: KeyPair | None


class Sockets:
    """A ROUTER socket at ``endpoint``, and with ``listen`` a second one, to which nodes send.

    A *connection* is the number of a socket and ZeroMQ's name of a peer there. ZeroMQ reads its
    connections round-robin, so an agent that sends very many messages delays each message of the
    others by one message. ``has_new_nodes`` is set when the nodes that may send have changed.
    ListenError if an address cannot be used.
    """

    def __init__(self, endpoint: Endpoint, listen: Listen | None, stats: CollectorStats) -> None:
        self._context = zmq.Context()
        self._gate = (
            None if listen is None or listen.pair is None else Gate(self._context, listen.pair, stats.count_refusal)
        )
        endpoints = [endpoint] if listen is None else [endpoint, listen.endpoint]
        self.has_new_nodes = False
        self._sockets = [self._bound_socket(place) for place in endpoints]
        self._poller = zmq.Poller()
        for waiting in [*self._sockets, *([] if self._gate is None else [self._gate.socket])]:
            self._poller.register(waiting, zmq.POLLIN)

    def _bound_socket(self, endpoint: Endpoint) -> "zmq.Socket[bytes]":
        file = endpoint.socket_file
        if file is not None:
            Path(file).unlink(missing_ok=True)
        router = self._context.socket(zmq.ROUTER)
        router.set_hwm(1_000)
        router.rcvhwm = WAITING_MESSAGES
        router.maxmsgsize = wire.BODY_MAX
        router.router_mandatory = True  # an order to a peer that has left is not lost unnoticed
        _KINDS[endpoint.scheme](router)
        if endpoint.scheme == TCP and self._gate is not None:
            self._gate.guard(router)
        try:
            router.bind(endpoint.url)
        except zmq.ZMQError as error:
            self._context.destroy(linger=0)
            raise ListenError(f"{endpoint.url}: {error.strerror}") from None
        if file is not None:
            Path(file).chmod(0o600)
        return router

    def wait(self, timeout_ms: int) -> bool:
        """Wait for a message, up to ``timeout_ms``; return whether there is one."""
        ready = [socket for socket, _ in self._poller.poll(timeout_ms)]
        if self._gate is not None:
            self.has_new_nodes = self._gate.refresh() or self.has_new_nodes
            self._gate.answer()
        return any(socket in self._sockets for socket in ready)

    def messages(self) -> Iterator[tuple[bytes, list[zmq.Frame]]]:
        """Yield the connection and the frames of each message, from each socket in turn."""
        waiting = deque(range(len(self._sockets)))
        while waiting:
            number = waiting.popleft()
            try:
                frames = self._sockets[number].recv_multipart(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                continue
            waiting.append(number)
            yield bytes([number]) + frames[0].bytes, frames[1:]

    def node_of(self, connection: bytes, frames: Sequence[zmq.Frame]) -> str | None:
        """Return the node that sent a message; None for an agent or a client of this host."""
        if connection[:1] == b"\0":
            return None
        return UNVERIFIED if self._gate is None else self._gate.node_of(frames[0])

    def admits(self, node: str) -> bool:
        """Return whether ``node`` may send; without keys every node may."""
        return self._gate is None or self._gate.admits(node)

    def send(self, connection: bytes, answers: Sequence[Answer]) -> bool:
        """Send ``answers``; return False if one of them could not be sent.

        An empty ``connection`` is the collector itself, or an agent that is forgotten.
        """
        if not connection:
            return False
        unsent = [answer for answer in answers if not self._is_sent(connection, *answer)]
        return not unsent

    def _is_sent(self, connection: bytes, head: Head, body: bytes) -> bool:
        try:
            self._sockets[connection[0]].send_multipart([connection[1:], wire.pack(head), body], zmq.NOBLOCK)
        except zmq.Again:  # the queue is full: the agent sends its message again
            return False
        except zmq.ZMQError as error:
            if error.errno != zmq.EHOSTUNREACH:  # the peer has left
                raise
            return False
        return True

    def close(self) -> None:
        """Close the sockets, after at most 200 ms for pending answers."""
        for router in self._sockets:
            router.close(linger=200)
        if self._gate is not None:
            self._gate.close()
        self._context.term()


def _for_this_host(router: "zmq.Socket[bytes]") -> None:
    router.router_handover = True


def _for_nodes(router: "zmq.Socket[bytes]") -> None:
    """Bound what a peer can hold; without handover none takes the connection of another."""
    router.rcvhwm = WAITING_OF_NODE
    router.ipv6 = True
    router.heartbeat_ivl = HEARTBEAT_MS
    router.heartbeat_timeout = 3 * HEARTBEAT_MS
    router.handshake_ivl = HANDSHAKE_MS


#: Scheme of an endpoint -> function that sets up its socket.
_KINDS: Final = {IPC: _for_this_host, TCP: _for_nodes}
