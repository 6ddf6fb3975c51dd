"""The screen of `tfprof top`, driven by keys.

Tests cli/top_rows.py.
"""

import asyncio
import contextlib
import re
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.hostile_store import HOSTILE
from fakes.made_store import IDENTITY, MS, SECOND, rows, span
from rich.cells import cell_len
from textual.pilot import Pilot
from textual.widgets import Input, Static
from tfprof.cli import top_screen
from tfprof.cli.top_rows import LineList
from tfprof.cli.top_screen import JobScreen, JobsScreen, Top
from tfprof.collector.errors import StoreError
from tfprof.collector.query.watching import ORDERS, Watch, WatchedStore
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.store.writer import LocalStoreWriter
from tfprof.formats import layout

HOST = socket.gethostname()
JOB_COUNT = 30
CONTROL = re.compile("[\0-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[LocalStoreWriter]:
    """The writer of a store with running jobs; job 7 has become slower."""
    store_writer = LocalStoreWriter(tmp_path / "store", HOST)
    now = time.time_ns()
    for number in range(JOB_COUNT):
        job = store_writer.job((number + 1) << 48)
        job.set_identity(
            {**IDENTITY, "name": f"job{number:02d}.py", "host": HOST, "created_real_ns": now - 120 * SECOND}
        )
        start = (now - 100 * SECOND - IDENTITY["created_real_ns"]) / MS
        later_ms = 400 if number == 7 else 100
        entries = [span(layout.BATCH, n, start + n * 500, 100 if n < 160 else later_ms) for n in range(198)]
        job.append({"spans": rows("spans", entries)})
    yield store_writer
    store_writer.close()


def drive(
    writer: LocalStoreWriter,
    act: Callable[[Pilot[None], JobsScreen], Coroutine[Any, Any, None]],
    size: tuple[int, int] = (80, 24),
) -> Top:
    """Run the screen and ``act`` on it; return the application after its end."""
    store = LocalStore(writer.path)
    screen = JobsScreen(store, "slow", "", shows_all=False)
    app = Top(screen)

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: app.screen is screen and bool(screen.query_one(LineList).cursor_key))
            await act(pilot, screen)

    asyncio.run(run())
    return app


async def until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    """Wait until a condition holds; fail after a time limit."""
    for _ in range(600):
        await pilot.pause(0.05)
        with contextlib.suppress(Exception):
            if condition():
                return
    raise AssertionError("the condition did not hold in time")


def texts(screen: JobsScreen) -> list[str]:
    return [item.text for item in screen.query_one(LineList)._items]


def rendered(pilot: Pilot[None]) -> list[str]:
    """Return the texts that the application writes on the terminal."""
    screen = pilot.app.screen
    return [segment.text for strip in screen._compositor.render_strips() for segment in strip]


def text_of(screen: Any, selector: str) -> str:
    return str(screen.query_one(selector, Static).render())


def test_the_slow_job_is_at_the_top_and_highlighted(writer: LocalStoreWriter) -> None:
    async def act(pilot: Pilot[None], screen: JobsScreen) -> None:
        first, second, *_ = screen.query_one(LineList)._items
        assert "job07.py" in first.text
        assert (first.is_highlighted, second.is_highlighted) == (True, False)
        assert max(map(len, texts(screen))) <= 80
        assert "30 running" in text_of(screen, "#summary")

    drive(writer, act)


def test_keys_change_and_reverse_the_order(writer: LocalStoreWriter) -> None:
    async def act(pilot: Pilot[None], screen: JobsScreen) -> None:
        orders = []
        for _ in ORDERS:
            orders.append(text_of(screen, "#summary").split(" · ")[0])
            await pilot.press("s")
        assert orders == [f"by {order}" for order in ORDERS]
        await pilot.press("S", "S")
        assert text_of(screen, "#summary").startswith("by name")
        assert "job00.py" in texts(screen)[0]
        await pilot.press("r")
        assert text_of(screen, "#summary").startswith("by name reversed")
        assert "job29.py" in texts(screen)[0]

    drive(writer, act)


def test_the_cursor_stays_on_its_job_and_the_list_scrolls(writer: LocalStoreWriter) -> None:
    async def act(pilot: Pilot[None], screen: JobsScreen) -> None:
        lines = screen.query_one(LineList)
        await pilot.press("end")
        last_key = lines.cursor_key
        await until(pilot, lambda: lines.scroll_offset.y == JOB_COUNT - lines.size.height)
        await pilot.press("s", "r")
        assert lines.cursor_key == last_key
        await pilot.press("home", "down", "down", "up")
        assert lines.cursor == 1
        await pilot.press("pagedown")
        assert lines.cursor == lines.size.height

    drive(writer, act)


def test_the_list_scrolls_to_the_cursor_whose_job_moved_off_the_screen(writer: LocalStoreWriter) -> None:
    async def act(pilot: Pilot[None], screen: JobsScreen) -> None:
        lines = screen.query_one(LineList)
        await pilot.press("S", "S", "home")  # by name
        first_key = lines.cursor_key
        await pilot.press("r")
        assert (lines.cursor_key, lines.cursor) == (first_key, JOB_COUNT - 1)
        await until(pilot, lambda: lines.scroll_offset.y == JOB_COUNT - lines.size.height)
        assert any("job00.py" in text for text in rendered(pilot))

    drive(writer, act)


def test_a_list_that_was_scrolled_away_from_its_cursor_is_not_moved(writer: LocalStoreWriter) -> None:
    async def act(pilot: Pilot[None], screen: JobsScreen) -> None:
        lines = screen.query_one(LineList)
        lines.scroll_to(y=5, animate=False)
        await until(pilot, lambda: lines.scroll_offset.y == 5)
        screen.show()
        await pilot.pause(0.2)
        assert (lines.cursor, lines.scroll_offset.y) == (0, 5)

    drive(writer, act)


def test_a_filter_narrows_while_it_is_typed_and_is_cleared(writer: LocalStoreWriter) -> None:
    async def act(pilot: Pilot[None], screen: JobsScreen) -> None:
        await pilot.press("slash", *"job1")
        await until(pilot, lambda: len(texts(screen)) == 10)
        await pilot.press("enter")
        assert not screen.query_one(Input).has_class("open")
        assert "like 'job1'" in text_of(screen, "#summary")
        await pilot.press("slash", *"zzz")
        await until(pilot, lambda: texts(screen) == [])
        await pilot.press("enter", "t", "enter", "down")  # no job can be opened or traced
        await pilot.press("escape")
        await until(pilot, lambda: len(texts(screen)) == JOB_COUNT)

    drive(writer, act)


def test_a_job_is_opened_and_closed(writer: LocalStoreWriter) -> None:
    async def act(pilot: Pilot[None], screen: JobsScreen) -> None:
        await pilot.press("enter")
        await until(pilot, lambda: "job07.py" in text_of(pilot.app.screen, "#job"))
        assert isinstance(pilot.app.screen, JobScreen)
        assert "MEDIAN" in text_of(pilot.app.screen, "#job")
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is screen)

    drive(writer, act)


def test_the_texts_of_a_job_do_not_steer_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top_screen, "trace_next", lambda *_arguments: iter([HOSTILE]))
    printed: list[str] = []

    async def act(pilot: Pilot[None], screen: JobsScreen) -> None:
        printed.extend(rendered(pilot))
        await pilot.press("t", "enter")
        await until(pilot, lambda: bool(pilot.app._notifications))
        await until(pilot, lambda: "forged: line" in "".join(rendered(pilot)))
        printed.extend([*rendered(pilot), *(note.message for note in pilot.app._notifications)])

    with contextlib.closing(LocalStoreWriter(tmp_path / "store", HOST)) as store_writer:
        identity = {**IDENTITY, "host": HOST, "created_real_ns": time.time_ns()}
        store_writer.job(1 << 48).set_identity({**identity, "name": HOSTILE, "user": HOSTILE})
        drive(store_writer, act, (200, 50))
    assert not [text for text in printed if CONTROL.search(text)]
    assert sum("forged: line" in text for text in printed) > 1


def test_a_removed_job_is_reported(writer: LocalStoreWriter) -> None:
    async def act(pilot: Pilot[None], screen: JobsScreen) -> None:
        pilot.app.push_screen(JobScreen(screen._store, "ffff"))
        await until(pilot, lambda: any("no job 'ffff'" in note.message for note in pilot.app._notifications))

    drive(writer, act)


def test_a_key_shows_jobs_that_ended_long_ago(writer: LocalStoreWriter) -> None:
    writer.job(1 << 48).close("exited", {"t_ns": time.time_ns() - 1000 * SECOND})

    async def act(pilot: Pilot[None], screen: JobsScreen) -> None:
        assert "job00.py" not in "".join(texts(screen))
        await pilot.press("e")
        assert "job00.py" in texts(screen)[-1]
        assert "1 ended" in text_of(screen, "#summary")
        await pilot.press("e")
        assert len(texts(screen)) == JOB_COUNT - 1

    drive(writer, act)


def test_updates_pause_and_resume(writer: LocalStoreWriter) -> None:
    async def act(pilot: Pilot[None], screen: JobsScreen) -> None:
        await pilot.press("space")
        assert "paused" in text_of(screen, "#summary")
        watched_before = screen._watched_store
        screen.update()
        assert screen._watched_store is watched_before
        await pilot.press("space")
        await until(pilot, lambda: screen._watched_store is not watched_before)

    drive(writer, act)


@pytest.mark.parametrize(
    "error", [StoreError("the server\x1b[2J does not answer", "engine-away"), OSError(116, "Stale file handle")]
)
def test_the_last_figures_stay_while_the_store_cannot_be_read(
    writer: LocalStoreWriter, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fails(*_arguments: Any) -> WatchedStore:
        raise error

    async def act(pilot: Pilot[None], screen: JobsScreen) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Watch, "update", fails)
            screen.update()
            await until(pilot, lambda: "cannot be read" in text_of(screen, "#summary"))
            reason = str(error).replace("\x1b", "?")
            assert text_of(screen, "#summary").startswith(f"the store cannot be read: {reason}")
            await pilot.press("s")
            assert len(texts(screen)) == JOB_COUNT
        screen.update()
        await until(pilot, lambda: "30 running" in text_of(screen, "#summary"))

    drive(writer, act, (200, 50))


def test_a_moved_store_is_no_store_without_jobs(writer: LocalStoreWriter) -> None:
    async def act(pilot: Pilot[None], screen: JobsScreen) -> None:
        moved = writer.path.rename(writer.path.with_name("moved"))
        screen.update()
        await until(pilot, lambda: "[store-missing]" in text_of(screen, "#summary"))
        assert len(texts(screen)) == JOB_COUNT
        moved.rename(writer.path)
        screen.update()
        await until(pilot, lambda: "30 running" in text_of(screen, "#summary"))

    drive(writer, act, (200, 50))


def test_an_unexpected_error_ends_the_program(writer: LocalStoreWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_arguments: Any) -> WatchedStore:
        raise LookupError("a mistake")

    async def act(pilot: Pilot[None], screen: JobsScreen) -> None:
        monkeypatch.setattr(Watch, "update", fails)
        screen.update()
        await until(pilot, lambda: not pilot.app.is_running)

    with pytest.raises(LookupError, match="a mistake"):
        drive(writer, act)


def test_keys_work_while_the_store_is_slow(writer: LocalStoreWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    is_reading, ends = threading.Event(), threading.Event()

    def waits(*_arguments: Any) -> WatchedStore:
        is_reading.set()
        ends.wait(60)
        raise StoreError("it took too long", "engine-away")

    async def act(pilot: Pilot[None], screen: JobsScreen) -> None:
        monkeypatch.setattr(Watch, "update", waits)
        screen.update()
        await until(pilot, is_reading.is_set)
        await pilot.press("s", "q")
        await until(pilot, lambda: not pilot.app.is_running)

    try:
        drive(writer, act)
        assert not ends.is_set()
    finally:
        ends.set()


def test_a_key_orders_traces_of_the_job_at_the_cursor(
    writer: LocalStoreWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_orders: list[tuple[str, str, int]] = []

    def trace_next(store: str, uid: str, count: int) -> Iterator[str]:
        given_orders.append((store, uid, count))
        yield "it obeys"
        raise StoreError("it does not any more", "job-gone")

    monkeypatch.setattr(top_screen, "trace_next", trace_next)

    async def act(pilot: Pilot[None], screen: JobsScreen) -> None:
        await pilot.press("t")
        await until(pilot, lambda: len(pilot.app._notifications) == 2)
        messages = [note.message for note in pilot.app._notifications]
        assert messages == ["it obeys", "it does not any more [job-gone]"]

    drive(writer, act)
    assert given_orders == [(str(writer.path), f"{8 << 48:016x}", 10)]


@pytest.mark.parametrize("size", [(40, 8), (80, 24), (200, 50)])
def test_no_line_is_wider_than_the_screen(writer: LocalStoreWriter, size: tuple[int, int]) -> None:
    writer.job(1 << 48).set_identity({**IDENTITY, "name": "模型训练" * 9, "host": HOST})

    async def act(pilot: Pilot[None], screen: JobsScreen) -> None:
        assert max(map(cell_len, [*texts(screen), text_of(screen, "#head"), text_of(screen, "#summary")])) <= size[0]
        await pilot.resize_terminal(60, 20)
        await until(pilot, lambda: max(map(cell_len, texts(screen))) <= 60)

    drive(writer, act, size)


@pytest.mark.parametrize(("key", "is_interrupted"), [("q", False), ("ctrl+c", True)])
def test_a_key_quits(writer: LocalStoreWriter, key: str, is_interrupted: bool) -> None:
    async def act(pilot: Pilot[None], screen: JobsScreen) -> None:
        await pilot.press(key)

    assert drive(writer, act).was_interrupted == is_interrupted
