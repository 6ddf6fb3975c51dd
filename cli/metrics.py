"""`tfprof metrics`: the figures of the jobs and of the daemons for Prometheus."""

import re
import shlex
import socket
import time
from collections.abc import Iterator
from typing import Final

import click

from ..collector.daemon_status import daemon_status
from ..collector.errors import UsageError
from ..collector.loader import load
from ..collector.query.metrics import MetricsReader
from ..collector.render import metrics_text
from ..collector.store.opening import open_reader, scheme_of
from ..commands.streams import print_lines
from ..formats.values import InvalidValueError, duration
from .command import store_option
from .values import PORT_MAX
from .web import require_packages, serve

_SERVE: Final = "tfprof.web.server.metrics:serve"
_BIND_SOCKET: Final = "tfprof.web.server.serve:bind_socket"
_BIND_PORT: Final = "tfprof.web.server.serve:bind_port"
_SOCKET_PREFIX: Final = "unix:"
_PORT: Final = re.compile(r"(?:127\.0\.0\.1|localhost):([0-9]{1,5})", re.ASCII)


class MetricsAddressError(UsageError):
    """The metrics cannot be served at this address, since others could reach it."""

    slug = "metrics-address"


@click.command()
@click.option(
    "--listen",
    metavar="ADDRESS",
    help="Serve /metrics until Ctrl-C, at 127.0.0.1:PORT, or unix:PATH (a socket that only you can open).",
)
@click.option(
    "--ended", default="1h", metavar="TIME", help="Include jobs that ended within this time: 30m, 2h, 1d (1h)."
)
@store_option
def metrics(store: str, listen: str | None, ended: str) -> None:
    """Print the state of jobs, agent and collector in the text format of Prometheus.

    It has the jobs by state, and for each job its steps, step times as histograms, the parts of a
    step, memory, losses, alerts and the cost of profiling. Jobs that ended some time ago are left
    out, and tfprof_left_out counts them.
    """
    try:
        ended_ns = round(duration(ended) * 1e9)
    except InvalidValueError as error:
        raise UsageError(f"--ended: {error}") from None
    reader = MetricsReader(store, ended_ns, open_reader)

    def lines() -> Iterator[str]:
        statuses = {}
        if not scheme_of(store):  # a database has no daemons of its own
            status = daemon_status(store)
            statuses = {"agent": status.agent, "collector": status.collector}
        return metrics_text.lines(reader.update(time.time_ns()), statuses)

    if listen is None:
        print_lines(lines())
    else:
        require_packages("tfprof metrics --listen", "tfprof metrics prints the same text once without them")
        bound, link = _bind(listen)
        ready = (f"tfprof metrics: {store}", f"serves {link}", "Ctrl-C ends it.")
        serve(_SERVE, lambda: "\n".join((*lines(), "")), bound, lambda: print_lines(ready))


def _bind(address: str) -> tuple[socket.socket, str]:
    """Return the listening socket for ``address``, and the address under which users reach it.

    MetricsAddressError for an address that others could reach.
    """
    path, port = address.removeprefix(_SOCKET_PREFIX), _PORT.fullmatch(address)
    if address.startswith(_SOCKET_PREFIX) and path:
        return load(_BIND_SOCKET)(path), f"curl --unix-socket {shlex.quote(path)} http://localhost/metrics"
    if port is None or int(port[1]) > PORT_MAX:
        raise MetricsAddressError(
            f"metrics are not served at {address!r}, but only where no other host can read them:"
            " at 127.0.0.1:PORT or unix:PATH"
        )
    bound = load(_BIND_PORT)(int(port[1]))
    return bound, f"http://127.0.0.1:{bound.getsockname()[1]}/metrics"
