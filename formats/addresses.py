"""Endpoints: where a collector receives messages.

=======  ============  ==================================================================
scheme   place         who can reach it
=======  ============  ==================================================================
``ipc``  a socket      this user, on this host
``user`` a socket      every user of this host; the kernel tells the collector which
``tcp``  `host:port`   other hosts, with a key; without one only processes of this host
=======  ============  ==================================================================

A *shared store* is a folder that one service writes for all users of a host. Its socket, of scheme
``user``, lies in it.
"""

from __future__ import annotations

import os

from .errors import FolderError, UsageError

IPC, USER, TCP = "ipc", "user", "tcp"
SOCKET = "collector.sock"
#: Maximum length of a local socket's path (bytes).
SOCKET_PATH_MAX = 107
_PORT_MAX = 65535
#: Hosts that only processes of the same host can reach.
_LOOPBACK = frozenset(["127.0.0.1", "localhost", "[::1]"])

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional


class Endpoint(object):
    """An endpoint: its ``scheme``, and the ``place`` in that scheme."""

    __slots__ = ("place", "scheme")

    def __init__(self, scheme: str, place: str) -> None:
        self.scheme = scheme
        self.place = place

    @property
    def url(self) -> str:
        """The address for ZeroMQ."""
        return "%s://%s" % (IPC if self.scheme == USER else self.scheme, self.place)

    @property
    def socket_file(self) -> Optional[str]:
        """The path of the socket, None if there is no such file."""
        return None if self.scheme == TCP else self.place

    @property
    def is_own(self) -> bool:
        """Whether the collector is this user's, so that the agent starts it."""
        return self.scheme == IPC

    @property
    def host(self) -> str:
        """The host in a place of the network; empty for a local socket."""
        return self.place.rpartition(":")[0] if self.scheme == TCP else ""

    @property
    def is_loopback(self) -> bool:
        """Whether no other host can reach the endpoint."""
        return self.scheme != TCP or self.host in _LOOPBACK


def local_endpoint(instance_dir: str) -> Endpoint:
    """Return the endpoint of the collector of ``instance_dir``, a socket in that folder.

    FolderError if the socket's path is too long for the system.
    """
    path = os.path.join(instance_dir, SOCKET)
    if len(os.fsencode(path)) > SOCKET_PATH_MAX:
        raise FolderError("%s is too long a path for a socket: set XDG_RUNTIME_DIR to a shorter one" % instance_dir)
    return Endpoint(IPC, path)


def is_remote(store: str) -> bool:
    """Return whether ``store`` is the address of a collector that other hosts send to."""
    return store.startswith(TCP + "://")


def remote_endpoint(text: str) -> Endpoint:
    """Return the endpoint ``text``, such as tcp://head:7199; UsageError if it is invalid."""
    place = text[len(TCP) + 3 :] if is_remote(text) else ""
    host, _, port = place.rpartition(":")
    is_host = host.isascii() and host.isprintable() and not set(host) & set(" /@;?#%'\"\\")
    is_address = (":" in host) == (host[:1] + host[-1:] == "[]")  # an IPv6 address is in brackets
    if not host or not is_host or not is_address or not port.isdigit() or not 0 < int(port[:6]) <= _PORT_MAX:
        raise UsageError("%r is not the address of a collector: give one like tcp://head:7199" % text)
    return Endpoint(TCP, place)
