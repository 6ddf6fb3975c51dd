"""Routes orders from clients to the agents of jobs, and the answers back (docs/wire.md)."""

import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final, NamedTuple

from ...formats import orders, wire
from ...formats.errors import TfprofError, VersionError
from ...formats.orders import JobGoneError, OrderAnswer
from ...formats.wire import Head
from ..errors import FormatError
from ..records import document
from .jobs import OpenJobs

#: Maximum number of remembered routes; the oldest is dropped first.
ROUTES_MAX: Final = 4_096


class Peer(NamedTuple):
    """An agent: its host, and the wire version in use with it, None before its greeting.

    ``is_old``: the agent is of tfprof 0.2.0, which sends records in an older form.
    """

    host: str
    wire: int | None
    is_old: bool = False


class NoAgentError(TfprofError):
    """The agent of the job is not connected."""

    slug = "no-agent"


class _Route(NamedTuple):
    client: bytes
    agent: bytes


class OrderRoutes:
    """The client and the agent of each order.

    ``peers``: the agents by connection. ``senders``: by job, the last connection that sent a
    message about it. The content of orders is not stored.
    """

    def __init__(self, jobs: OpenJobs, peers: Mapping[bytes, Peer], senders: Mapping[int, bytes]) -> None:
        self._jobs = jobs
        self._peers = peers
        self._senders = senders
        self._routes: OrderedDict[int, _Route] = OrderedDict()

    def order(self, client: bytes, head: Head, body: memoryview) -> list[tuple[bytes, tuple[Head, bytes]]]:
        """Return the message to the agent of job ``head.uid``, or a refusal to ``client``.

        FormatError if the message is invalid.
        """
        _check_size(body)
        orders.order_of(document(body))
        try:
            agent = self._agent(head.uid)
        except TfprofError as error:
            answer = OrderAnswer(head.uid, orders.REFUSED, error.slug, error.args[0])
            return [(client, _message(head.last, answer))]
        self._routes[head.last] = _Route(client, agent)
        self._routes.move_to_end(head.last)
        if len(self._routes) > ROUTES_MAX:
            self._routes.popitem(last=False)
        return [(agent, (Head(wire.ORDER, head.uid, 0, 0, head.last), bytes(body)))]

    def answer(self, agent: bytes, head: Head, body: memoryview) -> list[tuple[bytes, tuple[Head, bytes]]]:
        """Return the message with the answer to the client of the order.

        The list is empty if the order is unknown or went to another agent.
        """
        _check_size(body)
        answer = orders.answer_of(head.uid, document(body))
        route = self._routes.get(head.last)
        if route is None or route.agent != agent:
            return []
        return [(route.client, _message(head.last, answer))]

    def _agent(self, uid: int) -> bytes:
        """Return the connection of the agent of job ``uid``.

        TfprofError if no agent can receive the order.
        """
        if self._jobs.has_ended(uid):
            raise JobGoneError("the job has ended")
        agent = self._senders.get(uid)
        peer = None if agent is None else self._peers.get(agent)
        if uid not in self._jobs.open or agent is None or peer is None or peer.wire is None:
            raise NoAgentError("the agent of the job is not connected")
        required = wire.version_of(wire.ORDER)
        if peer.wire < required:
            text = f"the agent on {peer.host} speaks wire version {peer.wire}, orders need version {required}"
            raise FormatError(f"{text}: restart it with this release", VersionError.slug)
        return agent


def _message(number: int, answer: OrderAnswer) -> tuple[Head, bytes]:
    return Head(wire.ANSWER, answer.uid, wire.ORDER, 0, number), json.dumps(answer.document()).encode()


def _check_size(body: memoryview) -> None:
    if len(body) > orders.BODY_MAX:
        raise FormatError(f"an order or an answer of {len(body)} bytes, more than {orders.BODY_MAX}")
