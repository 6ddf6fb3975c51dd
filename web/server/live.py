"""The state of all jobs as server-sent events: read once for all viewers, once a second at most."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from typing import Final

from starlette.concurrency import run_in_threadpool

from ...collector.daemon_status import stall
from ...collector.documents.watched import TopDocument, top_document
from ...collector.errors import TfprofError
from ...collector.query.watching import Watch, sorted_jobs
from ...collector.store.reader import LocalStore
from ...commands.streams import log

#: Interval of updates, and of a sign of life if nothing changes (seconds).
UPDATE_S: Final = 1.0
_ALIVE_S: Final = 5.0


class Live:
    """Reads the state of the jobs of ``store`` while somebody looks."""

    def __init__(self, store: str) -> None:
        self._path = store
        self._viewers = 0
        self._reader: asyncio.Task[None] | None = None
        self._changed = asyncio.Condition()
        self._message = ""
        self._number = 0

    async def messages(self) -> AsyncIterator[str]:
        """Yield the state now and after each change; of several changes, only the last."""
        self._viewers += 1
        try:
            if self._reader is None:
                self._reader = asyncio.create_task(self._read())
            seen = 0
            while True:
                message, seen = await self._next(seen)
                yield message
        finally:
            self._viewers -= 1
            if not self._viewers and self._reader is not None:
                self._reader.cancel()
                self._reader = None

    async def _next(self, seen: int) -> tuple[str, int]:
        async with self._changed:
            try:
                async with asyncio.timeout(_ALIVE_S):
                    await self._changed.wait_for(lambda: self._number > seen)
            except TimeoutError:
                return _event("alive", {}), seen
            return self._message, self._number

    async def _read(self) -> None:
        watch: Watch | None = None
        last = ""
        while True:
            start = time.monotonic()
            try:
                if watch is None:
                    watch = Watch(LocalStore(self._path), shows_all=True)
                document, problem = await run_in_threadpool(_state, watch, self._path)
                compared = json.dumps([{**document, "at_ns": 0}, problem])
                message = _event("problem", {"error": problem}) + _event("top", document)
            except Exception as error:  # noqa: BLE001  # the viewers wait for this task
                watch = None
                compared = message = _event("problem", {"error": _unreadable(error)})
            if compared != last:
                last = compared
                await self._publish(message)
            took = time.monotonic() - start
            await asyncio.sleep(max(UPDATE_S, 10 * took))

    async def _publish(self, message: str) -> None:
        async with self._changed:
            self._message = message
            self._number += 1
            self._changed.notify_all()


def _state(watch: Watch, path: str) -> tuple[TopDocument, str | None]:
    """Return the state of all jobs, and why nothing new is stored, None if data can be stored."""
    LocalStore(path)  # StoreError if it was moved, of which a watch sees only that there are no jobs
    watched = watch.update(time.time_ns())
    reason = stall(path)
    problem = f"Nothing is stored now: {reason}." if reason else None
    return top_document(watched, sorted_jobs(watched.jobs, "slow")), problem


def _unreadable(error: Exception) -> str:
    if isinstance(error, (TfprofError, OSError)):
        return f"The store cannot be read: {error}."
    log(f"tfprof web: {type(error).__name__}: {error}")
    return "The store cannot be read; the terminal of tfprof web says why."


def _event(name: str, content: Mapping[str, object]) -> str:
    return f"event: {name}\ndata: {json.dumps(content)}\n\n"
