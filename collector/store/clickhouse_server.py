"""A server of ClickHouse: queries and inserts over HTTP, with limits on time and size."""

import contextlib
import http.client
import io
import re
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import urlencode

import pyarrow as pa

from ..errors import StoreError
from .clickhouse_address import Address, Credentials
from .columns import row_tuples

#: Seconds without any data from the server, and for a whole request.
SILENCE_S: Final = 60.0
REQUEST_S: Final = 900.0
#: Maximum sizes of an answer and of the text of an error (bytes).
ANSWER_MAX: Final = 2 << 30
_ERROR_MAX: Final = 4096
_CHUNK: Final = 1 << 20
#: Oldest release that has all settings and functions that are used.
OLDEST: Final = (22, 8)
#: Settings of each request. Texts may be any bytes. If a column and an alias have one name, the
#: name means the column.
_SETTINGS: Final = {
    "output_format_arrow_string_as_string": "0",
    "output_format_arrow_compression_method": "none",
    "prefer_column_name_to_alias": "1",
    "max_query_size": str(64 << 20),
}
#: The last bytes of an Arrow stream: without them it was cut off.
_END: Final = b"\xff\xff\xff\xff\x00\x00\x00\x00"
#: Codes of errors: access denied, wrong password, unknown user; unknown database; unknown table.
_DENIED: Final = frozenset({192, 193, 194, 497, 516})
_NO_DATABASE, _NO_TABLE = 81, 60
#: Codes of an old server: unknown format; unknown setting.
_OLD: Final = frozenset({73, 115})
_CODE: Final = re.compile(r"Code: (\d+)")


class Server:
    """A database of a server. Each request has a connection of its own."""

    def __init__(self, address: Address, credentials: Credentials) -> None:
        """Use the database at ``address``; nothing is sent yet."""
        self.address = address
        self._headers = {
            "X-ClickHouse-User": credentials.user.encode(),
            "X-ClickHouse-Key": credentials.password.encode(),
        }

    def query(self, sql: str) -> pa.Table:
        """Return the result of ``sql``; texts are binary columns.

        StoreError ``engine-away`` if the server does not answer, ``engine-refused`` if it refuses
        the user, ``store-missing`` without the database or its tables, ``engine-answer`` if the
        answer is an error, cut off, too large, or not Arrow.
        """
        data = self._request(f"{sql}\nFORMAT ArrowStream".encode(), {})
        if not data:  # no columns: the server sends no stream at all
            return pa.table({})
        if not data.endswith(_END):
            raise self._error("its answer is cut off", "engine-answer")
        try:
            table: pa.Table = pa.ipc.open_stream(pa.py_buffer(data)).read_all()
            table.validate(full=True)
        except (pa.ArrowException, OSError, MemoryError, ValueError) as error:
            raise self._error(f"its answer is not Arrow: {_first_line(str(error))}", "engine-answer") from None
        return table

    def command(self, sql: str) -> None:
        """Run ``sql``, which has no result; it ends when the server has done it."""
        self._request(sql.encode(), {"mutations_sync": "1"})

    def insert(self, table: str, rows: pa.Table) -> int:
        """Insert ``rows`` as one block, and return the bytes that were sent."""
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_table(rows.combine_chunks())
        columns = ", ".join(rows.column_names)
        sql = f"INSERT INTO {table} ({columns}) FORMAT ArrowStream"
        settings = {"max_insert_block_size": str(rows.num_rows + 1), "async_insert": "0", "query": sql}
        data = sink.getbuffer()
        self._request(data, settings)
        return len(data)

    def check(self) -> None:
        """Raise StoreError unless the release of the server and the store are readable."""
        ((name,),) = row_tuples(self.query("SELECT version() AS release"))
        release = name.decode(errors="replace")
        numbers = tuple(int(number) for number in re.findall(r"\d+", release)[:2])
        if numbers < OLDEST:
            raise self._too_old(f"it is ClickHouse {release}")

    def _request(self, body: bytes | memoryview, settings: Mapping[str, str]) -> bytes:
        """Send one request and return its answer; StoreError as in ``query``."""
        path = "/?" + urlencode({"database": self.address.database, **_SETTINGS, **settings})
        connection = self._connection()
        try:
            connection.connect()
            with _limited(connection.sock) as is_over:
                connection.request("POST", path, body, self._headers)
                response = connection.getresponse()
                if response.status != http.client.OK:
                    raise self._refusal(response.status, response.read(_ERROR_MAX).decode(errors="replace"))
                data = self._body(response)
        except TimeoutError:
            raise self._error("it does not answer in time", "engine-away") from None
        except (http.client.HTTPException, ValueError) as error:
            raise self._error(f"its answer is cut off or not HTTP: {type(error).__name__}", "engine-answer") from None
        except OSError as error:
            raise self._error(f"no answer: {error.strerror or error}", "engine-away") from None
        finally:
            connection.close()
        if is_over.is_set():
            raise self._error("it does not answer in time", "engine-away")
        return data

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self.address.host, self.address.port
        if self.address.protocol == "https":
            return http.client.HTTPSConnection(host, port, timeout=SILENCE_S, context=ssl.create_default_context())
        return http.client.HTTPConnection(host, port, timeout=SILENCE_S)

    def _body(self, response: http.client.HTTPResponse) -> bytes:
        chunks, size = [], 0
        while chunk := response.read1(_CHUNK):
            chunks.append(chunk)
            size += len(chunk)
            if size > ANSWER_MAX:
                raise self._error(f"its answer has more than {ANSWER_MAX >> 30} GiB", "engine-answer")
        if response.length:
            raise http.client.IncompleteRead(b"", response.length)
        return b"".join(chunks)

    def _refusal(self, status: int, text: str) -> StoreError:
        """Return the error about an answer that is an error."""
        match = _CODE.search(text)
        code = int(match[1]) if match else 0
        if code in _DENIED or status in (401, 403):
            return self._error(f"it refuses the user: {_first_line(text)}", "engine-refused")
        if code in (_NO_DATABASE, _NO_TABLE):
            what = "database" if code == _NO_DATABASE else "tables of tfprof in the database"
            hint = f"create them with `tfprof store init {self.address.text}`"
            return self._error(f"there is no {what}{hint and ': '}{hint}", "store-missing")
        if code in _OLD:
            return self._too_old(f"it lacks what a query needs ({_first_line(text)})")
        return self._error(f"it answers HTTP {status}: {_first_line(text)}", "engine-answer")

    def _too_old(self, text: str) -> StoreError:
        oldest = ".".join(map(str, OLDEST))
        return self._error(f"{text}, and this tfprof needs ClickHouse {oldest} or later", "engine-version")

    def _error(self, text: str, slug: str) -> StoreError:
        return StoreError(f"{self.address.text}: {text}", slug)


@contextlib.contextmanager
def _limited(connection: socket.socket) -> Iterator[threading.Event]:
    """Shut ``connection`` down when the time for a request is over; provide whether it is over.

    A timeout of the socket is not enough: a server may send a byte now and then.
    """
    is_over = threading.Event()

    def shut_down() -> None:
        is_over.set()
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(REQUEST_S, shut_down)
    timer.daemon = True
    timer.start()
    try:
        yield is_over
    finally:
        timer.cancel()


def _first_line(text: str) -> str:
    """Return the beginning of ``text`` as printable characters."""
    line = (text.strip().splitlines() or [""])[0][:300]
    return "".join(character if character.isprintable() else "�" for character in line)
