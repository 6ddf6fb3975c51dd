"""Gives orders to jobs through the collector, and yields their answers (docs/wire.md)."""

import json
import secrets
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final, Self

import zmq

from ..agent.local_daemons import bring_up
from ..formats import orders, wire
from ..formats.addresses import local_endpoint
from ..formats.errors import FormatError, TfprofError
from ..formats.orders import Order, OrderAnswer
from ..formats.runtime_dir import endpoint_elsewhere, make_instance
from ..formats.wire import Head
from .records import document
from .summaries.order_results import OrderTarget

#: Interval at which an order is sent again until its last answer arrives, since the agent or the
#: collector may have been replaced (seconds).
RESEND_S: Final = 1.0
#: Time limit for the transport of an order and its answer, added to the job's time limit (seconds).
TRANSPORT_S: Final = 5.0
#: The part of this time that is kept for the answer. If a job applied an order for the first time
#: within this part, it would be reported as a job that has not answered.
ANSWER_S: Final = 2.0
#: Maximum time to wait for a connection to a collector, each time that orders are sent (ms).
_CONNECT_MS: Final = 300
#: Maximum number of queued messages in each direction.
_QUEUED_MAX: Final = 10_000


class UnansweredError(TfprofError):
    """An order was not answered in time."""

    slug = "no-answer"


class NodeAwayError(TfprofError):
    """The agent of the job's node is not connected, or is silent."""

    slug = "node-away"


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

        With ``to_the_end``, yield a second answer for each applied order that ends by itself. It
        comes when the order has ended and its traced steps are stored. That may take until the end
        of the job.
        """
        pending_uids = {secrets.randbits(62) | 1: uid for uid in uids}
        temporary_answers: dict[int, OrderAnswer] = {}
        sent: set[int] = set()  # the last time
        maybe_obeyed: set[int] = set()  # a collector without an agent answers at once: these went to one
        obeyed: dict[int, OrderAnswer] = {}
        deadline = time.monotonic() + order.patience_s + TRANSPORT_S
        next_send_s = 0.0
        while pending_uids:
            now = time.monotonic()
            if now >= next_send_s:
                next_send_s = now + RESEND_S
                patience_s = min(order.patience_s, deadline - now - ANSWER_S)
                if patience_s > 0:
                    maybe_obeyed |= sent - temporary_answers.keys()
                    temporary_answers.clear()
                    sent = self._send(pending_uids, order._replace(patience_s=patience_s))
            for number, answer in self._answers(min(next_send_s, deadline) - now, pending_uids):
                if answer.is_temporary:
                    temporary_answers[number] = answer
                elif number not in obeyed:
                    if to_the_end and answer.state == orders.OBEYED and order.ends_by_itself:
                        obeyed[number] = answer
                    else:
                        del pending_uids[number]
                    yield answer
                elif answer.state != orders.OBEYED:
                    del pending_uids[number]
                    yield _end(obeyed[number], answer)
            if time.monotonic() >= deadline:
                missing = {number: pending_uids.pop(number) for number in pending_uids.keys() - obeyed.keys()}
                last = {number: temporary_answers.get(number) or unanswered(uid) for number, uid in missing.items()}
                yield from (  # an agent may have got an order before the order was lost
                    answer._replace(state=orders.UNANSWERED) if number in maybe_obeyed else answer
                    for number, answer in last.items()
                )
                deadline = float("inf")

    def _send(self, pending_uids: dict[int, int], order: Order) -> set[int]:
        """Send the orders that the socket takes; return their numbers."""
        body = json.dumps(order.document()).encode()
        self._socket.poll(_CONNECT_MS, zmq.POLLOUT)
        sent = set()
        for number, uid in pending_uids.items():
            try:
                self._socket.send_multipart((wire.pack(Head(wire.ORDER, uid, 0, 0, number)), body), zmq.DONTWAIT)
            except zmq.Again:  # there is no collector now
                break
            sent.add(number)
        return sent

    def _answers(self, timeout_s: float, pending_uids: dict[int, int]) -> Iterator[tuple[int, OrderAnswer]]:
        """Yield the answers in all messages that have arrived.

        Wait up to ``timeout_s`` for the first message.
        """
        wait_ms = max(0, round(1000 * timeout_s))
        while self._socket.poll(wait_ms):
            wait_ms = 0
            yield from _answers_in(self._socket.recv_multipart(), pending_uids)


def give(
    store: str, jobs: Sequence[OrderTarget], order: Order, *, to_the_end: bool = False
) -> Iterator[tuple[OrderTarget, OrderAnswer]]:
    """Give ``order`` to ``jobs`` of ``store``; yield each answer with its job.

    Jobs that have ended refuse it, and come first. The daemons of the store are started if they do
    not run: DaemonError if one does not come up. ``to_the_end``: as for `Client.give`.
    """
    for job in jobs:
        if not job.may_run:
            yield job, _gone(job)
    by_uid = {job.info.uid: job for job in jobs if job.may_run}
    if not by_uid:
        return
    instance_dir = make_instance(store)
    bring_up(store, instance_dir)
    endpoint = endpoint_elsewhere(store) or local_endpoint(instance_dir)
    with Client(endpoint.url) as client:
        for answer in client.give(list(by_uid), order, to_the_end=to_the_end):
            job = by_uid[answer.uid]
            yield job, _of_node(job, answer)


def _gone(job: OrderTarget) -> OrderAnswer:
    """Return the refusal of a job that has ended, or from which tfprof was detached."""
    info = job.info
    if info.state == "detached":
        host = f"--host {info.node} " if info.node else ""
        text = f"tfprof was detached from the job: `tfprof attach {host}{info.pid}` attaches to it again"
        return OrderAnswer(info.uid, orders.REFUSED, "job-detached", text)
    return OrderAnswer(info.uid, orders.REFUSED, orders.JobGoneError.slug, "the job has ended")


def unanswered(uid: int) -> OrderAnswer:
    """Return the answer for job ``uid`` if none has arrived: the job may still apply the order."""
    return OrderAnswer(uid, orders.UNANSWERED, UnansweredError.slug, "neither the collector nor the agent answers")


def _of_node(job: OrderTarget, answer: OrderAnswer) -> OrderAnswer:
    """Return ``answer``; for a job of another host without an agent, it says where to look."""
    if not answer.is_without_agent or job.info.node is None:
        return answer
    return answer._replace(slug=NodeAwayError.slug, text=f"{answer.text}: `tfprof status` on {job.info.node} says why")


def _end(obeyed: OrderAnswer, answer: OrderAnswer) -> OrderAnswer:
    """Return the answer about the end of an order that was applied, after a second ``answer``.

    If the second answer is a refusal, it comes from an agent that has not seen the start of the
    order, and cannot tell its end.
    """
    if answer.state == orders.ENDED:
        return answer._replace(from_ns=obeyed.from_ns)
    return answer._replace(state=orders.ENDED, from_ns=obeyed.from_ns, to_ns=time.time_ns())


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
