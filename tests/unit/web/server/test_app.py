"""Exports are limited, also if many are asked for at the same moment."""

import asyncio
import itertools
from pathlib import Path

import pytest
from fakes.hostile_store import JOB
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from tfprof.web.server import app


def test_exports_that_are_asked_for_at_once_are_limited(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "content_of", lambda *_: itertools.repeat(b"row"))
    page = app.Page(str(store), lambda *_: {})
    scope = {"type": "http", "query_string": b"", "path_params": {"uid": f"{JOB:016x}", "format": "csv"}}

    async def begin() -> Response:
        answer = await page.export(Request(scope))
        if isinstance(answer, StreamingResponse):
            await anext(answer.body_iterator)
        return answer

    async def ask() -> list[Response]:
        return await asyncio.gather(*(begin() for _ in range(8)))

    assert sorted(answer.status_code for answer in asyncio.run(ask())) == [200] * 4 + [503] * 4
