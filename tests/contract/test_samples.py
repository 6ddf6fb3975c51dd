"""The decoders read the samples of make_samples.py as TensorFlow's own classes do."""

import json
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from tfprof.collector.decoders.decode import decoder
from tfprof.collector.decoders.graphdef import ATTRIBUTE_MAX, graph_nodes
from tfprof.collector.decoders.interner import Interner
from tfprof.collector.decoders.proto.graph_pb2 import GraphDef, NodeDef
from tfprof.collector.decoders.session_ops import HOST_DEVICE
from tfprof.collector.decoders.xspace import xspace
from tfprof.collector.store.devices import ITERATOR_DEVICE, PIPELINE_DEVICE
from tfprof.collector.store.output_signatures import decode
from tfprof.collector.store.schema import ALLOCATOR, DEVICE, LABEL, NODE, NONE_ID, OUTPUTS

DATA = Path(__file__).parent / "data"
STEPS = sorted(path.stem for path in DATA.glob("*.run_metadata"))


def _names(interner: Interner) -> dict[tuple[int, int], str]:
    return {
        (row["kind"], row["id"]): row["text"].decode() for row in interner.new_names().to_pylist() if row["kind"] < 4
    }


@pytest.mark.parametrize("kind", ["walker", "python"])
@pytest.mark.parametrize("step", STEPS)
def test_a_step_is_read_as_tensorflow_reads_it(step: str, kind: str) -> None:
    expected = json.loads((DATA / f"{step}.json").read_text())
    interner = Interner()
    data = (DATA / f"{step}.run_metadata").read_bytes()
    batch, _, ((row_count, base_ns, _, error),) = decoder(kind).run_metadata([data], [7], interner)
    ops = batch.to_pylist()
    outputs = [decode(interner.table.get(OUTPUTS, op["outputs"])) for op in ops if op["outputs"] != NONE_ID]
    names = _names(interner)
    start_us = [(base_ns + op["start_ns"]) // 1000 for op in ops]
    end_us = [(base_ns + op["start_ns"] + op["op_start_ns"] + op["op_end_ns"]) // 1000 for op in ops]
    assert error is None
    assert len(ops) == row_count
    assert {op["trace"] for op in ops} == {7}
    actual = {
        "devices": Counter(names[DEVICE, op["device"]] for op in ops),
        "names": sorted({names[NODE, op["node"]] for op in ops}),
        "base_ns": base_ns,
        "all_start_micros": sum(us + op["start_us_fix"] for us, op in zip(start_us, ops, strict=True)),
        "op_end_rel_micros": sum(
            end - start + op["end_us_fix"] for start, end, op in zip(start_us, end_us, ops, strict=True)
        ),
        "op_end_rel_nanos": sum(op["op_start_ns"] + op["op_end_ns"] for op in ops),
        "allocators": sorted({names[ALLOCATOR, op["allocator"]] for op in ops if op["allocator"] != NONE_ID}),
        "outputs": sum(map(len, outputs)),
        "dtypes": sum(signature[0].dtype for signature in outputs),
        "labels": sorted({names[LABEL, op["label"]] for op in ops if op["label"] != NONE_ID}),
    }
    sums = {name: sum(op[name] for op in ops) for name in expected if name in batch.schema.names and name not in actual}
    assert {**actual, **sums} == expected


@pytest.mark.parametrize("name", ["tf1", "tf2"])
def test_a_graph_keeps_every_node_and_no_large_constant(name: str) -> None:
    data = (DATA / f"{name}.graph").read_bytes()
    rows = graph_nodes(data, 2).to_pylist()
    nodes = GraphDef.FromString(data).node
    assert [(row["graph"], row["name"], row["op"], row["device"]) for row in rows] == [
        (2, node.name, node.op, node.device) for node in nodes
    ]
    for row, node in zip(rows, nodes, strict=True):
        stored = NodeDef.FromString(row["node_def"])
        if node.name == "large":
            assert "value" not in stored.attr
            assert len(row["node_def"]) < ATTRIBUTE_MAX
        else:
            assert stored == node


def _read_fit(name: str) -> tuple[list[dict[str, int]], list[list[int]], dict[tuple[int, int], str]]:
    """Return (executions, [start, duration] of each batch, names) of a fit of three batches."""
    spans = json.loads((DATA / f"{name}.spans.json").read_text())
    interner = Interner()
    session = xspace((DATA / f"{name}.xspace").read_bytes(), 0, 10, interner)
    assert session.step.rows == session.ops.num_rows
    return session.ops.to_pylist(), spans, _names(interner)


@pytest.mark.parametrize(("name", "exceptions"), [("keras3", {}), ("keras2", {"ReadVariableOp": 2, "Identity": 2})])
def test_every_op_of_a_fit_runs_once_per_batch(name: str, exceptions: dict[str, int]) -> None:
    ops, _, names = _read_fit(name)
    runs, beside = (
        Counter(names[NODE, op["node"]] for op in ops if names[DEVICE, op["device"]] == device.decode())
        for device in (HOST_DEVICE, PIPELINE_DEVICE)
    )
    assert beside["tf.data/mul"] >= 24  # the map function runs once for each of a batch's eight examples, in advance
    assert {node: count for node, count in runs.items() if count != 3} == exceptions
    assert {"IteratorGetNext"} < set(runs)
    assert not any(node.startswith("StatefulPartitionedCall") for node in runs)


@pytest.mark.parametrize("name", ["keras3", "keras2"])
def test_no_thread_is_busy_longer_than_all_batches_take(name: str) -> None:
    ops, spans, names = _read_fit(name)
    busy: dict[int, int] = defaultdict(int)
    for op in ops:
        if names[LABEL, op["label"]] != "IteratorGetNext":  # this op only waits for other threads
            busy[op["thread"]] += op["op_end_ns"]
    assert len(busy) > 2
    total_ns = spans[-1][0] + spans[-1][1] - spans[0][0]
    assert all(0 < ns <= total_ns for ns in busy.values())


def test_iterators_are_on_a_separate_device() -> None:
    ops, _, names = _read_fit("keras3")
    iterators = {names[NODE, op["node"]] for op in ops if names[DEVICE, op["device"]] == ITERATOR_DEVICE.decode()}
    assert iterators == {"Iterator::Root", "Iterator::Root::MapAndBatch", "Iterator::Root::MapAndBatch::TensorSlice"}
