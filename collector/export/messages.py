"""Views as TensorFlow's messages, equal to those that the TF profiler returns."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..advice.report import Advice
from ..decoders.proto.graph_pb2 import TensorShapeProto
from ..proto.tfprof_output_pb2 import AdviceProto, GraphNodeProto, MultiGraphNodeProto, TFProfTensorProto
from ..tfviews.encoding import valid_utf8
from ..tfviews.nodes import TIMES, Node, Shape, Stats, rounded_quotient
from ..tfviews.op import ROOT, OpView
from ..tfviews.tensors import DOUBLE, FLOAT, STRING, Tensor, ValueLookup, no_value
from ..tfviews.tree import Branch, TreeView

#: Counter by field of GraphNodeProto and MultiGraphNodeProto. Each field has a counterpart for the
#: total, whose name begins with `total_`.
FIELDS: Final = {
    "exec_micros": "micros",
    "accelerator_exec_micros": "accelerator_micros",
    "cpu_exec_micros": "cpu_micros",
    "requested_bytes": "bytes",
    "peak_bytes": "peak_bytes",
    "residual_bytes": "residual_bytes",
    "output_bytes": "output_bytes",
    "parameters": "params",
    "float_ops": "float_ops",
}
_GRAPH_NODE_FIELDS: Final = {**FIELDS, "run_count": "runs"}


def _counter_fields(stats: Stats, fields: Mapping[str, str], time_unit: int, prefix: str = "") -> dict[str, Any]:
    """Return the counters of ``stats`` by field; times are in µs, of ``time_unit`` units each."""
    return {
        prefix + field: rounded_quotient(value, time_unit) if counter in TIMES else value
        for field, counter in fields.items()
        for value in (getattr(stats, counter),)
    }


def _shape(shape: Shape) -> Any:
    message = TensorShapeProto(unknown_rank=not shape)
    for size in shape:
        message.dim.add(size=size)
    return message


def _describe(message: Any, nodes: Iterable[Node]) -> None:
    """Fill in the devices and input shapes of ``nodes``."""
    for node in nodes:
        message.devices.extend(node.devices)
        for position, shape in enumerate(node.facts.input_shapes):
            message.input_shapes[position].CopyFrom(_shape(shape))


def graph_node(node: Node, time_unit: int = 1) -> Any:
    """Return a GraphNodeProto of a single node; its totals are its own numbers.

    ``time_unit``: the number of units of a time in Stats that make a µs, here and below.
    """
    numbers: dict[str, Any] = _counter_fields(node.stats, _GRAPH_NODE_FIELDS, time_unit)
    numbers |= _counter_fields(node.stats, _GRAPH_NODE_FIELDS, time_unit, "total_")
    message = GraphNodeProto(name=valid_utf8(node.name), total_definition_count=1, **numbers)
    _describe(message, [node])
    return message


def _branch_fields(branch: Branch, time_unit: int) -> dict[str, Any]:
    numbers = _counter_fields(branch.own, _GRAPH_NODE_FIELDS, time_unit)
    numbers |= _counter_fields(branch.total, _GRAPH_NODE_FIELDS, time_unit, "total_")
    return {"name": valid_utf8(branch.name), "total_definition_count": branch.definitions, **numbers}


def tensor_message(tensor: Tensor) -> Any:
    """Return a TFProfTensorProto."""
    message = TFProfTensorProto(dtype=tensor.dtype)
    suffix = "str" if tensor.dtype == STRING else "double" if tensor.dtype in (FLOAT, DOUBLE) else "int64"
    getattr(message, f"value_{suffix}").extend(tensor.values())
    return message


def tree_message(view: TreeView, values: ValueLookup = no_value, *, time_unit: int = 1) -> Any:
    """Return the scope or the graph view as a GraphNodeProto, with shown entries as children.

    ``values`` looks up the value of a variable.
    """
    root = GraphNodeProto(**_branch_fields(view.root, time_unit))
    pending = [(view.root, root)]
    while pending:
        branch, message = pending.pop()
        _describe(message, branch.nodes)
        value = values(branch.name)
        if value is not None:
            message.tensor_value.CopyFrom(tensor_message(value))
        pending.extend((child, message.children.add(**_branch_fields(child, time_unit))) for child in branch.children)
    return root


def code_message(view: TreeView, *, time_unit: int = 1) -> Any:
    """Return the code view as a MultiGraphNodeProto, with callees as children."""
    root = MultiGraphNodeProto(**_call_fields(view.root, time_unit))
    pending = [(view.root, root)]
    while pending:
        branch, message = pending.pop()
        message.graph_nodes.extend(graph_node(node, time_unit) for node in branch.nodes)
        pending.extend((child, message.children.add(**_call_fields(child, time_unit))) for child in branch.children)
    return root


def _call_fields(branch: Branch, time_unit: int) -> dict[str, Any]:
    return {
        "name": valid_utf8(branch.name),
        **_counter_fields(branch.own, FIELDS, time_unit),
        **_counter_fields(branch.total, FIELDS, time_unit, "total_"),
    }


def op_message(view: OpView, *, time_unit: int = 1) -> Any:
    """Return the op view as a MultiGraphNodeProto.

    It is a chain: each entry is the child of the entry before it.
    """
    totals = _counter_fields(view.total, FIELDS, time_unit, "total_")
    root = message = MultiGraphNodeProto(name=ROOT, **totals)
    for entry in view.entries:
        numbers = _counter_fields(entry.own, FIELDS, time_unit)
        numbers |= _counter_fields(entry.running_total, FIELDS, time_unit, "total_")
        message = message.children.add(name=valid_utf8(entry.name), **numbers)
        message.graph_nodes.extend(graph_node(node, time_unit) for node in entry.nodes)
    return root


def advice_message(advice: Iterable[Advice]) -> Any:
    """Return an AdviceProto, including checkers without findings."""
    message = AdviceProto()
    for checker, reports, _ in advice:
        message.checkers[checker.name].reports.extend(valid_utf8(report.text) for report in reports)
    return message
