"""The agents that a collector has heard of, and what they say of themselves."""

import json
import socket
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ...formats import wire
from ...formats.wire import Head
from ..errors import FormatError
from ..records import document

#: Maximum number of remembered connections; a forgotten agent gets WELCOME again.
PEERS_MAX: Final = 1_024
#: Maximum length of an agent's release that is kept.
RELEASE_MAX: Final = 32


class Peer(NamedTuple):
    """An agent: its host, and the wire version in use with it, None before its greeting.

    ``node``: its verified node, None on this host. ``is_old``: it is of tfprof 0.2.0, which sends
    records in an older form. ``answers_requests``: it knows requests. ``release``: its version of
    tfprof, unverified.
    """

    host: str
    wire: int | None
    node: str | None = None
    is_old: bool = False
    answers_requests: bool = False
    release: str = ""


class Peers:
    """The agents by connection, and when the last message of each came (monotonic).

    ``welcome``: what WELCOME says.
    """

    def __init__(self, welcome: Mapping[str, Any]) -> None:
        self.by_connection: OrderedDict[bytes, Peer] = OrderedDict()
        self.heard_s: dict[bytes, float] = {}
        self._welcome = welcome

    def note_heard(self, connection: bytes, node: str | None) -> None:
        """Record that a message of a known connection has come from ``node``.

        A node can take the name of another one's connection that has left. It is unknown then.
        """
        peer = self.by_connection.get(connection)
        if peer is not None and peer.node != node:
            del self.by_connection[connection]
            self.heard_s.pop(connection, None)
        elif peer is not None:
            self.heard_s[connection] = time.monotonic()

    def greet(self, connection: bytes, node: str | None, body: memoryview) -> tuple[Head, bytes]:
        """Return WELCOME to the agent of a greeting; FormatError if that is invalid."""
        values = document(body)
        host = values.get("host")
        if not isinstance(host, str) or not host:
            raise FormatError("a greeting without a host")
        offered_versions = values.get("wire")
        chosen_version, welcome = 1, self._welcome
        if isinstance(offered_versions, list) and all(type(version) is int for version in offered_versions):
            chosen_version = wire.common_version(offered_versions)
            welcome = {**welcome, "wire": chosen_version}
        elif offered_versions is not None:  # tfprof 0.2.0 lists no versions and has version 1
            raise FormatError("a greeting without a list of wire versions")
        peer = Peer(
            node or host,
            chosen_version,
            node,
            is_old=offered_versions is None,
            answers_requests=values.get("requests") is True,
            release=str(values.get("version") or "")[:RELEASE_MAX],
        )
        return self._remember(connection, peer, welcome)

    def welcome_unknown(self, connection: bytes, node: str | None) -> list[tuple[Head, bytes]]:
        """Return WELCOME for an unknown connection, nothing for a known one.

        The agent of an unknown connection may not know that the collector was replaced.
        """
        if connection in self.by_connection:
            return []
        return [self._remember(connection, Peer(node or socket.gethostname(), None, node), self._welcome)]

    def _remember(self, connection: bytes, peer: Peer, welcome: Mapping[str, Any]) -> tuple[Head, bytes]:
        self.by_connection[connection] = peer
        self.heard_s[connection] = time.monotonic()
        if len(self.by_connection) > PEERS_MAX:
            forgotten, _ = self.by_connection.popitem(last=False)
            del self.heard_s[forgotten]
        return Head(wire.WELCOME), json.dumps(welcome).encode()
