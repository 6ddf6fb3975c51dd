"""A job is read as one snapshot, whatever its writer does meanwhile.

Tests collector/store/protocols.py, collector/store/snapshot.py, collector/store/sql.py,
collector/store/sql_queries.py.
"""

import shutil
import threading
from functools import partial
from statistics import median

import duckdb
import pyarrow as pa
import pytest
from fakes import random_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from tfprof.collector.errors import NoSuchJobError, StoreError
from tfprof.collector.store import copying, segment, snapshot, sql, sql_queries
from tfprof.collector.store.catalog import STALE
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.store.schema import JOB_TABLES, STORE_VERSION
from tfprof.collector.store.writer import LocalStoreWriter
from tfprof.formats import layout

UID = 0xABC
COUNT = 12
TRACES = random_rows.traces(0, COUNT)
BASE = dict(zip(TRACES["trace"].to_pylist(), TRACES["base_ns"].to_pylist(), strict=True))
ROWS = [random_rows.random_ops(number, 1, nodes=6, seed=number) for number in range(COUNT)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "it's a store"


@pytest.fixture
def writer(path):
    writer = LocalStoreWriter(path, "here")
    yield writer
    writer.close()


@pytest.fixture
def job(path, writer):
    """Return a job with two sealed generations of four traces each, and four traces in a log."""
    job = writer.job(UID)
    job.set_identity({"name": "train.py"})
    for number in range(COUNT):
        tables = {"ops": random_rows.table("ops", ROWS[number]), "traces": TRACES.slice(number, 1)}
        job.append({**tables, **({} if number else {"names": random_rows.device_names()})}, 3, number + 1)
        if number in (3, 7):
            job.seal()
    return LocalStore(path, "here").job("last")


def run_sql(job, query):
    return job.with_sql(lambda sql: sql.query(query))


def rows_between(first, last):
    return [row for number in range(first, last + 1) for row in ROWS[number]]


def test_sealed_and_unsealed_rows_are_one_table(job):
    assert job.table("traces") == TRACES
    assert job.table("ops").num_rows == len(rows_between(0, COUNT - 1))
    assert job.table("spans").num_rows == 0


def test_some_columns_are_read_in_the_requested_order(job):
    table = job.table("traces", ["base_ns", "trace"])
    assert table == TRACES.select(["base_ns", "trace"])
    assert job.table("samples", ["t_ns"]).column_names == ["t_ns"]


def test_the_rollup_covers_all_stored_rows(job):
    assert job.rollup().to_pylist() == random_rows.plain_rollup(rows_between(0, COUNT - 1), BASE)


@pytest.mark.parametrize(("first", "last"), [(0, 3), (4, 7), (2, 9), (5, 5), (8, 11), (0, 11), (3, 100)])
def test_the_rollup_of_a_range_covers_only_its_traces(job, first, last):
    all_rows = rows_between(0, COUNT - 1)
    expected = random_rows.plain_rollup(rows_between(first, min(last, COUNT - 1)), BASE, before=all_rows)
    assert job.rollup(range(first, last + 1)).to_pylist() == expected


@pytest.mark.parametrize("selected_traces", [range(COUNT), (2, 3, 9), (4, 5, 6, 7), (5,), (), (1, 100)])
def test_times_of_traces_are_those_of_their_rows(job, selected_traces):
    rows = [row for row in rows_between(0, COUNT - 1) if row["trace"] in selected_traces]
    times = random_rows.plain_times(rows, BASE)
    assert sorted(job.times(selected_traces).to_pylist(), key=str) == sorted(
        (
            {"node": node, "device": device, "trace": trace, "ns": ns}
            for (node, device), by_trace in times.items()
            for trace, ns in by_trace.items()
        ),
        key=str,
    )
    expected = {unit: len(by_trace) * median(by_trace.values()) for unit, by_trace in times.items()}
    unit_times = job.unit_times(job.rollup(selected_traces), selected_traces)
    assert random_rows.unit_times(unit_times) == pytest.approx(expected, rel=0.016)


def test_times_of_all_traces_are_those_of_every_trace(job):
    assert job.unit_times(job.rollup()).equals(job.unit_times(job.rollup(), range(COUNT)))
    (total,) = job.folder.glob("total_times-*.parquet")
    assert total.stem.removeprefix("total_times") == next(job.folder.glob("total-*")).stem.removeprefix("total")


@settings(max_examples=40)
@given(data=st.data())
def test_the_rollup_of_any_traces_equals_that_of_their_rows(tmp_path_factory, data):
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=6), label="traces of each append")
    gap = data.draw(st.integers(0, 1), label="numbers left out between appends")
    path = tmp_path_factory.mktemp("store")
    store, appends, number = LocalStoreWriter(path, "here"), [], 0
    job = store.job(UID)
    job.append({"names": random_rows.device_names()})
    for size in sizes:
        traces = random_rows.traces(number, size)
        rows = random_rows.random_ops(number, size, nodes=3, seed=data.draw(st.integers(0, 1000), label="seed"))
        appends.append((rows, traces))
        job.append({"ops": random_rows.table("ops", rows), "traces": traces}, 3, number + 1)
        number += size + gap
        if data.draw(st.booleans(), label="sealed"):
            job.seal()
    selected_traces = data.draw(st.lists(st.integers(0, number), unique=True), label="selected")
    all_rows = [row for rows, _ in appends for row in rows]
    bases = {row["trace"]: row["base_ns"] for _, traces in appends for row in traces.to_pylist()}
    expected = random_rows.plain_rollup(
        [row for row in all_rows if row["trace"] in selected_traces], bases, before=all_rows
    )
    result = LocalStore(path, "here").job("last").rollup(selected_traces)
    store.close()
    assert result.to_pylist() == expected


@pytest.mark.parametrize("group_rows", [1, 4, 30])
def test_traces_that_several_row_groups_share_are_counted_once(tmp_path, monkeypatch, group_rows):
    monkeypatch.setattr(segment, "ROW_GROUP_ROWS", group_rows)
    all_rows = rows_between(0, 7)
    writer = LocalStoreWriter(tmp_path, "here")
    job = writer.job(UID)
    for first, last in ((0, 3), (4, 7)):
        job.append({"ops": random_rows.table("ops", rows_between(first, last)), "traces": TRACES.slice(first, 4)})
    job.append({"names": random_rows.device_names()})
    job.seal()
    for selected_traces in ([0], [2, 5], [1, 2, 3, 4], [7]):
        expected = random_rows.plain_rollup(
            [row for row in all_rows if row["trace"] in selected_traces], BASE, before=all_rows
        )
        assert LocalStore(tmp_path, "here").job("last").rollup(selected_traces).to_pylist() == expected
    writer.close()


def test_ops_are_read_only_from_generations_of_which_some_but_not_all_traces_are_selected(job, monkeypatch):
    read, read_groups = segment.read, segment.groups
    opened_names = []
    monkeypatch.setattr(segment, "read", lambda path, *rest: opened_names.append(path.stem) or read(path, *rest))
    monkeypatch.setattr(
        segment, "groups", lambda path, *rest: opened_names.append(path.stem) or read_groups(path, *rest)
    )
    job.rollup([5])
    job.rollup(range(4))
    table_reads = [name for name in opened_names if name.startswith(("ops", "rollup", "traces"))]
    assert table_reads == ["traces-000001", "ops-000001", "traces-000001", "rollup-000000"]


def test_a_range_without_traces_is_empty(job):
    assert job.rollup(range(100, 200)).num_rows == job.rollup([]).num_rows == 0


def test_labels_of_windows_are_those_that_sql_finds(path, writer):
    job = writer.job(UID)
    for number in range(COUNT):
        source = layout.XSPACE if number % 3 else layout.RUN_METADATA
        trace = TRACES.slice(number, 1).to_pylist()[0] | {"source": source}
        ops = [row | {"label": 7 * (row["node"] + index) % 5} for index, row in enumerate(ROWS[number])]
        job.append(
            {"ops": random_rows.table("ops", ops), "traces": random_rows.table("traces", [trace])}, 3, number + 1
        )
        if number in (3, 7):
            job.seal()
    reader = LocalStore(path, "here").job("last")
    for streams in ((), (0,), (0, 1)):
        of_sql = reader.with_sql(partial(sql_queries.window_labels, streams=streams))
        assert reader.window_labels(streams) == of_sql != {}


def test_a_job_without_windows_has_no_labels_of_windows(job):
    assert job.window_labels(()) == job.with_sql(partial(sql_queries.window_labels, streams=())) == {}


def test_a_label_that_is_the_name_of_a_kernel_counts_only_without_another_one(path, writer):
    rows = [
        {"node": 1, "device": 0, "label": 9},
        {"node": 1, "device": 2, "label": 3},
        {"node": 5, "device": 2, "label": 4},
    ]
    ops = [ROWS[0][0] | {"trace": 0} | row for row in rows]
    trace = TRACES.slice(0, 1).to_pylist()[0] | {"trace": 0, "source": layout.XSPACE}
    writer.job(UID).append({"ops": random_rows.table("ops", ops), "traces": random_rows.table("traces", [trace])}, 3, 1)
    reader = LocalStore(path, "here").job("last")
    of_sql = reader.with_sql(partial(sql_queries.window_labels, streams=(2,)))
    assert reader.window_labels((2,)) == of_sql == {1: 9, 5: 4}


@pytest.mark.parametrize("is_copy", [False, True])
def test_the_memory_of_a_trace_is_found_in_any_generation(path, writer, tmp_path, monkeypatch, is_copy):
    names = ("memory_changes", "block_addresses", "allocations", "output_memory")
    job, memory_traces = writer.job(UID), []
    for number in range(COUNT):
        memory_traces += [number] if number not in (0, 6) else []
        tables = {name: random_rows.table(name, [{"trace": number}] * memory_traces.count(number)) for name in names}
        if number % 4 != 3:  # a generation ends with a trace without ops
            tables["ops"] = random_rows.table("ops", ROWS[number])
        job.append({**tables, "traces": TRACES.slice(number, 1)}, 3, number + 1)
        if number in (3, 7):
            job.seal()
    job.close("exited")
    reader = LocalStore(path, "here").job("last")
    if is_copy:  # in which all memory is in the first generation
        monkeypatch.setattr(copying, "SEAL_ROWS", 2)
        copying.FolderTarget(str(tmp_path / "copy")).add(reader)
        reader = LocalStore(tmp_path / "copy").job("last")
        assert len(list(reader.folder.glob("ops-*"))) > len(list(reader.folder.glob("allocations-*"))) == 1
    for traces in (range(COUNT), *([number] for number in range(COUNT))):
        expected = [number for number in traces if number in memory_traces]
        assert [reader.rows_of_traces(name, traces)["trace"].to_pylist() for name in names] == [expected] * 4
        found = reader.executions(traces, ["trace"])
        assert found.allocations["trace"].to_pylist() == found.output_memory["trace"].to_pylist() == expected


def test_sql_sees_all_tables(job):
    assert run_sql(job, "SELECT count(*) n, count(DISTINCT trace) t FROM ops").to_pylist() == [
        {"n": len(rows_between(0, COUNT - 1)), "t": COUNT}
    ]
    assert run_sql(job, "SELECT sum(rows) s FROM traces").to_pylist() == [{"s": COUNT}]
    for name in JOB_TABLES:
        assert run_sql(job, f"SELECT * FROM {name} LIMIT 0").column_names == JOB_TABLES[name].names


def test_a_segment_that_sql_cannot_read_is_reported_as_damage(job):
    path, new_nodes = next(job.folder.glob("ops-*.parquet")), partial(sql_queries.new_nodes, left_out=[])
    nodes = job.with_sql(new_nodes)
    content = path.read_bytes()
    path.write_bytes(b"x" * len(content))
    with pytest.raises(StoreError, match="is damaged: ") as caught:
        job.with_sql(new_nodes)
    assert (caught.value.slug, str(caught.value).count("\n")) == ("store-damaged", 0)
    path.write_bytes(content)
    assert job.with_sql(new_nodes) == nodes, "an error does not disturb later queries"


def test_sql_of_two_jobs_at_once_sees_the_tables_of_its_own_job(job, writer):
    writer.job(UID + 1).append({"traces": TRACES.slice(0, 1)}, 1, 1)
    other_job = LocalStore(writer.path, "here").job("last")
    count = "SELECT count(*) n FROM traces"

    def counts(sql):
        return [sql.query(count).to_pylist(), run_sql(other_job, count).to_pylist(), sql.query(count).to_pylist()]

    assert job.with_sql(counts) == [[{"n": COUNT}], [{"n": 1}], [{"n": COUNT}]]


def test_segments_are_plain_parquet(job):
    result = duckdb.connect().execute("SELECT count(*) FROM read_parquet(?)", [str(job.folder / "ops-000000.parquet")])
    assert result.fetchall() == [(len(rows_between(0, 3)),)]


def test_reading_continues_while_generations_are_sealed(path, writer):
    job_writer = writer.job(UID)
    store = LocalStore(path, "here")
    failures, counts, stop = [], [], threading.Event()

    def read():
        while not stop.is_set():
            try:
                job = store.job("last")
                counts.append((job.table("traces").num_rows, max(job.rollup()["traces"].to_pylist(), default=0)))
            except NoSuchJobError:
                continue
            except Exception as error:
                failures.append(error)
                return

    thread = threading.Thread(target=read)
    thread.start()
    for number in range(60):
        ops = random_rows.table("ops", [random_rows.op(number, 0)])
        names = {} if number else {"names": random_rows.device_names()}
        job_writer.append({"ops": ops, "traces": random_rows.traces(number, 1), **names}, 3, number + 1)
        job_writer.seal()
    stop.set()
    thread.join()
    assert failures == []
    assert counts == sorted(counts)
    assert all(rows <= traces for rows, traces in counts)


def test_a_folder_that_changes_while_it_is_read_is_read_again(job, writer, monkeypatch):
    list_files, calls = snapshot.files, []

    def files(folder):
        result = list_files(folder)
        calls.append(folder)
        if len(calls) == 1:
            writer.job(UID).seal()
        return result

    monkeypatch.setattr(snapshot, "files", files)
    assert job.table("traces") == TRACES
    assert len(calls) > 1


def test_a_removed_job_is_reported(job, writer):
    writer.release(UID)
    shutil.rmtree(job.folder)
    with pytest.raises(NoSuchJobError, match="0abc"):
        job.table("ops")


def test_a_missing_total_is_reported_as_damage_and_not_retried_endlessly(job):
    (job.folder / "total-000001.parquet").unlink()
    with pytest.raises(StoreError, match="lacks files") as caught:
        job.rollup()
    assert caught.value.slug == "store-damaged"


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("ops-000001.parquet", b"no parquet"),
        ("ops-000001.parquet", b""),
        ("traces-000001.parquet", None),
        ("wal-000002.log", b"no log at all"),
    ],
)
def test_a_damaged_file_is_named(job, name, damage):
    file = job.folder / name
    file.write_bytes(file.read_bytes()[:-40] if damage is None else damage)
    with pytest.raises(StoreError, match=name) as caught:
        [job.table(table) for table in ("ops", "traces")]
    assert caught.value.slug == "store-damaged"


def test_a_segment_with_other_columns_is_damaged(job):
    shutil.copy(job.folder / "traces-000001.parquet", job.folder / "ops-000000.parquet")
    with pytest.raises(StoreError, match="ops-000000"):
        job.table("ops")


@pytest.mark.parametrize("text", ["{", "[]", '{"version": THIS}', '{"version": THIS, "uid": "zz"}', ""])
def test_a_damaged_job_record_hides_only_its_own_job(path, writer, job, text):
    writer.job(1).set_identity({"name": "other.py"})
    (job.folder / "job.json").write_text(text.replace("THIS", str(STORE_VERSION)))
    store = LocalStore(path, "here")
    assert [listed_job.info.uid for listed_job in store.jobs()] == [1]
    assert [error.slug for error in store.read()[1]] == ["store-damaged"]
    with pytest.raises(StoreError, match=r"job\.json"):
        store.job(f"{UID:016x}")


def test_a_damaged_job_record_is_not_the_reason_why_another_selector_fails(path, writer, job):
    for uid in (1, 2):
        writer.job(uid).set_identity({"name": "other.py"})
    (job.folder / "job.json").write_text("{")
    for selector in ("other.py~2", "json", "jobs"):
        with pytest.raises(NoSuchJobError):
            LocalStore(path, "here").job(selector)


def test_a_job_record_of_another_version_is_refused(path, writer, job):
    (job.folder / "job.json").write_text('{"version": 1}')
    assert [error.slug for error in LocalStore(path, "here").read()[1]] == ["store-version"]


def test_a_folder_without_a_job_record_is_not_a_job(path, writer, job):
    (path / "jobs" / f"{5:016x}").mkdir()
    assert len(LocalStore(path, "here").jobs()) == 1


def test_a_missing_store_is_refused(tmp_path):
    with pytest.raises(StoreError, match="not a tfprof store") as caught:
        LocalStore(tmp_path / "nowhere")
    assert caught.value.slug == "store-missing"


def test_reading_needs_no_write_access(job, path):
    before = {file: file.stat().st_mtime_ns for file in path.rglob("*")}
    store = LocalStore(path, "here")
    store.job("last").rollup()
    run_sql(store.job("last"), "SELECT 1")
    assert {file: file.stat().st_mtime_ns for file in path.rglob("*")} == before


def test_a_running_job_whose_collector_is_gone_is_stale_on_its_host_only(path):
    writer = LocalStoreWriter(path, "here")
    writer.job(UID).set_identity({})
    states = [LocalStore(path, "here").job("last").info.state]
    writer.close()
    states += [LocalStore(path, host).job("last").info.state for host in ("here", "there")]
    assert states == ["running", STALE, "running"]


def test_a_job_that_the_next_collector_does_not_know_yet_is_stale(path):
    LocalStoreWriter(path, "here").close()
    first = LocalStoreWriter(path, "here")
    first.job(UID).set_identity({})
    first.close()
    second = LocalStoreWriter(path, "here")
    assert LocalStore(path, "here").job("last").info.state == STALE
    second.job(UID)
    assert LocalStore(path, "here").job("last").info.state == "running"
    second.close()


def test_the_table_of_a_job_is_an_arrow_table(job):
    assert isinstance(job.table("names"), pa.Table)


@pytest.mark.parametrize("moment", ["before the table is opened", "before the table is read"])
def test_a_query_is_repeated_if_its_files_were_merged_meanwhile(job, writer, monkeypatch, moment):
    open_table = sql.open_table
    merges = iter([writer.job(UID).seal])

    def open_and_merge(connection, *rest):
        merge = next(merges, lambda: None)
        if moment == "before the table is opened":
            merge()
            open_table(connection, *rest)
        else:
            open_table(connection, *rest)
            merge()

    monkeypatch.setattr(sql, "open_table", open_and_merge)
    assert run_sql(job, "SELECT count(*) AS n FROM traces").to_pylist() == [{"n": COUNT}]
    assert run_sql(job, "SELECT count(*) AS n FROM ops, traces WHERE false").to_pylist() == [{"n": 0}]


def test_a_file_that_stays_missing_is_reported_as_damage(job, path):
    for file in job.folder.glob("traces-*.parquet"):
        file.unlink()
    with pytest.raises(StoreError, match="lacks files"):
        run_sql(job, "SELECT count(*) FROM traces")


def test_a_query_finds_all_rows_while_segments_are_merged_all_the_time(job, writer):
    """A query finds its rows whatever the collector seals and merges meanwhile."""
    stop = threading.Event()
    trace_count = [COUNT]

    def seal():
        while not stop.wait(0.02):  # more often than a collector seals a job
            number = trace_count[0]
            writer.job(UID).append({"traces": random_rows.traces(number, 1)}, 3, number + 1)
            writer.job(UID).seal()
            trace_count[0] = number + 1

    thread = threading.Thread(target=seal)
    thread.start()
    try:
        for _ in range(60):
            count_before = trace_count[0]
            ((count,),) = (row.values() for row in run_sql(job, "SELECT count(*) FROM traces").to_pylist())
            assert count_before <= count <= trace_count[0] + 1
    finally:
        stop.set()
        thread.join()
