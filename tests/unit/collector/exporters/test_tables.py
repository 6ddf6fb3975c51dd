"""Tables: the same rows in every format, read by pyarrow, DuckDB and Python's csv.

Tests collector/exporters/csv.py, collector/exporters/parquet.py, collector/tables/columns.py,
collector/tables/executions.py, collector/tables/job_data.py, collector/tables/parts.py,
collector/tables/spans.py, collector/tables/table.py, collector/tables/view_numbers.py.
"""

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes import ended_jobs, hostile_store, small_store
from fakes.command import Run
from fakes.made_store import START_NS, rows, write_job
from fakes.many_executions import write_many_executions
from tfprof.collector import open_store
from tfprof.collector.errors import UsageError
from tfprof.collector.traces import executions
from tfprof.formats.exports import TABLES

JOB = ("job", "job_name", "host", "pid")


def exported(run: Run, table: str, *words: str) -> list[dict[str, Any]]:
    """Return the rows of a table, after all formats of it were compared."""
    names = [f"{table}.{suffix}" for suffix in ("parquet", "csv", "csv.gz", "arrow")]
    outputs = [word for name in names for word in ("-o", name)]
    assert run("export", *words, "--table", table, "--force", *outputs) == (0, "", "")
    rows = pq.read_table(names[0]).to_pylist()
    with pa.memory_map(names[3]) as file:
        assert pa.ipc.open_file(file).read_all().to_pylist() == rows
    text = Path(names[1]).read_bytes()
    assert gzip.decompress(Path(names[2]).read_bytes()) == text
    read = list(csv.DictReader(io.StringIO(text.decode(), newline="")))
    assert read == [{name: as_text(value) for name, value in row.items()} for row in rows]
    (count,) = duckdb.sql(f"SELECT count(*) FROM '{names[0]}'").fetchall()
    assert count == (len(rows),)
    return rows


def as_text(value: Any) -> str:
    """Return a value as in a CSV file."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value) if isinstance(value, list) else str(value)


@pytest.mark.parametrize("batch_rows", [30, 100_000])
def test_the_executions_are_those_of_the_store(
    batch_rows: int, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executions, "BATCH_ROWS", batch_rows)
    write_many_executions(tmp_path / "store")
    rows = exported(run, "executions", "last")
    assert len(rows) == 120
    first = min(rows, key=lambda row: (row["start_ns"], row["node"]))
    assert {name: first[name] for name in (*JOB, "kind", "step", "node", "op", "category", "device")} == {
        "job": "0000000000000001",
        "job_name": "train.py",
        "host": "node7",
        "pid": 4711,
        "kind": "batch",
        "step": 7,
        "node": "node_0",
        "op": "MatMul",
        "category": "op",
        "device": "/job:localhost/replica:0/task:0/device:CPU:0",
    }
    assert first["start_ns"] == START_NS + 10
    assert sorted(row["duration_ns"] for row in rows) == sorted(3 * [100 + at * 37 % 2500 for at in range(40)])
    assert len(exported(run, "executions", "last", "--steps", "8-9")) == 80
    assert exported(run, "executions", "last", "--device", "cpu") == rows


def test_ops_and_nodes_have_the_numbers_of_the_views(run: Run, tmp_path: Path) -> None:
    write_many_executions(tmp_path / "store")
    view = json.loads(run("op", "last", "--json", "-select", "micros,occurrence", "-max_depth", "99")[1])
    ops = exported(run, "ops", "last")
    assert ops, view
    nodes = exported(run, "nodes", "last")
    assert {row["node"] for row in nodes} == {f"node_{number}" for number in range(5)}
    for op in ops:
        of_op = [row for row in nodes if row["op"] == op["op"]]
        assert op["nodes"] == len(of_op)
        assert op["time_ns"] == sum(row["time_ns"] for row in of_op)
    assert sum(row["time_ns"] for row in ops) == pytest.approx(view["total"]["time_ns"], abs=500)
    executed = exported(run, "executions", "last")
    assert sum(row["duration_ns"] for row in executed) / 3 == pytest.approx(sum(row["time_ns"] for row in ops), rel=0.1)


def test_steps_spans_host_and_events_are_those_of_the_job(run: Run, tmp_path: Path) -> None:
    ended_jobs.write(tmp_path / "store")
    steps = exported(run, "steps", "7f3a")
    assert [row["number"] for row in steps] == list(range(1, 41))
    assert {(row["kind"], row["count"], row["total_ns"], row["traced"]) for row in steps} == {
        ("batch", 1, 20_000_000, False)
    }
    assert {row["kind"] for row in exported(run, "spans", "7f3a")} == {"batch", "epoch", "fit", "evaluate"}
    host = exported(run, "host", "7f3a")
    assert [row["value"] for row in host if row["series"] == "host.cpu_cores"] == [3.0] * 29
    events = exported(run, "events", "7f3a")
    assert [(row["slug"], row["count"]) for row in events] == [("gap", 3), ("stall", 1)]


def test_the_graph_has_inputs_and_lines(run: Run, tmp_path: Path) -> None:
    small_store.write(tmp_path / "store")
    rows = exported(run, "graph", "aa10")
    assert rows
    assert all(isinstance(row["inputs"], list) for row in rows)


@pytest.mark.parametrize("table", TABLES)
def test_a_job_without_data_and_hostile_texts_make_valid_files(table: str, run: Run, tmp_path: Path) -> None:
    hostile_store.write(tmp_path / "store")
    exported(run, table, f"{hostile_store.JOB:x}", f"{hostile_store.JOB + 1:x}")
    exported(run, table, f"{hostile_store.JOB + 1:x}")


@pytest.mark.parametrize("table", ["steps", "spans", "host", "events", "graph"])
def test_tables_of_whole_jobs_have_no_selection(table: str, run: Run, tmp_path: Path) -> None:
    ended_jobs.write(tmp_path / "store")
    status, _, error = run("export", "7f3a", "-o", "a.parquet", "--table", table, "--steps", "3")
    assert (status, error[-8:]) == (2, "[usage]\n")
    assert not Path("a.parquet").exists()


def test_the_api_selects_a_table(tmp_path: Path) -> None:
    ended_jobs.write(tmp_path / "store")
    open_store(tmp_path / "store").job("7f3a").export(tmp_path / "a.parquet", table="spans")
    assert pq.read_table(tmp_path / "a.parquet").num_rows == 43
    with pytest.raises(UsageError, match="no table is called 'other'"):
        open_store(tmp_path / "store").job("7f3a").export(tmp_path / "b.parquet", table="other")


def test_a_malformed_node_has_no_inputs(run: Run, tmp_path: Path) -> None:
    write_job(
        tmp_path / "store", 1, {"graph_nodes": rows("graph_nodes", [{"name": "a", "op": "Add", "node_def": b"\xff"}])}
    )
    assert [(row["node"], row["inputs"]) for row in exported(run, "graph", "last")] == [("a", [])]
