"""A server of ClickHouse: queries and inserts over HTTP, with limits on time and size."""

import http.client
import re
import ssl
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

import pyarrow as pa

from ..errors import StoreError
from .clickhouse_address import Address, Credentials
from .clickhouse_native import decode, encode
from .clickhouse_tables import PART, column_type
from .columns import row_tuples

#: Seconds for a connection, without any data from the server, and for a whole answer.
_CONNECT_S: Final = 60.0
SILENCE_S: Final = 300.0
REQUEST_S: Final = 900.0
#: Maximum sizes of an answer and of the text of an error (bytes).
ANSWER_MAX: Final = 2 << 30
_ERROR_MAX: Final = 4096
_CHUNK: Final = 1 << 20
#: Seconds between questions about deletions.
_POLL_S: Final = 0.1
#: Oldest release that answers all questions, and the oldest one that also has retention and row
#: policies.
OLDEST: Final = (18, 16)
OLDEST_WITH_RULES: Final = (22, 8)
#: Settings of each request. The server answers when the query has ended, since an error in the
#: middle of an answer would look like a part of it, and ends it before tfprof gives up. Lists of
#: numbers in a query may be long. A row that is sent to other servers is there when the request
#: ends.
_SETTINGS: Final = {
    "wait_end_of_query": "1",
    "max_execution_time": str(int(SILENCE_S) - 10),
    "max_query_size": str(64 << 20),
    "max_ast_elements": str(64 << 20),
    "max_expanded_ast_elements": str(64 << 20),
    "insert_distributed_sync": "1",
}
#: Further settings, with the release from which on they are known.
_LATER_SETTINGS: Final = (((22, 8), "async_insert", "0"),)
#: Codes of errors: access denied, wrong password, unknown user; unknown database; unknown table.
_DENIED: Final = frozenset({192, 193, 194, 497, 516})
_NO_DATABASE, _NO_TABLE = 81, 60
#: Codes of an old server: unknown format; unknown setting.
_OLD: Final = frozenset({73, 115})
_DISTRIBUTED: Final = re.compile(r"Distributed\('?([\w.-]+)")
_TTL_DAYS: Final = re.compile(r"TTL opened \+ toIntervalDay\((\d+)\)")
_CODE: Final = re.compile(r"Code: (\d+)")


class Server:
    """A database of a server. Each request has a connection of its own."""

    def __init__(self, address: Address, credentials: Credentials) -> None:
        """Use the database at ``address``; nothing is sent yet."""
        self.address = address
        self._credentials = credentials
        #: The release of the server, as `check` found it.
        self.release = OLDEST
        self._headers = {
            "X-ClickHouse-User": credentials.user.encode(),
            "X-ClickHouse-Key": credentials.password.encode(),
        }

    def query(self, sql: str) -> pa.Table:
        """Return the result of ``sql``; texts are binary columns, without rows it has no columns.

        StoreError ``engine-away`` if the server does not answer, ``engine-refused`` if it refuses
        the user, ``store-missing`` without the database or its tables, ``engine-answer`` if the
        answer is an error, cut off, too large, or not of the format.
        """
        data = self._request(f"{sql}\nFORMAT Native".encode(), {})
        try:
            return decode(data)
        except (pa.ArrowException, MemoryError, ValueError) as error:
            raise self._error(f"its answer is no result: {_first_line(str(error))}", "engine-answer") from None

    def command(self, sql: str) -> None:
        """Run ``sql``, which has no result."""
        self._request(sql.encode(), {})

    def delete(self, tables: Iterable[str], job: str) -> None:
        """Delete the rows of ``job`` from ``tables``; it ends when the server has done it."""
        for table in tables:
            self.command(f"ALTER TABLE {table} DELETE WHERE job = '{job}'")
        end = time.monotonic() + REQUEST_S
        pending = (
            f"SELECT count() AS number FROM system.mutations WHERE database = '{self.address.database}' "  # noqa: S608
            f"AND is_done = 0 AND position(command, '{job}') > 0"
        )
        while self.query(pending)["number"].to_pylist() != [0]:
            if time.monotonic() > end:
                raise self._error(f"it does not delete the rows of job {job} in time", "engine-away")
            time.sleep(_POLL_S)

    def at(self, host: str) -> "Server":
        """Return the server of the same port, database and user on another host."""
        server = Server(self.address._replace(host=host), self._credentials)
        server.release = self.release
        return server

    def cluster(self, database: str, table: str) -> str | None:
        """Return the name of the cluster that shares the rows of ``table``.

        "" if the table has its own rows, None if there is no such table.
        """
        for engine in self._engines(database, table):
            match = _DISTRIBUTED.match(engine)
            return match[1] if match else ""
        return None

    def keep_days(self) -> int:
        """Return for how many days the server keeps a job after its start, 0 for no limit."""
        days = [_TTL_DAYS.search(engine) for engine in self._engines(self.address.database, "jobs", f"jobs{PART}")]
        return min((int(match[1]) for match in days if match), default=0)

    def _engines(self, database: str, *tables: str) -> list[str]:
        """Return the engines of ``tables``, those that exist, with all their clauses."""
        names = ", ".join(f"'{table}'" for table in tables)
        rows = self.query(f"SELECT engine_full FROM system.tables WHERE database = '{database}' AND name IN ({names})")  # noqa: S608
        return [engine.decode(errors="replace") for (engine,) in row_tuples(rows)]

    def hosts(self, cluster: str) -> list[str]:
        """Return the hosts of ``cluster``, as the server knows them; StoreError if it has none."""
        rows = self.query(f"SELECT DISTINCT host_name FROM system.clusters WHERE cluster = '{cluster}'")  # noqa: S608
        if hosts := sorted(host.decode(errors="replace") for (host,) in row_tuples(rows)):
            return hosts
        raise self._error(f"it knows no cluster {cluster}", "engine-cluster")

    def insert(self, table: str, rows: pa.Table) -> int:
        """Insert ``rows`` as one block, and return the bytes that were sent."""
        fields: Any = rows.schema
        data = encode(rows, {field.name: column_type(field) for field in fields})
        sql = f"INSERT INTO {table} ({', '.join(rows.column_names)}) FORMAT Native"
        self._request(data, {"max_insert_block_size": str(rows.num_rows + 1), "query": sql})
        return len(data)

    def check(self, oldest: tuple[int, int] = OLDEST, what: str = "this tfprof needs") -> None:
        """Raise StoreError unless the release of the server is at least ``oldest``.

        ``what``: what needs it, with the verb.
        """
        names = list(row_tuples(self.query("SELECT toString(version()) AS release")))
        release = names[0][0].decode(errors="replace") if names else ""
        numbers = [int(number) for number in re.findall(r"\d+", release)[:2]]
        if len(numbers) < 2:
            raise self._error("it does not tell its release", "engine-answer")
        self.release = (numbers[0], numbers[1])
        if self.release < oldest:
            raise self._too_old(f"it is ClickHouse {release}", what, oldest)

    def _request(self, body: bytes | memoryview, settings: Mapping[str, str]) -> bytes:
        """Send one request and return its answer; StoreError as in ``query``."""
        later = {name: value for since, name, value in _LATER_SETTINGS if self.release >= since}
        path = "/?" + urlencode({"database": self.address.database, **_SETTINGS, **later, **settings})
        connection = self._connection()
        try:
            connection.connect()
            connection.sock.settimeout(SILENCE_S)
            connection.request("POST", path, body, self._headers)
            response = connection.getresponse()
            if response.status != http.client.OK:
                raise self._refusal(response.status, response.read(_ERROR_MAX).decode(errors="replace"))
            return self._body(response)
        except TimeoutError:
            raise self._error("it does not answer in time", "engine-away") from None
        except (ssl.SSLError, UnicodeError) as error:  # may be ValueErrors: a certificate, the name of a host
            raise self._error(f"no answer: {getattr(error, 'strerror', error)}", "engine-away") from None
        except (http.client.HTTPException, ValueError) as error:
            raise self._error(f"its answer is cut off or not HTTP: {type(error).__name__}", "engine-answer") from None
        except OSError as error:
            raise self._error(f"no answer: {error.strerror or error}", "engine-away") from None
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self.address.host, self.address.port
        if self.address.protocol == "https":
            return http.client.HTTPSConnection(host, port, timeout=_CONNECT_S, context=ssl.create_default_context())
        return http.client.HTTPConnection(host, port, timeout=_CONNECT_S)

    def _body(self, response: http.client.HTTPResponse) -> bytes:
        chunks, size, end = [], 0, time.monotonic() + REQUEST_S
        while chunk := response.read1(_CHUNK):
            if time.monotonic() > end:
                raise TimeoutError
            chunks.append(chunk)
            size += len(chunk)
            if size > ANSWER_MAX:
                raise self._error(f"its answer has more than {ANSWER_MAX >> 30} GiB", "engine-answer")
        if response.length or not (response.chunked or "Content-Length" in response.headers):  # its end is unknown
            raise http.client.IncompleteRead(b"")
        return b"".join(chunks)

    def _refusal(self, status: int, text: str) -> StoreError:
        """Return the error about an answer that is an error."""
        match = _CODE.search(text)
        code = int(match[1]) if match else 0
        if code in _DENIED or status in (401, 403):
            return self._error(f"it refuses the user: {_first_line(text)}", "engine-refused")
        if code in (_NO_DATABASE, _NO_TABLE):
            text = "there is no database" if code == _NO_DATABASE else "the database has no tables of tfprof"
            return self._error(f"{text}: `tfprof store init {self.address.text}` creates them", "store-missing")
        if code in _OLD:
            return self._too_old(f"it lacks what a query needs ({_first_line(text)})", "this tfprof needs", OLDEST)
        return self._error(f"it answers HTTP {status}: {_first_line(text)}", "engine-answer")

    def _too_old(self, text: str, what: str, oldest: tuple[int, int]) -> StoreError:
        release = ".".join(map(str, oldest))
        return self._error(f"{text}, and {what} ClickHouse {release} or later", "engine-version")

    def _error(self, text: str, slug: str) -> StoreError:
        return StoreError(f"{self.address.text}: {text}", slug)


def _first_line(text: str) -> str:
    """Return the beginning of ``text`` as printable characters."""
    line = (text.strip().splitlines() or [""])[0][:300]
    return "".join(character if character.isprintable() else "�" for character in line)
