"""The page in a real browser while its server or its store is gone, and afterwards."""

import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from fakes import page_store
from fakes.page_server import page_server
from fakes.page_store import JOBS
from integration.page_browser import browser_page

JOB = f"/job/{JOBS[0]:016x}"
#: Makes a page hidden until `show` is run in it.
HIDDEN = """window.isHidden = true; Object.defineProperty(document, 'hidden', { get: () => window.isHidden });
window.show = () => { window.isHidden = false; document.dispatchEvent(new Event('visibilitychange')); }"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return page_store.write(tmp_path_factory.mktemp("p") / "store")


def wait_for_notice(tab: Any, text: str, state: str) -> None:
    tab.locator(".notice[role=alert]", has_text=text).wait_for()
    assert tab.locator(".bar .state").inner_text() == state


def wait_for_recovery(tab: Any) -> None:
    tab.locator(".bar .state", has_text="live").wait_for()
    tab.locator(".notice[role=alert]").wait_for(state="detached")


def test_a_store_that_is_moved_away_and_back(store: Path, runtime: Path) -> None:
    with page_server(store, runtime, "--port", "0") as server, browser_page() as browser:
        context = browser.page.context
        connections: list[str] = []
        context.on("request", lambda request: request.url.endswith("/api/live") and connections.append(request.url))
        jobs, step, late = (context.new_page() for _ in range(3))
        jobs.goto(server.link)
        step.goto(f"{jobs.url[:-1]}{JOB}/step/1?kind=run")
        step.get_by_role("heading", name="Slices", exact=True).wait_for()
        wait_for_recovery(jobs)
        away = store.with_name("away")
        shutil.move(store, away)
        late.goto(f"{jobs.url[:-1]}{JOB}")
        late.get_by_role("heading", name="This job cannot be shown").wait_for()
        for tab in (jobs, step, late):
            wait_for_notice(tab, "The store cannot be read", "no new figures")
        shutil.move(away, store)
        late.get_by_role("heading", name="Advice", exact=True).wait_for()
        for tab in (jobs, step, late):
            wait_for_recovery(tab)
        assert len(connections) == 1, "of one page, for all"
        jobs.close()
        shutil.move(store, away)
        for tab in (step, late):
            wait_for_notice(tab, "The store cannot be read", "no new figures")
        shutil.move(away, store)


def test_a_server_that_falls_silent_and_one_that_is_started_again(store: Path, runtime: Path) -> None:
    with browser_page() as browser:
        tab, asked = browser.page, browser.requests
        with page_server(store, runtime, "--port", "0") as server:
            tab.add_init_script(HIDDEN)
            tab.clock.install()
            tab.goto(server.link)
            tab.goto(tab.url[:-1] + JOB)
            tab.get_by_role("heading", name="Advice", exact=True).wait_for()
            assert not any(url.endswith("/api/live") for url in asked), "nobody looks"
            tab.evaluate("show()")
            wait_for_recovery(tab)
            server.process.send_signal(signal.SIGSTOP)  # the connections stay, as during the sleep of a laptop
            try:
                tab.clock.fast_forward(20_000)
                wait_for_notice(tab, "The connection to tfprof web is lost", "not connected")
            finally:
                server.process.send_signal(signal.SIGCONT)
            wait_for_recovery(tab)
        wait_for_notice(tab, "it has ended, or the tunnel is closed", "not connected")
        with page_server(store, runtime, "--port", str(server.port)) as again:
            wait_for_notice(tab, "has been started again: open the link that it has printed", "not connected")
            tab.context.new_page().goto(again.link)
            wait_for_recovery(tab)
