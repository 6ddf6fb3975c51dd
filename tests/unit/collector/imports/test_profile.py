"""A ProfileProto is split into steps that give the same profile, or is refused.

Tests collector/imports/split_entries.py.
"""

from collections.abc import Callable
from typing import Any

import pytest
from fakes.run_metadata import run_metadata
from tfprof.collector.imports.files import BadFileError, NotRepresentableError
from tfprof.collector.imports.profile import ProfileFile
from tfprof.collector.imports.steps import COLON_SUBSTITUTE, StepTables, step
from tfprof.collector.proto.tensorflow_pb2 import GraphDef, NodeDef, RunMetadata
from tfprof.collector.proto.tfprof_log_pb2 import ExecProfile, OpLogProto, ProfileProto
from tfprof.collector.store.schema import NODE

CPU, GPU, STREAM, COPY = "/device:cpu:0", "/device:gpu:0", "/device:gpu:0/stream:all", "/device:gpu:0/memcpy"


def profile(canonical_device: str = CPU, **entry: Any) -> ProfileProto:
    """Return a profile of two nodes: `a` with ``entry`` in step 3, and `b` with `a` as input 0."""
    message = ProfileProto(steps=[3])
    for number, name in enumerate((b"a", b"b")):
        node = message.nodes[number]
        node.id, node.name, node.op = number, name, b"Op"
        node.op_types.append(b"Op")
    message.nodes[1].inputs[0] = 0
    message.nodes[1].src_output_index[0] = 0
    if entry:
        message.nodes[0].canonical_device = canonical_device.encode()
        message.nodes[0].host_device = CPU.encode()
        message.nodes[0].op_types.append(canonical_device.encode())
        message.nodes[0].execs[3].CopyFrom(ExecProfile(**entry))
    return message


def times(*pairs: tuple[int, int]) -> dict[str, Any]:
    return {"times": [{"int64_values": pair} for pair in pairs]}


def entry_of_run(**fields: Any) -> dict[str, Any]:
    """Return the entry of a node that ran once on the CPU, from 1000 to 1005 µs."""
    entry = {
        "run_count": 1,
        "all_start_micros": 1000,
        "latest_end_micros": 1005,
        "cpu_execs": {CPU: times((1000, 5))},
        "devices": [CPU.encode()],
        "memory_execs": [{"memory_micros": 1005}],
    }
    return {**entry, **fields}


def executions(message: ProfileProto) -> dict[str, list[Any]]:
    """Return the executions of the only step, by device."""
    (step,) = ProfileFile(message.SerializeToString(), "p").steps()
    assert step.number == 3
    return {device.device: list(device.node_stats) for device in step.message.step_stats.dev_stats}


def refusal_text(message: ProfileProto, error: type[Exception] = NotRepresentableError) -> str:
    with pytest.raises(error) as caught:
        read(message)
    return str(caught.value)


def read(message: ProfileProto) -> None:
    file = ProfileFile(message.SerializeToString(), "p")
    file.graph()
    file.op_log()
    list(file.steps())


def test_a_run_has_its_time_and_its_memory() -> None:
    memory = {
        "memory_micros": 1005,
        "host_temp_bytes": 10,
        "host_persistent_bytes": 3,
        "requested_bytes": 113,
        "peak_bytes": 63,
        "residual_bytes": -4,
        "output_bytes": 30,
        "output_memory": {1: {"bytes": 20, "ptr": 7}},
    }
    (stats,) = executions(profile(**entry_of_run(memory_execs=[memory])))[CPU]
    assert (stats.node_name, stats.all_start_micros, stats.op_end_rel_micros) == ("a", 1000, 5)
    assert (stats.memory_stats.temp_memory_size, stats.memory_stats.persistent_memory_size) == (10, 3)
    (allocator,) = stats.memory
    assert (allocator.allocator_name, allocator.total_bytes, allocator.peak_bytes, allocator.live_bytes) == (
        "cpu",
        100,
        50,
        -7,
    )
    outputs = [(output.slot, output.tensor_description.allocation_description) for output in stats.output]
    assert [(slot, sizes.allocated_bytes, sizes.ptr) for slot, sizes in outputs] == [(1, 10, 0), (1, 20, 7)]


def test_an_execution_of_0_microseconds_is_rebuilt() -> None:
    entry = entry_of_run(
        latest_end_micros=1001, cpu_execs={CPU: times((1000, 1))}, memory_execs=[{"memory_micros": 1000}]
    )
    assert executions(profile(**entry))[CPU][0].op_end_rel_micros == 0
    entry["memory_execs"] = [{"memory_micros": 1001}]
    assert executions(profile(**entry))[CPU][0].op_end_rel_micros == 1


def test_a_gpu_has_kernels_allocations_and_devices_without_times() -> None:
    entry = {
        "run_count": 1,
        "all_start_micros": 900,
        "latest_end_micros": 1100,
        "cpu_execs": {GPU: times((1000, 5))},
        "accelerator_execs": {STREAM: times((1003, 40), (1050, 1))},
        "devices": [name.encode() for name in (GPU, STREAM, COPY, "/host:cpu")],
        "memory_execs": [{"memory_micros": 1005, "accelerator_temp_bytes": 8, "requested_bytes": 8, "peak_bytes": 8}],
        "allocations": [{"alloc_micros": 1001, "alloc_bytes": 64}, {"alloc_micros": 1004, "alloc_bytes": -64}],
    }
    entry["memory_execs"][0]["allocator_bytes_in_use"] = 4096
    stats = executions(profile(GPU, **entry))
    (allocator,) = stats[GPU][0].memory
    assert (allocator.allocator_name, allocator.total_bytes, allocator.allocator_bytes_in_use) == ("GPU", 0, 4096)
    assert [record.alloc_bytes for record in allocator.allocation_records] == [64, -64]
    assert [(run.all_start_micros, run.op_end_rel_micros) for run in stats[STREAM]] == [(1003, 40), (1050, 1)]
    assert [(run.all_start_micros, run.op_end_rel_micros) for run in stats[COPY]] == [(900, 200), (0, 0)]
    assert [run.all_start_micros for run in stats["/host:cpu"]] == [0]


def test_inputs_and_attributes_of_nodes_are_rebuilt() -> None:
    message = profile()
    second_node = message.nodes[1]
    second_node.inputs.clear()
    second_node.inputs[0], second_node.inputs[2] = 0, 1
    second_node.src_output_index[0] = 2
    second_node.src_output_index[1] = 0
    second_node.attrs["T"] = b"\x30\x01"
    second_node.shape.extend([2, -1])
    second_node.output_shapes[0].int64_values.extend([])
    second_node.output_shapes[1].int64_values.extend([4])
    rows = ProfileFile(message.SerializeToString(), "p").graph().to_pylist()
    node = NodeDef.FromString(rows[1]["node_def"])
    assert list(node.input) == ["a:2", "", "b"]
    assert node.attr["T"].type == 1
    assert [dim.size for dim in node.attr["shape"].shape.dim] == [2, -1]
    shapes = node.attr["_output_shapes"].list.shape
    assert [(shape.unknown_rank, len(shape.dim)) for shape in shapes] == [(True, 0), (False, 1)]


def test_types_operations_and_stacks_make_an_op_log() -> None:
    message = profile(**entry_of_run())
    message.has_trace = True
    message.id_to_string[1] = b"a.py"
    message.nodes[0].op_types.append(b"_trainable_variables")
    message.nodes[0].float_ops = 9
    message.nodes[1].trace.traces.add(file_id=1, lineno=4)
    rows = ProfileFile(message.SerializeToString(), "p").op_log()
    op_log = [(row["name"], row["float_ops"], row["types"], row["code"]) for row in rows["op_log"].to_pylist()]
    assert op_log == [("a", 9, ["_trainable_variables"], False), ("b", 0, [], True)]
    assert [(row["file"], row["line"]) for row in rows["frames"].to_pylist()] == [("a.py", 4)]


def test_miss_accelerator_stream_is_stored_with_the_first_step() -> None:
    message = profile(**entry_of_run())
    message.steps.append(5)
    message.miss_accelerator_stream = True
    file = ProfileFile(message.SerializeToString(), "p")
    assert [(step.number, step.accelerator) for step in file.steps()] == [(3, 1), (5, 0)]


Change = Callable[[ProfileProto], object]


def _impossible_entry(**changes: Any) -> Change:
    """Return a change that adds a further step, with an entry that no executions can give."""

    def change(message: ProfileProto) -> None:
        message.steps.append(5)
        message.nodes[0].execs[5].CopyFrom(ExecProfile(**entry_of_run(**changes)))

    return change


CONTRADICTION = "its devices, times and memory contradict each other"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda p: p.steps.append(-1), "below 0"),
        (lambda p: p.nodes[1].op_types.pop(), "its list of types lacks its own type"),
        (lambda p: setattr(p.nodes[0], "host_device", b"/host"), "its host_device does not fit its canonical_device"),
        (lambda p: p.nodes[0].execs.clear(), "it did not run on its device"),
        (lambda p: p.nodes[1].inputs.update({-1: 0}), "inputs have impossible positions"),
        (lambda p: p.nodes[1].inputs.update({1 << 30: 0}), "inputs have impossible positions"),
        (lambda p: p.nodes[1].src_output_index.update({0: -1}), "its input 'a':-1 cannot be named in a graph"),
        (lambda p: p.nodes[1].src_output_index.update({1: 0}), "has an output slot of node 1"),
        (lambda p: p.nodes[1].output_shapes[1 << 20].int64_values.append(1), "outputs have impossible positions"),
        (lambda p: p.nodes[0].attrs.update({"shape": b"\x3a\x04\x12\x02\x08\x03"}), "not those of its attributes"),
        (_impossible_entry(run_count=2), CONTRADICTION),
        (_impossible_entry(devices=[]), CONTRADICTION),
        (_impossible_entry(devices=[b"/host:cpu"]), CONTRADICTION),
        (_impossible_entry(devices=[CPU.encode(), GPU.encode()]), CONTRADICTION),
        (_impossible_entry(devices=[CPU.encode(), b"/HOST"]), CONTRADICTION),
        (_impossible_entry(memory_execs=[]), CONTRADICTION),
        (_impossible_entry(memory_execs=[{"memory_micros": 1009}]), "it ran for 5 µs, but its memory record says 9 µs"),
        (
            _impossible_entry(memory_execs=[{"memory_micros": 1005, "accelerator_temp_bytes": 1}]),
            "on another kind of device",
        ),
        (_impossible_entry(memory_execs=[{"memory_micros": 1005, "output_bytes": 1}]), "but no outputs"),
        (_impossible_entry(memory_execs=[{"memory_micros": 1005, "allocator_bytes_in_use": -1}]), CONTRADICTION),
        (_impossible_entry(all_start_micros=900), "on a device that it does not list"),
        (
            _impossible_entry(all_start_micros=2000, devices=[CPU.encode(), b"/host"]),
            "between its first start and its last end",
        ),
        (
            _impossible_entry(accelerator_execs={"/host": times((1, 1))}, devices=[CPU.encode(), b"/host"]),
            CONTRADICTION,
        ),
        (_impossible_entry(cpu_execs={CPU: {"times": [{"int64_values": [1000]}]}}), CONTRADICTION),
        (
            _impossible_entry(cpu_execs={}, run_count=0, memory_execs=[], allocations=[{"alloc_bytes": 1}]),
            CONTRADICTION,
        ),
    ],
)
def test_entries_that_no_executions_can_give_are_refused(change: Change, reason: str) -> None:
    message = profile(**entry_of_run())
    change(message)
    assert reason in refusal_text(message)
    assert "[not-representable]" in refusal_text(message)


def test_a_profile_with_miss_accelerator_stream_but_without_steps_is_refused() -> None:
    assert "lists no step" in refusal_text(ProfileProto(nodes=dict(profile().nodes), miss_accelerator_stream=True))


def test_a_name_with_a_colon_is_kept() -> None:
    message = profile(**entry_of_run())
    message.nodes[0].name = b"Iterator::Root:7"
    message.nodes[1].inputs.clear()
    message.nodes[1].src_output_index.clear()
    tables = StepTables()
    (step,) = ProfileFile(message.SerializeToString(), "p").steps()
    names = tables.rows(step)["names"].to_pylist()
    assert [row["text"] for row in names if row["kind"] == NODE] == [b"Iterator::Root:7"]
    message.nodes[0].name = COLON_SUBSTITUTE.encode()
    assert "replaces colons" in refusal_text(message)


def test_names_in_a_run_metadata_are_not_unescaped() -> None:
    names = [COLON_SUBSTITUTE.encode(), b"a:b"]
    imported_step = step(0, run_metadata(names), "p")
    assert imported_step is not None
    assert [row["text"] for row in StepTables().rows(imported_step)["names"].to_pylist() if row["kind"] == NODE] == [
        *(COLON_SUBSTITUTE.encode(), b"a"),
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda p: p.nodes.clear(), "is not a valid ProfileProto: it has no nodes"),
        (lambda p: setattr(p.nodes[1], "id", 7), "is not a valid ProfileProto: it has nodes without"),
        (lambda p: p.nodes[1].ClearField("op"), "is not a valid ProfileProto: it has nodes without"),
        (lambda p: setattr(p.nodes[1], "name", b"a"), "two nodes have the same name"),
        (lambda p: setattr(p.nodes[1], "name", b"\xff"), "not UTF-8"),
        (lambda p: p.nodes[1].inputs.update({1: 9}), "has node 9 as an input, which does not exist"),
        (lambda p: p.MergeFromString(b"\xa0\x06\x01"), "it has unknown fields"),
        (lambda p: p.steps.pop(), "ran in step 3, which the profile does not list"),
        (lambda p: p.nodes[0].trace.traces.add(file_id=4), "refers to text 4"),
    ],
)
def test_damaged_profiles_are_refused(change: Change, reason: str) -> None:
    message = profile(**entry_of_run())
    change(message)
    assert reason in refusal_text(message, BadFileError)


@pytest.mark.parametrize(
    "message",
    [
        GraphDef(node=[{"name": "a", "op": "Placeholder"}]),
        RunMetadata(step_stats={"dev_stats": [{"device": "d", "node_stats": [{"node_name": "a"}]}]}),
        OpLogProto(log_entries=[{"name": b"a", "float_ops": 1}]),
    ],
)
def test_other_files_are_refused(message: Any) -> None:
    with pytest.raises(BadFileError, match="p is not a valid ProfileProto"):
        ProfileFile(message.SerializeToString(), "p")
