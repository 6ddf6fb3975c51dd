"""Answers requests: the files of the page, documents, exports, and orders."""

import json
import re
from asyncio import Semaphore
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from anyio import to_thread
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from ...collector.documents.text import pieces as document_pieces
from ...collector.errors import NoSuchJobError, TfprofError, UsageError
from ...collector.exporters.request import Request as ExportRequest
from ...collector.exporters.table import content_of, file_type
from ...collector.query.job_selection import Selection
from ...collector.store.opening import open_reader
from ...collector.store.protocols import JobReader
from ...collector.summaries.kinds import parse_kinds, parse_steps
from ...commands.new_outputs import is_installed
from ...commands.streams import log
from ...formats.exports import FORMATS
from ..assets import PAGE, contents
from ..documents import DOCUMENTS, pieces
from . import memory
from .fence import caught, limited
from .forms import Forms
from .guard import Guard
from .live import Live

#: Maximum number of documents that are made at the same time, of requests that wait for a document,
#: and of exports that are sent at the same time. Making several documents at once would take as
#: long, and more memory.
_MAKERS: Final = 1
_WAITING_MAX: Final = 64
_EXPORTS_MAX: Final = 4
_UID: Final = re.compile(r"[0-9a-f]{16}", re.ASCII)
_STEP: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
_ODD: Final = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)
_JSON: Final = "application/json"
#: Gives the order with this name to the job with this uid; returns the document of the answer.
Give = Callable[[str, str], Mapping[str, Any]]
#: Names of orders: trace the next ten steps, end the order in force.
ORDERS: Final = ("trace", "end")
_ORDERS_MAX: Final = 4
#: Status of an answer by class of error; the first match counts.
_STATUS: Final = ((NoSuchJobError, 404), (UsageError, 400), (TfprofError, 503), (OSError, 503))
_UNREADABLE: Final = "this could not be read; the terminal of tfprof web says why"


class Page:
    """The handlers of the page of the store at ``path``; ``give`` gives orders to jobs."""

    def __init__(self, path: str, give: Give) -> None:
        self._path = path
        self._give = give
        self._forms = Forms()
        self._orders = Semaphore(_ORDERS_MAX)
        self._live = Live(path)
        self._files = contents()
        self._makers = Semaphore(_MAKERS)
        self._waiting = 0
        self._exports = 0

    def routes(self) -> list[Route]:
        """Return the routes."""
        pages = ("/", "/job/{uid}", "/job/{uid}/step/{step}", "/diff/{before}/{after}")
        return [
            *(Route(path, self.page, methods=["GET"]) for path in pages),
            Route("/static/{name:path}", self.file, methods=["GET"]),
            Route("/api/live", self.live, methods=["GET"]),
            Route("/api/formats", self.formats, methods=["GET"]),
            Route("/api/jobs", self.document, methods=["GET"]),
            Route("/api/alerts", self.document, methods=["GET"]),
            Route("/api/form", self.form, methods=["GET"]),
            Route("/api/job/{uid}/order", self.order, methods=["POST"]),
            Route("/api/job/{uid}/{document}", self.job_document, methods=["GET"]),
            Route("/api/job/{uid}/export/{format}", self.export, methods=["GET"]),
            Route("/api/diff/{before}/{after}", self.diff_document, methods=["GET"]),
        ]

    async def page(self, request: Request) -> Response:
        """Answer with the page, which reads its own address."""
        parts = request.path_params
        if not all(_UID.fullmatch(value) for name, value in parts.items() if name != "step") or not _STEP.fullmatch(
            parts.get("step", "0")
        ):
            return _not_found()
        return self._file(PAGE)

    async def file(self, request: Request) -> Response:
        """Answer with a file of the page."""
        return self._file(request.path_params["name"])

    def _file(self, name: str) -> Response:
        if name not in self._files:
            return _not_found()
        content, media_type = self._files[name]
        return Response(content, media_type=f"{media_type}; charset=utf-8")

    async def live(self, _request: Request) -> Response:
        """Answer with events."""
        return StreamingResponse(self._live.messages(), media_type="text/event-stream")

    async def formats(self, _request: Request) -> Response:
        """Answer with the exporters whose packages are installed."""
        names = ("name", "title", "reader", "options")
        rows = [{name: getattr(row, name) for name in names} for row in FORMATS.values() if is_installed(row)]
        return Response(json.dumps({"formats": rows}), media_type=_JSON)

    async def form(self, _request: Request) -> Response:
        """Answer with a token for one order."""
        return Response(json.dumps({"token": self._forms.new()}), media_type=_JSON)

    async def order(self, request: Request) -> Response:
        """Give an order to a job, and answer with what `tfprof trace --json` prints."""
        uid = request.path_params["uid"]
        if not _UID.fullmatch(uid):
            return _not_found()
        try:
            form = json.loads(await request.body())
        except (ValueError, RecursionError, ClientDisconnect):
            form = None
        if not isinstance(form, dict) or request.headers.get("content-type") != _JSON:
            return _error(400, "an order is a JSON object")
        if not self._forms.take(form.get("token")):
            return _error(403, "the form is too old: load the page again")
        name = form.get("order")
        if name not in ORDERS:
            return _error(400, f"an order is one of {', '.join(ORDERS)}")
        async with self._orders:
            return await to_thread.run_sync(caught, lambda: _json_response(self._give(uid, name)), _refused)

    async def document(self, request: Request) -> Response:
        """Answer with a document about all jobs."""
        return await self._document(request.url.path.rpartition("/")[2], (), request)

    async def job_document(self, request: Request) -> Response:
        """Answer with a document about one job."""
        name, uid = request.path_params["document"], request.path_params["uid"]
        if name not in DOCUMENTS or DOCUMENTS[name].jobs != 1 or not _UID.fullmatch(uid):
            return _not_found()
        return await self._document(name, (uid,), request)

    async def diff_document(self, request: Request) -> Response:
        """Answer with the difference of two jobs."""
        jobs = (request.path_params["before"], request.path_params["after"])
        return await self._document("diff", jobs, request) if all(map(_UID.fullmatch, jobs)) else _not_found()

    async def _document(self, name: str, jobs: tuple[str, ...], request: Request) -> Response:
        parameters = _parameters(request)
        if parameters is None:
            return _error(400, "a parameter occurs twice")
        return await self._made(request, lambda: self._bytes(name, jobs, parameters))

    def _bytes(self, name: str, jobs: tuple[str, ...], parameters: Mapping[str, str]) -> Response:
        text = "".join(pieces(open_reader(self._path), name, jobs, parameters))
        return Response(text, media_type=_JSON)

    async def _made(self, request: Request, make: Callable[[], Response]) -> Response:
        """Return what ``make`` returns, which runs in a thread; errors become answers."""
        if self._waiting >= _WAITING_MAX:
            return _error(503, "too many requests wait: try again")
        self._waiting += 1
        try:
            async with self._makers:
                if await request.is_disconnected():  # a closed tab: those that wait go first
                    return _error(503, "nobody waits for this")
                return await to_thread.run_sync(_answer, make)
        finally:
            self._waiting -= 1

    async def export(self, request: Request) -> Response:
        """Answer with a job in a format of the exporters' table."""
        name, uid = request.path_params["format"], request.path_params["uid"]
        parameters = _parameters(request)
        if name not in FORMATS or not _UID.fullmatch(uid) or parameters is None:
            return _not_found()
        return await self._made(request, lambda: self._export(name, uid, parameters))

    def _export(self, name: str, uid: str, parameters: Mapping[str, str]) -> Response:
        unknown = parameters.keys() - {"steps", "kind", "table", "download"}
        if unknown:
            raise UsageError(f"no such parameter: {min(unknown)}")
        job = open_reader(self._path).job(uid)
        selection = Selection(
            (job,),
            parse_steps(parameters.get("steps")),
            kinds=parse_kinds(parameters["kind"]) if "kind" in parameters else None,
        )
        if self._exports >= _EXPORTS_MAX:  # after the wait for its turn: those before it have begun
            return _error(503, "too many exports run: try again")
        content = iter(content_of(FORMATS[name], ExportRequest(selection, table=parameters.get("table"))))
        first = next(content, b"")  # an error is raised here, before the response begins
        headers = {"content-disposition": f"attachment; filename*=UTF-8''{quote(_file_name(job, name))}"}
        return StreamingResponse(
            self._counted(first, content),
            media_type=file_type(FORMATS[name])[0],
            headers=headers if "download" in parameters else None,
        )

    async def _counted(self, piece: bytes | None, rest: Iterator[bytes]) -> AsyncIterator[bytes]:
        self._exports += 1
        try:
            while piece is not None:
                yield piece
                async with self._makers:
                    piece = await to_thread.run_sync(next, rest, None)
        finally:
            self._exports -= 1
            memory.release()


def _answer(make: Callable[[], Response]) -> Response:
    """Return what ``make`` returns, or its error as an answer; give back the memory it used."""
    try:
        return caught(make, _refused)
    finally:
        memory.release()


def _refused(error: Exception) -> Response:
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), None)
    if status is not None:
        return _error(status, str(error))
    log(f"tfprof web: {type(error).__name__}: {error}")
    return _error(503, _UNREADABLE)


def _parameters(request: Request) -> dict[str, str] | None:
    """Return the parameters of the query; None if one occurs twice."""
    items = request.query_params.multi_items()
    parameters = dict(items)
    return parameters if len(parameters) == len(items) else None


def _json_response(document: Mapping[str, Any]) -> Response:
    return Response("".join(document_pieces(document)), media_type=_JSON)


def _error(status: int, text: str) -> Response:
    return Response(json.dumps({"error": text}), status, media_type=_JSON)


def _not_found() -> Response:
    return _error(404, "there is no such page")


def _file_name(job: JobReader, format_name: str) -> str:
    suffix = file_type(FORMATS[format_name])[1]
    stem = _ODD.sub("_", job.info.name)[:80].strip("._") or "job"
    return f"{stem}-{job.info.hex[:8]}{suffix}"


def app(store: str, give: Give, token: str = "", cookie: str = "tfprof") -> Guard:
    """Return the application for the store at ``store``; ``give`` gives orders to jobs.

    ``token``: secret of the link for a port, empty for a private socket.
    """
    return Guard(limited(Starlette(routes=Page(store, give).routes())), token, cookie)
