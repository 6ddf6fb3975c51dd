"""The page in a real Chromium: what it shows, requests, and errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from integration.trace_viewer import chromium

_LOAD_MS: Final = 60_000
#: Sizes of the window and themes in which each page is opened.
WINDOWS: Final = ((1280, "light"), (400, "dark"))


class Page:
    """A page of the browser; `problems` are its errors, and its requests to other hosts."""

    def __init__(self, page: Any, host: str) -> None:
        self.page = page
        self.problems: list[str] = []
        self.requests: list[str] = []
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda message: message.type in {"error", "warning"} and self.problems.append(message.text))
        page.on("request", lambda request: self._add(request.url, host))

    def _add(self, url: str, host: str) -> None:
        self.requests.append(url)
        if urlsplit(url).netloc != host and not url.startswith(("file:", "data:")):
            self.problems.append(f"request of {url}")

    def open(self, url: str, heading: str) -> None:
        """Open ``url`` and wait for a section or page with this heading."""
        self.page.goto(url)
        self.page.get_by_role("heading", name=heading, exact=True).first.wait_for(timeout=_LOAD_MS)
        self.page.wait_for_timeout(500)  # pictures follow their tables

    def text(self) -> str:
        """Return the text of the page."""
        return str(self.page.locator("body").inner_text())

    def overflow(self) -> int:
        """Return by how many pixels the page is wider than the window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))


@contextmanager
def browser_page(width: int = 1280, theme: str = "light", host: str = "", *, offline: bool = False) -> Iterator[Page]:
    """Open an empty page of this width in pixels and with this theme."""
    with chromium() as browser:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme, timezone_id="UTC", offline=offline
        )
        yield Page(context.new_page(), host)
