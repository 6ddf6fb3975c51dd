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


class Metrics:
    """The handler of /metrics; ``make`` returns the text. One request is answered at a time."""

    def __init__(self, make: Callable[[], str]) -> None:
        self._make = make
        self._turn = Lock()

    async def answer(self, _request: Request) -> Response:
        """Answer with the metrics."""
        async with self._turn:
            return await to_thread.run_sync(caught, self._response, _refused)

    def _response(self) -> Response:
        return Response(self._make(), media_type=CONTENT_TYPE)


def _refused(error: Exception) -> Response:
    log(f"tfprof metrics: {type(error).__name__}: {error}")
    return PlainTextResponse(f"{error if isinstance(error, TfprofError) else _UNREADABLE}\n", 503)


def serve(make: Callable[[], str], bound: socket.socket, ready: Callable[[], Any]) -> None:
    """Serve what ``make`` returns at /metrics of ``bound`` until SIGINT, SIGTERM or SIGHUP.

    ``ready`` is called when requests are answered.
    """
    routes = [Route("/metrics", Metrics(make).answer, methods=["GET"])]
    run(Guard(limited(Starlette(routes=routes))), bound, ready)
