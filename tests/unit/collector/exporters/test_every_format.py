"""Each format writes valid files, also of jobs with odd names, little data, gaps and losses."""

import csv
import io
import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes import exported_profiles, exported_slices, exported_xspace
from fakes.command import Run
from fakes.made_store import START_NS, rows, span, write_job
from fakes.many_executions import CPU
from google.protobuf import json_format
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from tfprof.collector.proto.tensorflow_pb2 import StepStats
from tfprof.collector.proto.tfprof_log_pb2 import OpLogProto, ProfileProto
from tfprof.collector.store import schema
from tfprof.formats import layout
from tfprof.formats.exports import FORMATS

Tables = dict[str, pa.Table]
TEXTS = (
    "plain",
    "\"double\" 'single' `back` \\ & <tag> </script> ]]> -->",
    "two\nlines\r\n\tand\u2028more\x85",
    "nul\0",
    "\x1b[31mred\x1b]0;title\x07",
    "層/اسم/имя/🧪\u202e",
    "=1+2",
    "x" * 10_000,
)


def _job(nodes: tuple[str, ...], steps: int = 3, **further: Any) -> Tables:
    """Return the tables of a job in which each step runs all nodes, and each op has memory.

    The last node runs on a device that is called like it.
    """
    names = [(schema.NODE, number, node.encode()) for number, node in enumerate(nodes)]
    names += [(schema.DEVICE, 0, CPU), (schema.DEVICE, 1, CPU + nodes[-1].encode()[:50])]
    names += [(schema.ALLOCATOR, 0, nodes[-1].encode())]
    ops = [
        {"trace": trace, "node": node, "device": int(0 < node == len(nodes) - 1), "outputs": schema.NONE_ID}
        | {"start_ns": 1000 * node, "op_end_ns": 1500}
        for trace in range(steps)
        for node in range(len(nodes))
    ]
    traces = [
        {"trace": trace, "kind": layout.FUNCTION, "key": 7, "step": trace + 1, "rows": len(nodes), "source": 3}
        | {"start_ns": START_NS + trace * 100_000, "base_ns": START_NS + trace * 100_000, "duration_ns": 90_000}
        for trace in range(steps)
    ]
    changes = [
        {"trace": op["trace"], "node": op["node"], "bytes": 64, "t_us": START_NS // 1000 + op["trace"] * 100}
        for op in ops
    ]
    return {
        "ops": rows("ops", ops),
        "traces": rows("traces", traces),
        "names": rows("names", [{"kind": kind, "id": number, "text": text} for kind, number, text in names]),
        "graph_nodes": rows("graph_nodes", [{"name": node, "op": node} for node in nodes]),
        "spans": rows("spans", [span(layout.FUNCTION, number, number, 1, key=7) for number in range(1, steps + 1)]),
        "memory_changes": rows("memory_changes", changes),
        "block_addresses": rows("block_addresses", [{"trace": op["trace"], "address": 4096} for op in ops]),
        **further,
    }


def _odd_names() -> Tables:
    frames = [
        {"stack": number, "file": text, "line": 3, "function": text, "text": text} for number, text in enumerate(TEXTS)
    ]
    return _job(
        TEXTS,
        frames=rows("frames", frames),
        stacks=rows("stacks", [{"name": text, "stack": number} for number, text in enumerate(TEXTS)]),
        events=rows("events", [{"t_ns": START_NS, "slug": text, "text": text, "count": 1} for text in TEXTS]),
        alerts=rows("alerts", [{"found_ns": START_NS, "slug": text} for text in TEXTS]),
    )


def _gaps_and_losses() -> Tables:
    """Return a job of which one step lost its executions, one is a day later, one ends early."""
    tables = _job(("a", "b"), steps=4)
    steps = tables["traces"].to_pylist()
    steps[2]["start_ns"] = steps[2]["base_ns"] = START_NS + 86_400 * 10**9
    steps[3] |= {"duration_ns": -5}
    ops = [op for op in tables["ops"].to_pylist() if op["trace"] != 1]
    ops[0] |= {"op_end_ns": 0}
    events = [{"t_ns": START_NS, "slug": slug, "text": "1 lost", "count": 9} for slug in ("gap", "ring-full")]
    return {
        **tables,
        "traces": rows("traces", steps),
        "ops": rows("ops", ops),
        "events": rows("events", events),
    }


JOBS: dict[str, Callable[[], Tables]] = {
    "odd names": _odd_names,
    "no data": dict,
    "no traces": lambda: {"spans": _job(("a",))["spans"]},
    "one op": lambda: _job(("a",), steps=1),
    "gaps and losses": _gaps_and_losses,
}
#: Jobs of which a format has a file; of the others it may say that there is no data.
WITH_DATA = ("odd names", "one op")


def _strict_json(data: bytes) -> Any:
    def refuse(name: str) -> None:
        raise ValueError(f"{name} is no JSON")

    return json.loads(data.decode(), parse_constant=refuse)


def _tensorboard(path: Path) -> None:
    (run,) = (path / "plugins" / "profile").iterdir()
    assert all(list(exported_xspace.events(file.read_bytes())) for file in run.iterdir())


def _otlp_json(path: Path) -> None:
    for line in path.read_bytes().split(b"\n")[:-1]:
        json_format.Parse(line, TracesData())


def _csv(path: Path) -> None:
    head, *cells = csv.reader(io.StringIO(path.read_bytes().decode(), newline=""))
    assert {len(row) for row in cells} <= {len(head)}
    assert not any(cell.startswith("=") for row in cells for cell in row)


def _arrow(path: Path) -> None:
    with pa.OSFile(str(path)) as file:
        pa.ipc.open_file(file).read_all().validate(full=True)


def _profile(path: Path) -> None:
    _strict_json((path / "summary.json").read_bytes())
    (path / "summary.md").read_bytes().decode()
    for file in (path / "timeline").iterdir():
        exported_slices.chrome(file.read_bytes()).check_nesting()
    for file in (path / "step_stats").iterdir():
        StepStats.FromString(file.read_bytes())


def _png(path: Path) -> None:
    assert path.read_bytes().startswith(b"\x89PNG")


#: Format -> reads a file of it, and raises an error if it is not valid.
READERS: dict[str, Callable[[Path], object]] = {
    "perfetto": lambda path: exported_slices.perfetto(path.read_bytes()).check_nesting(),
    "chrome": lambda path: (_strict_json(path.read_bytes()), exported_slices.chrome(path.read_bytes()).check_nesting()),
    "speedscope": lambda path: exported_profiles.speedscope(path.read_bytes()),
    "pprof": lambda path: exported_profiles.pprof(path.read_bytes()),
    "tensorboard": _tensorboard,
    "otlp": lambda path: TracesData.FromString(path.read_bytes()),
    "otlp-json": _otlp_json,
    "parquet": lambda path: pq.read_table(path).validate(full=True),
    "csv": _csv,
    "arrow": _arrow,
    "profile": _profile,
    "memory-flow": ET.parse,
    "memory-flow-png": _png,
    "megengine": lambda path: _strict_json(path.read_bytes()),
    "tfprof": lambda path: None,  # imported below
    "profile-proto": lambda path: ProfileProto.FromString(path.read_bytes()),
    "op-log": lambda path: OpLogProto.FromString(path.read_bytes()),
}


def test_every_format_has_a_reader() -> None:
    assert list(READERS) == list(FORMATS)


@pytest.mark.parametrize("state", ["exited", None])
@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("file_format", FORMATS)
def test_the_file_is_valid_or_absent(file_format: str, job: str, state: str | None, run: Run, tmp_path: Path) -> None:
    text = "\n".join(TEXTS) if job == "odd names" else "a.py"
    identity = {"name": text, "host": text, "user": text, "functions": {"7": text}, "command": [text]}
    write_job(tmp_path / "store", 7 << 60, JOBS[job](), state=state, identity=identity)
    status, _, error = run("export", "7000", "--format", file_format, "-o", "out")
    if status:
        assert job not in WITH_DATA or "tfprof[png]" in error
        assert error.rstrip().rpartition(" ")[2] in {"[no-data]", "[usage]"}
        assert list(Path().iterdir()) == []
        return
    READERS[file_format](Path("out"))
    assert [path.name for path in Path().iterdir()] == ["out"]
    if file_format == "tfprof":
        assert run("import", "out", "--store", str(tmp_path / "other"))[0] == 0
