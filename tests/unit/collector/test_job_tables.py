"""The tables of the API have the figures of the screens."""

import json
import re
import statistics
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from fakes import ended_jobs, small_store
from fakes.command import Run, caller
from fakes.many_executions import write_many_executions
from tfprof.collector import Profiler, open_store
from tfprof.collector.errors import UsageError
from tfprof.collector.numbers import duration
from tfprof.formats.exports import TABLES

UNITS = {"_ns", "_bytes"}


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command on the store in the test's folder."""
    monkeypatch.setenv("TFPROF_STORE", str(tmp_path / "store"))
    return caller(capsys)


def document(run: Run, *words: str) -> dict[str, Any]:
    """Return what a command prints with --json."""
    result: dict[str, Any] = json.loads(run(*words, "--json")[1])
    return result


def test_three_lines_lead_to_the_slowest_op(tmp_path: Path) -> None:
    write_many_executions(tmp_path / "store")
    ops = open_store(tmp_path / "store").job("last").ops()
    assert ops["op"][0].as_py() == "MatMul"
    assert ops["time_ns"].to_pylist() == sorted(ops["time_ns"].to_pylist(), reverse=True)


def test_ops_have_the_figures_of_the_op_view(run: Run, tmp_path: Path) -> None:
    write_many_executions(tmp_path / "store")
    ops = open_store(tmp_path / "store").job("last").ops().to_pylist()
    rows = document(run, "op", "last")["rows"]
    assert [(row["name"], round(row["time_ns"]), row["runs"]) for row in rows] == [
        (op["op"], op["time_ns"], op["runs"]) for op in ops
    ]
    text = run("op", "last")[1]
    for op in ops:
        assert re.search(rf"^{op['op']} +{re.escape(duration(op['time_ns']))} ", text, re.MULTILINE)


def test_nodes_add_up_to_ops(tmp_path: Path) -> None:
    write_many_executions(tmp_path / "store")
    job = open_store(tmp_path / "store").job("last")
    ops, query = job.ops(), "SELECT op, sum(time_ns), sum(runs), count(*) FROM nodes GROUP BY op ORDER BY 2 DESC"
    sums = duckdb.from_arrow(job.nodes()).query("nodes", query).fetchall()
    columns = [ops[name].to_pylist() for name in ("time_ns", "runs", "nodes")]
    assert [name for name, *_ in sums] == ops["op"].to_pylist()
    for place, expected in enumerate(columns, 1):
        assert [row[place] for row in sums] == pytest.approx(expected, abs=5)


def test_steps_spans_and_host_have_the_figures_of_the_screens(run: Run, tmp_path: Path) -> None:
    ended_jobs.write(tmp_path / "store")
    job = open_store(tmp_path / "store").job("7f3a")
    untraced = document(run, "steps", "7f3a")["kinds"][0]["untraced"]
    times = [row["total_ns"] / row["count"] for row in job.steps().to_pylist() if not row["traced"]]
    assert (len(times), statistics.median(times)) == (untraced["count"], untraced["p50_ns"])
    spans = {(row["kind"], row["total_ns"]) for row in job.spans().to_pylist() if row["kind"] != "batch"}
    shown = document(run, "spans", "7f3a")["spans"]
    assert spans == {(row["kind"], row["total_ns"]) for row in shown if row["kind"] != "batch"}
    host = job.host().to_pylist()
    for series, group in (("job.rss_bytes", "job_series"), ("host.cpu_cores", "host_series")):
        values = [row["value"] for row in host if row["series"] == series]
        assert values
        assert document(run, "host", "7f3a")[group][series.partition(".")[2]]["max"] == max(values)
    assert [row["slug"] for row in job.events().to_pylist()] == ["gap", "stall"]


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_the_one_that_export_writes(name: str, tmp_path: Path) -> None:
    small_store.write(tmp_path / "store")
    job = open_store(tmp_path / "store").job("aa10")
    job.export(tmp_path / "table.arrow", table=name)
    table = getattr(job, name)()
    with pa.memory_map(str(tmp_path / "table.arrow")) as file:
        assert pa.ipc.open_file(file).read_all().equals(table)
    times_and_sizes = [column for column in table.column_names if column.startswith(("time", "start", "dur"))]
    assert all(any(column.endswith(unit) for unit in UNITS) for column in times_and_sizes)


def test_a_selection_of_steps_applies_to_tables_of_ops(tmp_path: Path) -> None:
    small_store.write(tmp_path / "store")
    one_step: Profiler = open_store(tmp_path / "store").select("aa10", steps=(1, 1))
    assert one_step.ops()["runs"].to_pylist() == [1.0, 1.0]
    assert set(one_step.executions()["step"].to_pylist()) == {1}
    with pytest.raises(UsageError, match="the table steps covers whole jobs"):
        one_step.steps()


def test_a_job_without_traced_steps_has_empty_tables_with_columns(tmp_path: Path) -> None:
    small_store.write(tmp_path / "store")
    job = open_store(tmp_path / "store").job("cc10")
    for name in TABLES:
        table = getattr(job, name)()
        assert (table.num_rows, bool(table.column_names)) == (0, True)
