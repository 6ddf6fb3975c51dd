"""HTTP connections with a time limit for a request to arrive."""

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

#: A connection that has not sent its first request by then is closed (seconds).
REQUEST_S: Final = 10.0


class TimedProtocol(H11Protocol):
    """uvicorn's protocol; it closes a connection whose request does not arrive in time.

    uvicorn itself limits only the time between two requests.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time limit."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(REQUEST_S, self._check)

    def data_received(self, data: bytes) -> None:
        """Take data, and restart the time limit if the next request has not arrived completely."""
        super().data_received(data)
        if self._timer is None and self._is_waiting():
            self._timer = self.loop.call_later(REQUEST_S, self._check)
        elif self._timer is not None and not self._is_waiting():
            self._timer.cancel()
            self._timer = None

    def connection_lost(self, exc: Exception | None) -> None:
        """End the limit."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _check(self) -> None:
        self._timer = None
        if self._is_waiting():
            self.transport.close()

    def _is_waiting(self) -> bool:
        cycle: Any = self.cycle
        return cycle is None or cycle.response_complete
