"""Import of RunMetadata files as steps."""

import pytest
from tfprof.collector.decoders import fallback
from tfprof.collector.decoders.decode import PythonDecoder
from tfprof.collector.imports import steps
from tfprof.collector.imports.files import BadFileError, NotRepresentableError
from tfprof.collector.imports.steps import Coverage, ImportedStep, StepTables, extent, step
from tfprof.collector.proto.tensorflow_pb2 import GraphDef, RunMetadata
from tfprof.collector.proto.tfprof_log_pb2 import OpLogProto, ProfileProto

CPU, GPU = "/device:CPU:0", "/device:GPU:0"


def metadata(*nodes: str, device: str = CPU, start: int = 1000) -> RunMetadata:
    message = RunMetadata()
    device_stats = message.step_stats.dev_stats.add(device=device)
    for name in nodes:
        device_stats.node_stats.add(node_name=name, all_start_micros=start, op_end_rel_micros=5, all_end_rel_micros=7)
    return message


def read(message: RunMetadata, number: int = 0) -> ImportedStep:
    imported = step(number, message.SerializeToString(), "r")
    assert imported is not None
    return imported


def test_a_step_is_decoded_like_a_step_of_a_live_job() -> None:
    tables = StepTables()
    first = tables.rows(read(metadata("a", "b:Label"), 4))
    second = tables.rows(read(metadata("b", "c", device=GPU, start=2000), 9))
    assert first["ops"]["trace"].to_pylist() == [0, 0]
    assert second["ops"]["trace"].to_pylist() == [1, 1]
    traces = [*first["traces"].to_pylist(), *second["traces"].to_pylist()]
    assert [(row["trace"], row["step"], row["rows"], row["accelerator"]) for row in traces] == [
        (0, 4, 2, 0),
        (1, 9, 2, 1),
    ]
    assert traces[1]["start_ns"] == traces[1]["base_ns"] == 2_000_000
    assert traces[1]["duration_ns"] == 7_000
    assert {row["text"] for row in second["names"].to_pylist()} == {b"c", GPU.encode()}


def test_memory_of_outputs_is_stored_for_each_execution() -> None:
    message = metadata("a", "a", "b", "a")
    runs = message.step_stats.dev_stats[0].node_stats
    runs[0].all_start_micros = 0
    for number, run in enumerate(runs):
        for slot in (0, 2):
            memory = run.output.add(slot=slot).tensor_description.allocation_description
            memory.requested_bytes, memory.allocated_bytes, memory.ptr = 100 + number, 50, (1 << 64) - 1 - slot
        run.output.add(slot=5)
    rows = StepTables().rows(read(message))["output_memory"].to_pylist()
    outputs = [(row["node"], row["execution"], row["slot"], row["bytes"], row["ptr"]) for row in rows]
    address_max = (1 << 64) - 1
    assert outputs == [
        (node, execution, slot, size, address_max - slot)
        for node, execution, size in ((0, 1, 101), (1, 0, 102), (0, 2, 103))
        for slot in (0, 2)
    ]


def test_a_step_that_is_too_large_is_refused_and_not_truncated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fallback, "ROWS_MAX", 2)
    monkeypatch.setattr(steps, "decoder", PythonDecoder)
    with pytest.raises(NotRepresentableError, match="r: more than"):
        StepTables().rows(read(metadata("a", "b", "c")))


def test_a_run_without_a_trace_is_not_a_step() -> None:
    message = RunMetadata()
    message.cost_graph.node.add(name="a")
    assert step(0, message.SerializeToString(), "r") is None


def _profile() -> ProfileProto:
    profile = ProfileProto(steps=[0])
    profile.nodes[0].name, profile.nodes[0].op = b"a", b"b"
    return profile


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello",
        metadata("a").SerializeToString()[:-3],
        GraphDef(node=[{"name": "Placeholder", "op": "Placeholder"}]).SerializeToString(),
        _profile().SerializeToString(),
        OpLogProto(log_entries=[{"float_ops": 3, "types": [b"x"]}]).SerializeToString(),
    ],
)
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(BadFileError, match="r is not a valid RunMetadata"):
        step(0, data, "r")


def test_a_node_outside_the_graph_counts_as_covered_after_its_second_run() -> None:
    coverage = Coverage(["a", "b", "c"])
    assert coverage.add(metadata("a", "a:Label", "_SOURCE", "RecvTensor", "xMEMCPY")) == pytest.approx(1 / 3)
    assert coverage.add(metadata("b", "_SINK")) == pytest.approx(2 / 4)
    assert coverage.add(metadata("_SINK")) == pytest.approx(3 / 4)


def test_a_step_lasts_from_its_first_start_to_its_last_end() -> None:
    message = metadata("a", start=3000)
    message.step_stats.dev_stats.extend(metadata("b", start=1000).step_stats.dev_stats)
    message.step_stats.dev_stats.extend(metadata("c", start=0).step_stats.dev_stats)
    assert extent(message) == (1_000_000, 3_007_000, 0)
    assert extent(metadata("a", start=0)) == (0, 0, 0)


@pytest.mark.parametrize("odd_us", [-5, 19_978_045_970_716_470, 1])
def test_the_extent_of_a_step_leaves_out_times_that_cannot_be_right(odd_us: int) -> None:
    day_us = 86_400 * 10**6
    message = metadata("a", start=30_000 * day_us)
    for name, start in (("b", 30_000 * day_us + 40), ("c", odd_us)):
        message.step_stats.dev_stats[0].node_stats.add(node_name=name, all_start_micros=start, all_end_rel_micros=2)
    start_ns, end_ns, odd_times = extent(message)
    assert (start_ns, odd_times) == (30_000 * day_us * 1000, 1)
    assert end_ns - start_ns < 10**6
