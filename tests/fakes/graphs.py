"""Builds NodeDefs with shapes, and recorded outputs, for tests."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tfprof.collector.decoders.proto import graph_pb2
from tfprof.collector.flops.definitions import Definition, definitions
from tfprof.collector.flops.executed import EquivalentSteps, ExecutionRow, SampleExecution
from tfprof.collector.store.output_signatures import OpOutput, encode

FLOAT, INT32, INT64, RESOURCE = 1, 3, 9, 20
#: Sizes of an output; None for an unknown rank.
Dims = tuple[int, ...] | None


def shape(dims: Dims) -> graph_pb2.TensorShapeProto:
    """Return a TensorShapeProto."""
    if dims is None:
        return graph_pb2.TensorShapeProto(unknown_rank=True)
    return graph_pb2.TensorShapeProto(dim=[graph_pb2.TensorShapeProto.Dim(size=size) for size in dims])


def _set(attribute: Any, value: Any) -> None:
    """Set an AttrValue from a Python value; a list has integers or strings."""
    if isinstance(value, bool):
        attribute.b = value
    elif isinstance(value, int):
        attribute.i = value
    elif isinstance(value, str):
        attribute.s = value.encode()
    elif value and isinstance(value[0], str):
        attribute.list.s.extend(text.encode() for text in value)
    else:
        attribute.list.i.extend(value)


def attributes(**values: Any) -> Mapping[str, Any]:
    """Return AttrValues by name."""
    node = graph_pb2.NodeDef()
    for name, value in values.items():
        _set(node.attr[name], value)
    return node.attr


def node(name: str, op: str, inputs: Sequence[str] = (), *outputs: Dims, **values: Any) -> graph_pb2.NodeDef:
    """Return a node with the shapes of its outputs.

    ``types`` are the DataTypes of an iterator's elements, ``dtype`` is the DataType of a
    placeholder.
    """
    node_def = graph_pb2.NodeDef(name=name, op=op, input=inputs)
    node_def.attr["_output_shapes"].list.shape.extend(map(shape, outputs))
    node_def.attr["output_types"].list.type.extend(values.pop("types", ()))
    node_def.attr["dtype"].type = values.pop("dtype", FLOAT)
    for key, value in values.items():
        _set(node_def.attr[key], value)
    return node_def


def const(name: str, *numbers: int, scalar: bool = False) -> graph_pb2.NodeDef:
    """Return a constant of int32."""
    node_def = node(name, "Const", (), () if scalar else (len(numbers),))
    dims = shape(() if scalar else (len(numbers),))
    tensor = graph_pb2.TensorProto(dtype=INT32, tensor_shape=dims, int_val=numbers)
    node_def.attr["value"].tensor = tensor.SerializeToString()
    return node_def


def definitions_of(*graphs: Iterable[graph_pb2.NodeDef]) -> list[Definition]:
    """Return the nodes of graphs 0, 1, … as the store returns them."""
    return definitions(
        (number, node.name, node.op, node.SerializeToString()) for number, nodes in enumerate(graphs) for node in nodes
    )


def signature(*outputs: Dims) -> bytes:
    """Return the signature of outputs of these shapes."""
    shapes = [None if dims is None else shape(dims).SerializeToString() for dims in outputs]
    return encode(OpOutput(slot, FLOAT, dims, True, True) for slot, dims in enumerate(shapes))


def row(name: str, *outputs: Dims, runs: int = 1, output_bytes: int = 0) -> ExecutionRow:
    """Return a node's outputs in one trace."""
    return ExecutionRow(name, signature(*outputs), output_bytes, runs)


def equivalent_steps(trace_count: int, *rows: ExecutionRow) -> EquivalentSteps:
    """Return traces with the same rows."""
    return EquivalentSteps(trace_count, rows)


def execution(op: str, name: str = "n", inputs: str = "", *outputs: Dims) -> SampleExecution:
    """Return an execution with the label that TensorFlow's executor gives it."""
    return SampleExecution(f"[cpu 1.0MB 2.0MB] {name} = {op}({inputs})", signature(*outputs))
