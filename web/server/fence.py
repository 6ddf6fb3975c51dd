"""Limits the effect of an unexpected error to the answer to one request."""

import asyncio
from collections.abc import Callable, MutableMapping
from typing import Any, Final, TypeVar

from ...commands.streams import log
from .guard import App, Receive, Scope, Send

T = TypeVar("T")

#: A viewer that reads nothing for this time is disconnected (seconds).
SEND_S: Final = 30.0


def caught(make: Callable[[], T], otherwise: Callable[[Exception], T]) -> T:
    """Return the result of ``make``; if it raises an error, the result of ``otherwise``."""
    try:
        return make()
    except Exception as error:  # noqa: BLE001  # a damaged store must not end the connection
        return otherwise(error)


def limited(inner: App) -> App:
    """Return ``inner`` with a time limit: a viewer that reads nothing for long is disconnected.

    An error after the beginning of an answer ends only its connection.
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_part(part: MutableMapping[str, Any]) -> None:
            async with asyncio.timeout(SEND_S):
                await send(part)

        try:
            await inner(scope, receive, send_part)
        except Exception as error:  # noqa: BLE001  # the answer has begun: nothing else can be sent
            log(f"tfprof: {type(error).__name__}: {error}")

    return answer
