"""Selection of steps, jobs and devices for the views."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from fakes.made_store import SECOND, START_NS, rows, trace, trace_tables, write_job
from fakes.profiles import profile
from fakes.run_metadata import run_metadata
from tfprof.collector.decoders.proto import graph_pb2
from tfprof.collector.errors import UsageError
from tfprof.collector.numbers import date_and_time
from tfprof.collector.query.profile import Profile
from tfprof.collector.store.devices import PIPELINE_DEVICE
from tfprof.collector.store.reader import LocalJob, LocalStore
from tfprof.collector.store.writer import LocalStoreWriter
from tfprof.collector.tfviews.parity import Parity
from tfprof.formats import layout

EXACT = Parity(exact=True)
#: The middle of the bucket of 10 µs.
MIDDLE_NS = 10_048
GRAPH = graph_pb2.GraphDef(
    node=[graph_pb2.NodeDef(name="a", op="MatMul"), graph_pb2.NodeDef(name="b", op="Add", input=["a"])]
)
GPU = b"/job:localhost/replica:0/task:0/device:GPU:0"
STREAM = b"/device:GPU:0/stream:all"


@pytest.fixture
def jobs(tmp_path: Path) -> list[LocalJob]:
    """Two jobs: one with five traced steps, and one with a single step on a GPU.

    Node b runs in two of the five steps.
    """
    graph = GRAPH.SerializeToString()
    steps = [run_metadata([b"a", b"b"]), run_metadata([b"a"]), run_metadata([b"a", b"a"]), run_metadata([b"a"])]
    write_job(tmp_path / "store", 1, trace_tables(graph, [*steps, run_metadata([b"a", b"b"])]))
    on_gpu = run_metadata([b"a", b"only"], device=GPU) + run_metadata([b"a"], device=STREAM)
    write_job(tmp_path / "store", 2, trace_tables(graph, [on_gpu]))
    return LocalStore(tmp_path / "store").jobs()


def runs_and_ns(result: Profile | None) -> dict[str, tuple[int, int]]:
    """Return runs and time of each node."""
    assert result is not None
    return {node.name: (node.stats.runs, node.stats.micros) for node in result.nodes}


def test_the_time_of_a_node_is_its_median_times_the_share_of_steps_in_which_it_ran(jobs: list[LocalJob]) -> None:
    assert runs_and_ns(profile(jobs[0])) == {"a": (1, MIDDLE_NS), "b": (1, 4_000)}
    assert runs_and_ns(profile(jobs[0], averaged=False)) == {"a": (6, 5 * MIDDLE_NS), "b": (2, 20_000)}


def test_the_exact_averages_cover_the_steps_in_which_a_node_ran(jobs: list[LocalJob]) -> None:
    assert runs_and_ns(profile(jobs[0], parity=EXACT)) == {"a": (1, 12), "b": (1, 10)}
    assert runs_and_ns(profile(jobs[0], averaged=False, parity=EXACT)) == {"a": (6, 60), "b": (2, 20)}


def test_one_step_contains_all_nodes_also_those_that_did_not_run(jobs: list[LocalJob]) -> None:
    result = profile(jobs[0], 2)
    assert runs_and_ns(result) == {"a": (2, 20_000), "b": (0, 0)}
    assert result is not None
    assert result.trace_count == 1
    assert [node.devices for node in result.nodes] == [("/job:localhost/replica:0/task:0/device:cpu:0",)] * 2


def test_a_range_of_steps(jobs: list[LocalJob]) -> None:
    result = profile(jobs[0], steps=(1, 3), averaged=False)
    assert runs_and_ns(result) == {"a": (4, 3 * MIDDLE_NS), "b": (0, 0)}
    assert result is not None
    assert result.trace_count == 3


def test_functions_of_the_input_pipeline_are_selected_by_their_device_only(tmp_path: Path) -> None:
    steps = [run_metadata([b"a"]) + run_metadata([b"tf.data/a"], device=PIPELINE_DEVICE) for _ in range(3)]
    write_job(tmp_path / "store", 1, trace_tables(GRAPH.SerializeToString(), steps))
    (job,) = LocalStore(tmp_path / "store").jobs()
    for device, names, omits in ((None, {"a", "b"}, True), ("cpu", {"a"}, True), ("tf.data", {"tf.data/a"}, False)):
        result = profile(job, device=device)
        assert result is not None
        assert ({node.name for node in result.nodes}, result.omits_pipeline) == (names, omits)
    assert runs_and_ns(profile(job, device="tf.data")) == {"tf.data/a": (1, 10_000)}
    assert profile(job, device="cpu", parity=EXACT) is not None


def test_the_error_about_untraced_steps_lists_the_traced_ones(jobs: list[LocalJob]) -> None:
    with pytest.raises(UsageError, match="step 9 was not traced: traced are 0, 1, 2, 3, 4"):
        profile(jobs[0], 9)
    with pytest.raises(UsageError, match="no step of 7-9 was traced"):
        profile(jobs[0], steps=(7, 9))
    with pytest.raises(UsageError, match="step 1 is not one of the steps 2-3"):
        profile(jobs[0], 1, steps=(2, 3))


def test_the_error_about_a_graph_says_that_there_are_no_traced_steps(tmp_path: Path) -> None:
    write_job(tmp_path / "store", 1, {}, state="imported")
    with pytest.raises(UsageError, match="step 3 was not traced: there are no traced steps"):
        profile(LocalStore(tmp_path / "store").jobs(), 3)


def test_the_last_step_of_an_error_is_of_the_selected_kinds(tmp_path: Path) -> None:
    traces = [
        trace(number, number, 0, START_NS) | {"kind": kind, "start_ns": START_NS + number * SECOND, "duration_ns": ms}
        for number, kind, ms in ((0, layout.BATCH, 9), (600, layout.TEST_BATCH, 1))
    ]
    write_job(tmp_path / "store", 1, {"traces": rows("traces", traces)})
    (job,) = LocalStore(tmp_path / "store").jobs()
    with pytest.raises(UsageError) as raised:
        profile(job, since_ns=START_NS + 500 * SECOND)
    assert str(raised.value).startswith(f"no step was traced since {date_and_time(START_NS + 500 * SECOND)}")
    assert f"the last one at {date_and_time(START_NS)}" in str(raised.value)


def test_the_steps_of_several_jobs_add_up(jobs: list[LocalJob]) -> None:
    result = profile(jobs, averaged=False)
    assert runs_and_ns(result) == {"a": (7, 5 * MIDDLE_NS + 20_000), "b": (2, 20_000), "only": (1, 10_000)}
    assert result is not None
    assert result.trace_count == 6
    assert runs_and_ns(profile(jobs)) == {
        "a": (1, round((5 * MIDDLE_NS + 20_000) / 6)),
        "b": (1, 3_333),
        "only": (1, 1_667),
    }
    assert len(result.nodes[0].devices) == 2


def test_a_step_covers_only_the_jobs_that_have_it(jobs: list[LocalJob]) -> None:
    result = profile(jobs, 4)
    assert result is not None
    assert result.trace_count == 1
    assert runs_and_ns(result)["a"] == (1, 10_000)


@pytest.mark.parametrize("pattern", ["gpu:0", "GPU:0", "*gpu:?", "/device:gpu:0/stream:all"])
def test_a_device_selects_the_nodes_that_ran_there(jobs: list[LocalJob], pattern: str) -> None:
    numbers_by_node = runs_and_ns(profile(jobs, device=pattern))
    assert numbers_by_node["a"][1] == (3_334 if pattern.lower() == "gpu:0" else 1_667)  # of 6 steps
    assert "b" not in numbers_by_node


def test_the_error_about_a_device_lists_the_known_devices(jobs: list[LocalJob]) -> None:
    with pytest.raises(UsageError, match=r"like 'tpu'; there are .*device:CPU:0"):
        profile(jobs[0], device="tpu")


def test_a_job_without_traces_has_no_profile(tmp_path: Path) -> None:
    write_job(tmp_path / "store", 1, {})
    assert profile(LocalStore(tmp_path / "store").jobs()) is None
    assert profile([]) is None


def test_steps_that_are_stored_during_a_query_are_not_part_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = trace_tables(GRAPH.SerializeToString(), [run_metadata([b"a"])] * 3)
    late_tables = {
        name: tables[name].filter(pc.equal(tables[name]["trace"], 2)) for name in ("traces", "ops", "allocations")
    }
    early_tables = {
        name: table.filter(pc.less(table["trace"], 2)) if name in late_tables else table
        for name, table in tables.items()
    }
    writer = LocalStoreWriter(tmp_path / "running", "here")
    job = writer.job(3)
    job.append(early_tables)
    read_table = LocalJob.table

    def read_and_append(*arguments: Any) -> pa.Table:
        table = read_table(*arguments)
        if "traces" in arguments:  # it is read first, to select the steps
            job.append(late_tables)
        return table

    monkeypatch.setattr(LocalJob, "table", read_and_append)
    result = profile(LocalStore(tmp_path / "running").jobs()[0], averaged=False)
    writer.close()
    assert result is not None
    assert (result.trace_count, runs_and_ns(result)["a"]) == (2, (2, 20_000))
