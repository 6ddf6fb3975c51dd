"""Decides which nodes may send to a collector that listens on the network.

ZeroMQ encrypts each connection (CURVE). It asks this process about the key of a peer before it
reads any message of it (ZAP, rfc.zeromq.org/spec/27), and names the key with each message after.
"""

from collections.abc import Callable
from typing import Final

import zmq
from zmq.utils import z85

from ...commands import key_files
from ...commands.key_files import KeyPair
from ...commands.streams import WARNING, log
from ...formats import wire
from ..errors import FormatError, TfprofError

#: Where ZeroMQ looks for the process's decision.
_ZAP: Final = "inproc://zeromq.zap.01"
_DOMAIN: Final = b"tfprof"
#: The name of all nodes that send without a key.
UNVERIFIED: Final = ""


class KeyRefusedError(FormatError):
    """A peer with a key that belongs to no node."""

    slug = "key-refused"


class KeyRevokedError(FormatError):
    """A message of a connected peer whose key was revoked meanwhile."""

    slug = wire.KEY_REVOKED


class Gate:
    """The keys of the collector and its nodes; ``report`` is called for each refused peer.

    KeyFileError if the file of the nodes is invalid.
    """

    def __init__(
        self, context: "zmq.Context[zmq.Socket[bytes]]", pair: KeyPair, report: Callable[[TfprofError], None]
    ) -> None:
        self._pair = pair
        self._report = report
        self._mark = key_files.nodes_mark()
        self._nodes = _nodes_by_key()
        self.socket = context.socket(zmq.REP)
        self.socket.bind(_ZAP)

    def close(self) -> None:
        """Let nobody in any more."""
        self.socket.close(linger=0)

    def guard(self, router: "zmq.Socket[bytes]") -> None:
        """Let only nodes send to ``router``, which is not bound yet."""
        router.curve_server = True
        router.curve_publickey = self._pair.public.encode()
        router.curve_secretkey = self._pair.secret.encode()
        router.zap_domain = _DOMAIN

    def answer(self) -> None:
        """Answer ZeroMQ's questions about peers that connect."""
        while self.socket.poll(0):
            frames = self.socket.recv_multipart()
            version, request, address = frames[0], frames[1], frames[3]
            key = z85.encode(frames[6]).decode() if frames[5] == b"CURVE" and len(frames[6:]) == 1 else ""
            is_known = key in self._nodes
            if not is_known:
                place = address.decode(errors="replace")
                self._report(KeyRefusedError(f"a peer at {place} has a key that is unknown or revoked"))
            code, text = (b"200", b"OK") if is_known else (b"400", b"unknown or revoked key")
            self.socket.send_multipart([version, request, code, text, key.encode(), b""])

    def node_of(self, frame: zmq.Frame) -> str:
        """Return the node that sent ``frame``; KeyRevokedError if its key was revoked since."""
        try:
            key = str(frame.get("User-Id"))
        except zmq.ZMQError:
            key = ""
        node = self._nodes.get(key)
        if node is None:
            raise KeyRevokedError("the key of this node was revoked")
        return node

    def admits(self, node: str) -> bool:
        """Return whether ``node`` has a key."""
        return node in self._nodes.values()

    def refresh(self) -> bool:
        """Use the nodes as they are now, and return whether they are others.

        If their file is invalid, they stay as they were.
        """
        mark = key_files.nodes_mark()
        if mark == self._mark:
            return False
        self._mark = mark
        try:
            self._nodes = _nodes_by_key()
        except TfprofError as error:
            log(f"tfprof: the keys of nodes stay as they were: {error}", level=WARNING)
            return False
        return True


def _nodes_by_key() -> dict[str, str]:
    return {key: node for node, key in key_files.nodes().items()}
