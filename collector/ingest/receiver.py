"""The collector's end of the wire: messages in, answers out (docs/wire.md)."""

import json
import secrets
import socket
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import zmq

from ...commands.key_files import KeyPair
from ...formats import wire
from ...formats.addresses import IPC, TCP, Endpoint
from ...formats.old_records import converted_records
from ...formats.orders import Order
from ...formats.wire import Head
from ..errors import FormatError, StoreError, TfprofError
from ..records import document
from ..selfstats import CollectorStats
from .gate import UNVERIFIED, Gate
from .jobs import JobAnswers, MessageError, OpenJobs
from .order_routes import OrderRoutes, Peer, undelivered
from .parsing import TEXT_MAX
from .request_routes import RequestRoutes
from .waiting_records import BusyError

#: Limits of one turn; after it, the daemon runs its other duties.
TURN_MESSAGES: Final = 64
TURN_BYTES: Final = 16 << 20
TURN_S: Final = 0.1
#: Received bytes after which answers are sent within a turn, so that agents continue to send.
FLUSH_BYTES: Final = 2 << 20
#: Maximum number of queued messages per agent, a few MiB each; further ones wait in the agent.
WAITING_MESSAGES: Final = 4
#: Maximum number of remembered connections; a forgotten agent gets WELCOME again.
PEERS_MAX: Final = 1_024

#: The same per node: its messages wait in the kernel and in the node.
WAITING_OF_NODE: Final = 2
#: Interval of heartbeats to nodes, and time limit for proving a key (milliseconds).
HEARTBEAT_MS: Final = 5_000
HANDSHAKE_MS: Final = 10_000

#: Maximum length of an agent's release that is kept.
RELEASE_MAX: Final = 32
#: The client in the collector's own orders; no connection has this identity.
_COLLECTOR: Final = b""

Answer = tuple[Head, bytes]


class ListenError(TfprofError):
    """An address at which the collector cannot listen."""

    slug = "listen"


class Listen(NamedTuple):
    """Where nodes send to, and the collector's keys; without keys nothing is encrypted."""

    endpoint: Endpoint
    pair: KeyPair | None


class Receiver:
    """A ROUTER socket at ``endpoint``; `turn` receives, handles and answers messages.

    With ``listen``, nodes send to a second one. A *connection* is the number of a socket and
    ZeroMQ's name of a peer there.

    All methods must be called on one thread. ZeroMQ reads its connections round-robin, so an agent
    that sends very many messages delays each message of the others by one message.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        jobs: OpenJobs,
        stats: CollectorStats,
        welcome: dict[str, Any],
        listen: Listen | None = None,
    ) -> None:
        self._jobs = jobs
        self._stats = stats
        self._welcome = json.dumps(welcome).encode()
        self._peers: OrderedDict[bytes, Peer] = OrderedDict()
        self._senders: dict[int, bytes] = {}
        self._node: str | None = None  # that of the message being handled
        self._heard_s: dict[bytes, float] = {}
        self._requests = RequestRoutes(self._peers, self._heard_s, self._admits)
        self._orders = OrderRoutes(jobs, self._peers, self._senders, self._heard_s, self._admits)
        self._context = zmq.Context()
        self._gate = (
            None if listen is None or listen.pair is None else Gate(self._context, listen.pair, stats.count_refusal)
        )
        endpoints = [endpoint] if listen is None else [endpoint, listen.endpoint]
        self._sockets = [self._bound_socket(place) for place in endpoints]
        self._poller = zmq.Poller()
        for waiting in [*self._sockets, *([] if self._gate is None else [self._gate.socket])]:
            self._poller.register(waiting, zmq.POLLIN)

    def turn(self, timeout_ms: int) -> bool:
        """Answer some messages and store some waiting records; return whether messages arrived.

        Wait up to ``timeout_ms`` for the first message. Answers are collected, since each sending
        wakes an agent. They are sent at least every FLUSH_BYTES.
        """
        ready = [socket for socket, _ in self._poller.poll(self._jobs.poll_timeout_ms(timeout_ms))]
        if self._gate is not None:
            self._gate.refresh()
            self._gate.answer()
        received = any(socket in self._sockets for socket in ready)
        if received:
            self._receive()
        self._send_all(self._jobs.work(TURN_S))
        return received

    def _receive(self) -> None:
        bytes_before = bytes_flushed = self._stats.bytes
        deadline = time.monotonic() + TURN_S
        answers: list[tuple[bytes, list[Answer]]] = []
        for connection, frames in islice(self._messages(), TURN_MESSAGES):
            answers.append((connection, self._handle(connection, frames)))
            if self._stats.bytes - bytes_flushed > FLUSH_BYTES:
                self._flush(answers)
                bytes_flushed = self._stats.bytes
            if self._stats.bytes - bytes_before > TURN_BYTES or time.monotonic() > deadline:
                break
        self._flush(answers)

    def _messages(self) -> Iterator[tuple[bytes, list[zmq.Frame]]]:
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

    def retry(self) -> None:
        """Repeat failed appends, send what is due, and forget the senders of ended jobs."""
        self._send_all(self._jobs.retry())
        for client, message in self._requests.lost():
            self._send(client, [message])
        for uid in self._senders.keys() - self._jobs.open.keys():
            del self._senders[uid]

    def _send_all(self, job_answers: Iterable[JobAnswers]) -> None:
        for uid, answers in job_answers:
            if isinstance(answers, StoreError):
                self._stats.count_stall(answers)
                messages = [_error_answer(wire.STALL, Head(0, uid), answers)]
            else:
                messages = [(answer, b"") for answer in answers]
            self._send(self._senders.get(uid, b""), messages)

    def close(self) -> None:
        """Close the sockets, after at most 200 ms for pending answers."""
        for router in self._sockets:
            router.close(linger=200)
        if self._gate is not None:
            self._gate.close()
        self._context.term()

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

    def _handle(self, connection: bytes, frames: list[zmq.Frame]) -> list[Answer]:
        """Handle one message and return its answers; an error becomes a STALL or REFUSE."""
        self._stats.messages += 1
        self._stats.bytes += sum(len(frame.buffer) for frame in frames)
        head = Head(0)
        try:
            self._node = self._node_of(connection, frames)
            if connection in self._peers:
                self._heard_s[connection] = time.monotonic()
            head = _head(frames)
            return self._HANDLERS.get(head.type, Receiver._unknown)(self, connection, head, frames[1].buffer)
        except StoreError as error:
            self._stats.count_stall(error)
            return [_error_answer(wire.STALL, head, error)]
        except BusyError as error:
            return [_error_answer(wire.STALL, head, error)]
        except FormatError as error:
            self._stats.count_refusal(error)
            return [_error_answer(wire.REFUSE, head, error)]
        except Exception as error:  # noqa: BLE001  # the failure stays within this message
            self._stats.count_failure(head.uid, error)
            refusal = MessageError(f"{type(error).__name__}: {error}"[:TEXT_MAX])
            self._stats.count_refusal(refusal)
            return [_error_answer(wire.REFUSE, head, refusal)]
        finally:
            self._stats.last_message_s = time.monotonic()

    def _node_of(self, connection: bytes, frames: list[zmq.Frame]) -> str | None:
        """Return the node that sent a message; None for an agent or a client of this host."""
        if not _is_remote(connection):
            return None
        return UNVERIFIED if self._gate is None else self._gate.node_of(frames[0])

    def _admits(self, node: str) -> bool:
        """Return whether ``node`` may send; without keys every node may."""
        return self._gate is None or self._gate.admits(node)

    def _flush(self, answers: list[tuple[bytes, list[Answer]]]) -> None:
        """Send and clear ``answers``."""
        for connection, message_answers in answers:
            self._send(connection, message_answers)
        answers.clear()

    def _send(self, connection: bytes, answers: list[Answer]) -> bool:
        """Send ``answers``; return False if one of them could not be sent."""
        if not connection:  # the collector itself, or an agent that is forgotten
            return False
        sent = [self._is_sent(connection, *answer) for answer in answers]
        return all(sent)

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

    def _greeting(self, connection: bytes, _head: Head, body: memoryview) -> list[Answer]:
        values = document(body)
        host = values.get("host")
        if not isinstance(host, str) or not host:
            raise FormatError("a greeting without a host")
        offered_versions = values.get("wire")
        chosen_version = 1
        if offered_versions is None:  # tfprof 0.2.0 lists no versions and has version 1
            welcome = self._welcome
        elif isinstance(offered_versions, list) and all(type(version) is int for version in offered_versions):
            chosen_version = wire.common_version(offered_versions)
            welcome = json.dumps({**json.loads(self._welcome), "wire": chosen_version}).encode()
        else:
            raise FormatError("a greeting without a list of wire versions")
        peer = Peer(
            self._node or host,
            chosen_version,
            self._node,
            is_old=offered_versions is None,
            answers_requests=values.get("requests") is True,
            release=str(values.get("version") or "")[:RELEASE_MAX],
        )
        self._remember(connection, peer)
        return [(Head(wire.WELCOME), welcome)]

    def _job_message(self, connection: bytes, head: Head, body: memoryview) -> list[Answer]:
        self._jobs.check_node(head.uid, self._node)
        self._senders[head.uid] = connection
        peer = self._peers.get(connection)
        if head.type == wire.RECORDS and peer is not None and peer.is_old:
            body = memoryview(converted_records(bytes(body)))
        answers: list[Answer] = [(answer, b"") for answer in self._jobs.take(head, body, self._node)]
        return self._welcome_if_unknown(connection) + answers

    def _given_up(self, _connection: bytes, head: Head, body: memoryview) -> list[Answer]:
        values = document(body)
        parts = [values.get("identity"), values.get("end"), values.get("event", {})]
        if not head.uid or not all(isinstance(part, dict) for part in parts):
            raise FormatError("a job given up without identity or end")
        identity, end, event = parts
        if not self._jobs.end_given_up_job(head.uid, identity, end, event or None, self._node):
            raise BusyError("records of the job are being stored")
        return [(Head(wire.ACK, head.uid, wire.GIVEN_UP, head.first, head.last), b"")]

    def _samples(self, connection: bytes, head: Head, body: memoryview) -> list[Answer]:
        if connection not in self._peers:  # meant for an earlier collector: the agent must open its jobs first
            return self._welcome_if_unknown(connection)
        return [(answer, b"") for answer in self._jobs.samples(self._peers[connection].host, head, body, self._node)]

    def order(self, uid: int, order: Order) -> None:
        """Send the collector's own ``order`` to the agent of job ``uid``.

        An event of the job records the result. Without an agent that can receive it, the order is
        dropped.
        """
        head = Head(wire.ORDER, uid, 0, 0, secrets.randbits(62) | 1)
        body = json.dumps(order.document()).encode()
        for connection, message in self._orders.order(_COLLECTOR, head, memoryview(body)):
            if connection != _COLLECTOR:
                self._send(connection, [message])

    def _order(self, connection: bytes, head: Head, body: memoryview) -> list[Answer]:
        if _is_remote(connection):
            raise FormatError("orders are given on the collector's host", "order-remote")
        self._jobs.check_owner(head.uid)
        for receiver, message in self._orders.order(connection, head, body):
            if not self._send(receiver, [message]) and receiver != connection:
                self._send(connection, [undelivered(head)])
        return []

    def _answer(self, connection: bytes, head: Head, body: memoryview) -> list[Answer]:
        for receiver, message in self._orders.answer(connection, self._node, head, body):
            self._send(receiver, [message])
        return []

    def _ask(self, connection: bytes, head: Head, body: memoryview) -> list[Answer]:
        if _is_remote(connection):
            raise FormatError("requests are made on the collector's host", "order-remote")
        asked = self._requests.ask(connection, head, body)
        ask = Head(wire.ASK, 0, 0, 0, head.last), bytes(body)
        sent = [agent for agent in asked.agents if self._send(agent, [ask])]
        self._send(connection, [self._requests.asked(head.last, sent, asked.refused)])
        return []

    def _reply(self, connection: bytes, head: Head, body: memoryview) -> list[Answer]:
        for receiver, message in self._requests.reply(connection, self._node, head, body):
            self._send(receiver, [message])
        return []

    def _unknown(self, _connection: bytes, head: Head, _body: memoryview) -> list[Answer]:
        raise FormatError(f"unknown message type {head.type}")

    def _welcome_if_unknown(self, connection: bytes) -> list[Answer]:
        """Return WELCOME for an unknown connection, nothing for a known one.

        The agent of an unknown connection may not know that the collector was replaced.
        """
        if connection in self._peers:
            return []
        self._remember(connection, Peer(self._node or socket.gethostname(), None, self._node))
        return [(Head(wire.WELCOME), self._welcome)]

    def _remember(self, connection: bytes, peer: Peer) -> None:
        self._peers[connection] = peer
        self._heard_s[connection] = time.monotonic()
        if len(self._peers) > PEERS_MAX:
            forgotten, _ = self._peers.popitem(last=False)
            del self._heard_s[forgotten]

    _HANDLERS: ClassVar[dict[int, Callable[["Receiver", bytes, Head, memoryview], list[Answer]]]] = {
        wire.GREETING: _greeting,
        wire.OPEN: _job_message,
        wire.RECORDS: _job_message,
        wire.SPANS: _job_message,
        wire.COUNTERS: _job_message,
        wire.CLOSE: _job_message,
        wire.EVENT: _job_message,
        wire.SAMPLES: _samples,
        wire.GIVEN_UP: _given_up,
        wire.ORDER: _order,
        wire.ANSWER: _answer,
        wire.ASK: _ask,
        wire.REPLY: _reply,
    }


def _head(frames: list[zmq.Frame]) -> Head:
    if len(frames) != 2:
        raise FormatError(f"a message of {len(frames)} frames, not 2")
    return wire.unpack(frames[0].bytes)


def _is_remote(connection: bytes) -> bool:
    return connection[:1] == b"\1"


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


def _error_answer(kind: int, head: Head, error: TfprofError) -> Answer:
    answer = Head(kind, head.uid, head.type, head.first, head.last)
    return answer, json.dumps({"slug": error.slug, "text": error.args[0]}).encode()
