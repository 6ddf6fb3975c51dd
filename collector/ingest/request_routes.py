"""Routes requests from clients to the agents of hosts, and replies back to the clients."""

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

from ...formats import requests, wire
from ...formats.errors import VersionError
from ...formats.requests import Reply
from ...formats.wire import Head
from ..errors import FormatError
from ..records import document
from .gate import KeyRevokedError
from .order_routes import SILENT_S
from .peers import Peer

#: Maximum number of remembered requests; the oldest is dropped first.
ROUTES_MAX: Final = 256
#: Silence after which an agent does not answer any more (seconds).
LOST_S: Final = 10.0
#: The reply in place of one that is too large.
_TOO_LARGE: Final = json.dumps(Reply(slug="reply-too-large", text="its reply is too large").document()).encode()
_LOST: Final = json.dumps(
    Reply(slug="no-answer", text="its agent is silent now; what was asked may be done").document()
).encode()


class Refused(NamedTuple):
    """An agent that a request is not sent to, and why."""

    host: str
    slug: str
    text: str


class Asked(NamedTuple):
    """The connections that a request goes to, and the agents that it does not go to."""

    agents: Sequence[bytes]
    refused: Sequence[Refused]


class _Route(NamedTuple):
    client: bytes
    nodes: dict[bytes, str | None]  # by connection of each agent that has not replied


class RequestRoutes:
    """The client and the agents of each request; the arguments are as for `OrderRoutes`."""

    def __init__(
        self, peers: Mapping[bytes, Peer], heard_s: Mapping[bytes, float], admits: Callable[[str], bool]
    ) -> None:
        self._peers = peers
        self._heard_s = heard_s
        self._admits = admits
        self._routes: OrderedDict[int, _Route] = OrderedDict()

    def ask(self, client: bytes, head: Head, body: memoryview) -> Asked:
        """Return the agents for the request of ``client``; FormatError if it is invalid."""
        if len(body) > requests.REQUEST_MAX:
            raise FormatError(f"a request of {len(body)} bytes, more than {requests.REQUEST_MAX}")
        values = document(body)
        request = requests.request_of(values)
        patterns = values.get("hosts")
        if not isinstance(patterns, list) or not all(isinstance(pattern, str) for pattern in patterns):
            raise FormatError("a request without a list of hosts")
        agents: list[bytes] = []
        refused: list[Refused] = []
        for connection, peer in self._peers.items():
            is_heard = time.monotonic() - self._heard_s.get(connection, 0.0) <= SILENT_S
            is_named = any(fnmatchcase(peer.host.lower(), pattern.lower()) for pattern in patterns)
            if peer.wire is None or not is_heard or not is_named:
                continue
            error = self._obstacle(peer)
            if error is None:
                agents.append(connection)
            else:
                refused.append(Refused(peer.host, error.slug, error.args[0]))
        if request.pid and len(agents) + len(refused) > 1:
            text = f"{len(agents) + len(refused)} agents are called so, and the process is on the host of one of them"
            agents, refused = [], [Refused(patterns[0], "host-ambiguous", text)]
        self._routes[head.last] = _Route(client, {agent: self._peers[agent].node for agent in agents})
        if len(self._routes) > ROUTES_MAX:
            self._routes.popitem(last=False)
        return Asked(agents, refused)

    def _obstacle(self, peer: Peer) -> KeyRevokedError | FormatError | None:
        """Return the reason why an agent gets no requests, None if it does."""
        if peer.node is not None and not self._admits(peer.node):
            return KeyRevokedError(f"the key of {peer.node} was revoked")
        if not peer.answers_requests:
            text = f"its agent is of tfprof {peer.release or '0.2.0'}, which knows no requests of other hosts"
            return FormatError(f"{text}: upgrade it, and restart it (tfprof stop, tfprof start)", VersionError.slug)
        return None

    def asked(self, number: int, sent: Sequence[bytes], refused: Sequence[Refused]) -> tuple[Head, bytes]:
        """Return the first answer to the client: the agents that were sent request ``number``."""
        nodes = self._routes[number].nodes
        for agent in nodes.keys() - set(sent):
            del nodes[agent]
        hosts = {_name(agent): self._peers[agent].host for agent in sent}
        return _message(number, {"asked": hosts, "refused": refused}, b"")

    def reply(
        self, agent: bytes, node: str | None, head: Head, body: memoryview
    ) -> list[tuple[bytes, tuple[Head, bytes]]]:
        """Return the message with the reply of ``agent``, on ``node``, to the client.

        The list is empty unless the agent was asked and has not replied. Only the client reads the
        content.
        """
        route = self._routes.get(head.last)
        if route is None or agent not in route.nodes or route.nodes[agent] != node:
            return []
        del route.nodes[agent]
        content = bytes(body) if len(body) <= requests.REPLY_MAX else _TOO_LARGE
        return [(route.client, _message(head.last, {"agent": _name(agent)}, content))]

    def lost(self) -> list[tuple[bytes, tuple[Head, bytes]]]:
        """Return the messages to the clients about agents that have fallen silent.

        An agent is heard all the time, also while a command runs beside it.
        """
        now = time.monotonic()
        messages = []
        for number, route in self._routes.items():
            for agent in [agent for agent in route.nodes if now - self._heard_s.get(agent, 0.0) > LOST_S]:
                del route.nodes[agent]
                messages.append((route.client, _message(number, {"agent": _name(agent)}, _LOST)))
        return messages


def _name(agent: bytes) -> str:
    return agent.hex()


def _message(number: int, first_line: Mapping[str, Any], rest: bytes) -> tuple[Head, bytes]:
    return Head(wire.REPLY, 0, wire.ASK, 0, number), json.dumps(first_line).encode() + b"\n" + rest
