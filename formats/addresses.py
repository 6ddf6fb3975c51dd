"""The ZeroMQ address of a collector."""

from __future__ import annotations

import os

from .errors import FolderError

_LOCAL = "ipc://"
_SOCKET = "collector.sock"
#: Maximum length of a local socket's path (bytes).
_PATH_MAX = 107

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional


def collector_address(instance_dir: str) -> str:
    """Return the address of the collector of ``instance_dir``: a local socket in it.

    FolderError if the socket's path is too long for the system.
    """
    path = os.path.join(instance_dir, _SOCKET)
    if len(os.fsencode(path)) > _PATH_MAX:
        raise FolderError("%s is too long a path for a socket: set XDG_RUNTIME_DIR to a shorter one" % instance_dir)
    return _LOCAL + path


def socket_file(address: str) -> Optional[str]:
    """Return the path of the socket at ``address``, None if the address is not local."""
    return address[len(_LOCAL) :] if address.startswith(_LOCAL) else None
