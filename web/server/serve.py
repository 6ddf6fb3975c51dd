"""Binds a socket and serves the page, or another application, until the user ends it."""

import asyncio
import os
import signal
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import uvicorn

from ...collector.errors import TfprofError
from ...collector.store.opening import scheme_of
from ...formats.runtime_dir import digest, make_instance, make_private, runtime_root
from ..links import tunnel
from . import memory
from .app import Give, app
from .guard import Guard
from .protocol import TimedProtocol

SOCKET: Final = "web.sock"
#: Maximum length of a unix socket's path (bytes).
_PATH_MAX: Final = 107
_BACKLOG: Final = 64
#: Maximum number of connections; further ones are refused.
CONNECTIONS_MAX: Final = 200
#: Time for open answers at the end (seconds).
_END_S: Final = 1


class BoundError(TfprofError):
    """Nothing can be served at this socket or port."""

    slug = "web-address"


def socket_path(store: str) -> str:
    """Return the path of the socket for ``store`` in its private runtime folder.

    FolderError if the folder cannot be made or is not private.
    """
    if scheme_of(store):  # it has no runtime folder
        return str(Path(make_private(runtime_root())) / f"{digest(store)}-{SOCKET}")
    return str(Path(make_instance(store)) / SOCKET)


def bind_socket(path: str) -> socket.socket:
    """Return a listening unix socket at ``path``, which only this user can open at any moment.

    BoundError if another process serves there, or if the path is too long or is no socket.
    """
    if len(os.fsencode(path)) > _PATH_MAX:
        raise BoundError(f"{path} is too long a path for a socket: set XDG_RUNTIME_DIR to a shorter one")
    _remove_stale(path)
    bound = socket.socket(socket.AF_UNIX)
    old_mask = os.umask(0o177)
    try:
        bound.bind(path)
    except OSError as error:
        bound.close()
        raise BoundError(f"cannot serve at {path}: {error.strerror}") from None
    finally:
        os.umask(old_mask)
    bound.listen(_BACKLOG)
    return bound


def bind_port(port: int) -> socket.socket:
    """Return a listening socket at ``port`` of 127.0.0.1; 0 means any free one.

    BoundError if the port is taken.
    """
    bound = socket.socket(socket.AF_INET)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(("127.0.0.1", port))
    except OSError as error:
        bound.close()
        raise BoundError(f"cannot serve at port {port}: {error.strerror}; port 0 is a free one") from None
    bound.listen(_BACKLOG)
    return bound


def _remove_stale(path: str) -> None:
    """Remove the socket that a process which was killed has left."""
    try:
        if not stat.S_ISSOCK(Path(path).lstat().st_mode):
            raise BoundError(f"{path} is not a socket: remove it")
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(path)
    except FileNotFoundError:
        return
    except ConnectionRefusedError:
        with suppress(OSError):  # it may be another user's: then it is in the way
            Path(path).unlink()
        return
    except OSError as error:
        raise BoundError(f"cannot serve at {path}: {error.strerror}") from None
    raise BoundError(f"another process serves at {path} already; on your own machine: {tunnel(path)}")


class _Server(uvicorn.Server):
    """uvicorn's server, which leaves the handling of signals to `serve`."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Change no handler."""
        yield


def serve(store: str, bound: socket.socket, give: Give, ready: Callable[[], Any], token: str = "") -> None:
    """Serve the page of ``store`` at ``bound`` until SIGINT, SIGTERM or SIGHUP.

    ``give`` gives orders to jobs. ``ready`` is called when requests are answered. ``token``: secret
    of the link, empty for a private socket.
    """
    cookie = "tfprof"
    if bound.family == socket.AF_INET:  # a browser sends cookies to all ports of a host, also those of other tunnels
        cookie += f"_{bound.getsockname()[1]}_{digest(socket.gethostname())}"
    run(app(store, give, token, cookie), bound, ready)


def run(application: Guard, bound: socket.socket, ready: Callable[[], Any]) -> None:
    """Serve ``application`` at ``bound`` until SIGINT, SIGTERM or SIGHUP.

    ``ready`` is called when requests are answered.
    """
    config = uvicorn.Config(
        application,
        loop="asyncio",
        http=TimedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        limit_concurrency=CONNECTIONS_MAX,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=_END_S,
    )
    memory.confine()
    path = bound.getsockname() if bound.family == socket.AF_UNIX else None
    try:
        asyncio.run(_serve(_Server(config), bound, ready))
    finally:
        bound.close()
        if path is not None:
            with suppress(OSError):
                Path(path).unlink()


async def _serve(server: _Server, bound: socket.socket, ready: Callable[[], Any]) -> None:
    def end() -> None:
        server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end)
    ready()
    await server.serve(sockets=[bound])
