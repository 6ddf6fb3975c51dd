"""Timelines in a browser: the viewer of chrome://tracing shows the files of the commands."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.forks import ForkServer
from fakes.made_store import trace_tables, write_job
from integration.oracle import messages
from integration.oracle.messages import message
from integration.trace_viewer import TraceViewer, trace_viewer

ORACLE = Path(__file__).parent / "oracle" / "scripts" / "real_runs.py"
CPU, GPU = (f"/job:localhost/replica:0/task:0/device:{name}:0" for name in ("CPU", "GPU"))
STREAM = "/device:GPU:0/stream:all"
#: A realistic start time of a step in µs.
BEGIN = 1_700_000_000_000_000
INPUTS = {"images": [], "conv": ["images"], "relu": ["conv:0"], "loss": ["relu", "^conv"], "print": ["loss"]}
#: (device, node, start µs, duration µs, bytes in use, allocation); the last two come from the
#: GPU's allocator. An allocation is (µs, bytes).
EXECUTIONS = (
    (CPU, "images", 0, 50, None, None),
    (CPU, "loss", 500, 30, None, None),
    (CPU, "print", 520, 40, None, None),
    (GPU, "conv", 60, 20, 4_000_000, (62, 3_500_000)),
    (GPU, "relu", 85, 10, 6_000_000, (90, 1_250_000)),
    (GPU, "relu", 300, 10, 2_000_000, None),
    (STREAM, "conv", 90, 300, None, None),
)


@pytest.fixture
def viewer(tmp_path: Path) -> Iterator[TraceViewer]:
    """The viewer in a browser."""
    with trace_viewer(tmp_path) as page:
        yield page


def write_gpu_job(store: Path) -> None:
    """Write a job with one step on a CPU and a GPU."""
    nodes = [message(messages.NODE_DEF, name=name, op=name, input=inputs) for name, inputs in INPUTS.items()]
    devices = []
    for device in (CPU, GPU, STREAM):
        stats = []
        for _, name, start, duration, in_use, allocation in (row for row in EXECUTIONS if row[0] == device):
            record = allocation and message(
                messages.RECORD, alloc_micros=BEGIN + allocation[0], alloc_bytes=allocation[1]
            )
            allocator = in_use and message(
                messages.ALLOCATOR,
                allocator_name="GPU_0_bfc",
                allocator_bytes_in_use=in_use,
                allocation_records=[record] if record else [],
            )
            times = {"all_start_micros": BEGIN + start, "op_end_rel_micros": duration}
            stats.append(message(messages.NODE_STATS, node_name=name, **times, memory=[allocator] if allocator else []))
        devices.append(message(messages.DEVICE, device=device, node_stats=stats))
    step = message(messages.RUN_METADATA, step_stats=message(messages.STEP_STATS, dev_stats=devices))
    write_job(store, 1, trace_tables(message(messages.GRAPH_DEF, node=nodes), [step]))


def write_timeline(store: Path, view: str, step: int) -> Path:
    """Write the timeline of a view of the last job with a command; return its path."""
    out = store.parent / "timeline"
    options = ("-max_depth", "10000", "-step", str(step), "-output", f"timeline:outfile={out}")
    command = (sys.executable, "-m", "tfprof.cli.main", view, "last", "--store", str(store), *options)
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return out.with_name(f"timeline_{step}")


def lanes(summary: Any) -> dict[str, list[list[tuple[str, int, int]]]]:
    """Return {process: lanes}; a lane is a list of bars (name, start, duration)."""
    return {
        process["name"]: [[tuple(bar[:3]) for bar in lane["slices"]] for lane in process["lanes"]]
        for process in summary["processes"]
        if process["lanes"]
    }


def test_the_viewer_shows_devices_lanes_arrows_and_memory(viewer: TraceViewer, tmp_path: Path) -> None:
    """Overlapping executions are in different lanes, and arrows connect the devices."""
    write_gpu_job(tmp_path / "store")
    summary = viewer.open(write_timeline(tmp_path / "store", "graph", 0))
    assert not summary["warnings"]
    assert not viewer.errors
    assert lanes(summary) == {
        f"Op scheduling threads: {CPU.lower()}": [[("images", 0, 50), ("loss", 500, 30)], [("print", 520, 40)]],
        f"Op scheduling threads: {GPU.lower()}": [[("conv", 60, 20), ("relu", 85, 10), ("relu", 300, 10)]],
        f"Op execution threads: {STREAM.lower()}": [[("conv", 90, 300)]],
    }
    flows = sorted((flow["from"], flow["to"], flow["start"], flow["end"]) for flow in summary["flows"])
    assert flows == [
        ("conv", "loss", 80, 500),
        ("images", "conv", 50, 60),
        ("relu", "loss", 95, 500),
        ("relu", "loss", 310, 500),
    ]
    counters = {
        counter["name"]: dict(counter["series"]) for process in summary["processes"] for counter in process["counters"]
    }
    assert counters["Allocated Bytes"] == {"Allocator Bytes in Use": [[80, 4_000_000], [310, 2_000_000]]}
    top = {name: [value for _, value in samples] for name, samples in counters["Top Allocations"].items()}
    assert top["Not Displayed"] == ["0.50 MB", "0.75 MB"]
    assert len(viewer.headings()) == 5


@pytest.mark.tf
@pytest.mark.parametrize("version", ["tf1", "tf2"])
def test_the_viewer_shows_a_whole_real_step(
    version: str, viewer: TraceViewer, plain_forks: Callable[[str], ForkServer], tmp_path: Path
) -> None:
    """Every bar of the file is shown, and the search finds a bar by its name."""
    plain_forks(version).output(ORACLE, tmp_path)
    parts = [path.read_bytes() for path in sorted(tmp_path.glob("conv/run-*.pb"))]
    write_job(tmp_path / "store", 1, trace_tables((tmp_path / "conv/graph.pb").read_bytes(), parts))
    path = write_timeline(tmp_path / "store", "graph", 2)
    events = json.loads(path.read_text())["traceEvents"]
    bars = [event for event in events if event["ph"] == "X"]
    start_us = min(event["ts"] for event in bars)
    summary = viewer.open(path)
    assert not summary["warnings"]
    assert not viewer.errors
    shown_bars = [bar for process in lanes(summary).values() for lane in process for bar in lane]
    assert sorted(shown_bars) == sorted((event["name"], event["ts"] - start_us, event["dur"]) for event in bars)
    assert len(shown_bars) > 50
    assert viewer.colours() > 20
    name = "gradients/conv/Conv2D_grad/Conv2DBackpropFilter"
    assert f'"{name}"' in viewer.find(name)


def test_the_viewer_shows_the_scope_view_as_a_flame_graph(viewer: TraceViewer, tmp_path: Path) -> None:
    write_gpu_job(tmp_path / "store")
    summary = viewer.open(write_timeline(tmp_path / "store", "scope", -1))
    assert not summary["warnings"]
    assert not viewer.errors
    assert lanes(summary) == {
        "Scope:0": [[("_TFProfRoot", 0, 460)]],
        "Scope:1": [[("conv", 0, 320), ("images", 320, 50), ("loss", 370, 30), ("print", 400, 40), ("relu", 440, 20)]],
    }
