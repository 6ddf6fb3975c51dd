"""`tfprof web`: the page with all jobs, in a browser."""

import atexit
import functools
import importlib.util
import os
import secrets
from collections.abc import Iterator
from typing import Any, Final, NoReturn

import click

from ..collector.daemon_status import checked_instance_dir
from ..collector.documents.orders import OrderDocument
from ..collector.errors import UsageError
from ..collector.loader import load
from ..collector.store.opening import open_reader, scheme_of
from ..commands.streams import print_lines
from ..formats import orders
from ..formats.orders import Order
from ..web import links
from .command import store_option
from .job_names import complete_jobs
from .trace import giver, order_job
from .values import NON_EMPTY, PORT

#: Packages of the extra `web`.
PACKAGES: Final = ("starlette", "uvicorn")
#: Number of steps that the page orders to trace.
STEPS: Final = 10
_SERVE: Final = "tfprof.web.server.serve:serve"
_SOCKET_PATH: Final = "tfprof.web.server.serve:socket_path"
_BIND_SOCKET: Final = "tfprof.web.server.serve:bind_socket"
_BIND_PORT: Final = "tfprof.web.server.serve:bind_port"


class NoWebPackagesError(UsageError):
    """The packages of the extra `web` are not installed."""

    slug = "no-web-packages"


@click.command()
@click.argument("job", required=False, type=NON_EMPTY, shell_complete=complete_jobs)
@click.option(
    "--port",
    type=PORT,
    metavar="PORT",
    help="Serve at this port of 127.0.0.1 with a secret in the link (0: a free port), not at a private socket.",
)
@store_option
def web(job: str | None, store: str, port: int | None) -> None:
    """Serve a page with all jobs, live, until Ctrl-C; with JOB, the link opens that job.

    The page is served at a unix socket in the runtime folder, which only you can open: the printed
    ssh command makes it reachable on your own machine. tfprof report writes the page of a job as a
    file.
    """
    require_packages("tfprof web", "tfprof report writes the page of a job as a file without them")
    if scheme_of(store):
        open_reader(store)  # a collector's address says where the page can be served
    else:
        checked_instance_dir(store)  # a store that no job has made yet is fine: the page waits for it
    target = f"/job/{open_reader(store).job(job).info.hex}" if job else "/"
    token = "" if port is None else secrets.token_urlsafe(32)
    bound = load(_BIND_SOCKET)(load(_SOCKET_PATH)(store)) if port is None else load(_BIND_PORT)(port)

    def lines() -> Iterator[str]:
        yield f"tfprof web: the jobs of {store}"
        address = bound.getsockname()
        yield from links.socket_lines(address, target) if port is None else links.port_lines(address[1], token, target)
        yield "Ctrl-C ends it."

    serve(_SERVE, store, bound, functools.partial(_give, store), lambda: print_lines(lines()), token)


def serve(name: str, *arguments: Any) -> NoReturn:
    """Serve by the function called ``name``, then end this process, without a wait for requests."""
    load(name)(*arguments)
    atexit._run_exitfuncs()  # noqa: SLF001  # it removes temporary folders
    os._exit(0)


def require_packages(command: str, otherwise: str) -> None:
    """Raise NoWebPackagesError unless the packages of the extra `web` are installed.

    ``command``: the command that needs them; ``otherwise``: what works without them.
    """
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise NoWebPackagesError(f"{command} needs {' and '.join(missing)}: pip install 'tfprof[web]' ({otherwise})")


def _give(store: str, uid: str, name: str) -> OrderDocument:
    """Give a job the order called ``name``; return the document of `tfprof trace`."""
    steps = STEPS if name == orders.TRACE else 0
    return order_job(store, uid, Order(name, giver(), steps=steps))
