"""The state of all jobs as server-sent events, read once for all viewers, up to twice a second."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from starlette.concurrency import run_in_threadpool

from ...collector.daemon_status import stall
from ...collector.documents.watched import top_document
from ...collector.errors import TfprofError
from ...collector.query.store_watch import StoreWatch, open_watch
from ...collector.query.watching import Watch, WatchedStore, sorted_jobs
from ...collector.store.catalog import STALE
from ...collector.store.opening import open_reader, scheme_of
from ...commands.streams import log
from ...formats.runtime_dir import LIVE, instance_dir
from .fence import caught

#: Shortest interval of updates, and interval of a sign of life if nothing changes (seconds).
UPDATE_S: Final = 0.5
_ALIVE_S: Final = 5.0
#: Before an update, the server waits up to WRITTEN_S for figures that the collector has written
#: since the last one, and looks for them every _LOOK_S.
WRITTEN_S: Final = 0.7
_LOOK_S: Final = 0.05
#: Pause after each reading, as a multiple of the processor time of the reading, and maximum of
#: bytes a second for each viewer: the message has all jobs.
IDLE_FACTOR: Final = 10
BYTES_PER_S: Final = 500_000
_MINUTE_NS: Final = 60 * 10**9


class _State(NamedTuple):
    """A state of the jobs: the message to the viewers, and the part by which changes are detected.

    ``watch``: the reader of the store, None after an error. ``logged``: a line for the terminal.
    ``cpu_s``: processor time of reading.
    """

    message: str
    compared: object
    watch: Watch | StoreWatch | None
    logged: str = ""
    cpu_s: float = 0.0


class Live:
    """Reads the state of the jobs of ``store`` while somebody looks."""

    def __init__(self, store: str) -> None:
        self._path = store
        self._figures = None if scheme_of(store) else Path(instance_dir(store), LIVE)
        self._viewers = 0
        self._reader: asyncio.Task[None] | None = None
        self._changed = asyncio.Condition()
        self._message = ""
        self._number = 0
        self._old = 0  # the number of the last message when reading began

    async def messages(self) -> AsyncIterator[str]:
        """Yield the state now and after each change; of several changes, only the last."""
        self._viewers += 1
        try:
            if self._reader is None:
                self._old = self._number
                self._reader = asyncio.create_task(self._read())
            seen = self._old
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
        state = _State("", "", None)
        while True:
            start, written_ns = time.monotonic(), _written_ns(self._figures)
            last = state
            state = await run_in_threadpool(caught, lambda: _state(last, self._path), _failed)  # noqa: B023  # awaited
            if state.compared != last.compared:
                if state.logged:
                    log(f"tfprof web: {state.logged}")
                await self._publish(state.message)
            # Not by the clock: on a busy host, waiting for a processor is no work. The first
            # reading is of all that is stored, the next ones of what is new.
            idle_s = max(IDLE_FACTOR * state.cpu_s, len(state.message) / BYTES_PER_S) if last.watch is not None else 0.0
            await asyncio.sleep(max(start + UPDATE_S - time.monotonic(), idle_s))
            if self._figures is not None:
                await run_in_threadpool(_await_new_figures, self._figures, written_ns)

    async def _publish(self, message: str) -> None:
        async with self._changed:
            self._message = message
            self._number += 1
            self._changed.notify_all()


def _await_new_figures(path: Path, written_ns: int) -> None:
    end_s = time.monotonic() + WRITTEN_S
    while time.monotonic() < end_s and _written_ns(path) == written_ns:
        time.sleep(_LOOK_S)


def _written_ns(path: Path | None) -> int:
    """Return when the collector wrote the figures, 0 if no collector of this user does."""
    try:
        return 0 if path is None else path.stat().st_mtime_ns
    except OSError:
        return 0


def _state(last: _State, path: str) -> _State:
    """Read the state of all jobs, and why nothing new is stored."""
    before_s = time.thread_time()
    watch = last.watch or open_watch(open_reader(path))
    watched = watch.update(time.time_ns())
    reason = "" if scheme_of(path) else stall(path).rstrip(".")
    problem = f"Nothing is stored now: {reason}." if reason else None
    state = _State(last.message, (_compared(watched), problem), watch)
    if state.compared != last.compared:
        document = top_document(watched, sorted_jobs(watched.jobs, "slow"))
        state = state._replace(message=_event("problem", {"error": problem}) + _event("top", document))
    return state._replace(cpu_s=time.thread_time() - before_s)


def _compared(watched: WatchedStore) -> WatchedStore:
    """Return ``watched`` without the seconds, and without the time since the start of stale jobs.

    So a message is sent once a minute if nothing changes. The page then reads what it does not
    have, such as tags.
    """
    jobs = (
        replace(job, row=replace(job.row, duration_ns=0)) if job.row.state == STALE else job for job in watched.jobs
    )
    return replace(watched, at_ns=watched.at_ns // _MINUTE_NS, jobs=tuple(jobs))


def _failed(error: Exception) -> _State:
    is_expected = isinstance(error, (TfprofError, OSError))
    reason = f": {str(error).rstrip('.')}" if is_expected else "; the terminal of tfprof web says why"
    message = _event("problem", {"error": f"The store cannot be read{reason}."})
    return _State(message, message, None, "" if is_expected else f"{type(error).__name__}: {error}")


def _event(name: str, content: Mapping[str, object]) -> str:
    return f"event: {name}\ndata: {json.dumps(content)}\n\n"
