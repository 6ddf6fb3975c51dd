"""Imports of XSpaces: steps, ops, and files that are refused.

Tests collector/imports/session_steps.py.
"""

import errno
import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from fakes.command import Run, caller
from fakes.made_store import START_NS
from fakes.many_executions import write_many_executions
from tfprof.collector.decoders.proto.xplane_pb2 import XSpace
from tfprof.collector.decoders.session_ops import NO_MEMORY, Execution, Marker
from tfprof.collector.imports.session_steps import session_steps
from tfprof.collector.store.reader import LocalStore
from tfprof.formats import layout

CPU = b"/job:localhost/replica:0/task:0/device:CPU:0"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command in the test's folder, with a store there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TFPROF_STORE", str(tmp_path / "store"))
    call = caller(capsys)
    return lambda *words: call(*map(str, words))


def xspace(*events: tuple[str, int, int, dict[str, int]], start_ns: int = START_NS) -> bytes:
    """Return an XSpace with one thread; an event is (name, start in ns, duration in ns, stats)."""
    space = XSpace()
    plane = space.planes.add(name=b"/host:CPU")
    line = plane.lines.add(id=7, name=b"python")
    stats: dict[str, int] = {}
    for number, (name, start, duration, values) in enumerate(events, 1):
        plane.event_metadata[number].name = name.encode()
        event = line.events.add(metadata_id=number, offset_ps=start * 1000, duration_ps=duration * 1000)
        for key, value in values.items():
            event.stats.add(metadata_id=stats.setdefault(key, len(stats) + 1), int64_value=value)
    for key, number in stats.items():
        plane.stat_metadata[number].name = key.encode()
    environment = space.planes.add(name=b"Task Environment")
    environment.stat_metadata[1].name = b"profile_start_time"
    environment.stats.add(metadata_id=1, uint64_value=start_ns)
    return space.SerializeToString()


def step(name: str, number: int, start: int, duration: int) -> tuple[str, int, int, dict[str, int]]:
    return name, start, duration, {"step_num": number, "_r": 1}


def write(data: bytes, path: str = "logs/plugins/profile/run1/host1.xplane.pb") -> Path:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def steps_of(selector: str) -> list[tuple[str, int, int, int, int]]:
    """Return (kind, number, start, duration, executions) of each traced step."""
    job = next(job for job in LocalStore(Path("store")).jobs() if job.info.name == selector)
    rows: list[dict[str, Any]] = job.table("traces").to_pylist()
    return [
        (
            layout.SPAN_NAMES[row["kind"]],
            row["step"],
            row["start_ns"] - START_NS,
            row["duration_ns"],
            row["rows"],
        )
        for row in rows
    ]


def test_marked_steps_are_steps_with_their_numbers(run: Run) -> None:
    data = xspace(
        ("start:VarHandleOp", 5, 2, {}),
        ("next:IteratorGetNext", 50, 10, {}),
        step("train", 11, 100, 50),
        ("a:MatMul", 110, 20, {}),
        ("next:IteratorGetNext", 170, 10, {}),
        step("train", 12, 200, 50),
        ("a:MatMul", 210, 20, {}),
        step("test", 1, 300, 40),
        ("b:Add", 310, 20, {}),
        ("c:Sub", 900, 20, {}),
    )
    write(data)
    status, out, error = run("import", "logs")
    assert (status, error) == (0, "")
    assert out.split(maxsplit=1)[1] == "run1 on host1: 4 steps\n"
    assert steps_of("run1") == [
        ("init", 1, 5, 95, 1),
        ("batch", 11, 100, 50, 2),
        ("batch", 12, 200, 50, 2),
        ("test_batch", 1, 300, 40, 2),
    ]
    assert "host1" in run("jobs")[1]
    lines = run("op", "run1", "--kind", "all", "-min_micros", "0")[1]
    assert {"MatMul", "Add", "Sub", "VarHandleOp"} <= set(lines.split())
    assert "2 batch steps" in " ".join(run("show", "run1")[1].split())
    assert run("export", "run1", "-o", "a.json") == (0, "", "")


def test_without_marks_the_calls_of_functions_are_steps(run: Run) -> None:
    call = {"tf_function_call": 1}
    data = xspace(
        ("train_step", 100, 50, call), ("inner", 110, 5, call), ("a:Add", 120, 5, {}), ("train_step", 200, 50, call)
    )
    write(data)
    assert run("import", "logs", "--name", "mine")[0] == 0
    assert steps_of("mine") == [("function", 1, 100, 50, 1), ("function", 2, 200, 50, 0)]
    assert "function:train_step" in run("op", "mine")[1]


def test_without_calls_the_session_is_one_run(run: Run) -> None:
    write(xspace(("a:Add", 120, 5, {}), ("b:Mul", 200, 50, {})))
    assert run("import", "logs")[0] == 0
    assert steps_of("run1") == [("run", 0, 120, 130, 2)]


def test_numbers_that_are_not_unique_are_replaced(run: Run) -> None:
    write(xspace(step("train", 0, 100, 50), ("a:Add", 110, 5, {}), step("train", 0, 200, 50), step("test", 4, 300, 5)))
    assert run("import", "logs")[0] == 0
    assert [row[:2] for row in steps_of("run1")] == [("batch", 1), ("batch", 2), ("test_batch", 4)]


def test_an_op_belongs_to_the_step_around_it_also_if_steps_overlap() -> None:
    markers = [
        Marker(b"train", b"", number, 1, start, duration) for number, start, duration in ((1, 0, 100), (2, 10, 20))
    ]
    ops = [Execution(CPU, b"a", b"Add", 1, start, 1, NO_MEMORY) for start in (5, 15, 50, 200)]
    assert [[op.start_ns for op in step.ops] for step in session_steps(markers, ops)] == [[5, 50], [15, 200]]


def test_each_file_is_a_job(run: Run) -> None:
    data = xspace(step("train", 1, 100, 50), ("a:Add", 110, 5, {}))
    for run_name, host in (("run1", "host1"), ("run1", "host2.cluster"), ("run2", "host1")):
        write(data, f"logs/fit/plugins/profile/{run_name}/{host}.xplane.pb")
    write(b"results", "logs/fit/plugins/profile/run1/ALL_HOSTS.op_stats.pb")
    status, out, _ = run("import", "logs", "--json")
    assert status == 0
    assert [(job["name"], job["host"], job["steps"]) for job in json.loads(out)["jobs"]] == [
        ("run1", "host1", 1),
        ("run1", "host2.cluster", 1),
        ("run2", "host1", 1),
    ]
    write(data, "logs/fit/plugins/copies/run3/host1.xplane.pb")
    for folder, jobs in (("", 3), ("/plugins", 3), ("/plugins/profile", 3), ("/plugins/profile/run1", 2)):
        assert len(json.loads(run("import", f"logs/fit{folder}", "--json")[1])["jobs"]) == jobs
    assert len(json.loads(run("import", "logs/fit/plugins/profile/run1/host1.xplane.pb", "--json")[1])["jobs"]) == 1


def test_bad_files_do_not_keep_out_the_others(run: Run) -> None:
    data = xspace(step("train", 1, 100, 50), ("a:Add", 110, 5, {}))
    for host, content in (("a", b"no"), ("b", data), ("c", b""), ("d", data)):
        write(content, f"logs/plugins/profile/run1/{host}.xplane.pb")
    for words in ((), ("--json",)):
        status, out, error = run("import", "logs", *words)
        assert (status, [line.split("/")[-1][0] for line in error.splitlines()]) == (1, ["a", "c"])
    assert [job["host"] for job in json.loads(out)["jobs"]] == ["b", "d"]
    assert len(LocalStore(Path("store")).jobs()) == 4
    write(data, "logs/plugins/profile/a\nb/host.xplane.pb")
    assert run("import", "logs")[:2] == (2, ""), "names are checked first"


def test_links_are_followed_and_unreadable_folders_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(xspace(step("train", 1, 100, 50), ("a:Add", 110, 5, {})), "elsewhere/run1/host1.xplane.pb")
    Path("logs/plugins/profile").mkdir(parents=True)
    Path("logs/plugins/profile/run1").symlink_to(file.parent.absolute())
    (file.parent / "back").symlink_to(Path("logs").absolute())
    Path("logs/gone").symlink_to("nowhere")
    assert len(json.loads(run("import", "logs", "--json")[1])["jobs"]) == 1

    def denied(folder: Path) -> Iterator[Path]:
        if folder.name == "profile":
            raise PermissionError(errno.EACCES, "Permission denied", str(folder))
        return iterdir(folder)

    iterdir = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", denied)
    assert run("import", "logs")[2] == "tfprof: cannot read logs/plugins/profile: Permission denied [io]\n"


def test_a_table_of_sums_names_the_jobs_that_it_leaves_out(run: Run) -> None:
    for number, kind in enumerate(("train", "train", "test")):
        data = xspace(step(kind, 1, 100, 50), ("a:Add", 110, 5, {}), start_ns=START_NS + number)
        write(data, f"logs/plugins/profile/{kind}{number}/host.xplane.pb")
    assert run("import", "logs")[0] == 0
    names = ("train0", "train1", "test2")
    for table, notes in (("ops", 1), ("nodes", 1), ("executions", 0)):
        error = run("export", *names, "--table", table, "-o", f"{table}.csv")[2]
        assert (error.count("left out, without traced steps of the kind"), error.count(" test2\n")) == (notes, notes)
    assert run("export", *names, "--table", "ops", "--kind", "all", "-o", "all.csv") == (0, "", "")


def test_an_exported_job_is_imported_with_its_steps(run: Run) -> None:
    write_many_executions(Path("store"))
    assert run("export", "last", "--format", "tensorboard", "-o", "logs") == (0, "", "")
    assert run("import", "logs", "--name", "back")[0] == 0
    for name in ("train.py", "back"):
        assert run("export", name, "-o", f"{name}.parquet") == (0, "", "")
    first, second = (
        sorted((row["start_ns"], row["duration_ns"], row["node"], row["op"]) for row in pq.read_table(path).to_pylist())
        for path in ("train.py.parquet", "back.parquet")
    )
    assert first == second
    assert [row[:4] for row in steps_of("back")] == [
        ("batch", number, (number - 7) * 5000, 9000) for number in (7, 8, 9)
    ]


GOOD = xspace(step("train", 1, 100, 50), ("a:Add", 110, 5, {}))
BAD = {
    "truncated": (GOOD[:60], "bad-file"),
    "empty": (b"", "bad-file"),
    "text": (b"hello", "bad-file"),
    "gzip": (gzip.compress(GOOD), "bad-file"),
    "a huge length": (b"\x0a" + b"\xff" * 9 + b"\x01", "bad-file"),
    "a varint without end": (b"\x0a" + b"\xff" * 30, "bad-file"),
    "no op": (xspace(step("train", 1, 100, 50)), "bad-file"),
    "another message": (b"\x08\x01\x12\x03abc", "bad-file"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_damaged_file_is_refused(name: str, run: Run) -> None:
    data, slug = BAD[name]
    write(data, "a.xplane.pb")
    status, out, error = run("import", "a.xplane.pb")
    assert (status, out) == (1, "")
    assert error.startswith("tfprof: a.xplane.pb ")
    assert error.count("\n") == 1
    assert error.endswith(f"[{slug}]\n")
    assert not list(Path("store").glob("jobs/*")) if Path("store").exists() else True


def test_times_that_cannot_be_right_are_refused(run: Run) -> None:
    last = (1 << 63) - 1
    good = xspace(step("train", last, 1, 1), ("a:Add", 1, 1, {}), ("b:Add", 2, 2, {}))
    for part in ("timestamp_ns", "offset_ps", "duration_ps"):
        space = XSpace.FromString(good)
        line = space.planes[0].lines[0]
        setattr(line if part == "timestamp_ns" else line.events[1], part, last)
        write(space.SerializeToString())
        status, _, error = run("import", "logs")
        if status:
            assert error.endswith("is damaged: a time in it cannot be right [bad-file]\n")
        else:  # the largest time of an event is 106 days
            assert run("show", "run1")[0] == 0
            assert run("export", "run1", "-o", f"{part}.json") == (0, "", "")
    write(good)
    assert run("import", "logs", "--name", "large")[0] == 0
    assert steps_of("large")[0][1] == last


def test_a_fifo_and_a_missing_file_are_refused(run: Run) -> None:
    os.mkfifo("a.xplane.pb")
    assert run("import", "a.xplane.pb")[2] == "tfprof: a.xplane.pb is not a regular file [bad-file]\n"
    assert run("import", "b.xplane.pb")[2].endswith("[io]\n")
    Path("folder").mkdir()
    assert run("import", "folder")[2].startswith("tfprof: folder has no profile of TensorFlow")
    status, _, error = run("import", "folder", "--graph_path", "g")
    assert (status, error[-8:]) == (2, "[usage]\n")
