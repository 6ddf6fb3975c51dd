"""Op executions from the events of a profiler session.

Tests collector/decoders/calls.py.
"""

from typing import Any

import pytest
from fakes.xspaces import BEGAN_NS, Plane, opened
from tfprof.collector.decoders.session_ops import HOST_DEVICE, Execution, executions
from tfprof.collector.store.devices import ITERATOR_DEVICE, PIPELINE_DEVICE
from tfprof.formats import layout


def _read(*planes: Plane, began_ns: int = BEGAN_NS, started_ns: int = 0) -> list[Execution]:
    return list(executions(opened(*planes, began_ns=began_ns), started_ns))


def _own_us(rows: list[Execution]) -> dict[str, float]:
    return {row.node.decode(): row.own_ns / 1000 for row in rows}


@pytest.mark.parametrize(
    ("event", "node", "label"),
    [
        (b"dense/MatMul:MatMul", b"dense/MatMul", b"MatMul"),
        (b"StatefulPartitionedCall/dense/MatMul:_MklMatMul", b"dense/MatMul", b"_MklMatMul"),
        (b"StatefulPartitionedCall/PartitionedCall_3/a:Mul", b"a", b"Mul"),
        (
            b"StatefulPartitionedCall/gradients/StatefulPartitionedCall/a:Mul",
            b"gradients/StatefulPartitionedCall/a",
            b"Mul",
        ),
        (b"EagerLocalExecute: AddV2", b"AddV2", b"AddV2"),
    ],
)
def test_events_named_after_a_node_are_ops(event: bytes, node: bytes, label: bytes) -> None:
    (row,) = _read(Plane().line((event, 10, 30), thread=(5 << 32) + 9))
    assert row[:6] == (HOST_DEVICE, node, label, 9, BEGAN_NS + 10_000, 20_000)


@pytest.mark.parametrize(
    "event",
    [
        b"ThreadpoolListener::Record",
        b"ExecutorState::Process",
        b"EagerExecute",
        b"EagerKernelExecute",
        b"KernelAndDeviceFunc::Run",
        b"EagerLocalExecute: __inference_train_function_468",
        b"train",
        b"a:b",
        b"StatefulPartitionedCall:StatefulPartitionedCall",
        b"while:While",
        b"",
    ],
)
def test_events_of_the_runtime_are_not_ops(event: bytes) -> None:
    assert _read(Plane().line((event, 10, 30))) == []


def test_the_time_of_a_nested_op_is_not_counted_twice() -> None:
    rows = _read(Plane().line((b"outer:MapDefun", 0, 100), (b"a:Mul", 10, 30), (b"b:Mul", 40, 90), (b"c:Mul", 45, 50)))
    assert _own_us(rows) == {"outer": 30, "a": 20, "b": 45, "c": 5}


def test_ops_of_other_threads_are_not_nested() -> None:
    plane = Plane().line((b"outer:MapDefun", 0, 100), thread=1).line((b"a:Mul", 10, 30), thread=2)
    assert _own_us(_read(plane)) == {"outer": 100, "a": 20}


def test_an_eager_call_is_an_op_unless_its_op_has_an_event() -> None:
    plane = Plane().line(
        (b"EagerLocalExecute: MatMul", 0, 100), (b"MatMul:MatMul", 10, 90), (b"EagerLocalExecute: Fill", 200, 220)
    )
    assert _own_us(_read(plane)) == {"MatMul": 80, "Fill": 20}


def test_the_time_of_nested_eager_calls_is_subtracted_from_the_enclosing_op() -> None:
    plane = Plane().line((b"outer:PyFunc", 0, 100), (b"EagerLocalExecute: MatMul", 10, 60), (b"MatMul:MatMul", 20, 50))
    assert _own_us(_read(plane)) == {"outer": 70, "MatMul": 30}


def test_iterators_have_their_own_device_and_time() -> None:
    rows = _read(
        Plane().line(
            (b"Iterator::Root", 0, 100), (b"Iterator::Root::Map", 10, 90), (b"Iterator::Root::Map::Range", 20, 30)
        )
    )
    assert {row.device for row in rows} == {ITERATOR_DEVICE}
    assert {row.label for row in rows} == {b"tf.data"}
    assert _own_us(rows) == {"Iterator::Root": 20, "Iterator::Root::Map": 70, "Iterator::Root::Map::Range": 10}


def _async_start(at: int, link: int, name: bytes = b"next", kind: bytes = b"IteratorGetNext") -> tuple:
    stats = {b"name": name, b"kernel_type": kind, b"step_id": 3, b"_p": link}
    return b"ExecutorState::ProcessAsync::Start", at, at + 1, stats


def _async_done(at: int, link: int, name: bytes = b"next", kind: bytes = b"IteratorGetNext") -> tuple:
    return (
        b"ExecutorState::ProcessAsync::Done",
        at,
        at + 40,
        {b"name": name, b"kernel_type": kind, b"step_id": 3, b"_c": link},
    )


def test_an_asynchronous_op_lasts_from_its_start_to_its_callback() -> None:
    plane = Plane().line(_async_start(10, 1), _async_start(200, 2), thread=1)
    plane.line(_async_done(150, 1), _async_done(230, 2), thread=2)
    assert [row[1:6] for row in _read(plane)] == [
        (b"next", b"IteratorGetNext", 1, BEGAN_NS + 10_000, 140_000),
        (b"next", b"IteratorGetNext", 1, BEGAN_NS + 200_000, 30_000),
    ]


def test_an_iterator_whose_callback_is_not_recorded_ends_with_its_batch() -> None:
    batch = (b"IteratorGetNextOp::DoCompute", 20, 90, {b"id": 3, b"element_size": 640})
    ((*_, own_ns, memory, _call),) = _read(Plane().line(_async_start(10, 1), thread=1).line(batch, thread=2))
    assert (own_ns, memory.output) == (80_000, 640)


def test_the_dispatch_of_an_asynchronous_op_is_part_of_it() -> None:
    plane = Plane().line(
        (b"next:IteratorGetNext", 9, 14), _async_start(10, 1), (b"next:IteratorGetNext", 199, 204), _async_start(200, 2)
    )
    plane.line(_async_done(150, 1), _async_done(230, 2), thread=2)
    assert [row.own_ns for row in _read(plane)] == [140_000, 30_000]


def test_the_work_of_a_collective_op_is_part_of_it_with_its_memory() -> None:
    reduce = {"name": b"reduce", "kind": b"CollectiveReduceV2"}
    plane = Plane().line((b"reduce:CollectiveReduceV2", 9, 14), _async_start(10, 1, **reduce), thread=1)
    work = (b"reduce:CollectiveReduceV2", 50, 90), _allocation(b"MemoryAllocation", 60, 7, 1)
    plane.line(*work, thread=2).line(_async_done(95, 1, **reduce), thread=3)
    ((node, own_ns, memory),) = [(row.node, row.own_ns, row.memory) for row in _read(plane)]
    assert (node, own_ns, memory.total) == (b"reduce", 85_000, 7)


def test_an_eager_call_of_an_op_that_is_asynchronous_elsewhere_is_an_op() -> None:
    plane = Plane().line(_async_start(10, 1, name=b"IteratorGetNext")).line(_async_done(50, 1, name=b"IteratorGetNext"))
    plane.line((b"EagerLocalExecute: IteratorGetNext", 100, 120), thread=3)
    assert [row.own_ns for row in _read(plane)] == [20_000, 40_000]


def test_asynchronous_calls_of_functions_and_unfinished_ops_are_left_out() -> None:
    call = {"name": b"call", "kind": b"StatefulPartitionedCall"}
    plane = Plane().line(_async_start(10, 1), _async_start(20, 2, **call))
    plane.line(_async_done(90, 2, **call), _async_done(95, 7))
    assert _read(plane) == []


def _allocation(
    name: bytes, at: int, size: int, address: int, *, allocator: bytes = b"GPU_0_bfc", in_use: int = 0
) -> tuple:
    stats = {b"allocation_bytes": size, b"addr": address, b"allocator_name": allocator, b"bytes_allocated": in_use}
    return name, at, at, stats


def test_memory_belongs_to_the_innermost_op() -> None:
    allocation, deallocation = b"MemoryAllocation", b"MemoryDeallocation"
    plane = Plane().line(
        _allocation(allocation, 1, 999, 1),
        (b"outer:Conv2D", 10, 100),
        _allocation(allocation, 20, 100, 2, in_use=500),
        _allocation(deallocation, 25, 50, 77),
        (b"inner:Mul", 30, 40),
        _allocation(allocation, 35, 7, 3, allocator=b"cpu", in_use=900),
        _allocation(allocation, 50, 60, 4, in_use=400),
        _allocation(deallocation, 60, 100, 2),
        _allocation(allocation, 70, 10, 5),
    )
    memory = {row.node: row.memory for row in _read(plane)}
    outer, inner = memory[b"outer"], memory[b"inner"]
    assert (outer.allocator, outer.total, outer.peak, outer.live, outer.in_use) == (b"GPU_0_bfc", 170, 160, 70, 500)
    assert (inner.allocator, inner.total, inner.peak, inner.live, inner.in_use) == (b"cpu", 7, 7, 7, 0)


def test_requested_bytes_replace_unknown_allocated_bytes() -> None:
    unknown = {b"requested_bytes": 40, b"addr": 1, b"allocator_name": b"cpu"}
    rounded = {b"requested_bytes": 40, b"allocation_bytes": 64, b"addr": 1}
    plane = Plane().line(
        (b"a:Mul", 10, 20),
        (b"MemoryAllocation", 11, 11, {**unknown, b"allocation_bytes": 0}),
        (b"MemoryDeallocation", 12, 12, {b"addr": 1}),
        (b"b:Mul", 30, 40),
        (b"MemoryAllocation", 31, 31, rounded),
    )
    memory = {row.node: row.memory for row in _read(plane)}
    assert (memory[b"a"].total, memory[b"a"].peak, memory[b"a"].live) == (40, 40, 0)
    assert (memory[b"b"].total, memory[b"b"].peak, memory[b"b"].live) == (64, 64, 64)


def test_kernels_have_the_name_of_their_op_and_the_device_stream_all() -> None:
    plane = Plane(b"/device:GPU:1").line(
        (b"volta_sgemm", 10, 30, {b"tf_op": b"StatefulPartitionedCall/dense/MatMul:MatMul"}),
        (b"MemcpyH2D", 40, 41),
        name=b"Stream #14(Compute)",
        thread=14,
    )
    plane.line((b"dense/MatMul", 10, 30), name=b"TensorFlow Ops").line((b"fusion", 10, 30), name=b"XLA Ops")
    assert [row[:6] for row in _read(plane)] == [
        (b"/device:GPU:1/stream:all", b"dense/MatMul", b"volta_sgemm", 14, BEGAN_NS + 10_000, 20_000),
        (b"/device:GPU:1/stream:all", b"MemcpyH2D", b"MemcpyH2D", 14, BEGAN_NS + 40_000, 1000),
    ]


def test_a_device_without_streams_has_its_xla_ops() -> None:
    kernels = (b"while.2", 0, 9, {b"tf_op": b"while:While"}), (b"fusion.1", 0, 5), (b"conditional", 5, 8)
    plane = Plane(b"/device:TPU:0").line(*kernels, name=b"XLA Ops").line((b"step", 0, 9), name=b"Steps")
    assert [(row.device, row.node) for row in _read(plane)] == [(b"/device:TPU:0/stream:all", b"fusion.1")]


def test_a_kernel_may_have_its_op_in_the_metadata_of_its_events() -> None:
    plane = Plane(b"/device:TPU:0").line((b"fusion.1", 0, 5), (b"fusion.1", 5, 6), name=b"XLA Ops")
    (metadata,) = plane.plane.event_metadata.values()
    metadata.stats.add(metadata_id=plane._id("stat_metadata", b"tf_op"), str_value=b"dense/Relu:Relu")
    assert [(row.node, row.label) for row in _read(plane)] == [(b"dense/Relu", b"fusion.1")] * 2


@pytest.mark.parametrize("name", [b"/host:metadata", b"/host:CUPTI", b"/host:python-tracer", b"/device:CUSTOM:a", b""])
def test_other_planes_have_no_ops(name: bytes) -> None:
    assert _read(Plane(name).line((b"a:Mul", 0, 5), name=b"Stream #1")) == []


def test_times_of_lines_are_relative_to_the_start_of_the_session_or_real_times() -> None:
    event = (b"a:Mul", 5, 6)
    assert _read(Plane().line(event, start_ns=300))[0].start_ns == BEGAN_NS + 5300
    assert _read(Plane().line(event, start_ns=BEGAN_NS + 300))[0].start_ns == BEGAN_NS + 5300
    assert _read(Plane().line(event, start_ns=300), began_ns=0, started_ns=BEGAN_NS + 1)[0].start_ns == BEGAN_NS + 5301


OWN, OTHER = 0x52, 0x64


def _call(number: int, *ops: str, start: int = 0) -> list[tuple[object, ...]]:
    """Return the events of a thread of TensorFlow that ran the ``ops`` of a call."""
    process = (b"ExecutorState::Process", start, start + 50, {b"id": number})
    return [process, *((f"{op}:Mul".encode(), start + 2 * at, start + 2 * at + 1) for at, op in enumerate(ops))]


def _ops_of_step(caller: int, *other_events: tuple[object, ...], has_regions: bool = True) -> set[str]:
    """Return the ops that belong to the step of thread ``caller``.

    The threads OWN and OTHER call functions at the same time. ``other_events`` are further events
    of thread 11. ``has_regions``: the threads 7 and 8 have `StartRegion` events.
    """
    regions = [(b"ThreadpoolListener::StartRegion", 0, 0)] * has_regions
    plane = Plane()
    plane.line((b"FunctionRun", 10, 90, {b"id": 1}), (b"Mine:Mul", 5, 6), name=b"python", thread=OWN)
    plane.line((b"FunctionRun", 20, 95, {b"id": 2}), name=b"python", thread=OTHER)
    plane.line(*regions, *_call(1, "a", start=12), (b"inner", 13, 14), *_call(2, "b", start=70), thread=7)
    plane.line((b"FunctionRun", 31, 39, {b"id": 3}), *regions, *_call(1, start=30), thread=8)
    plane.line(*_call(3, "called", start=32), *_call(9, "under_way", start=85), thread=9)
    data = (b"InstantiatedCapturedFunction::Run", 1, 99, {b"id": 4})
    plane.line(data, *_call(4, "mapped", start=2), name=b"tf_data_private_threadpool/3", thread=10)
    plane.line((b"before:Mul", 1, 2), (b"after:Mul", 40, 41), *other_events, thread=11)
    rows = executions(opened(plane), 0, caller)
    return {row.node.decode() for row in rows}


def test_ops_of_calls_by_another_thread_do_not_belong_to_the_step() -> None:
    all_ops = {"Mine", "a", "b", "called", "under_way", "tf.data/mapped", "before", "after"}
    assert _ops_of_step(0) == all_ops, "the step does not name its thread"
    assert _ops_of_step(0x70) == all_ops, "the session has no events of the step's thread"
    assert _ops_of_step(OWN) == {"Mine", "a", "called", "tf.data/mapped"}
    assert _ops_of_step(OTHER) == {"Mine", "b", "tf.data/mapped"}
    assert _ops_of_step(OWN, has_regions=False) == {"Mine", "a", "called", "tf.data/mapped", "after"}


def test_ops_of_functions_that_tf_data_calls_have_a_device_of_their_own() -> None:
    plane = Plane().line((b"FunctionRun", 10, 90, {b"id": 1}), *_call(1, "own", start=12), thread=OWN)
    data = (b"InstantiatedCapturedFunction::RunAsync", 1, 2, {b"id": 4})
    inner = (b"FunctionRun", 34, 35, {b"id": 5})
    plane.line(data, name=b"tf_data_iterator_resource/1", thread=7)
    plane.line(*_call(4, "mapped", start=32), inner, *_call(1, "after_a_batch", start=92), name=b"tf_Compute", thread=8)
    plane.line(*_call(5, "called_by_mapped", start=36), name=b"tf_Compute", thread=9)
    in_progress = *_call(9, "begun_before", start=3), (b"unseen:Mul", 80, 81)
    plane.line(*in_progress, name=b"tf_data_private_threadpool/3", thread=10)
    devices = {row.node: row.device for row in executions(opened(plane), 0, OWN)}
    beside = {f"tf.data/{name}".encode() for name in ("mapped", "called_by_mapped", "begun_before", "unseen")}
    assert {node for node, device in devices.items() if device == PIPELINE_DEVICE} == beside
    assert {node for node, device in devices.items() if device == HOST_DEVICE} == {b"own", b"after_a_batch"}


def test_memory_of_the_input_pipeline_belongs_to_its_ops() -> None:
    def allocation(call: int, at: int, op: bytes = b"MatMul") -> tuple[object, ...]:
        stats = {b"requested_bytes": 8, b"addr": call, b"id": call, **({b"tf_op": op} if op else {})}
        return b"MemoryAllocation", at, at, stats

    plane = Plane().line((b"FunctionRun", 10, 90, {b"id": 1}), *_call(1, "MatMul", start=12), allocation(1, 13))
    plane.line((b"InstantiatedCapturedFunction::Run", 1, 99, {b"id": 4}), allocation(4, 14), thread=8)
    plane.line(allocation(9, 15), allocation(9, 16, b""), name=b"tf_data_private_threadpool/3", thread=9)
    memory: list[Any] = []
    list(executions(opened(plane), 0, memory=memory))
    assert [event.node for event in memory] == [b"MatMul", b"tf.data/MatMul", b"tf.data/MatMul", b""]


def test_a_call_in_progress_belongs_to_another_thread_if_other_threads_call_functions() -> None:
    plane = Plane().line((b"FunctionRun", 10, 90, {b"id": 1}), name=b"python", thread=OWN)
    plane.line(*_call(1, "a", start=12), *_call(2, "b", start=70))
    ops_alone, ops_beside_others = (
        list(executions(opened(plane), 0, OWN | flag)) for flag in (0, layout.XSPACE_OTHER_THREADS)
    )
    assert [row.node for row in ops_alone] == [b"a", b"b"]
    assert [row.node for row in ops_beside_others] == [b"a"]


def test_an_op_outside_of_a_recorded_executor_gets_its_call_from_the_next_propagate_event() -> None:
    plane = Plane().line((b"FunctionRun", 10, 90, {b"id": 1}), name=b"python", thread=OWN)
    plane.line((b"FunctionRun", 11, 95, {b"id": 2}), name=b"python", thread=OTHER)
    region = (b"ThreadpoolListener::StartRegion", 20, 20)
    for call, op in ((1, b"own:Mul"), (2, b"other:Mul"), (3, b"earlier:Mul")):
        propagation = (b"ExecutorPropagateOutputs", 31, 32, {b"id": call})
        plane.line(*_call(1, f"of_own_call{call}", start=-40), region, (op, 25, 30), propagation, thread=call)
    plane.line(region, (b"last:Mul", 25, 30), thread=4)
    plane.line(region, (b"Iterator::Map", 25, 30), name=b"tf_data_private_threadpool/3", thread=5)
    own_ops = {row.node for row in executions(opened(plane), 0, OWN)}
    assert own_ops == {b"of_own_call1", b"of_own_call2", b"of_own_call3", b"own", b"Iterator::Map"}
    other_ops = {row.node for row in executions(opened(plane), 0, OTHER)}
    assert other_ops == {b"other", b"Iterator::Map"}
