"""The collector's end of the wire: messages in, answers out (docs/wire.md)."""

import json
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, ClassVar, Final, NamedTuple

import zmq

from ...formats import wire
from ...formats.addresses import Endpoint
from ...formats.old_records import converted_records
from ...formats.orders import Order
from ...formats.wire import Head
from ..errors import FormatError, StoreError, TfprofError
from ..records import document
from ..selfstats import CollectorStats
from .changes import change
from .ingest import Ingest
from .jobs import MessageError
from .order_routes import OrderRoutes, undelivered
from .parsing import TEXT_MAX
from .peers import Peers
from .request_routes import RequestRoutes
from .slices import JobAnswers
from .sockets import Answer, Listen, Sockets
from .waiting_records import BusyError

#: Limits of one turn; after it, the daemon runs its other duties.
TURN_MESSAGES: Final = 64
TURN_BYTES: Final = 16 << 20
TURN_S: Final = 0.1
#: Received bytes after which answers are sent within a turn, so that agents continue to send.
FLUSH_BYTES: Final = 2 << 20
#: The client in the collector's own orders; no connection has this identity.
_COLLECTOR: Final = b""


class Message(NamedTuple):
    """A message of ``connection``; ``node``: its verified node, None on this host."""

    connection: bytes
    node: str | None
    head: Head
    body: memoryview


class Receiver:
    """Receives, handles and answers the messages at ``endpoint``, a turn at a time.

    ``listen``: where nodes send to. All methods must be called on one thread.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        ingest: Ingest,
        stats: CollectorStats,
        welcome: Mapping[str, Any],
        listen: Listen | None = None,
    ) -> None:
        self._ingest = ingest
        self._stats = stats
        self._peers = peers = Peers(welcome)
        self._senders: dict[int, bytes] = {}
        self._sockets = sockets = Sockets(endpoint, listen, stats)
        self._requests = RequestRoutes(peers.by_connection, peers.heard_s, sockets.admits)
        self._orders = OrderRoutes(ingest.jobs, peers.by_connection, self._senders, peers.heard_s, sockets.admits)

    def turn(self, timeout_ms: int) -> bool:
        """Answer some messages and store some waiting records; return whether messages arrived.

        Wait up to ``timeout_ms`` for the first message. Answers are collected, since each sending
        wakes an agent. They are sent at least every FLUSH_BYTES.
        """
        received = self._sockets.wait(self._ingest.slices.poll_timeout_ms(timeout_ms))
        if received:
            self._receive()
        self._send_all(self._ingest.slices.work(TURN_S))
        return received

    def _receive(self) -> None:
        bytes_before = bytes_flushed = self._stats.bytes
        deadline = time.monotonic() + TURN_S
        answers: list[tuple[bytes, list[Answer]]] = []
        for connection, frames in islice(self._sockets.messages(), TURN_MESSAGES):
            answers.append((connection, self._handle(connection, frames)))
            if self._stats.bytes - bytes_flushed > FLUSH_BYTES:
                self._flush(answers)
                bytes_flushed = self._stats.bytes
            if self._stats.bytes - bytes_before > TURN_BYTES or time.monotonic() > deadline:
                break
        self._flush(answers)

    def retry(self) -> None:
        """Repeat failed appends, send what is due, end jobs of revoked keys, and forget senders."""
        self._send_all(self._ingest.slices.retry())
        self._pass_on(self._requests.lost())
        for uid in self._senders.keys() - self._ingest.jobs.open.keys():
            del self._senders[uid]
        self._ingest.end_revoked(self._sockets)

    def _send_all(self, job_answers: Iterable[JobAnswers]) -> None:
        for uid, answers in job_answers:
            if isinstance(answers, StoreError):
                self._stats.count_stall(answers)
                messages = [_error_answer(wire.STALL, Head(0, uid), answers)]
            else:
                messages = [(answer, b"") for answer in answers]
            self._sockets.send(self._senders.get(uid, b""), messages)

    def close(self) -> None:
        """Close the sockets, after at most 200 ms for pending answers."""
        self._sockets.close()

    def _handle(self, connection: bytes, frames: list[zmq.Frame]) -> list[Answer]:
        """Handle one message and return its answers; an error becomes a STALL or REFUSE."""
        self._stats.messages += 1
        self._stats.bytes += sum(len(frame.buffer) for frame in frames)
        head = Head(0)
        try:
            node = self._sockets.node_of(connection, frames)
            self._peers.note_heard(connection, node)
            head = _head(frames)
            handler = self._HANDLERS.get(head.type, Receiver._unknown)
            return handler(self, Message(connection, node, head, frames[1].buffer))
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

    def _flush(self, answers: list[tuple[bytes, list[Answer]]]) -> None:
        """Send and clear ``answers``."""
        for connection, message_answers in answers:
            self._sockets.send(connection, message_answers)
        answers.clear()

    def _pass_on(self, messages: Iterable[tuple[bytes, Answer]]) -> None:
        """Send messages, each with the connection to which it goes."""
        for receiver, message in messages:
            self._sockets.send(receiver, [message])

    def _greeting(self, message: Message) -> list[Answer]:
        return [self._peers.greet(message.connection, message.node, message.body)]

    def _job_message(self, message: Message) -> list[Answer]:
        connection, node, head, body = message
        self._ingest.jobs.check_node(head.uid, node)
        self._senders[head.uid] = connection
        peer = self._peers.by_connection.get(connection)
        if head.type == wire.RECORDS and peer is not None and peer.is_old:
            body = memoryview(converted_records(bytes(body)))
        answers: list[Answer] = [(answer, b"") for answer in self._ingest.jobs.take(head, body, node)]
        return self._peers.welcome_unknown(connection, node) + answers

    def _given_up(self, message: Message) -> list[Answer]:
        head, values = message.head, document(message.body)
        parts = [values.get("identity"), values.get("end"), values.get("event", {})]
        if not head.uid or not all(isinstance(part, dict) for part in parts):
            raise FormatError("a job given up without identity or end")
        identity, end, event = parts
        if not self._ingest.end_given_up_job(head.uid, identity, end, event or None, message.node):
            raise BusyError("records of the job are being stored")
        return [(Head(wire.ACK, head.uid, wire.GIVEN_UP, head.first, head.last), b"")]

    def _samples(self, message: Message) -> list[Answer]:
        connection, node, head, body = message
        if welcome := self._peers.welcome_unknown(connection, node):
            return welcome  # meant for an earlier collector: the agent must open its jobs first
        host = self._peers.by_connection[connection].host
        return [(answer, b"") for answer in self._ingest.samples.take(host, head, body, node)]

    def order(self, uid: int, order: Order) -> None:
        """Send the collector's own ``order`` to the agent of job ``uid``.

        An event of the job records the result. Without an agent that can receive it, the order is
        dropped.
        """
        head = Head(wire.ORDER, uid, 0, 0, secrets.randbits(62) | 1)
        body = json.dumps(order.document()).encode()
        self._pass_on(self._orders.order(_COLLECTOR, head, memoryview(body)))

    def _order(self, message: Message) -> list[Answer]:
        connection, node, head, body = message
        if node is not None:
            raise FormatError("orders are given on the collector's host", "order-remote")
        self._ingest.jobs.check_owner(head.uid)
        for receiver, order in self._orders.order(connection, head, body):
            if not self._sockets.send(receiver, [order]) and receiver != connection:
                self._sockets.send(connection, [undelivered(head)])
        return []

    def _answer(self, message: Message) -> list[Answer]:
        self._pass_on(self._orders.answer(*message))
        return []

    def _ask(self, message: Message) -> list[Answer]:
        connection, node, head, body = message
        if node is not None:
            raise FormatError("requests are made on the collector's host", "order-remote")
        asked = self._requests.ask(connection, head, body)
        ask = Head(wire.ASK, 0, 0, 0, head.last), bytes(body)
        sent = [agent for agent in asked.agents if self._sockets.send(agent, [ask])]
        self._sockets.send(connection, [self._requests.asked(head.last, sent, asked.refused)])  # before any reply
        return []

    def _reply(self, message: Message) -> list[Answer]:
        self._pass_on(self._requests.reply(*message))
        return []

    def _change(self, message: Message) -> list[Answer]:
        head, ingest = message.head, self._ingest
        if message.node is not None:
            raise FormatError("jobs are changed on the collector's host", "order-remote")
        change(ingest.store, ingest.jobs, head.uid, document(message.body))
        return [(Head(wire.ACK, head.uid, wire.CHANGE, 0, head.last), b"")]

    def _unknown(self, message: Message) -> list[Answer]:
        raise FormatError(f"unknown message type {message.head.type}")

    _HANDLERS: ClassVar[dict[int, Callable[["Receiver", Message], list[Answer]]]] = {
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
        wire.CHANGE: _change,
    }


def _head(frames: list[zmq.Frame]) -> Head:
    if len(frames) != 2:
        raise FormatError(f"a message of {len(frames)} frames, not 2")
    return wire.unpack(frames[0].bytes)


def _error_answer(kind: int, head: Head, error: TfprofError) -> Answer:
    answer = Head(kind, head.uid, head.type, head.first, head.last)
    return answer, json.dumps({"slug": error.slug, "text": error.args[0]}).encode()
