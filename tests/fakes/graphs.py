"""Builds NodeDefs with shapes, and recorded outputs, for tests."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tfprof.collector.decoders.proto import graph_pb2
from tfprof.collector.flops.definitions import Definition, definitions
from tfprof.collector.flops.executed import EquivalentSteps, ExecutionRow, Sample
from tfprof.collector.store.output_signatures import OpOutput, encode

FLOAT, INT32, INT64, RESOURCE = 1, 3, 9, 20
#: Sizes of an output; None for an unknown rank.
Dims = tuple[int, ...] | None


def shape(dims: Dims) -> graph_pb2.TensorShapeProto:
    """Return a TensorShapeProto."""
    if dims is None:
        return graph_pb2.TensorShapeProto(unknown_rank=True)
    return graph_pb2.TensorShapeProto(dim=[graph_pb2.TensorShapeProto.Dim(size=size) for size in dims])


def _set(value: Any, what: Any) -> None:
    """Set an AttrValue from a Python value; a list has integers or strings."""
    if isinstance(what, bool):
        value.b = what
    elif isinstance(what, int):
        value.i = what
    elif isinstance(what, str):
        value.s = what.encode()
    elif what and isinstance(what[0], str):
        value.list.s.extend(text.encode() for text in what)
    else:
        value.list.i.extend(what)


def attributes(**values: Any) -> Mapping[str, Any]:
    """Return AttrValues by name."""
    node = graph_pb2.NodeDef()
    for name, what in values.items():
        _set(node.attr[name], what)
    return node.attr


def node(name: str, op: str, inputs: Sequence[str] = (), *outputs: Dims, **values: Any) -> graph_pb2.NodeDef:
    """Return a node with the shapes of its outputs.

    ``types`` are the DataTypes of an iterator's elements, ``dtype`` is the DataType of a
    placeholder.
    """
    made = graph_pb2.NodeDef(name=name, op=op, input=inputs)
    made.attr["_output_shapes"].list.shape.extend(map(shape, outputs))
    made.attr["output_types"].list.type.extend(values.pop("types", ()))
    made.attr["dtype"].type = values.pop("dtype", FLOAT)
    for key, what in values.items():
        _set(made.attr[key], what)
    return made


def const(name: str, *numbers: int, scalar: bool = False) -> graph_pb2.NodeDef:
    """Return a constant of int32."""
    made = node(name, "Const", (), () if scalar else (len(numbers),))
    dims = shape(() if scalar else (len(numbers),))
    tensor = graph_pb2.TensorProto(dtype=INT32, tensor_shape=dims, int_val=numbers)
    made.attr["value"].tensor = tensor.SerializeToString()
    return made


def read(*graphs: Iterable[graph_pb2.NodeDef]) -> list[Definition]:
    """Return the nodes of graphs 0, 1, … as the store returns them."""
    return definitions(
        (number, each.name, each.op, each.SerializeToString()) for number, nodes in enumerate(graphs) for each in nodes
    )


def signature(*outputs: Dims) -> bytes:
    """Return the signature of outputs of these shapes."""
    shapes = [None if dims is None else shape(dims).SerializeToString() for dims in outputs]
    return encode(OpOutput(slot, FLOAT, dims, True, True) for slot, dims in enumerate(shapes))


def row(name: str, *outputs: Dims, runs: int = 1, output_bytes: int = 0) -> ExecutionRow:
    """Return a node's outputs in one trace."""
    return ExecutionRow(name, signature(*outputs), output_bytes, runs)


def alike(traces: int, *rows: ExecutionRow) -> EquivalentSteps:
    """Return traces with the same rows."""
    return EquivalentSteps(traces, rows)


def sample(op: str, name: str = "n", inputs: str = "", *outputs: Dims) -> Sample:
    """Return an execution with the label that TensorFlow's executor gives it."""
    return Sample(f"[cpu 1.0MB 2.0MB] {name} = {op}({inputs})", signature(*outputs))
