"""The folder of the format `profile`: its files agree with the store and with what was recorded.

Tests collector/exporters/profile_summary.py, collector/exporters/step_stats.py.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow.parquet as pq
import pytest
from fakes import exported_slices
from fakes.command import Run
from fakes.made_store import START_NS, rows, write_job
from fakes.many_executions import CPU, write_many_executions
from tfprof.collector.export.folders import Folder, write_folder
from tfprof.collector.proto.tensorflow_pb2 import RunMetadata, StepStats
from tfprof.collector.store import schema
from tfprof.formats import layout

ROOT = Path(__file__).parents[4]
DATA = ROOT / "tests" / "contract" / "data"
SCHEMA = json.loads((ROOT / "docs" / "profile_summary.schema.json").read_text())


@pytest.fixture
def run(run: Run, tmp_path: Path) -> Run:
    """Run a command on a store with one job."""
    write_many_executions(tmp_path / "store", name="dir/many.py")
    return run


def files() -> list[str]:
    return sorted(str(path) for path in Path().rglob("*") if path.is_file())


def summary(folder: str = "profile") -> dict[str, Any]:
    """Return summary.json, which is valid by its schema."""
    document: dict[str, Any] = json.loads(Path(folder, "summary.json").read_bytes())
    jsonschema.validate(document, SCHEMA, jsonschema.Draft202012Validator)
    return document


def test_each_step_has_a_timeline_and_step_stats(run: Run) -> None:
    assert run("export", "last", "-o", "profile/") == (0, "", "")
    steps = [f"many_step_{number}" for number in (7, 8, 9)]
    names = [f"{folder}/{step}" for folder in ("step_stats", "timeline") for step in steps]
    assert files() == sorted(f"profile/{name}" for name in [*names, "summary.json", "summary.md"])
    for step in steps:
        assert len(exported_slices.chrome(Path("profile/timeline", step).read_bytes()).slices) >= 40
        (device,) = StepStats.FromString(Path("profile/step_stats", step).read_bytes()).dev_stats
        assert (device.device, len(device.node_stats)) == (CPU.decode(), 40)


def test_times_and_counts_are_those_of_the_executions(run: Run) -> None:
    assert run("export", "last", "-o", "profile/", "-o", "a.parquet") == (0, "", "")
    expected: dict[Any, tuple[int, int, int]] = {}
    for row in pq.read_table("a.parquet").to_pylist():
        key = (str(row["step"]), row["node"], row["op"])
        ns, count, size = expected.get(key, (0, 0, 0))
        expected[key] = (ns + row["duration_ns"], count + 1, size + row["requested_bytes"])
    stats = summary()["op_stats"]
    assert list(stats) == ["many"]
    found = {
        (step, node, entry["op"]): (round(entry["duration"] * 1000), entry["count"], entry["total_bytes"])
        for step, hosts in stats["many"].items()
        for node, entry in hosts["node7"]["CPU:0"].items()
    }
    assert found == expected
    assert summary()["app_stats"]["8"] == {"batch": {"duration": 9.0, "meta": {"traced": True}}}


def test_the_page_has_the_numbers_of_the_op_view(run: Run) -> None:
    run("export", "last", "-o", "profile/")
    page = Path("profile/summary.md").read_text()
    assert page.startswith("# dir/many.py\n")
    view = json.loads(run("op", "last", "--json")[1])
    assert "over 3 traced steps" in page
    assert page.count("| `batch` |") + page.count("| `batch`") > 3
    assert "| `MatMul` | `CPU:0` |" in page
    assert view


@pytest.mark.parametrize("name", ["tf1_full", "tf1_software"])
def test_step_stats_have_what_tensorflow_recorded(name: str, run: Run) -> None:
    metadata = DATA / f"{name}.run_metadata"
    assert (
        run("import", "--graph_path", str(DATA / "tf1.graph"), "--run_meta_path", str(metadata), "--name", "tf")[0] == 0
    )
    assert run("export", "tf", "-o", "profile/") == (0, "", "")
    (path,) = Path("profile/step_stats").iterdir()
    copy = StepStats.FromString(path.read_bytes())
    original = RunMetadata.FromString(metadata.read_bytes()).step_stats
    assert _read(copy) == _read(original)
    assert sum(len(device.node_stats) for device in copy.dev_stats) > 10
    summary()


def _read(message: Any) -> Counter[tuple[Any, ...]]:
    """Return the fields that TensorFlow's Timeline and the TF profiler read, of each execution."""
    return Counter(
        (
            *(device.device, node.node_name.partition(":")[0], node.timeline_label or node.node_name.partition(":")[2]),
            *(node.all_start_micros, node.op_start_rel_micros, node.op_end_rel_micros, node.thread_id),
            tuple(
                sum(getattr(memory, field) for memory in node.memory)
                for field in ("total_bytes", "peak_bytes", "live_bytes")
            ),
            *(node.memory_stats.temp_memory_size, node.memory_stats.persistent_memory_size),
            tuple(map(_output, node.output)),
        )
        for device in message.dev_stats
        for node in device.node_stats
    )


def _output(output: Any) -> tuple[Any, ...]:
    tensor = output.tensor_description
    allocation = tensor.allocation_description
    size = max(allocation.requested_bytes, allocation.allocated_bytes)
    shape = tensor.shape.SerializeToString()
    return output.slot, tensor.dtype, shape, size, allocation.ptr


def test_models_are_functions_and_kinds(run: Run, tmp_path: Path) -> None:
    """Names of functions cannot leave the folder, and steps of one number do not collide."""
    names = {1: "../../evil", 2: "train\n`|\x1b[31m" + "x" * 300, 3: "train"}
    traces = [
        {"trace": at, "kind": kind, "step": 1, "key": key, "rows": 1, "source": layout.XSPACE}
        | {"start_ns": START_NS + at * 5000, "base_ns": START_NS + at * 5000, "duration_ns": 900}
        for at, (kind, key) in enumerate(
            [(layout.FUNCTION, 1), (layout.FUNCTION, 2), (layout.FUNCTION, 3), (layout.BATCH, 0), (layout.RUN, 0)]
        )
    ]
    texts = [(schema.NODE, 0, b"a|`b\n"), (schema.DEVICE, 0, CPU), (schema.LABEL, 0, b"MatMul")]
    tables = {
        "ops": rows("ops", [{"trace": at, "op_end_ns": 5, "outputs": schema.NONE_ID} for at in range(5)]),
        "traces": rows("traces", traces),
        "names": rows("names", [{"kind": kind, "id": number, "text": text} for kind, number, text in texts]),
    }
    functions = {f"{key:x}": name for key, name in names.items()}
    write_job(tmp_path / "store", 9 << 60, tables, identity={"name": "odd.py"}, counters={"functions": functions})
    assert run("export", "odd.py", "--kind", "all", "-o", "p/") == (0, "", "")
    assert len(files()) == 12
    assert all(path.startswith("p/") for path in files())
    assert all(path.is_relative_to(Path("p").absolute()) for path in tmp_path.parent.rglob("*evil*step*"))
    assert {"p/timeline/odd_batch_step_1", "p/timeline/odd_run_step_1"} < set(files())
    assert len(summary("p")["op_stats"]) == 5


def test_the_page_covers_the_steps_that_the_folder_has(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers of the written steps of one kind are those of earlier steps of another kind."""
    monkeypatch.setattr("tfprof.collector.exporters.profile_tree.SLICES_MAX", 3)
    steps = [(layout.BATCH, 1), (layout.BATCH, 2), (layout.TEST_BATCH, 1), (layout.TEST_BATCH, 2), (layout.BATCH, 3)]
    traces = [
        {"trace": at, "kind": kind, "step": step, "rows": 1, "source": layout.RUN_METADATA}
        | {"start_ns": START_NS + at * 10**7, "base_ns": START_NS + at * 10**7, "duration_ns": 10**6}
        for at, (kind, step) in enumerate(steps)
    ]
    texts = [(schema.NODE, 0, b"early"), (schema.NODE, 1, b"late"), (schema.DEVICE, 0, CPU)]
    tables = {
        "ops": rows("ops", [{"trace": at, "node": int(at > 1), "op_end_ns": 5000} for at in range(5)]),
        "traces": rows("traces", traces),
        "names": rows("names", [{"kind": kind, "id": number, "text": text} for kind, number, text in texts]),
        "graph_nodes": rows("graph_nodes", [{"name": "early", "op": "EarlyOp"}, {"name": "late", "op": "LateOp"}]),
    }
    write_job(tmp_path / "store", 9 << 60, tables, identity={"name": "odd.py"})
    status, _, notes = run("export", "odd.py", "--kind", "all", "-o", "p/")
    assert (status, "the last 3 of 5 traced steps" in notes) == (0, True)
    page = Path("p/summary.md").read_text()
    assert ("EarlyOp" in page, "LateOp" in page) == (False, True)


def test_a_folder_appears_when_it_is_whole(run: Run, tmp_path: Path) -> None:
    Path("file").touch()
    assert run("export", "last", "-o", "file/")[0] == 1
    Path("full").mkdir()
    Path("full/mine").touch()
    status, _, error = run("export", "last", "-o", "full/")
    assert (status, error.split()[-1]) == (1, "[file-exists]")
    write_many_executions(tmp_path / "store", 5, name="untraced.py", created_real_ns=1)
    write_job(tmp_path / "store", 6 << 60, {}, identity={"name": "none.py"})
    status, _, error = run("export", "none.py", "-o", "none/")
    assert (status, error.split()[-1]) == (1, "[no-data]")
    assert run("export", "dir/many.py", "untraced.py", "-o", "two/")[0] == 2
    assert run("export", "last", "--format", "profile", "-o", "-")[0] == 2
    assert files() == ["file", "full/mine"]
    status, _, error = run("export", "dir/many.py", "-o", "full/", "--force")
    assert (status, "mine in it is not of this format" in error) == (1, True)
    Path("full/mine").unlink()
    assert run("export", "dir/many.py", "-o", "full/", "--force")[0] == 0
    assert run("export", "dir/many.py", "-o", "full/", "--force")[0] == 0
    assert "full/mine" not in files()


def test_an_interrupt_leaves_the_old_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_folder(str(tmp_path / "p"), Folder("", [("file", [b"old"])]))
    rename = Path.rename

    def interrupted(path: Path, target: Path) -> Path:
        if target.name == "p" and (path / "file").read_bytes() == b"new":
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_folder(str(tmp_path / "p"), Folder("", [("file", [b"new"])]))
    assert [(path.name, path.read_bytes()) for path in tmp_path.rglob("*") if path.is_file()] == [("file", b"old")]
