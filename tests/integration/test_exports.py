"""Exports of real jobs: every execution is in every file, with the same times by op type."""

import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from fakes import exported_profiles, exported_slices
from fakes.armed_job import JOBS
from fakes.profiled import ProfiledScripts
from integration.perfetto_ui import perfetto_ui
from integration.test_timeline_browser import write_gpu_job
from integration.trace_viewer import trace_viewer
from tfprof.collector import open_store
from tfprof.collector.store.schema import DEVICE, NODE, NONE_ID

pytestmark = pytest.mark.tf
#: Version of TensorFlow -> the package of Keras for the job.
KERAS = {"tf1": "tensorflow.keras", "tf2": "keras"}
EVERYTHING = {"max_depth": 10**6, "account_type_regexes": [".*"], "show_name_regexes": [".*"], "select": ["micros"]}
BY_TYPE = "SELECT name, count(*), sum(dur) FROM slice WHERE category = 'op' GROUP BY name ORDER BY name"


@pytest.fixture(scope="module", params=["tf1", "tf2"])
def job(request: pytest.FixtureRequest, profiled_jobs: Callable[[str], ProfiledScripts]) -> ProfiledScripts:
    """A job that trains a convolutional network, with all steps traced."""
    jobs = profiled_jobs(request.param)
    assert jobs.run("all", JOBS / "convnet.py", KERAS[request.param]).status == 0
    return jobs


def export(job: ProfiledScripts, path: Path, **selection: Any) -> Path:
    """Export the job, or the selected part of it, and return the file."""
    open_store(job.store).select(job.uid, **selection).export(path, all_steps=True)
    return path


def stored(job: ProfiledScripts) -> list[tuple[int, int, str, str]]:
    """Return (start, duration, device, node) of each execution in the store with a start time."""
    names = {
        (row["kind"], row["id"]): row["text"].decode(errors="replace") for row in job.job.table("names").to_pylist()
    }
    bases = {row["trace"]: row["base_ns"] for row in job.job.table("traces").to_pylist()}
    return sorted(
        (
            bases[row["trace"]] + row["start_ns"],
            row["op_start_ns"] + row["op_end_ns"],
            names[DEVICE, row["device"]],
            names[NODE, row["node"]],
        )
        for row in job.job.table("ops").to_pylist()
        if bases[row["trace"]] + row["start_ns"] > 0
    )


def main_step(job: ProfiledScripts) -> int:
    """Return the number of the last traced batch."""
    traces = job.job.table("traces").to_pylist()
    return max(row["step"] for row in traces if row["kind"] == 2)


def by_type(rows: list[dict[str, Any]], column: str) -> dict[str, tuple[int, int]]:
    """Return the number of executions and the sum of ``column`` of each op type."""
    sums: dict[str, tuple[int, int]] = {}
    for row in rows:
        if row["category"] == "op":
            count, total = sums.get(row["op"], (0, 0))
            sums[row["op"]] = count + 1, total + row[column]
    return sums


@pytest.mark.parametrize("name", ["a.perfetto-trace", "a.json.gz"])
def test_every_execution_of_the_job_is_a_slice(name: str, job: ProfiledScripts, tmp_path: Path) -> None:
    read = exported_slices.chrome if "json" in name else exported_slices.perfetto
    timeline = read(exported_slices.content(export(job, tmp_path / name, kind="all")))
    timeline.check_nesting()
    executed = [piece for piece in timeline.slices if piece.node]
    expected = stored(job)
    assert sorted((piece.start_ns, piece.duration_ns, piece.node) for piece in executed) == sorted(
        (start, duration, node) for start, duration, _, node in expected
    )
    assert len([piece for piece in timeline.slices if piece.category == "step"]) == job.job.table("traces").num_rows
    assert len([piece for piece in timeline.slices if piece.category == "span"]) == job.job.table("spans").num_rows


def test_the_tables_have_every_execution(job: ProfiledScripts, tmp_path: Path) -> None:
    rows = pq.read_table(export(job, tmp_path / "a.parquet", kind="all")).to_pylist()
    assert sorted((row["start_ns"], row["duration_ns"], row["device"], row["node"]) for row in rows) == stored(job)


def test_one_step_has_the_same_times_by_op_type_everywhere(job: ProfiledScripts, tmp_path: Path) -> None:
    step = main_step(job)
    selected = open_store(job.store).select(job.uid, steps=(step, step))
    rows = pq.read_table(export(job, tmp_path / "a.parquet", steps=(step, step))).to_pylist()
    expected = by_type(rows, "duration_ns")
    assert sum(count for count, _ in expected.values()) > 50

    entry = selected.profile_operations({**EVERYTHING, "order_by": "name"})
    view = {}
    while entry.children:
        (entry,) = entry.children
        view[entry.name] = (sum(node.run_count for node in entry.graph_nodes), entry.exec_micros)
    assert {op: (count, (ns + 500) // 1000) for op, (count, ns) in expected.items()} == {
        op: view[op] for op in expected
    }

    for name, read in (("a.json", exported_slices.chrome), ("a.pftrace", exported_slices.perfetto)):
        slices = read(exported_slices.content(export(job, tmp_path / name, steps=(step, step)))).slices
        as_rows = [{"category": piece.category, "op": piece.name, "ns": piece.duration_ns} for piece in slices]
        assert by_type(as_rows, "ns") == expected

    samples = exported_profiles.pprof(exported_slices.content(export(job, tmp_path / "a.pb.gz", steps=(step, step))))
    sums: dict[str, tuple[int, int]] = {}
    for sample in samples:
        runs, total = sums.get(sample.stack[0], (0, 0))
        sums[sample.stack[0]] = runs + sample.values["executions"], total + sample.values["time"]
    assert sums == expected
    assert {sample.labels["step"] for sample in samples} == {step}

    path = export(job, tmp_path / "a.speedscope.json", steps=(step, step))
    for profile in exported_profiles.speedscope(path.read_bytes())["profiles"][:2]:
        times: dict[str, int] = {}
        for stack, weight in zip(profile["samples"], profile["weights"], strict=True):
            times[stack[-1]] = times.get(stack[-1], 0) + weight
        assert times == {op: total for op, (_, total) in expected.items()}


@pytest.mark.parametrize("name", ["a.perfetto-trace", "a.json.gz"])
def test_perfetto_opens_the_file_without_errors_and_counts_the_same(
    name: str, job: ProfiledScripts, tmp_path: Path
) -> None:
    rows = pq.read_table(export(job, tmp_path / "a.parquet")).to_pylist()
    with perfetto_ui(export(job, tmp_path / name)) as opened:
        assert opened.problems() == []
        found = {name: (count, total) for name, count, total in opened.rows(BY_TYPE)}
        assert found == by_type(rows, "duration_ns")
        assert opened.rows("SELECT count(*) FROM counter")[0][0] > 0
        assert opened.errors == []


def test_the_viewer_of_chrome_draws_every_slice(job: ProfiledScripts, tmp_path: Path) -> None:
    path = export(job, tmp_path / "a.json")
    with trace_viewer(tmp_path) as viewer:
        summary = viewer.open(path)
        assert not summary["warnings"]
        assert not viewer.errors
    drawn = sum(len(lane["slices"]) for process in summary["processes"] for lane in process["lanes"])
    timeline = exported_slices.chrome(path.read_bytes())
    assert drawn == len(timeline.slices) + len(timeline.marks)  # the viewer has marks among the slices


@pytest.mark.parametrize("name", ["a.perfetto-trace", "a.json"])
def test_perfetto_draws_flows_between_devices(name: str, tmp_path: Path) -> None:
    write_gpu_job(tmp_path / "store")
    open_store(tmp_path / "store").job("last").export(tmp_path / name)
    with perfetto_ui(tmp_path / name) as opened:
        assert opened.problems() == []
        flows = opened.rows(
            "SELECT source.name, target.name FROM flow"
            " JOIN slice source ON source.id = slice_out JOIN slice target ON target.id = slice_in ORDER BY 1, 2"
        )
    assert flows == [["conv", "conv"], ["conv", "loss"], ["images", "conv"], ["relu", "loss"]]


def test_memory_at_the_peak_is_the_sum_of_the_records_and_no_address_is_used_twice(
    job: ProfiledScripts, tmp_path: Path
) -> None:
    root = ET.parse(export(job, tmp_path / "a.svg")).getroot()
    tag = "{https://megengine.org.cn}"
    blocks = [
        tuple(element.get(tag + name, "0") for name in ("name", "size", "produced", "erased", "address"))
        for element in root.iter("{http://www.w3.org/2000/svg}rect")
        if element.get(f"{tag}type") == "tensor"
    ]
    blocks = [
        (name, int(size), float(start[:-2]), float(end[:-2]), int(address, 16))
        for name, size, start, end, address in blocks
    ]
    step = int(root.findtext("{http://www.w3.org/2000/svg}title", "").rpartition("batch step ")[2])
    traces = [row for row in job.job.table("traces").to_pylist() if (row["kind"], row["step"]) == (2, step)]
    changes = job.job.rows_of_traces("memory_changes", [row["trace"] for row in traces]).to_pylist()
    alive = most = -sum(row["bytes"] for row in changes if row["node"] == NONE_ID and row["bytes"] < 0)
    for row in sorted(changes, key=lambda row: (row["t_us"], row["bytes"])):
        alive += row["bytes"]
        most = max(most, alive)
    drawn = max(sum(size for _, size, start, end, _ in blocks if start <= at < end) for _, _, at, _, _ in blocks)
    assert drawn == most > 100_000
    known = [block for block in blocks if block[4]]
    assert len(known) > 0.7 * len(blocks)
    for name, size, start, end, address in known:
        for other in known:
            if other != (name, size, start, end, address) and other[2] < end - 1 and start < other[3] - 1:
                assert other[4] + other[1] <= address or address + size <= other[4]
