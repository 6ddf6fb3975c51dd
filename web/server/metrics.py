"""Serves the metrics of `tfprof metrics --listen`."""

import socket
from asyncio import Lock
from collections.abc import Callable
from typing import Any, Final

from anyio import to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from ...collector.errors import TfprofError
from ...commands.streams import log
from .fence import caught, limited
from .guard import Guard
from .serve import run

#: Media type of the text format of Prometheus.
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_UNREADABLE: Final = "the store could not be read; the terminal of tfprof metrics says why"


def _refused(error: Exception) -> Response:
    log(f"tfprof metrics: {type(error).__name__}: {error}")
    return PlainTextResponse(f"{error if isinstance(error, TfprofError) else _UNREADABLE}\n", 503)


def serve(make: Callable[[], str], bound: socket.socket, ready: Callable[[], Any]) -> None:
    """Serve what ``make`` returns at /metrics of ``bound`` until SIGINT, SIGTERM or SIGHUP.

    ``ready`` is called when requests are answered; they are answered one at a time.
    """
    turn = Lock()

    async def answer(_request: Request) -> Response:
        async with turn:
            return await to_thread.run_sync(caught, lambda: Response(make(), media_type=CONTENT_TYPE), _refused)

    run(Guard(limited(Starlette(routes=[Route("/metrics", answer, methods=["GET"])]))), bound, ready)
