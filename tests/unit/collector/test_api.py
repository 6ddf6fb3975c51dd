"""The Python API: stores, jobs, results and errors.

Tests collector/errors.py, collector/options.py.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fakes import small_store
from tfprof.collector import OpenStore, Profiler, open_store
from tfprof.collector.errors import NoSuchJobError, StoreError, TfprofError, UsageError
from tfprof.collector.options import ProfileOptionBuilder
from tfprof.collector.proto.tfprof_log_pb2 import ProfileProto
from tfprof.collector.proto.tfprof_output_pb2 import GraphNodeProto, MultiGraphNodeProto

QUIET = ProfileOptionBuilder().with_empty_output().build()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> OpenStore:
    return open_store(small_store.write(tmp_path_factory.mktemp("api") / "store"))


def total(profiler: Profiler, **options: Any) -> int:
    """Return the µs of all nodes."""
    return int(profiler.profile_name_scope({**QUIET, **options}).total_exec_micros)


def test_jobs_are_listed_with_ids_that_select_them(store: OpenStore) -> None:
    rows = store.jobs()
    assert [(row.id, row.name, row.host, row.pid, row.state) for row in rows] == [
        ("aa10", "train.py", "node7", 1, "exited"),
        ("bb10", "train.py", "node8", 2, "exited"),
        ("cc10", "idle.py", "node8", 3, "exited"),
    ]
    assert store.job(rows[0].id).jobs == (rows[0].uid,)


def test_each_view_returns_its_message(store: OpenStore) -> None:
    job = store.job("aa10")
    scope, graph = job.profile_name_scope(QUIET), job.profile_graph(QUIET)
    op, code = job.profile_operations(QUIET), job.profile_python(QUIET)
    assert [type(message) for message in (scope, graph, op, code)] == [
        GraphNodeProto,
        GraphNodeProto,
        MultiGraphNodeProto,
        MultiGraphNodeProto,
    ]
    assert [child.name for child in scope.children] == ["loss", "net"]
    assert [child.name for child in graph.children] == ["loss"]
    assert op.children[0].name == "MatMul"
    assert op.children[0].graph_nodes[0].input_shapes[1].dim[1].size == 3
    assert scope.total_parameters == 6


def test_single_steps_and_ranges_of_steps_can_be_selected(store: OpenStore) -> None:
    job = store.job("aa10")
    assert [total(job), total(job, step=0), total(job, step=1)] == [25, 30, 20]
    assert total(store.select("aa10", steps=(1, 1))) == 20


def test_jobs_are_merged(store: OpenStore) -> None:
    assert store.select(["aa10", "bb10"]).jobs == ("aa10000000000001", "bb10000000000002")
    assert store.select(host="node8").jobs == store.select(pid=[2, 3]).jobs == ("bb10000000000002", "cc10000000000003")
    assert len(store.select().jobs) == 3
    on_gpu = store.select(device="gpu:0").profile_operations(QUIET)
    assert [child.name for child in on_gpu.children] == ["MatMul"]


def test_text_goes_to_standard_output_or_a_file(
    store: OpenStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job, builder = store.job("aa10"), ProfileOptionBuilder().select(["occurrence"])
    job.profile_operations(builder.with_stdout_output().build())
    printed = capsys.readouterr().out
    job.profile_operations(builder.with_file_output(str(tmp_path / "f")).build())
    text = (tmp_path / "f").read_text()
    head, tail = printed.split(text)
    assert head.startswith("\n=========================Options=============================\n-max_depth   ")
    assert head.endswith("\n==================Model Analysis Report======================\n")
    assert tail == "\n======================End of Report==========================\n"
    assert len(head.splitlines()) == 2 + 21 + 2
    assert capsys.readouterr().out == ""


def test_a_timeline_of_all_steps_returns_an_empty_message_as_tensorflow_does(
    store: OpenStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ProfileOptionBuilder().with_timeline_output(str(tmp_path / "t")).build()
    assert store.job("aa10").profile_graph(options) == GraphNodeProto()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t_0", "t_1"]
    assert store.job("aa10").profile_graph({**options, "step": 1}).name == "_TFProfRoot"
    assert f"Timeline file is written to {tmp_path}/t_0." in capsys.readouterr().out


def test_refusals_are_printed_to_standard_error(store: OpenStore, capsys: pytest.CaptureFixture[str]) -> None:
    job = store.job("aa10")
    assert job.profile_graph({**QUIET, "step": 7}) == GraphNodeProto()
    assert capsys.readouterr().err == "Options -step=7 not found.\nAvailable steps: 0 1 \n"
    assert store.select("aa10", steps=(5, 9)).profile_graph(QUIET) == GraphNodeProto()
    assert capsys.readouterr().err == "Options -step=5-9 not found.\nAvailable steps: 0 1 \n"
    assert job.profile_python(QUIET) == MultiGraphNodeProto()
    assert capsys.readouterr().err == "No code trace information\n"
    assert job.profile_operations({"output": "foo"}) == MultiGraphNodeProto()
    assert capsys.readouterr().err.startswith("INVALID_ARGUMENT: E.g. Unknown output type: foo")
    assert store.job("cc10").profile_graph(QUIET).children == []
    assert "no traced steps" in capsys.readouterr().err
    assert job.profile_operations({**QUIET, "show_name_regexes": ["(("]}).children == []
    assert "'((' matches nothing: missing )" in capsys.readouterr().err


def test_a_serialized_profile_holds_one_job(store: OpenStore) -> None:
    message = ProfileProto.FromString(store.job("aa10").serialize_to_string())
    assert {node.name for node in message.nodes.values()} >= {b"net/MatMul", b"loss"}
    assert list(message.steps) == [0, 1]
    for profiler in (store.select(), store.select("bb10", device="gpu:0")):
        with pytest.raises(UsageError, match="a ProfileProto holds one job"):
            profiler.serialize_to_string()


def test_unknown_jobs_and_bad_options_raise(store: OpenStore, tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        open_store(tmp_path)
    with pytest.raises(NoSuchJobError):
        store.job("nosuch")
    with pytest.raises(NoSuchJobError):
        store.select(host="moon")
    with pytest.raises(UsageError, match=r"compat='3\.0' is none of"):
        store.job("aa10", compat="3.0")
    with pytest.raises(UsageError, match="'-max_depth'"):
        store.job("aa10").profile_graph({"max_depth": "4"})
    for options in (None, "options", [("max_depth", 3)]):
        with pytest.raises(UsageError, match="options are a dict"):
            store.job("aa10").profile_graph(options)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"tpu"):
        store.select("aa10", device="tpu").profile_graph(QUIET)
    with pytest.raises(TfprofError, match="cannot write"):
        store.job("aa10").profile_graph({**QUIET, "output": "file:outfile=/nonexistent/x"})


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *(("steps", value) for value in (5, "10-20", (1,), (1, 2, 3), (200, 100), (-1, 2), ("1", "2"), (1, 1 << 70))),
        *((name, value) for name in ("jobs", "host", "kind") for value in (7, [7])),
        ("pid", "12"),
        ("pid", ["12"]),
        ("device", 7),
        ("device", ["CPU"]),
        ("since", 5),
    ],
)
def test_an_argument_of_the_wrong_type_is_named(store: OpenStore, argument: str, value: Any) -> None:
    arguments: dict[str, Any] = {argument: value}
    with pytest.raises(UsageError, match=re.escape(f"{argument}={value!r}")):
        store.select(**arguments)


def test_a_list_of_two_steps_is_a_range(store: OpenStore) -> None:
    steps: Any = [1, 2]
    assert str(store.select("aa10", steps=steps).view()) == str(store.select("aa10", steps=(1, 2)).view())


@pytest.mark.parametrize("top", ["3", -1, None])
def test_a_number_of_rows_is_checked(store: OpenStore, top: Any) -> None:
    with pytest.raises(UsageError, match=f"top={top!r}"):
        store.job("aa10").view(top=top)


def test_the_store_of_the_commands_is_opened_by_default(
    store: OpenStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TFPROF_STORE", str(small_store.write(tmp_path / "s")))
    assert len(open_store().jobs()) == 3


def test_each_call_includes_new_data_of_a_running_job(tmp_path: Path) -> None:
    from fakes.made_store import HOST, IDENTITY, trace_tables
    from fakes.run_metadata import run_metadata
    from tfprof.collector.store.writer import LocalStoreWriter

    writer = LocalStoreWriter(tmp_path / "s", HOST)
    try:
        job = writer.job(5 << 60)
        job.set_identity(IDENTITY)
        graph = small_store.GRAPH.SerializeToString()
        profiler = open_store(tmp_path / "s").job("last")
        assert total(profiler) == 0
        job.append(trace_tables(graph, [run_metadata([b"loss"])]))
        assert total(profiler) == 10
    finally:
        writer.close()


def test_importing_the_package_is_cheap_and_imports_no_tensorflow() -> None:
    code = (
        "import sys, tfprof.collector; print(*sys.modules);"
        " from tfprof.collector import open_store; print(*sys.modules)"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after = (set(line.split()) for line in process.stdout.splitlines())
    assert not {"pyarrow", "google.protobuf", "click", "duckdb", "tfprof.collector.api"} & before
    assert "tfprof.collector.api" in after
    assert not {"tensorflow", "click", "duckdb", "rich", "prompt_toolkit", "re2"} & after
    with pytest.raises(AttributeError, match="nosuch"):
        getattr(sys.modules["tfprof.collector"], "nosuch")  # noqa: B009
