"""A job as a ProfileProto, as the TF profiler writes it for the same graph and traced steps."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

from ..errors import FormatError
from ..flops.attributes import attributes
from ..proto.tfprof_log_pb2 import ExecProfile, PlainNode, ProfileNode, ProfileProto
from ..store.devices import host_device
from ..store.output_signatures import decode
from ..tfviews.encoding import octets
from ..tfviews.entries import Entry, MemoryRecord, Output
from ..tfviews.nodes import Node, is_node
from .code_defs import CodeDefs


class ProfileSource(Protocol):
    """The nodes and executions of a profile (query.recorded_job.RecordedJob).

    ``execution_counts``: number of executions by node id. ``graph``: names in graph order.
    ``signatures``: output signatures by id. ``literal``: as for `CodeDefs`. ``has_input_slots``:
    whether the profile records from which output slot of its source each input comes.
    """

    nodes: Sequence[Node]
    steps: Sequence[int]
    graph: Sequence[str]
    node_ids: Mapping[str, int]
    execution_counts: Mapping[int, int]
    signatures: Mapping[int, bytes]
    has_code: bool
    misses_streams: bool
    literal: bool
    has_input_slots: bool

    def parts(self, order: Sequence[str]) -> Iterator[Mapping[str, Mapping[int, Entry]]]:
        """Yield the entries of the nodes in ``order``, several nodes at a time."""
        ...


def pieces(source: ProfileSource) -> Iterator[bytes]:
    """Yield a serialized ProfileProto in pieces.

    Nodes are numbered in graph order, then in the order of their first execution. Operation counts
    are those of the TF profiler.
    """
    writer = _Writer(source)
    for part in source.parts(writer.order):
        yield writer.nodes(part).SerializeToString(deterministic=True)
    yield writer.job_fields(source).SerializeToString(deterministic=True)


class _Writer:
    """Makes the messages of nodes, numbered by ``order``."""

    def __init__(self, source: ProfileSource) -> None:
        self._nodes_by_name = {node.name: node for node in source.nodes}
        self._has_input_slots = source.has_input_slots
        self._code_defs = CodeDefs(literal=source.literal)
        self._has_stacks = False
        self._signatures = source.signatures
        graph_names = frozenset(source.graph)
        executed_names = (name for name, number in source.node_ids.items() if number in source.execution_counts)
        self.order = [*source.graph, *(name for name in executed_names if name not in graph_names and is_node(name))]
        self._ids = {name: number for number, name in enumerate(self.order)}

    def nodes(self, part: Mapping[str, Mapping[int, Entry]]) -> Any:
        """Return a ProfileProto with only the nodes of ``part``."""
        message = ProfileProto()
        for name, entries in part.items():
            number = self._ids[name]
            self._fill(message.nodes[number], self._nodes_by_name[name], number, entries)
        return message

    def job_fields(self, source: ProfileSource) -> Any:
        """Return a ProfileProto with all fields but the nodes."""
        message = ProfileProto(steps=source.steps)
        message.has_trace = self._has_stacks or source.has_code
        message.miss_accelerator_stream = source.misses_streams
        self._code_defs.fill_table(message.id_to_string)
        return message

    def _fill(self, message: ProfileNode, node: Node, number: int, entries: Mapping[int, Entry]) -> None:
        facts = node.facts
        definition, node_attributes = PlainNode.FromString(facts.node_def), attributes(facts.node_def)
        device = next((name for name in node.devices if any(name in entry.devices for entry in entries.values())), "")
        message.id, message.name, message.op = number, octets(node.name), octets(node.op)
        message.op_types.extend(sorted(map(octets, {node.op, *facts.types, *filter(None, [device])})))
        message.canonical_device = octets(device)
        message.host_device = host_device(octets(device))
        message.float_ops = facts.float_ops
        message.shape.extend(node_attributes.parameter_shape)
        for slot, shape in enumerate(node_attributes.output_shapes):
            message.output_shapes[slot].int64_values.extend(shape)  # empty for an unknown rank
        for key, value in definition.attr.items():
            message.attrs[key] = value
        for position, (source, slot) in enumerate(zip(node_attributes.inputs, node_attributes.slots, strict=True)):
            if source in self._ids:
                message.inputs[position] = self._ids[source]
                message.src_output_index[self._ids[source]] = slot if self._has_input_slots else 0
        if facts.stack is not None:
            self._has_stacks = self._has_stacks or bool(facts.stack)
            message.trace.CopyFrom(self._code_defs.code_def(facts.stack))
        for step, entry in entries.items():
            self._fill_entry(message.execs[step], entry)

    def _fill_entry(self, message: ExecProfile, entry: Entry) -> None:
        _fill_times(message, entry)
        for record in entry.memory:
            exec_memory = message.memory_execs.add(
                memory_micros=record.micros,
                host_temp_bytes=record.host_temp,
                host_persistent_bytes=record.host_persistent,
                accelerator_temp_bytes=record.accelerator_temp,
                accelerator_persistent_bytes=record.accelerator_persistent,
                requested_bytes=record.requested,
                peak_bytes=record.peak,
                residual_bytes=record.residual,
                output_bytes=record.output,
                allocator_bytes_in_use=record.in_use,
            )
            for slot, (size, pointer) in self._output_memory(record).items():
                exec_memory.output_memory[slot].bytes = size
                exec_memory.output_memory[slot].ptr = pointer

    def _output_memory(self, record: MemoryRecord) -> Mapping[int, Output]:
        """Return the output memory of an execution by slot.

        If only the sum is known, the first allocated output gets it, since the TF profiler writes
        no output bytes without output memory.
        """
        if record.output_memory or not record.output:
            return record.output_memory
        return {_first_allocated_slot(self._signatures.get(record.outputs, b"")): (record.output, 0)}


@lru_cache(maxsize=1 << 12)
def _first_allocated_slot(signature: bytes) -> int:
    """Return the first slot of an output signature that has its own memory, 0 if unknown."""
    try:
        return next((output.slot for output in decode(signature) if output.allocated), 0)
    except FormatError:
        return 0


def _fill_times(message: ExecProfile, entry: Entry) -> None:
    message.run_count = entry.runs
    message.all_start_micros, message.latest_end_micros = entry.start_us, entry.end_us
    message.devices.extend(sorted(map(octets, entry.devices)))
    for devices, times in ((message.accelerator_execs, entry.accelerator), (message.cpu_execs, entry.cpu)):
        for device, pairs in times.items():
            device_times = devices[_map_key(device)].times
            for pair in pairs:
                device_times.add(int64_values=pair)
    for micros, size in entry.allocations:
        message.allocations.add(alloc_micros=micros, alloc_bytes=size)


def _map_key(text: str) -> str:
    """Return ``text`` as a valid key of a message's map."""
    return octets(text).decode("utf-8", "replace")
