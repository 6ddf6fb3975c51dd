"""XProf, which makes TensorBoard's profile page, shows what is in the store; and the reverse."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from fakes import hostile_store
from fakes.armed_job import JOBS
from fakes.forks import ForkServer
from fakes.profiled import ProfiledScripts
from tfprof.collector import open_store
from tfprof.formats import layout

pytestmark = pytest.mark.tf
#: Version of TensorFlow -> the package of Keras for the job.
KERAS = {"tf1": "tensorflow.keras", "tf2": "keras"}
TOOLS = Path(__file__).parent / "oracle" / "scripts" / "xprof_tools.py"
#: Prefixes that TensorFlow adds to types of ops that oneDNN runs.
ONEDNN = re.compile(r"_Mkl(Native)?(?=Fused)|^_Mkl(?!Native)")

Tools = Callable[..., dict[str, Any]]
#: Op type -> number of executions, and their time in ns.
Times = dict[str, tuple[int, int]]


@pytest.fixture
def tools(xprof_python: Path) -> Tools:
    """A function that returns what tools of XProf make of the files of a run."""

    def run(files: Iterable[Path], *names: str) -> dict[str, Any]:
        words = [xprof_python, TOOLS, *files, "--", *names]
        result: dict[str, Any] = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
        return result

    return run


@pytest.fixture(scope="module", params=["tf1", "tf2"])
def job(request: pytest.FixtureRequest, profiled_jobs: Callable[[str], ProfiledScripts]) -> ProfiledScripts:
    """A job that waits for its input, with all steps traced."""
    jobs = profiled_jobs(request.param)
    assert jobs.run("all", JOBS / "waiting_fit.py", KERAS[request.param]).status == 0
    return jobs


def exported(job: ProfiledScripts, folder: Path, **selection: Any) -> list[Path]:
    """Export the selected part of the job, and return the files of the run."""
    open_store(job.store).select(job.uid, **selection).export(folder, file_format="tensorboard", all_steps=True)
    return sorted(folder.glob("plugins/profile/*/*.xplane.pb"))


def executions(job: ProfiledScripts, folder: Path, category: str = "op", **selection: Any) -> list[dict[str, Any]]:
    """Return the executions of one category; the views count those of `op`."""
    path = folder / "executions.parquet"
    open_store(job.store).select(job.uid, **selection).export(path, all_steps=True, overwrite=True)
    return [row for row in pq.read_table(path).to_pylist() if row["category"] == category]


def rows_of(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a table of Google Charts."""
    names = [column["id"] for column in table["cols"]]
    return [dict(zip(names, (cell["v"] for cell in row["c"]), strict=True)) for row in table["rows"]]


def steps_of(result: Mapping[str, Any]) -> tuple[list[dict[str, Any]], str]:
    """Return the rows of the steps in the input pipeline analyzer, and its verdict."""
    (table,) = (part for part in result["input_pipeline_analyzer"] if any(c["id"] == "stepnum" for c in part["cols"]))
    return rows_of(table), table["p"]["input_conclusion"]


def ops_of(result: Mapping[str, Any]) -> Times:
    """Return the executions of ops in framework op stats by type."""
    times: Times = {}
    for row in rows_of(result["framework_op_stats"][0]):
        count, total = times.get(row["type"], (0, 0))
        times[row["type"]] = count + round(row["occurrences"]), total + round(row["total_self_time"] * 1000)
    return {op: of_op for op, of_op in times.items() if op not in {"IDLE", "Dataset"}}


def by_type(rows: Iterable[Mapping[str, Any]]) -> Times:
    """Return the executions of the store by type."""
    times: Times = {}
    for row in rows:
        count, total = times.get(row["op"], (0, 0))
        times[row["op"]] = count + 1, total + row["duration_ns"]
    return times


def test_the_input_pipeline_analyzer_has_each_traced_step(job: ProfiledScripts, tmp_path: Path, tools: Tools) -> None:
    rows, verdict = steps_of(tools(exported(job, tmp_path), "input_pipeline_analyzer"))
    found = executions(job, tmp_path)
    kinds = {row["kind"] for row in found}
    traced = [row for row in job.job.table("traces").to_pylist() if layout.SPAN_NAMES[row["kind"]] in kinds]
    assert len(rows) == len(traced) >= 10
    assert [row["stepnum"] for row in rows] == [f"{layout.SPAN_NAMES[row['kind']]} {row['step']}" for row in traced]
    for row, step in zip(rows, traced, strict=True):
        assert abs(row["stepTimeMs"] * 1e6 - step["duration_ns"]) < 1000
        waits = [at for at in found if at["step"] == step["step"] and at["op"].startswith("IteratorGetNext")]
        waited_ns = sum(
            min(at["start_ns"] + at["duration_ns"], step["start_ns"] + step["duration_ns"]) - at["start_ns"]
            for at in waits
        )
        assert row["infeedTimeMs"] * 1e6 == pytest.approx(waited_ns, rel=0.01, abs=1000)
    assert "HIGHLY input-bound" in verdict


def test_the_op_stats_of_a_step_are_those_of_the_op_view(job: ProfiledScripts, tmp_path: Path, tools: Tools) -> None:
    step = max(row["step"] for row in executions(job, tmp_path))
    expected = by_type(executions(job, tmp_path, steps=(step, step)))
    found = ops_of(tools(exported(job, tmp_path, steps=(step, step)), "framework_op_stats"))
    assert set(found) == set(expected)
    for op, (count, time_ns) in expected.items():
        assert found[op][0] == count
        assert abs(found[op][1] - time_ns) <= count, op


def test_the_overview_and_the_trace_viewer_show_the_job(job: ProfiledScripts, tmp_path: Path, tools: Tools) -> None:
    files = exported(job, tmp_path)
    result = tools(files, "overview_page", "trace_viewer")
    text = json.dumps(result["overview_page"])
    assert "HIGHLY input-bound" in text
    assert "No step time measured" not in text
    names = [event["name"] for event in result["trace_viewer"]["traceEvents"] if event.get("ph") == "X"]
    found = executions(job, tmp_path)
    assert {f"{row['node']}:{row['op']}" for row in found} <= set(names)
    inputs = {row["node"] for row in executions(job, tmp_path, category="input")}
    assert inputs <= set(names), "XProf knows iterators by their names"


def test_several_jobs_are_hosts_of_one_run(job: ProfiledScripts, tmp_path: Path, tools: Tools) -> None:
    store = open_store(job.store)
    ids = [listed.uid for listed in store.jobs()]
    store.select(ids).export(tmp_path, file_format="tensorboard")
    files = sorted(tmp_path.glob("plugins/profile/*/*.xplane.pb"))
    assert len(files) == len(ids)
    assert ops_of(tools(files, "framework_op_stats"))


def test_hostile_texts_are_read(tmp_path: Path, tools: Tools) -> None:
    hostile_store.write(tmp_path / "store")
    job = open_store(tmp_path / "store").job(f"{hostile_store.JOB:x}")
    job.export(tmp_path / "logs", file_format="tensorboard")
    result = tools((tmp_path / "logs").glob("plugins/profile/*/*.xplane.pb"), "overview_page", "trace_viewer")
    shown = {event["name"] for event in result["trace_viewer"]["traceEvents"] if event.get("ph") == "X"}
    assert hostile_store.LONG in shown


@pytest.fixture(scope="module")
def own_profiles(plain_forks: Callable[[str], ForkServer], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with TensorFlow's own profiles."""
    folder = tmp_path_factory.mktemp("own")
    assert plain_forks("tf2").run(JOBS / "own_profiles.py", folder).status == 0
    return folder


@pytest.mark.parametrize(
    ("name", "kind", "numbers"),
    [
        ("marked", "batch", range(100, 106)),
        ("loop", "function:train_step", range(1, 6)),
        ("fit", "function:multi_step_on_iterator", range(1, 5)),
    ],
)
def test_an_import_has_the_numbers_of_xprof(
    name: str, kind: str, numbers: range, own_profiles: Path, tmp_path: Path, tools: Tools
) -> None:
    """XProf leaves out ops of eager calls and asynchronous ones."""
    store = tmp_path / "store"
    folder = own_profiles / name
    command = [sys.executable, "-m", "tfprof.cli.main", "import", folder, "--name", name, "--store", store]
    subprocess.run(command, check=True)
    job = open_store(store).select(name, kind="all")
    job.export(tmp_path / "a.parquet")
    rows = [row for row in pq.read_table(tmp_path / "a.parquet").to_pylist() if row["category"] == "op"]
    assert {row["step"] for row in rows if row["kind"] == kind} == set(numbers)
    imported = by_type(rows)
    found = ops_of(tools(folder.glob("plugins/profile/*/*.xplane.pb"), "framework_op_stats"))
    assert len(found) > 5
    for op, (count, time_ns) in found.items():
        count_here, time_here_ns = imported[ONEDNN.sub(lambda match: "_" if match[1] else "", op)]
        assert count_here >= count, op
        assert time_here_ns >= time_ns - count, op
        if count_here == count:
            assert abs(time_here_ns - time_ns) <= count, op
    assert sum(count for count, _ in imported.values()) - sum(count for count, _ in found.values()) < len(rows) / 4
