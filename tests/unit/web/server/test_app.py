"""What is made: the exports that are offered, some at a moment, and nothing for closed tabs."""

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from fakes.hostile_store import JOB
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from tfprof.commands import new_outputs
from tfprof.formats.exports import FORMATS
from tfprof.web.server import app


def test_exports_that_are_asked_for_at_once_are_limited(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "content_of", lambda *_: itertools.repeat(b"row"))
    page = app.Page(str(store), lambda *_: {})
    scope = {"type": "http", "query_string": b"", "path_params": {"uid": f"{JOB:016x}", "format": "csv"}}

    async def begin() -> Response:
        answer = await page.export(Request(scope, asyncio.Event().wait))
        if isinstance(answer, StreamingResponse):
            await anext(answer.body_iterator)
        return answer

    async def ask() -> list[Response]:
        return await asyncio.gather(*(begin() for _ in range(8)))

    assert sorted(answer.status_code for answer in asyncio.run(ask())) == [200] * 4 + [503] * 4


def test_a_format_without_its_package_is_not_offered(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_outputs, "find_spec", lambda _name: None)
    answer = asyncio.run(app.Page(str(store), lambda *_: {}).formats(Request({"type": "http"})))
    offered = {row["name"]: row["options"] for row in json.loads(answer.body)["formats"]}
    assert offered == {row.name: list(row.options) for row in FORMATS.values() if not row.package}
    assert "memory-flow-png" not in offered


@pytest.mark.parametrize("ends", [True, False])
def test_a_document_that_nobody_waits_for_is_not_made(
    store: Path, monkeypatch: pytest.MonkeyPatch, *, ends: bool
) -> None:
    made = []
    monkeypatch.setattr(app, "pieces", lambda _store, name, *_: made.append(name) or [])

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"} if ends else await asyncio.Future()

    scope = {"type": "http", "path": "/api/jobs", "query_string": b"", "headers": []}
    answer = asyncio.run(app.Page(str(store), lambda *_: {}).document(Request(scope, receive)))
    assert (made, answer.status_code) == (([], 503) if ends else (["jobs"], 200))
