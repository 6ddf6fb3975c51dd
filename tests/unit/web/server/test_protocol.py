"""A connection is closed if no request arrives completely, be it the first or a later one."""

import asyncio
from typing import Any

import pytest
import uvicorn
from tfprof.web.server import protocol
from uvicorn.server import ServerState

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"


async def application(_scope: Any, _receive: Any, send: Any) -> None:
    """Answer after three times the limit."""
    await asyncio.sleep(3 * protocol.REQUEST_S)
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})


async def answers(*pieces: bytes) -> bytes:
    """Return what is answered between the last of ``pieces`` and the end of the connection."""
    config = uvicorn.Config(application, lifespan="off", log_config=None, server_header=False, date_header=False)
    config.load()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: protocol.TimedProtocol(config, ServerState(), {}), "127.0.0.1")
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    try:
        async with asyncio.timeout(4):  # less than the time that uvicorn keeps a connection
            for piece in pieces:
                writer.write(piece)
                await asyncio.sleep(0.5 * protocol.REQUEST_S)
                if piece == REQUEST:
                    assert await reader.readexactly(len(ANSWER)) == ANSWER
            return await reader.read()
    finally:
        writer.close()
        server.close()


@pytest.mark.parametrize(
    "pieces",
    [(), (b"GET /",), (b"GET", b" /"), (REQUEST, b"GET /"), (REQUEST, b"GET", b" /"), (REQUEST, REQUEST, b"G", b"ET")],
)
def test_a_request_must_arrive_in_time(pieces: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "REQUEST_S", 0.1)
    assert asyncio.run(answers(*pieces)) == b""


def test_an_answer_may_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "REQUEST_S", 0.5)
    with pytest.raises(TimeoutError):  # the connection stays open for the next request
        asyncio.run(answers(REQUEST[:9], REQUEST[9:]))
