"""A server of ClickHouse's HTTP interface on loopback, with chDB, the engine in a process.

Run it with an interpreter that has chDB: `python chdb_server.py FOLDER`. It prints its port, and
ends when its standard input is closed. It knows one user, `ada`, with the password `secret`.
"""

import importlib
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlsplit

USER, PASSWORD = "ada", "secret"
#: Parameters of a request that are not settings of a query.
NOT_SETTINGS = {"database", "query", "wait_end_of_query"}


class Handler(BaseHTTPRequestHandler):
    """Answers a query: text in the parameter `query` and in the body, as in ClickHouse."""

    protocol_version = "HTTP/1.1"
    engine: ClassVar[Any] = None
    lock: ClassVar = threading.Lock()

    def do_POST(self) -> None:
        """Run one query and send its result, or its error with the status of ClickHouse."""
        parameters = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if (self.headers["X-ClickHouse-User"], self.headers["X-ClickHouse-Key"]) != (USER, PASSWORD):
            self._send(403, b"Code: 516. DB::Exception: Authentication failed (AUTHENTICATION_FAILED)")
            return
        with self.lock:
            try:
                self._send(200, self._run(parameters, body))
            except Exception as error:
                self._send(404 if "Code: 60" in str(error) else 500, str(error).encode())

    def _run(self, parameters: dict[str, str], body: bytes) -> bytes:
        engine = self.engine
        names = engine.query("SHOW DATABASES", "TSV").bytes().decode().split()
        if parameters["database"] not in names:
            raise ValueError(f"Code: 81. DB::Exception: Database {parameters['database']} does not exist")
        engine.query(f"USE `{parameters['database']}`")
        settings = ", ".join(f"{key} = '{value}'" for key, value in parameters.items() if key not in NOT_SETTINGS)
        engine.query(f"SET {settings}")
        if "query" in parameters:  # an insert: chDB takes the data from a file
            path = f"{sys.argv[1]}/insert"
            Path(path).write_bytes(body)
            table = parameters["query"].removesuffix(" FORMAT Native")
            engine.query(f"{table} FROM INFILE '{path}' FORMAT Native")
            return b""
        text = body.decode()
        if text.endswith("FORMAT Native"):
            return bytes(engine.query(text.removesuffix("FORMAT Native"), "Native").bytes())
        engine.query(text)
        return b""

    def _send(self, status: int, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Write no log."""


def main() -> None:
    """Serve until standard input is closed."""
    Handler.engine = importlib.import_module("chdb.session").Session(f"{sys.argv[1]}/data")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()
    server.shutdown()
    Handler.engine.close()


if __name__ == "__main__":
    main()
