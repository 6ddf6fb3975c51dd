"""The messages of the live state: why nothing new is stored, and errors that nobody expected."""

import asyncio
import socket
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fakes.made_store import IDENTITY, SECOND
from tfprof.collector import daemon_status
from tfprof.collector.store.writer import LocalStoreWriter
from tfprof.web.server import live

MINUTE_NS = 60 * SECOND


async def messages(store: Path, number: int) -> list[str]:
    """Return the first messages."""
    stream = live.Live(str(store)).messages()
    try:
        return [await anext(stream) for _ in range(number)]
    finally:
        await stream.aclose()


def statuses(monkeypatch: pytest.MonkeyPatch, *collectors: Mapping[str, Any]) -> None:
    """Let the collector have these states, one after the other; no agent runs."""
    states = list(collectors)

    def read_status(_folder: str, name: str) -> Mapping[str, Any] | None:
        return None if name == "agent" else states.pop(0) if len(states) > 1 else states[0]

    monkeypatch.setattr(daemon_status, "read_status", read_status)
    monkeypatch.setattr(live, "UPDATE_S", 0.01)


def test_the_page_says_why_nothing_is_stored(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = {"slug": "store-full", "text": "the disk is full"}
    statuses(monkeypatch, {"alive": True, "stalled": full}, {"alive": False, "stalled": full})
    stalled, fine = asyncio.run(messages(store, 2))
    assert stalled.startswith('event: problem\ndata: {"error": "Nothing is stored now: the disk is full."}\n\n')
    assert fine.startswith('event: problem\ndata: {"error": null}\n\n')
    assert "event: top\ndata: " in stalled
    assert "event: top\ndata: " in fine


def test_an_unexpected_error_does_not_end_the_messages(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    statuses(monkeypatch, {})
    updates = [KeyError("x"), None]
    update = live.Watch.update

    def failing(watch: live.Watch, now_ns: int) -> Any:
        if error := updates.pop(0):
            raise error
        return update(watch, now_ns)

    monkeypatch.setattr(live.Watch, "update", failing)
    failed, fine = asyncio.run(messages(store, 2))
    assert (
        failed
        == 'event: problem\ndata: {"error": "The store cannot be read; the terminal of tfprof web says why."}\n\n'
    )
    assert "KeyError: 'x'" in capsys.readouterr().err
    assert "event: top\n" in fine


def test_a_viewer_gets_no_state_from_before_it_looked(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = {"alive": True, "stalled": {"slug": "store-full", "text": "the disk is full"}}
    statuses(monkeypatch, full, {})
    viewed = live.Live(str(store))

    async def first_messages() -> list[str]:
        found = []
        for _ in range(2):
            stream = viewed.messages()
            found.append(await anext(stream))
            await stream.aclose()
        return found

    before, now = asyncio.run(first_messages())
    assert "the disk is full" in before
    assert "the disk is full" not in now


def test_the_first_reading_delays_no_update(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    statuses(monkeypatch, {"alive": True, "stalled": {"slug": "store-full", "text": "the disk is full"}}, {})
    monkeypatch.setattr(live, "WRITTEN_S", 0.01)
    monkeypatch.setattr(live, "IDLE_FACTOR", 1e6)

    async def first_messages() -> list[str]:
        async with asyncio.timeout(10):
            return await messages(store, 2)

    assert len(asyncio.run(first_messages())) == 2


def test_an_update_waits_for_new_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "WRITTEN_S", 60)
    path = tmp_path / "live.json"
    waiting = threading.Thread(target=live._await_new_figures, args=(path, 0), daemon=True)
    waiting.start()
    time.sleep(0.2)
    assert waiting.is_alive()
    path.write_text("{}")
    waiting.join(10)
    assert not waiting.is_alive()


def test_an_update_does_not_wait_longer_for_a_collector_that_is_gone(tmp_path: Path) -> None:
    start_s = time.monotonic()
    live._await_new_figures(tmp_path / "live.json", 0)
    assert time.monotonic() - start_s >= live.WRITTEN_S


def test_figures_that_were_written_since_the_last_update_are_shown_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "WRITTEN_S", 60)
    path = tmp_path / "live.json"
    path.write_text("{}")
    start_s = time.monotonic()
    live._await_new_figures(path, live._written_ns(path) - 1)
    assert time.monotonic() - start_s < live.WRITTEN_S / 2


def test_a_message_is_made_only_if_something_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    open_reader = live.open_reader
    monkeypatch.setattr(live, "open_reader", lambda path: opened.append(path) or open_reader(path))
    statuses(monkeypatch, {})
    times_ns = iter((MINUTE_NS, MINUTE_NS + 30 * SECOND, 2 * MINUTE_NS))
    monkeypatch.setattr(live.time, "time_ns", lambda: next(times_ns))
    writer = LocalStoreWriter(tmp_path / "store", socket.gethostname())
    writer.job(0xA << 60).set_identity({**IDENTITY, "host": socket.gethostname()})
    writer.close()
    first = live._state(live._State("", "", None), str(tmp_path / "store"))
    assert '"state": "stale"' in first.message
    second = live._state(first, str(tmp_path / "store"))
    assert second.message is first.message
    assert second.compared == first.compared
    assert live._state(second, str(tmp_path / "store")).compared != second.compared
    assert len(opened) == 1
