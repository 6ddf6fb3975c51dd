"""The addresses of the page, as they are printed."""

import os
import pwd
import socket
from collections.abc import Iterator
from typing import Final

#: The port on the user's own machine in the printed command.
TUNNEL_PORT: Final = 8080


def socket_lines(path: str, target: str) -> Iterator[str]:
    """Yield how to open the page at ``target``, which is served at the unix socket ``path``."""
    yield "on your own machine:"
    yield f"  {tunnel(path)}"
    yield "then open there:"
    yield f"  http://localhost:{TUNNEL_PORT}{target}"


def tunnel(path: str) -> str:
    """Return the command that makes the unix socket ``path`` reachable from another machine."""
    return f"ssh -N -L {TUNNEL_PORT}:{path} {_login()}"


def port_lines(port: int, token: str, target: str) -> Iterator[str]:
    """Yield how to open the page that is served at a port of this host."""
    yield "open on this host:"
    yield f"  http://127.0.0.1:{port}{target}?token={token}"
    yield "or from your own machine, through:"
    yield f"  ssh -N -L {port}:127.0.0.1:{port} {_login()}"


def _login() -> str:
    try:
        return f"{pwd.getpwuid(os.geteuid()).pw_name}@{socket.gethostname()}"
    except KeyError:  # no name for the user id
        return socket.gethostname()
