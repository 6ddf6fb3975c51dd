"""Routes orders from clients to the agents of jobs, and the answers back (docs/wire.md)."""

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from ...formats import orders, wire
from ...formats.errors import TfprofError, VersionError
from ...formats.orders import JobGoneError, OrderAnswer
from ...formats.wire import Head
from ..errors import FormatError
from ..records import document
from .gate import KeyRevokedError
from .jobs import OpenJobs
from .peers import Peer

#: Maximum number of remembered routes; the oldest is dropped first.
ROUTES_MAX: Final = 4_096
#: Silence after which an agent gets no orders (seconds); it sends a message at least every two.
SILENT_S: Final = 5.0
_NOT_CONNECTED: Final = "the agent of the job is not connected"


class NoAgentError(TfprofError):
    """The agent of the job is not connected."""

    slug = orders.NO_AGENT


class _Route(NamedTuple):
    client: bytes
    agent: bytes
    node: str | None
    uid: int


class OrderRoutes:
    """The client and the agent of each order.

    ``peers``: the agents by connection. ``senders``: by job, the last connection that sent a
    message about it. ``heard_s``: by connection, when its last message came (monotonic).
    ``admits``: whether a node may send. The content of orders is not stored.
    """

    def __init__(
        self,
        jobs: OpenJobs,
        peers: Mapping[bytes, Peer],
        senders: Mapping[int, bytes],
        heard_s: Mapping[bytes, float],
        admits: Callable[[str], bool],
    ) -> None:
        self._jobs = jobs
        self._peers = peers
        self._senders = senders
        self._heard_s = heard_s
        self._admits = admits
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
            return [(client, _refusal(head, error))]
        self._routes[head.last] = _Route(client, agent, self._jobs.node_of(head.uid), head.uid)
        self._routes.move_to_end(head.last)
        if len(self._routes) > ROUTES_MAX:
            self._routes.popitem(last=False)
        return [(agent, (Head(wire.ORDER, head.uid, 0, 0, head.last), bytes(body)))]

    def answer(
        self, agent: bytes, node: str | None, head: Head, body: memoryview
    ) -> list[tuple[bytes, tuple[Head, bytes]]]:
        """Return the message with the answer of ``agent``, on ``node``, to the client of the order.

        The list is empty if the order is unknown, or went to another agent or job. A node can take
        the connection's name of another one that has left, so both are compared.
        """
        _check_size(body)
        answer = orders.answer_of(head.uid, document(body))
        route = self._routes.get(head.last)
        if route is None or route[1:] != (agent, node, head.uid):
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
        node = self._jobs.node_of(uid) if uid in self._jobs.open else None
        if node is not None and not self._admits(node):
            raise KeyRevokedError(f"the key of {node} was revoked: `tfprof keys add {node}` makes a new one")
        if uid not in self._jobs.open or agent is None or peer is None or peer.wire is None or peer.node != node:
            raise NoAgentError(_NOT_CONNECTED)
        silence_s = time.monotonic() - self._heard_s.get(agent, 0.0)
        if silence_s > SILENT_S:
            raise NoAgentError(f"the agent of the job has been silent for {silence_s:.0f} s")
        required = wire.version_of(wire.ORDER)
        if peer.wire < required:
            text = f"the agent on {peer.host} speaks wire version {peer.wire}, orders need version {required}"
            raise FormatError(f"{text}: restart it with this release", VersionError.slug)
        return agent


def undelivered(head: Head) -> tuple[Head, bytes]:
    """Return the answer to an order that could not be sent to its agent."""
    return _refusal(head, NoAgentError(_NOT_CONNECTED))


def _refusal(head: Head, error: TfprofError) -> tuple[Head, bytes]:
    return _message(head.last, OrderAnswer(head.uid, orders.REFUSED, error.slug, error.args[0]))


def _message(number: int, answer: OrderAnswer) -> tuple[Head, bytes]:
    return Head(wire.ANSWER, answer.uid, wire.ORDER, 0, number), json.dumps(answer.document()).encode()


def _check_size(body: memoryview) -> None:
    if len(body) > orders.BODY_MAX:
        raise FormatError(f"an order or an answer of {len(body)} bytes, more than {orders.BODY_MAX}")
