"""Timelines: what is in the store is in the files, read by independent readers.

Tests collector/exporters/chrome.py, collector/exporters/perfetto.py, collector/traces/chosen.py,
collector/traces/curves.py, collector/traces/executions.py, collector/traces/flows.py,
collector/traces/groups.py, collector/traces/job_trace.py, collector/traces/labels.py,
collector/traces/model.py, collector/traces/moments.py, collector/traces/trace.py.
"""

import json
from pathlib import Path

import pytest
from fakes import ended_jobs, exported_slices, hostile_store
from fakes.command import Run
from fakes.exported_slices import Timeline, content
from fakes.made_store import START_NS, rows, span, trace, write_job
from fakes.many_executions import write_many_executions
from tfprof.collector.decoders.graphdef import graph_nodes
from tfprof.collector.decoders.proto import graph_pb2
from tfprof.collector.store.schema import DEVICE, NODE
from tfprof.collector.traces import executions
from tfprof.formats import layout

DATA = Path(__file__).parents[3] / "contract" / "data"
FILES = ("out.perfetto-trace", "out.pftrace.gz", "out.json", "out.json.gz")


def read(path: Path) -> Timeline:
    """Read a timeline by the suffix of its name."""
    reader = exported_slices.chrome if ".json" in path.name else exported_slices.perfetto
    timeline = reader(content(path))
    timeline.check_nesting()
    return timeline


@pytest.mark.parametrize("batch_rows", [30, 100_000])
@pytest.mark.parametrize("name", FILES)
def test_every_execution_is_a_slice_with_its_exact_times(
    name: str, batch_rows: int, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This also holds if steps, which overlap in time, are read in several batches."""
    monkeypatch.setattr(executions, "BATCH_ROWS", batch_rows)
    write_many_executions(tmp_path / "store")
    assert run("export", "last", "-o", tmp_path / name) == (0, "", "")
    expected = sorted(
        (START_NS + trace * 5000 + 10 + at // 3 * 700, 100 + at * 37 % 2500, f"node_{at % 5}", trace + 7)
        for trace in range(3)
        for at in range(40)
    )
    slices = [piece for piece in read(tmp_path / name).slices if piece.category == "op"]
    assert sorted((piece.start_ns, piece.duration_ns, piece.node, piece.step) for piece in slices) == expected
    assert {(piece.node, piece.name) for piece in slices} == {
        (f"node_{number}", ("MatMul", "Add")[number % 2]) for number in range(5)
    }


@pytest.mark.parametrize("name", FILES)
def test_steps_phases_events_alerts_and_curves_are_shown(name: str, run: Run, tmp_path: Path) -> None:
    """The job has no traced step."""
    ended_jobs.write(tmp_path / "store")
    assert run("export", "7f3a", "-o", tmp_path / name) == (0, "", "")
    timeline = read(tmp_path / name)
    assert list(timeline.processes.values()) == ["train.py 7f3a on node7"]
    assert [piece.name for piece in timeline.slices].count("batch") == 40
    assert {(piece.name, piece.step) for piece in timeline.slices if piece.name != "batch"} == {
        ("fit", 1),
        ("epoch", 1),
        ("evaluate", 1),
    }
    assert [(mark[0], mark[1]) for mark in sorted(timeline.marks)] == [(START_NS, "gap"), (START_NS, "stall")]
    assert timeline.curves["job.rss_bytes"] == [10**9] * 30
    assert timeline.curves["host.cpu_cores"] == [3.0] * 29


@pytest.mark.parametrize("name", FILES)
def test_the_peak_of_each_step_is_a_curve(name: str, run: Run, tmp_path: Path) -> None:
    files = ("--graph_path", DATA / "tf1.graph", "--run_meta_path", DATA / "tf1_software.run_metadata")
    assert run("import", *files, "--name", "tf")[0] == 0
    assert run("export", "tf", "-o", tmp_path / name) == (0, "", "")
    _, out, _ = run("memory", "tf", "--json")
    (allocator,) = json.loads(out)["allocators"]
    assert read(tmp_path / name).curves["step.peak_bytes CPU:0 cpu"] == [allocator["peak_bytes"]]


@pytest.mark.parametrize("name", FILES)
def test_jobs_with_one_pid_are_different_processes(name: str, run: Run, tmp_path: Path) -> None:
    write_many_executions(tmp_path / "store", 1)
    write_many_executions(tmp_path / "store", 2, name="other.py")
    assert run("export", "train.py", "other.py", "--steps", "8", "-o", tmp_path / name) == (0, "", "")
    timeline = read(tmp_path / name)
    assert [name.split()[0] for name in timeline.processes.values()] == ["train.py", "other.py"]
    assert len([piece for piece in timeline.slices if piece.category == "op"]) == 80
    assert {piece.step for piece in timeline.slices if piece.category == "op"} == {8}


@pytest.mark.parametrize("name", FILES)
def test_hostile_texts_leave_the_file_valid(name: str, run: Run, tmp_path: Path) -> None:
    hostile_store.write(tmp_path / "store")
    for job in (f"{hostile_store.JOB:x}", f"{hostile_store.JOB + 1:x}"):
        status, _, error = run("export", job, "-o", tmp_path / name, "--force")
        assert (status, error[-10:]) in {(0, ""), (1, "[no-data]\n")}
    timeline = read(tmp_path / name)
    executed = {(piece.node, piece.name) for piece in timeline.slices if piece.node}
    cut_name = "scope/" + hostile_store.COMMANDS.partition(":")[0]
    assert executed == {(cut_name, cut_name), ("long", hostile_store.LONG)}


def test_only_the_last_steps_are_written_if_there_are_too_many(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfprof.collector.exporters.timelines.SLICES_MAX", 100)
    write_many_executions(tmp_path / "store")
    status, _, error = run("export", "last", "-o", tmp_path / "last.json")
    assert (status, error) == (0, "tfprof: the last 2 of 3 traced steps; --steps all writes all\n")
    assert {piece.step for piece in read(tmp_path / "last.json").slices if piece.category == "op"} == {8, 9}
    assert run("export", "last", "--steps", "all", "-o", tmp_path / "all.json") == (0, "", "")
    assert {piece.step for piece in read(tmp_path / "all.json").slices if piece.category == "op"} == {7, 8, 9}


def test_a_job_without_traced_steps_is_shown_beside_a_large_one(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfprof.collector.exporters.timelines.SLICES_MAX", 100)
    write_many_executions(tmp_path / "store", name="many.py")
    runs = rows("spans", [span(layout.RUN, 1, 0, 1), span(layout.RUN, 2, 90, 1)])
    write_job(tmp_path / "store", 2, {"spans": runs})
    assert run("export", "many.py", "train.py", "-o", tmp_path / "a.json")[0] == 0
    assert [piece.step for piece in read(tmp_path / "a.json").slices if piece.name == "run"] == [1]


def test_a_step_whose_ops_have_no_times_does_not_move_the_origin(run: Run, tmp_path: Path) -> None:
    traces = [trace(0, 0, 1, START_NS), trace(1, 1, 1, 0)]
    names = [{"kind": kind, "text": b"/device:CPU:0"} for kind in (DEVICE, NODE)]
    values = {"traces": traces, "names": names, "ops": [{"op_end_ns": 2}, {"trace": 1, "start_ns": -1}]}
    write_job(tmp_path / "store", 1, {table: rows(table, value) for table, value in values.items()})
    assert run("export", "last", "-o", tmp_path / "out.json") == (0, "", "")
    document = json.loads((tmp_path / "out.json").read_bytes())
    assert document["otherData"]["origin_ns"] == str(START_NS)


@pytest.mark.parametrize("name", FILES)
def test_a_step_without_start_times_is_left_out(name: str, run: Run, tmp_path: Path) -> None:
    """Files of steps that were imported together may lack them."""
    untimed = trace(1, 1, 0, 0) | {"start_ns": 0}
    write_job(tmp_path / "store", 1, {"traces": rows("traces", [trace(0, 0, 0, START_NS), untimed])})
    assert run("export", "last", "-o", tmp_path / name) == (0, "", "")
    assert [(piece.step, piece.start_ns) for piece in read(tmp_path / name).slices] == [(0, START_NS)]


def test_a_running_job_can_be_exported(run: Run, tmp_path: Path) -> None:
    """Its rows are still in the log."""
    write_many_executions(tmp_path / "store", state=None)
    assert run("export", "last", "-o", tmp_path / "out.json") == (0, "", "")
    assert len([piece for piece in read(tmp_path / "out.json").slices if piece.category == "op"]) == 120


@pytest.mark.parametrize("name", FILES)
def test_flows_lead_from_ops_to_kernels_and_between_devices(name: str, run: Run, tmp_path: Path) -> None:
    """The step runs twice; a flow stays within its step."""
    devices = [b"/device:CPU:0", b"/device:GPU:0", b"/device:GPU:0/stream:all"]
    nodes = [b"images", b"conv", b"relu", b"loss"]
    #: node, device, start, duration
    executed = [(0, 0, 0, 10), (1, 1, 20, 5), (1, 2, 30, 40), (2, 1, 26, 5), (2, 2, 70, 9), (3, 0, 90, 5), (3, 0, 4, 2)]
    inputs: list[list[str]] = [[], ["images"], ["conv:0"], ["relu", "^images"]]
    graph = graph_pb2.GraphDef(
        node=[
            graph_pb2.NodeDef(name=node.decode(), op=node.decode().title(), input=sources)
            for node, sources in zip(nodes, inputs, strict=True)
        ]
    )
    base = [START_NS, START_NS + 1000]
    tables = {
        "ops": rows(
            "ops",
            [
                {"trace": trace, "node": node, "device": device, "start_ns": start, "op_end_ns": duration}
                for trace in (0, 1)
                for node, device, start, duration in executed
            ],
        ),
        "traces": rows("traces", [trace(number, number, len(executed), base[number]) for number in (0, 1)]),
        "names": rows(
            "names",
            [{"kind": DEVICE, "id": number, "text": text} for number, text in enumerate(devices)]
            + [{"kind": NODE, "id": number, "text": text} for number, text in enumerate(nodes)],
        ),
        "graph_nodes": graph_nodes(graph.SerializeToString(), 0),
    }
    write_job(tmp_path / "store", 1, tables)
    assert run("export", "last", "-o", tmp_path / name) == (0, "", "")
    pairs = [(0, 20), (20, 30), (26, 70), (26, 90)]
    assert sorted(map(tuple, read(tmp_path / name).flows.values())) == sorted(
        (begin + source, begin + target) for begin in base for source, target in pairs
    )


@pytest.mark.parametrize("name", FILES)
def test_impossible_numbers_of_a_job_leave_the_file_valid(name: str, run: Run, tmp_path: Path) -> None:
    """A job may write any number into its channel."""
    spans = [
        span(kind, 2**64 - 1, 0, ms, key=2**32 - 1) for kind in (layout.BATCH, layout.FUNCTION, 999) for ms in (-5, 5)
    ]
    traces = [trace(0, 2**64 - 1, 1, START_NS) | {"kind": 999, "duration_ns": -1}]
    ops = [{"start_ns": 3, "op_start_ns": -9, "op_end_ns": 2, "thread": 2**32 - 1, "total_bytes": -1}]
    names = [{"kind": kind, "text": b"/device:CPU:0"} for kind in (DEVICE, NODE)]
    tables = {"spans": spans, "traces": traces, "ops": ops, "names": names}
    job = {table: rows(table, values) for table, values in tables.items()}
    write_job(tmp_path / "store", 1, job, identity={"pid": -4})
    assert run("export", "last", "--kind", "all", "-o", tmp_path / name)[0] in {0, 2}
    assert run("export", "last", "-o", tmp_path / name, "--force") == (0, "", "")
    assert len(read(tmp_path / name).slices) == len(spans) + len(traces) + len(ops)
