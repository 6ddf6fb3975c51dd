"""A store in ClickHouse: its address, a server that lies, and equal answers of the engine itself.

The tests of answers need chDB. TFPROF_TEST_CHDB names an interpreter that has it; without it they
are skipped.

Tests collector/store/clickhouse_address.py, collector/store/clickhouse_aggregates.py,
collector/store/clickhouse_dialect.py, collector/store/clickhouse_groups.py,
collector/store/clickhouse_ranges.py, collector/store/clickhouse_reader.py,
collector/store/clickhouse_rows.py, collector/store/clickhouse_server.py,
collector/store/clickhouse_tables.py, collector/store/clickhouse_target.py,
collector/store/copying.py, collector/store/opening.py, cli/store.py.
"""

import os
import random
import socket
import ssl
import subprocess
import threading
import time
import types
from collections.abc import Iterator
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from fakes import chdb_server, page_store, random_rows
from fakes.all_exports import exports
from fakes.command import output_of
from fakes.forks import SERVER_PIDS
from fakes.made_store import HOST, IDENTITY, START_NS, rows, span, write_job
from fakes.same_figures import assert_same_figures, assert_same_rows
from tfprof.collector import copy_rounds
from tfprof.collector.copy_rounds import CopyRounds
from tfprof.collector.errors import StoreError, UsageError
from tfprof.collector.store import catalog, clickhouse_target, copying, schema
from tfprof.collector.store import clickhouse_server as http
from tfprof.collector.store import clickhouse_tables as tables
from tfprof.collector.store.archive_import import import_archive
from tfprof.collector.store.clickhouse_address import Address, Credentials, credentials, parse
from tfprof.collector.store.clickhouse_ranges import Range, covering, row_counts
from tfprof.collector.store.clickhouse_reader import EngineStore
from tfprof.collector.store.clickhouse_server import Server
from tfprof.collector.store.clickhouse_target import EngineTarget
from tfprof.collector.store.columns import pc
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.store.writer import LocalStoreWriter
from tfprof.formats import layout

CHDB = os.environ.get("TFPROF_TEST_CHDB", "")
needs_chdb = pytest.mark.skipif(not CHDB, reason="TFPROF_TEST_CHDB names no interpreter with chDB")
QUESTIONS = ("show", "breakdown", "memory", "scope", "graph", "op", "code", "advise", "steps", "spans", "curves")


def test_an_address_has_defaults_and_shows_no_secret() -> None:
    assert parse("clickhouse://head/tfprof") == Address("head", 8123, "tfprof")
    assert parse("clickhouse://[::1]:9/a?protocol=https") == Address("::1", 9, "a", "https")
    assert parse("clickhouse://head/a?protocol=https").text == "clickhouse://head:8443/a?protocol=https"


@pytest.mark.parametrize(
    "url",
    ["head", "/a;b", "head/a?user=x", "head:x/a", "head/a?protocol=ftp", "ada:secret@head/a", "head/a#b", "head/a\n"],
)
def test_a_url_that_is_none_or_has_a_password_is_refused(url: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(f"clickhouse://{url}")
    assert "secret" not in str(refused.value)


def test_no_tables_are_made_for_the_url_of_a_collector() -> None:
    with pytest.raises(UsageError, match="'tcp://head/jobs' is not the URL of a store: clickhouse://"):
        parse("tcp://head/jobs")


def test_a_password_file_that_others_can_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "password"
    path.write_text("secret\n")
    monkeypatch.setenv("TFPROF_CLICKHOUSE_PASSWORD_FILE", str(path))
    path.chmod(0o640)
    with pytest.raises(StoreError, match=r"chmod 600.*\[password-file\]"):
        credentials()
    path.chmod(0o600)
    assert credentials() == Credentials("default", "secret")
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(StoreError, match=r"\[password-file\]"):
        credentials()


def _answering(answer: bytes, delay_s: float = 0.0) -> Iterator[Server]:
    """Provide a server on loopback that sends ``answer`` to one request, then closes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                request = b""
                while b"Native" not in request:
                    request += connection.recv(1 << 16)
                time.sleep(delay_s)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield Server(Address("127.0.0.1", listener.getsockname()[1], "tfprof"), Credentials("ada", "secret"))
        thread.join()


def _ok(body: bytes, length: int | None = None) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (len(body) if length is None else length) + body


@pytest.mark.parametrize(
    ("answer", "slug"),
    [
        (b"", "engine-answer"),
        (b"SSH-2.0-OpenSSH\r\n", "engine-answer"),
        (_ok(b"\xff" * 8, 10**6), "engine-answer"),
        (_ok(b"half of a block"), "engine-answer"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "engine-answer"),
        (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno", "engine-refused"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 12\r\n\r\nCode: 81. DB", "store-missing"),
        (b"HTTP/1.1 500 Error\r\nContent-Length: 9\r\n\r\n\x1b]0;hi\x07\n.", "engine-answer"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", "engine-answer"),
    ],
)
def test_an_answer_that_is_no_result_is_one_error(answer: bytes, slug: str) -> None:
    for server in _answering(answer):
        with pytest.raises(StoreError, match=rf"\[{slug}\]") as refused:
            server.query("SELECT 1")
        assert str(refused.value).isprintable()


def test_a_server_that_is_silent_or_away_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "SILENCE_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        server = Server(Address("127.0.0.1", port, "tfprof"), Credentials("ada", "secret"))
        with pytest.raises(StoreError, match=r"does not answer in time.*\[engine-away\]"):
            server.query("SELECT 1")
    with pytest.raises(StoreError, match=r"\[engine-away\]"):
        server.query("SELECT 1")


def test_a_server_that_sends_a_byte_now_and_then_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "REQUEST_S", 0.2)
    is_over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(_ok(b"", 10**6))
                while not is_over.wait(0.02):
                    connection.send(b"H")

        thread = threading.Thread(target=serve)
        thread.start()
        server = Server(Address("127.0.0.1", listener.getsockname()[1], "tfprof"), Credentials("ada", "secret"))
        with pytest.raises(StoreError, match=r"does not answer in time.*\[engine-away\]"):
            server.query("SELECT 1")
        is_over.set()
        thread.join()


def test_a_query_may_take_longer_than_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_CONNECT_S", 0.1)
    for server in _answering(_ok(b""), delay_s=0.3):
        assert server.query("SELECT 1").num_rows == 0
    assert float(http._SETTINGS["max_execution_time"]) < http.SILENCE_S


@pytest.mark.parametrize("host", ["127.0.0.1", "head..net"])
def test_a_certificate_or_a_host_that_is_invalid_is_named(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(_connection: HTTPConnection) -> None:
        raise ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed")

    if host == "127.0.0.1":
        monkeypatch.setattr(HTTPConnection, "connect", connect)
    with pytest.raises(StoreError, match=r"no answer: .*(verify|codec) failed.*\[engine-away\]"):
        Server(Address(host, 1, "tfprof", "https"), Credentials("ada", "secret")).query("SELECT 1")


def test_the_statements_have_the_columns_of_each_table() -> None:
    rules = tables.Rules(30, ("operators", "svc-tfprof", "ada.lovelace"))
    texts = "\n".join(tables.statements(Address("head", 8123, "team-a"), rules))
    for name, columns in tables.ROW_TABLES.items():
        (line,) = [
            line for line in texts.splitlines() if line.startswith(f"CREATE TABLE IF NOT EXISTS `team-a`.{name} ")
        ]
        assert all(f", {column} " in line for column in columns.names)
        assert line.endswith("TTL opened + INTERVAL 30 DAY")
        assert f"tfprof_owner ON `team-a`.{name} FOR SELECT USING owner = currentUser()" in texts
        assert f"tfprof_admins ON `team-a`.{name} FOR SELECT USING 1 TO `operators`, `svc-tfprof`, `ada.l" in texts
    for admin in ("a b", "a`b", "a\\", "a\x1b", ""):
        with pytest.raises(UsageError):
            list(tables.statements(Address("head", 8123, "tfprof"), tables.Rules(0, (admin,))))


def test_copies_that_overlap_count_once_and_groups_of_traces_as_a_whole() -> None:
    batches = [(1, 0, 14), (2, 0, 10), (3, 10, 20), (4, 14, 3)]
    ranges = covering((name, *batch) for name in (b"spans", b"rollup") for batch in batches)
    assert ranges["spans"] == [Range(1, 0, 14), Range(3, 14, 30)]
    assert ranges["rollup"] == [Range(1, 0, 14), Range(4, 14, 17)]
    assert row_counts(ranges) == {"spans": 30, "rollup": 17}


@pytest.mark.parametrize("rules", [tables.Rules(cluster="a'b"), tables.Rules(admins=("ada",), cluster="pair")])
def test_a_cluster_that_cannot_be_is_refused(rules: tables.Rules) -> None:
    with pytest.raises(UsageError):
        list(tables.statements(Address("head", 8123, "tfprof"), rules))


@pytest.fixture(scope="module")
def server_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The port of a server that knows one user."""
    command = [CHDB, chdb_server.__file__, str(tmp_path_factory.mktemp("chdb"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        SERVER_PIDS.add(process.pid)
        yield process.stdout.readline().strip()
        SERVER_PIDS.discard(process.pid)
        process.communicate(timeout=60)


@pytest.fixture
def database(server_port: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a new store."""
    monkeypatch.setenv("TFPROF_CLICKHOUSE_USER", chdb_server.USER)
    monkeypatch.setenv("TFPROF_CLICKHOUSE_PASSWORD", chdb_server.PASSWORD)
    address = f"clickhouse://127.0.0.1:{server_port}/{request.node.name[:60]}"
    output_of("store", "init", address)
    return address


@needs_chdb
def test_every_answer_equals_that_of_the_folder_and_of_the_copy_back(database: str, tmp_path: Path) -> None:
    store, back = page_store.write(tmp_path / "store"), tmp_path / "back"
    output_of("store", "copy", store, database)
    assert "0 of 2" in output_of("store", "copy", store, database)
    output_of("store", "copy", database, back)
    assert dict(exports(database, "last", tmp_path / "1")) == dict(exports(store, "last", tmp_path / "2"))
    for question in QUESTIONS:
        words = (question, "last", "--json", "--store")
        local = output_of(*words, store).replace(str(store), "")
        assert output_of(*words, database).replace(database, "") == local, question
        assert output_of(*words, back).replace(str(back), "") == local, question


def _tables(first: int, count: int, seed: int) -> dict[str, pa.Table]:
    """Return ``count`` traces from the number ``first`` on, with their ops, spans and events."""
    spans = [span(1, number, number, 1.0) for number in range(first, first + count)]
    return {
        "ops": rows("ops", random_rows.random_ops(first, count, 8, seed=seed)),
        "traces": random_rows.traces(first, count),
        "spans": rows("spans", spans),
    }


@needs_chdb
def test_rows_and_aggregates_equal_and_an_interrupted_copy_goes_on(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = _tables(0, 30, seed=1)
    write_job(tmp_path, 7, {"names": random_rows.device_names(), **tables})
    local, server = LocalStore(tmp_path).jobs()[0], Server(parse(database), credentials())
    store = EngineStore(server)
    target, insert = EngineTarget(store), Server.insert

    def killed_after_the_rows(self: Server, table: str, data: pa.Table) -> int:
        if table == "batches" and b"traces" in [name.encode() for name in data["name"].to_pylist()]:
            raise KeyboardInterrupt
        return insert(self, table, data)

    with monkeypatch.context() as patch:
        patch.setattr(Server, "insert", killed_after_the_rows)
        patch.setattr(clickhouse_target, "PIECE_ROWS", 1)
        with pytest.raises(KeyboardInterrupt):
            target.add(local)
    assert not target.has(7)
    assert target.add(local).earlier > tables["spans"].num_rows
    assert_same_rows(store.jobs()[0], local)
    assert_same_figures(store.jobs()[0], local)
    write_job(tmp_path, 8, {"traces": random_rows.traces(0, 30)})
    without_ops = LocalStore(tmp_path).job(f"{8:016x}")
    target.add(without_ops)
    assert_same_figures(store.job(f"{8:016x}"), without_ops)
    with monkeypatch.context() as patch:
        patch.setattr(store, "read", lambda condition, read=store.read: read(condition))  # never of all jobs
        assert_same_rows(store.job(f"{7:016x}"), local)
        assert store.job(f"{7:016x}").store_uids() == [f"{7:016x}", f"{8:016x}"]
    server.command(f"ALTER TABLE spans DELETE WHERE job = '{7:016x}' AND row = 3 SETTINGS mutations_sync = 1")
    with pytest.raises(StoreError, match=r"damaged: spans has 29 of 30 rows \[store-damaged\]"):
        store.job(f"{7:016x}").table("spans")
    store.remove([7, 8])
    assert not store.jobs()
    left = server.query("SELECT count() AS rows FROM rollup UNION ALL SELECT count() AS rows FROM times")
    assert left["rows"].to_pylist() == [0, 0]
    assert target.add(local).earlier == 0
    assert_same_rows(store.jobs()[0], local)
    assert_same_figures(store.jobs()[0], local)


@needs_chdb
def test_a_running_job_is_copied_bit_by_bit_and_each_row_once(database: str, tmp_path: Path) -> None:
    server = Server(parse(database), credentials())
    store, folder = EngineStore(server), LocalStoreWriter(tmp_path, HOST)
    targets = EngineTarget(store), EngineTarget(store)
    writer = folder.job(7)
    writer.set_identity(IDENTITY)
    writer.append({"names": random_rows.device_names()})
    for at in range(6):
        writer.append(_tables(at * 10, 10, seed=at))
        if at % 3 == 1:
            writer.seal()
        job = LocalStore(tmp_path, HOST).jobs()[0]
        copied = targets[at == 4].add(job)  # another process takes over for a while
        assert copied.rows - copied.earlier > 0
        assert store.jobs()[0].info.state == "running"
        assert_same_rows(store.jobs()[0], job)
        assert_same_figures(store.jobs()[0], job)
    with pytest.raises(AssertionError, match="--running needs a store in ClickHouse"):
        output_of("store", "copy", "--running", tmp_path, tmp_path / "other")
    assert "1 of 1 jobs copied" in output_of("store", "copy", "--running", tmp_path, database)
    assert "0 of 1 jobs copied" in output_of("store", "copy", tmp_path, database)
    writer.close("exited", {"t_ns": START_NS})
    folder.close()
    assert targets[0].add(LocalStore(tmp_path).jobs()[0]).earlier == copied.rows
    assert targets[0].has(7)
    stored, back = store.jobs()[0], tmp_path / "back"
    assert stored.info.rows == LocalStore(tmp_path).jobs()[0].info.rows
    assert len(stored.ranges["ops"]) == 3
    output_of("store", "copy", database, back)
    assert_same_rows(LocalStore(back).jobs()[0], stored)
    assert_same_figures(LocalStore(back).jobs()[0], stored)


@needs_chdb
def test_a_job_that_claims_anything_is_copied(database: str, tmp_path: Path) -> None:
    identity = {"user": "half \ud83d", "created_real_ns": (1 << 64) - 1}
    write_job(tmp_path, 7, {}, identity=identity, end={"t_ns": 1 << 64})
    catalog.change_tags(catalog.job_folder(tmp_path, 7), lambda _: ("half \ud83d",))
    output_of("store", "copy", tmp_path, database)
    (job,) = EngineStore(Server(parse(database), credentials())).jobs()
    assert (job.tags(), job.info.identity["user"]) == (("half ?",), identity["user"])


def test_what_no_column_takes_is_damage_of_one_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = types.SimpleNamespace(address="clickhouse://head/jobs", server=types.SimpleNamespace(keep_days=lambda: 0))
    target: Any = EngineTarget(cast("EngineStore", store))
    write_job(tmp_path, 7, {})
    monkeypatch.setattr(target, "_add", lambda _job: pa.array([1 << 64], pa.int64()))
    with pytest.raises(StoreError, match=r"job 0{15}7 is damaged: OverflowError.*\[store-damaged\]"):
        target.add(LocalStore(tmp_path).jobs()[0])


@needs_chdb
def test_tags_of_a_running_job_stay_until_those_of_its_folder_change(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, folder = EngineStore(Server(parse(database), credentials())), LocalStoreWriter(tmp_path, HOST)
    target, writer = EngineTarget(store), folder.job(7)
    writer.set_identity(IDENTITY)
    job = LocalStore(tmp_path, HOST).jobs()[0]
    target.add(job)
    with monkeypatch.context() as patch:  # the clock of another host is a minute ahead
        patch.setattr(time, "time_ns", lambda now=time.time_ns: now() + 60 * 10**9)
        store.jobs()[0].change_tags(lambda _: ("set there",))
    target.add(job)
    assert store.jobs()[0].tags() == ("set there",)
    assert store.jobs()[0].change_tags(lambda tags: (*tags, "too")) == store.jobs()[0].tags() == ("set there", "too")
    job.change_tags(lambda _: ("set here",))
    target.add(job)
    assert store.jobs()[0].tags() == ("set here",)
    store.remove([7])
    assert not store.jobs()
    folder.close()


@needs_chdb
def test_a_running_job_is_exported_as_running_on_the_host_of_its_collector(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: HOST)
    store, folder = EngineStore(Server(parse(database), credentials())), LocalStoreWriter(tmp_path / "store", HOST)
    folder.job(7).set_identity(IDENTITY)
    EngineTarget(store).add(LocalStore(tmp_path / "store").jobs()[0])
    (tmp_path / "job.tfprof").write_bytes(b"".join(store.jobs()[0].archive()))
    import_archive(tmp_path / "other", str(tmp_path / "job.tfprof"), HOST)
    assert LocalStore(tmp_path / "other").jobs()[0].info.state == "detached"
    folder.close()


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group has seven traces of `random_rows`, each of which claims to have one op."""
    for module in (copying, clickhouse_target):
        monkeypatch.setattr(module, "SEAL_ROWS", 7)


#: Another spelling of random_rows.CPU, with the next number.
CPU_TOO = b"/JOB:localhost/replica:0/task:0/device:cpu:0"


def _unordered_tables(rng: random.Random, first: int, count: int) -> dict[str, pa.Table]:
    """Return traces in any order, with ops of which some are on CPU_TOO."""
    tables = _tables(first, count, rng.randrange(1000))
    is_spelled = [device == random_rows.CPU and rng.random() < 0.5 for device in tables["ops"]["device"].to_pylist()]
    devices = pc.if_else(pa.array(is_spelled), len(random_rows.DEVICES), tables["ops"]["device"])
    ops = tables["ops"].set_column(2, "device", devices.cast(pa.uint32()))
    traces = tables["traces"].take(rng.sample(range(count), count))
    kinds = [rng.choice([(layout.RUN, number), (layout.FUNCTION, 1), (layout.FUNCTION, 2)]) for number in range(count)]
    for column, values in zip(("kind", "key"), zip(*kinds, strict=True), strict=True):
        at = traces.column_names.index(column)
        traces = traces.set_column(at, column, pa.array(values, traces[column].type))
    return tables | {"ops": ops, "traces": traces}


@needs_chdb
@pytest.mark.usefixtures("small_groups")
def test_sums_of_groups_equal_those_of_the_folder_whatever_the_pieces(database: str, tmp_path: Path) -> None:
    store, folder = EngineStore(Server(parse(database), credentials())), LocalStoreWriter(tmp_path, HOST)
    for uid in (1, 2, 3):
        rng, writer, traces = random.Random(uid), folder.job(uid), 0
        writer.set_identity(IDENTITY)
        for at in range(5):
            count = rng.randrange(1, 12)
            if at == 0:
                new = {"names": random_rows.device_names(), **_tables(0, count, seed=uid)}
            else:
                new = _unordered_tables(rng, traces, count)
            if at == 1:  # only now it is known that two devices are the same
                row = {"kind": schema.DEVICE, "id": len(random_rows.DEVICES), "text": CPU_TOO}
                new["names"] = rows("names", [row])
            writer.append(new)
            traces += count
            if rng.random() < 0.4:
                writer.seal()
            if at == 4:
                writer.close("exited", {"t_ns": START_NS})
            elif rng.random() < 0.3:
                continue
            job = LocalStore(tmp_path, HOST).job(f"{uid:016x}")
            EngineTarget(store).add(job)
            rows_of_traces, first = job.table("traces", ("trace", "kind", "key")).to_pylist(), rng.randrange(traces)
            calls = [row["trace"] for row in rows_of_traces if (row["kind"], row["key"]) == (layout.FUNCTION, 1)]
            some = rng.sample(range(traces), rng.randrange(traces)), range(first, traces), range(first)
            assert_same_figures(store.job(job.info.hex), job, (None, calls, *some))
        counts = row_counts(store.job(job.info.hex).ranges)
        assert counts["rollup"] == counts["times"] == counts["traces"] == traces
    folder.close()


@needs_chdb
@pytest.mark.usefixtures("small_groups")
def test_two_processes_that_copy_a_running_job_at_once_have_the_same_sums(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, folder = EngineStore(Server(parse(database), credentials())), LocalStoreWriter(tmp_path, HOST)
    writer, insert = folder.job(7), Server.insert
    writer.set_identity(IDENTITY)
    writer.append({"names": random_rows.device_names(), **_tables(0, 10, seed=1)})

    def overtaken(self: Server, table: str, data: pa.Table) -> int:
        if table == "batches":
            monkeypatch.setattr(Server, "insert", insert)
            writer.append(_tables(10, 20, seed=2))
            EngineTarget(store).add(LocalStore(tmp_path, HOST).jobs()[0])
        return insert(self, table, data)

    slow = EngineTarget(store)
    monkeypatch.setattr(Server, "insert", overtaken)
    for end in (10, 40, 50):
        slow.add(LocalStore(tmp_path, HOST).jobs()[0])
        stored = store.jobs()[0]
        assert_same_figures(stored, LocalStore(tmp_path, HOST).jobs()[0])
        assert row_counts(stored.ranges)["rollup"] == row_counts(stored.ranges)["traces"] // 7 * 7
        writer.append(_tables(max(end, 30), 10, seed=end))
    folder.close()


@needs_chdb
def test_jobs_that_the_database_would_remove_are_named_and_not_copied(database: str, tmp_path: Path) -> None:
    limited = f"{database}-30"
    output_of("store", "init", limited, "--keep-days", "30")
    for uid, days in ((7, 29), (8, 31)):
        write_job(tmp_path, uid, {})
        info = catalog.load(catalog.job_folder(tmp_path, uid))
        opened_ns = time.time_ns() - days * 86_400 * 10**9
        catalog.save(catalog.job_folder(tmp_path, uid), replace(info, opened_ns=opened_ns))
    assert CopyRounds(tmp_path, limited).run()["error"] is None
    assert [job.info.uid for job in EngineStore(Server(parse(limited), credentials())).jobs()] == [7]
    text = output_of("store", "copy", tmp_path, limited)
    assert "0 of 2 jobs copied" in text
    assert "1 left out, for they are older than the target keeps jobs: 0000000000000008" in text
    assert "2 of 2 jobs copied" in output_of("store", "copy", tmp_path, database)


@needs_chdb
def test_tables_of_another_version_are_refused(database: str) -> None:
    Server(parse(database), credentials()).command("INSERT INTO store SELECT 40")
    for words in (("jobs", "--store", database), ("store", "init", database)):
        with pytest.raises(AssertionError, match=r"of version 40.*create another database.*\[store-version\]"):
            output_of(*words)


@needs_chdb
def test_rounds_copy_what_is_new_and_nothing_that_was_removed_there(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_rounds, "_SETTLING_NS", 0)
    folder, store = tmp_path / "store", EngineStore(Server(parse(database), credentials()))
    for uid in (1, 2):
        write_job(folder, uid, {"names": random_rows.device_names(), **_tables(0, 10, seed=uid)})
    rounds = CopyRounds(folder, database)
    first = rounds.run()
    assert (first["failed"], first["error"]) == (0, None)
    assert [job.info.rows for job in store.jobs()] == [job.info.rows for job in LocalStore(folder).jobs()]
    assert rounds.run()["rows"] == first["rows"]
    catalog.change_tags(catalog.job_folder(folder, 1), lambda _: ("fast",))
    (folder / "jobs" / f"{3:016x}").mkdir()
    (folder / "jobs" / f"{3:016x}" / "job.json").write_text("{")
    progress = rounds.run()
    assert store.jobs()[0].tags() == ("fast",)
    assert (progress["failed"], progress["error"]["slug"]) == (1, "store-damaged")
    store.remove([2])
    catalog.change_tags(catalog.job_folder(folder, 2), lambda _: ("removed there",))
    for again in (rounds, CopyRounds(folder, database)):
        again.run()
        assert [job.info.uid for job in store.jobs()] == [1]
    away = CopyRounds(folder, "clickhouse://127.0.0.1:1/jobs").run()
    assert (away["copied_ns"], away["error"]["slug"]) == (None, "engine-away")
