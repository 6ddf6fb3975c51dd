"""Splits a ProfileProto into graph, op log and traced steps.

The TF profiler would make the same profile from them.
"""

from collections.abc import Collection, Iterator
from typing import Any, Final

import pyarrow as pa

from ..decoders.columns import from_rows
from ..decoders.proto.graph_pb2 import AttrValue
from ..flops.attributes import OUTPUT_SHAPES, SHAPE, attributes
from ..proto.tensorflow_pb2 import RunMetadata
from ..proto.tfprof_log_pb2 import PlainGraph, PlainNode, ProfileNode, ProfileProto
from ..store.devices import GPU, host_device
from .files import BadFileError, NotRepresentableError, has_unknown_fields, parse, text_of
from .graph import nodes
from .split_entries import executions
from .stacks import ImportedRows, Stacks
from .steps import ImportedStep

#: Maximum position of an input or output. A profile with a higher one is refused.
POSITIONS_MAX: Final = 1 << 16


class ProfileFile:
    """The ProfileProto in ``data``.

    BadFileError if ``data`` is not one, NotRepresentableError if the store cannot represent it.
    """

    def __init__(self, data: bytes, path: str) -> None:
        self._path = path
        self._message = parse(data, ProfileProto, path)
        self._nodes: dict[int, ProfileNode] = dict(sorted(self._message.nodes.items()))
        self._check()

    def graph(self) -> pa.RecordBatch:
        """Return all nodes as rows of `graph_nodes`, including those that are not in a graph."""
        plain_graph = PlainGraph(node=[self._definition(node) for node in self._nodes.values()])
        return nodes(plain_graph.SerializeToString(), self._path)

    def op_log(self) -> ImportedRows:
        """Return the types, operations and stacks of the nodes, as rows by table."""
        stacks = Stacks(self._message.id_to_string, self._path)
        rows: list[tuple[Any, ...]] = []
        for node in self._nodes.values():
            name, has_code = text_of(node.name, self._path), node.HasField("trace")
            types = [
                text_of(text, self._path) for text in node.op_types if text not in (node.op, node.canonical_device)
            ]
            if has_code:
                stacks.add(name, node.trace)
            if has_code or types or node.float_ops:
                rows.append((0, name, node.float_ops, types, has_code and self._message.has_trace, []))
        return {"op_log": from_rows(rows, "op_log"), **stacks.rows()}

    def steps(self) -> Iterator[ImportedStep]:
        """Yield the steps in ascending order, each as a RunMetadata.

        The TF profiler would make the same step from it.
        """
        misses_streams = self._message.miss_accelerator_stream
        for number in sorted(set(self._message.steps)):
            message = RunMetadata()
            message.step_stats.SetInParent()
            devices: dict[str, Any] = {}
            for node in self._nodes.values():
                if number in node.execs:
                    for device, stats in executions(node, number, self._path):
                        if device not in devices:
                            devices[device] = message.step_stats.dev_stats.add(device=device)
                        devices[device].node_stats.append(stats)
            yield ImportedStep(
                number,
                message.SerializeToString(),
                message,
                self._path,
                GPU if misses_streams else 0,
                has_escaped_names=True,
            )
            misses_streams = False

    def _check(self) -> None:
        message, path = self._message, self._path
        if not self._nodes:
            raise BadFileError(f"{path} is not a valid ProfileProto: it has no nodes")
        if any(not node.name or not node.op or node.id != number for number, node in self._nodes.items()):
            raise BadFileError(
                f"{path} is not a valid ProfileProto: it has nodes without a name, a type or the right number"
            )
        if has_unknown_fields((message, *self._nodes.values())):
            raise BadFileError(f"{path} is not a valid ProfileProto: it has unknown fields")
        if len({node.name for node in self._nodes.values()}) < len(self._nodes):
            raise BadFileError(f"{path} is damaged: two nodes have the same name")
        if min(message.steps, default=0) < 0:
            raise NotRepresentableError(f"{path}: a step has the number {min(message.steps)}, which is below 0")
        if message.miss_accelerator_stream and not message.steps:
            raise NotRepresentableError(f"{path}: miss_accelerator_stream is set, but the profile lists no step")
        steps = frozenset(message.steps)
        for node in self._nodes.values():
            self._check_node(node, steps)

    def _check_node(self, node: ProfileNode, steps: Collection[int]) -> None:
        for text in (node.name, node.op):
            text_of(text, self._path)
        if node.op not in node.op_types:
            raise self._unrepresentable(node, "its list of types lacks its own type")
        if node.host_device != host_device(node.canonical_device):
            raise self._unrepresentable(node, "its host_device does not fit its canonical_device")
        if node.canonical_device and not any(node.canonical_device in entry.devices for entry in node.execs.values()):
            raise self._unrepresentable(node, "it did not run on its device")
        if unlisted_steps := [step for step in node.execs if step not in steps]:
            reason = f"{_name(node)} ran in step {unlisted_steps[0]}, which the profile does not list"
            raise BadFileError(f"{self._path} is damaged: {reason}")

    # -- nodes of the graph ------------------------------------------------------------------------

    def _definition(self, node: ProfileNode) -> Any:
        definition = PlainNode(name=node.name, op=node.op, input=self._inputs(node))
        for key, value in node.attrs.items():
            definition.attr[key] = value
        self._set_shapes(definition, node)
        return definition

    def _inputs(self, node: ProfileNode) -> list[bytes]:
        """Return the inputs in NodeDef syntax; a missing position is empty."""
        if node.inputs and not 0 <= min(node.inputs) <= max(node.inputs) < POSITIONS_MAX:
            raise self._unrepresentable(node, "its inputs have impossible positions")
        if other_sources := set(node.src_output_index) - set(node.inputs.values()):
            raise self._unrepresentable(
                node, f"it has an output slot of node {min(other_sources)}, which is not among its inputs"
            )
        return [self._input(node, position) for position in range(max(node.inputs, default=-1) + 1)]

    def _input(self, node: ProfileNode, position: int) -> bytes:
        if position not in node.inputs:
            return b""
        number = node.inputs[position]
        source = self._nodes.get(number)
        if source is None:
            raise BadFileError(
                f"{self._path} is damaged: {_name(node)} has node {number} as an input, which does not exist"
            )
        slot = node.src_output_index.get(number, 0)
        if slot < 0 or b":" in source.name:
            raise self._unrepresentable(node, f"its input {_name(source)}:{slot} cannot be named in a graph")
        escaped_name = b"^" * source.name.startswith(b"^") + source.name
        return b"%s:%d" % (escaped_name, slot) if slot else escaped_name

    def _set_shapes(self, definition: Any, node: ProfileNode) -> None:
        """Set the shapes of ``node`` as attributes of ``definition``, unless they are set.

        The TF profiler reads shapes from these attributes.
        """
        outputs = {slot: tuple(shape.int64_values) for slot, shape in node.output_shapes.items()}
        if outputs and not 0 <= min(outputs) <= max(outputs) < POSITIONS_MAX:
            raise self._unrepresentable(node, "its outputs have impossible positions")
        if node.shape and SHAPE not in definition.attr:
            definition.attr[SHAPE] = AttrValue(shape=_shape(node.shape)).SerializeToString()
        if outputs and OUTPUT_SHAPES not in definition.attr:
            value = AttrValue()
            for slot in range(max(outputs) + 1):
                value.list.shape.add(**_shape(outputs.get(slot, ())))
            definition.attr[OUTPUT_SHAPES] = value.SerializeToString()
        stored_attributes = attributes(definition.SerializeToString())
        if (
            stored_attributes.parameter_shape != tuple(node.shape)
            or dict(enumerate(stored_attributes.output_shapes)) != outputs
        ):
            raise self._unrepresentable(node, "its shapes are not those of its attributes")

    def _unrepresentable(self, node: ProfileNode, reason: str) -> NotRepresentableError:
        return NotRepresentableError(f"{self._path}: {_name(node)}: {reason}")


def _shape(sizes: Any) -> dict[str, Any]:
    return {"dim": [{"size": size} for size in sizes]} if sizes else {"unknown_rank": True}


def _name(node: ProfileNode) -> str:
    return repr(node.name.decode("utf-8", "replace"))
