"""Gives orders to jobs through the collector, and yields their answers (docs/wire.md)."""

import json
import secrets
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final, Self

import zmq

from ..formats import orders, wire
from ..formats.errors import FormatError, TfprofError
from ..formats.orders import Order, OrderAnswer
from ..formats.wire import Head
from .records import document

#: Interval at which an order is sent again until its last answer arrives, since the agent or the
#: collector may have been replaced (seconds).
RESEND_S: Final = 1.0
#: Time limit for the transport of an order and its answer, added to the job's time limit (seconds).
TRANSPORT_S: Final = 5.0
#: Maximum time to wait for a connection to a collector, each time that orders are sent (ms).
_CONNECT_MS: Final = 300
#: Maximum number of queued messages in each direction.
_QUEUED_MAX: Final = 10_000


class UnansweredError(TfprofError):
    """An order was not answered in time."""

    slug = "no-answer"


class Client:
    """A connection to the collector at ``address`` for orders to jobs; a context manager.

    Orders to several jobs are sent together. Each order gets an answer in bounded time, with or
    without a collector. An order that is sent twice is applied once.
    """

    def __init__(self, address: str) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.IMMEDIATE, 1)
        self._socket.setsockopt(zmq.SNDHWM, _QUEUED_MAX)
        self._socket.setsockopt(zmq.RCVHWM, _QUEUED_MAX)
        self._socket.setsockopt(zmq.MAXMSGSIZE, orders.BODY_MAX)
        self._socket.setsockopt(zmq.RECONNECT_IVL, 50)
        self._socket.connect(address)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._context.destroy(linger=0)

    def give(self, uids: Sequence[int], order: Order, *, to_the_end: bool = False) -> Iterator[OrderAnswer]:
        """Give ``order`` to all jobs ``uids``; yield the answer of each, in order of arrival.

        With ``to_the_end``, yield a second answer for each applied order that ends by itself, when
        it has ended and its traced steps are stored. That may take until the end of the job.
        """
        pending_uids = {secrets.randbits(62) | 1: uid for uid in uids}
        body = json.dumps(order.document()).encode()
        temporary_answers: dict[int, OrderAnswer] = {}
        answered_numbers: set[int] = set()
        deadline = time.monotonic() + order.patience_s + TRANSPORT_S
        next_send_s = 0.0
        while pending_uids:
            now = time.monotonic()
            if now >= next_send_s:
                next_send_s = now + RESEND_S
                self._send(pending_uids, body)
            for number, answer in self._answers(min(next_send_s, deadline) - now, pending_uids):
                if answer.is_temporary and number not in answered_numbers:
                    temporary_answers[number] = answer
                    continue
                if number in pending_uids and not (
                    answer.is_temporary or (number in answered_numbers and answer.state == orders.OBEYED)
                ):
                    answered_numbers.add(number)
                    if not (to_the_end and answer.state == orders.OBEYED and order.ends_by_itself):
                        del pending_uids[number]
                    yield answer
            if time.monotonic() >= deadline:
                for number in [number for number in pending_uids if number not in answered_numbers]:
                    uid = pending_uids.pop(number)
                    yield temporary_answers.get(number) or unanswered(uid)
                deadline = float("inf") if pending_uids else deadline

    def _send(self, pending_uids: dict[int, int], body: bytes) -> None:
        self._socket.poll(_CONNECT_MS, zmq.POLLOUT)
        for number, uid in pending_uids.items():
            try:
                self._socket.send_multipart((wire.pack(Head(wire.ORDER, uid, 0, 0, number)), body), zmq.DONTWAIT)
            except zmq.Again:  # there is no collector now
                return

    def _answers(self, timeout_s: float, pending_uids: dict[int, int]) -> Iterator[tuple[int, OrderAnswer]]:
        """Yield the answers in all messages that have arrived.

        Wait up to ``timeout_s`` for the first message.
        """
        wait_ms = max(0, round(1000 * timeout_s))
        while self._socket.poll(wait_ms):
            wait_ms = 0
            yield from _answers_in(self._socket.recv_multipart(), pending_uids)


def unanswered(uid: int) -> OrderAnswer:
    """Return the refusal for job ``uid``, from which no answer arrived."""
    error = UnansweredError("the collector does not answer")
    return OrderAnswer(uid, orders.REFUSED, error.slug, error.args[0])


def _answers_in(frames: list[bytes], pending_uids: dict[int, int]) -> list[tuple[int, OrderAnswer]]:
    """Return the answers in a message, each with the number of its order.

    A refusal without such a number, or a malformed message, refuses all pending orders.
    """
    try:
        head, values = _parse(frames)
        if head.type == wire.ANSWER and pending_uids.get(head.last) == head.uid:
            return [(head.last, orders.answer_of(head.uid, values))]
        if head.type == wire.REFUSE and head.about in (0, wire.ORDER):
            slug, text = str(values.get("slug")), str(values.get("text"))
            numbers = [head.last] if head.last in pending_uids else [] if head.last else list(pending_uids)
            return [(number, OrderAnswer(pending_uids[number], orders.REFUSED, slug, text)) for number in numbers]
    except FormatError as error:
        return [
            (number, OrderAnswer(uid, orders.REFUSED, error.slug, error.args[0]))
            for number, uid in pending_uids.items()
        ]
    return []


def _parse(frames: list[bytes]) -> tuple[Head, dict[str, Any]]:
    if len(frames) != 2:
        raise FormatError(f"an answer of {len(frames)} frames")
    return wire.unpack(frames[0]), dict(document(memoryview(frames[1]))) if frames[1] else {}
