"""Runs for TensorBoard's profile page, read with the protobuf library.

Tests collector/export/folders.py, collector/exporters/xspace.py.
"""

import re
import resource
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes import ended_jobs, hostile_store
from fakes.command import Run
from fakes.exported_xspace import Event, events, origin_ns
from fakes.made_store import START_NS, rows, span, trace, write_job
from fakes.many_executions import CPU, write_many_executions
from tfprof.collector.exporters import xspace
from tfprof.collector.store.devices import ITERATOR_DEVICE
from tfprof.collector.store.schema import DEVICE, NODE
from tfprof.collector.traces import executions
from tfprof.formats import layout

#: What XProf reads as an op (tsl/profiler/utils/tf_op_utils.cc in TensorFlow's source).
OP = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_./>-]*:[A-Z_][A-Za-z0-9_]*")
STREAM = b"/job:localhost/replica:0/task:0/device:GPU:0/stream:all"


@pytest.fixture
def exported(run: Run, tmp_path: Path) -> Callable[..., dict[str, bytes]]:
    """Export jobs, and return the files of the run by name."""

    def export(*words: str) -> dict[str, bytes]:
        assert run("export", *words, "--format", "tensorboard", "-o", tmp_path / "logs", "--force") == (0, "", "")
        (folder,) = (tmp_path / "logs" / "plugins" / "profile").iterdir()
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    return export


def of_line(found: list[Event], line: str) -> list[Event]:
    """Return the events of the lines of one group."""
    return [event for event in found if event.line.split(" (")[0] == line]


@pytest.mark.parametrize("in_memory", [100, xspace.IN_MEMORY])
@pytest.mark.parametrize("batch_rows", [30, 100_000])
def test_every_execution_is_an_event_with_its_exact_times(
    batch_rows: int,
    in_memory: int,
    exported: Callable[..., dict[str, bytes]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(executions, "BATCH_ROWS", batch_rows)
    monkeypatch.setattr(xspace, "IN_MEMORY", in_memory)
    write_many_executions(tmp_path / "store")
    (data,) = exported("last").values()
    assert origin_ns(data) == START_NS
    found = list(events(data))
    ops = of_line(found, "/device:CPU:0")
    assert sorted((event.start_ns, event.duration_ns, event.name, event.stats["group_id"]) for event in ops) == sorted(
        (number * 5000 + 10 + at // 3 * 700, 100 + at * 37 % 2500, name, number + 7)
        for number in range(3)
        for at in range(40)
        for name in (f"node_{at % 5}:{('MatMul', 'Add')[at % 5 % 2]}",)
    )
    assert all(OP.fullmatch(event.name) for event in ops)
    steps = [event for event in of_line(found, "traced steps") if event.name == "train"]
    assert [(event.shown, event.start_ns, event.duration_ns) for event in steps] == [
        ("batch", number * 5000, 9000) for number in range(3)
    ]
    assert [event.stats for event in steps] == [
        {"_r": 1, "step_num": number, "group_id": number, "step_name": f"batch {number}"} for number in (7, 8, 9)
    ]


def test_the_ops_of_a_line_do_not_overlap(exported: Callable[..., dict[str, bytes]], tmp_path: Path) -> None:
    """XProf takes an op for a part of the one around it, and subtracts its time."""
    write_many_executions(tmp_path / "store")
    (data,) = exported("last").values()
    ends: dict[str, int] = {}
    ops = sorted((event for event in events(data) if OP.fullmatch(event.name)), key=lambda event: event.start_ns)
    for event in ops:
        assert event.start_ns >= ends.get(event.line, 0)
        ends[event.line] = event.start_ns + event.duration_ns
    assert len(ends) > 1


def test_a_run_is_replaced_as_a_whole(run: Run, tmp_path: Path) -> None:
    """XProf keeps its results beside the files, and would show the old ones."""
    write_many_executions(tmp_path / "store")
    command = ("export", "last", "--format", "tensorboard", "-o", tmp_path / "logs")
    assert run(*command) == (0, "", "")
    (folder,) = (tmp_path / "logs" / "plugins" / "profile").iterdir()
    before = {path.name for path in folder.iterdir()}
    (folder / "ALL_HOSTS.op_stats_v2.pb").write_bytes(b"old")
    status, _, error = run(*command)
    assert (status, error) == (1, f"tfprof: {folder} exists: --force replaces it [file-exists]\n")
    assert run(*command, "--force") == (0, "", "")
    assert {path.name for path in folder.iterdir()} == before
    assert [path.name for path in (tmp_path / "logs").iterdir()] == ["plugins"]
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_each_job_is_a_host_of_one_run(exported: Callable[..., dict[str, bytes]], tmp_path: Path) -> None:
    write_many_executions(tmp_path / "store", 1, host="node1")
    write_many_executions(tmp_path / "store", 2, name="b.py", host="node2.cluster")
    write_many_executions(tmp_path / "store", 3, name="c.py", host="node1")
    files = exported("train.py", "b.py", "c.py", "--steps", "8")
    assert set(files) == {"node1.xplane.pb", "node2.cluster.xplane.pb", "node1_0000000000000003.xplane.pb"}
    for name, data in files.items():
        assert name.removesuffix(".xplane.pb").encode() in data
        assert Counter(event.line.split(" (")[0] for event in events(data))["/device:CPU:0"] == 40


def test_each_host_has_its_own_number_of_steps_left_out(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfprof.collector.exporters.timelines.SLICES_MAX", 80)
    write_many_executions(tmp_path / "store", 1, host="node1")
    write_many_executions(tmp_path / "store", 2, name="b.py", host="node2")
    words = ("train.py", "b.py", "--format", "tensorboard", "-o", tmp_path / "logs")
    assert "the last 2 of 6 traced steps" in run("export", *words)[2]
    files = list((tmp_path / "logs").rglob("*.xplane.pb"))
    assert len(files) == 2
    assert all(b"2 traced steps before these" in path.read_bytes() for path in files)


def test_waiting_for_input_is_an_event_that_xprof_knows(
    exported: Callable[..., dict[str, bytes]], tmp_path: Path
) -> None:
    """An iterator waits if it runs on the thread of an op that waits; others work ahead."""
    nodes = {"queue/next": "QueueDequeueManyV2", "IteratorGetNext": "IteratorGetNext", "train": "NoOp"}
    tables = {
        "ops": rows(
            "ops",
            [
                {"node": node, "device": device, "thread": thread, "start_ns": start, "op_end_ns": 10}
                for node, device, thread, start in (
                    (0, 0, 1, 0),
                    (1, 0, 2, 20),
                    (2, 0, 1, 40),
                    (3, 1, 2, 30),
                    (3, 1, 3, 50),
                )
            ],
        ),
        "traces": rows("traces", [trace(0, 5, 5, START_NS)]),
        "names": rows(
            "names",
            [{"kind": NODE, "id": n, "text": t.encode()} for n, t in enumerate([*nodes, "Iterator::Root::Prefetch"])]
            + [{"kind": DEVICE, "id": n, "text": text} for n, text in enumerate([CPU, ITERATOR_DEVICE])],
        ),
        "graph_nodes": rows("graph_nodes", [{"name": name, "op": op} for name, op in nodes.items()]),
    }
    write_job(tmp_path / "store", 1, tables)
    (data,) = exported("last").values()
    found = list(events(data))
    waits = [event for event in found if event.name.startswith("IteratorGetNext")]
    assert sorted((event.start_ns, event.duration_ns) for event in waits) == [(0, 10), (20, 10), (30, 10)]
    assert all(event.stats["group_id"] == 5 for event in waits)
    assert sorted(event.name for event in found if OP.fullmatch(event.name)) == [
        ".train:NoOp",
        "IteratorGetNext:IteratorGetNext",
        "queue/next:QueueDequeueManyV2",
    ]
    assert (".train:NoOp", "train:NoOp") in {(event.name, event.shown) for event in found}
    assert ["group_id" in event.stats for event in of_line(found, "/host:CPU/tf.data") if "::" in event.name] == [
        True,
        False,
    ]


def test_kernels_are_events_of_their_gpu(exported: Callable[..., dict[str, bytes]], tmp_path: Path) -> None:
    tables = {
        "ops": rows(
            "ops",
            [
                {"node": node, "device": device, "start_ns": node * 20, "op_end_ns": 10}
                for node, device in ((0, 0), (0, 1), (1, 1))
            ],
        ),
        "traces": rows("traces", [trace(0, 5, 3, START_NS)]),
        "names": rows(
            "names",
            [{"kind": NODE, "id": n, "text": text} for n, text in enumerate([b"conv", b"MemcpyH2D"])]
            + [{"kind": DEVICE, "id": n, "text": text} for n, text in enumerate([CPU, STREAM])],
        ),
        "graph_nodes": rows("graph_nodes", [{"name": "conv", "op": "Conv2D"}]),
    }
    write_job(tmp_path / "store", 1, tables)
    (data,) = exported("last").values()
    on_gpu = [event for event in events(data) if event.plane == "/device:GPU:0"]
    assert [(event.name, event.stats.get("tf_op")) for event in on_gpu] == [
        ("Conv2D", "conv:Conv2D"),
        ("MEMCPYHtoD", None),
        ("run 5", None),
    ]
    assert [event.stats["group_id"] for event in on_gpu] == [5, 5, 5]
    assert [event.stats.get("correlation_id") for event in on_gpu] == [0, 1, None]


def test_steps_of_two_kinds_with_one_number_are_two_steps(
    exported: Callable[..., dict[str, bytes]], tmp_path: Path
) -> None:
    kinds = (layout.BATCH, layout.TEST_BATCH)
    tables = {
        "ops": rows("ops", [{"trace": number, "start_ns": 10, "op_end_ns": 5} for number in (0, 1)]),
        "traces": rows(
            "traces", [{**trace(number, 3, 1, START_NS + number * 100), "kind": kinds[number]} for number in (0, 1)]
        ),
        "names": rows("names", [{"kind": NODE, "id": 0, "text": b"a"}, {"kind": DEVICE, "id": 0, "text": CPU}]),
        "graph_nodes": rows("graph_nodes", [{"name": "a", "op": "Add"}]),
        "spans": rows("spans", [span(kind, 3, 0.001, 1) for kind in kinds]),
    }
    write_job(tmp_path / "store", 1, tables)
    (data,) = exported("last", "--kind", "all").values()
    steps = [event for event in of_line(list(events(data)), "traced steps") if event.name == "train"]
    assert [event.stats["step_name"] for event in steps] == ["batch 3", "test_batch 3"]
    assert len({event.stats["group_id"] for event in steps}) == 2
    ops = of_line(list(events(data)), "/device:CPU:0")
    assert [event.stats["group_id"] for event in ops] == [event.stats["group_id"] for event in steps]


def test_hostile_texts_leave_the_file_valid(exported: Callable[..., dict[str, bytes]], tmp_path: Path) -> None:
    hostile_store.write(tmp_path / "store")
    files = exported(f"{hostile_store.JOB:x}")
    ((name, data),) = files.items()
    assert re.fullmatch(r"[A-Za-z0-9_.-]+", name)
    found = list(events(data))
    executed = [event for event in found if event.line.startswith("/device:CPU:0")]
    assert not any(":" in event.name for event in executed), "a device with an odd name runs no op of the views"
    assert {event.shown for event in executed} == {
        hostile_store.LONG,
        "scope/" + hostile_store.COMMANDS.partition(":")[0],
    }


@pytest.mark.parametrize(
    ("node", "op", "name"),
    [
        ("_arg_x_0_0", "_Arg", "._arg_x_0_0:_Arg"),
        ("train", "NoOp", ".train:NoOp"),
        ("train/a", "NoOp", "train/a:NoOp"),
        ("test_1", "NoOp", ".test_1:NoOp"),
        ("層/'\"\n\x1b[2J", "Ns>Op", "._/_2J:Ns_Op"),
        ("a", "lower", "a:_lower"),
        ("x" * 10_000, "Add", "x" * 10_000 + ":Add"),
    ],
)
def test_every_op_has_a_name_that_xprof_reads(
    node: str, op: str, name: str, exported: Callable[..., dict[str, bytes]], tmp_path: Path
) -> None:
    tables = {
        "ops": rows("ops", [{"op_end_ns": 10}]),
        "traces": rows("traces", [trace(0, 5, 1, START_NS)]),
        "names": rows(
            "names", [{"kind": NODE, "id": 0, "text": node.encode()}, {"kind": DEVICE, "id": 0, "text": CPU}]
        ),
        "graph_nodes": rows("graph_nodes", [{"name": node, "op": op}]),
    }
    write_job(tmp_path / "store", 1, tables)
    (data,) = exported("last").values()
    (event,) = of_line(list(events(data)), "/device:CPU:0")
    assert (event.name, event.shown) == (name, f"{node}:{op}")
    assert OP.fullmatch(event.name)


def test_a_job_without_traced_steps_leaves_nothing(run: Run, tmp_path: Path) -> None:
    ended_jobs.write(tmp_path / "store")
    status, out, error = run("export", "7f3a", "--format", "tensorboard", "-o", tmp_path / "logs")
    assert (status, out) == (1, "")
    assert error.endswith("[no-data]\n")
    assert not (tmp_path / "logs").exists()


def test_a_run_that_cannot_be_written_leaves_nothing(run: Run, tmp_path: Path) -> None:
    write_many_executions(tmp_path / "store")
    (tmp_path / "file").touch()
    status, _, error = run("export", "last", "--format", "tensorboard", "-o", tmp_path / "file")
    assert (status, error.startswith(f"tfprof: cannot write {tmp_path}/file/plugins/"), error[-5:]) == (
        1,
        True,
        "[io]\n",
    )
    assert "Not a directory" in error
    status, _, error = run("export", "last", "--format", "tensorboard", "-o", "a\0b")
    assert (status, error[-5:]) == (1, "[io]\n")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        status, _, error = run("export", "last", "--format", "tensorboard", "-o", tmp_path / "new" / "logs")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (status, error[-5:]) == (1, "[io]\n")
    assert {path.name for path in tmp_path.iterdir()} == {"file", "store", "work"}


def test_a_folder_is_no_standard_output(run: Run, tmp_path: Path) -> None:
    write_many_executions(tmp_path / "store")
    assert run("export", "last", "--format", "tensorboard", "-o", "-") == (
        2,
        "",
        "tfprof: the format tensorboard is a folder: name one [usage]\n",
    )
