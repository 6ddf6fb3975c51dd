"""The format `profile-proto`: a job as TensorFlow's ProfileProto.

It is as the TF profiler writes it for the same graph and traced steps.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from ..errors import FormatError, StoreError
from ..export.code_defs import CodeDefs
from ..flops.attributes import attributes
from ..proto.tfprof_log_pb2 import ExecProfile, PlainNode, ProfileNode, ProfileProto
from ..query.explanations import untraced_reason
from ..query.job_selection import Selection
from ..query.kind_selection import resolve_kinds
from ..query.profile import misses_streams, profile
from ..store.catalog import IMPORTED
from ..store.columns import column_list, flat, pc
from ..store.devices import host_device
from ..store.output_signatures import decode
from ..store.protocols import JobReader
from ..store.schema import NODE, OUTPUTS
from ..summaries.steps import rows_of_kinds
from ..tfviews.encoding import octets
from ..tfviews.entries import COLUMNS, Entry, MemoryRecord, Output, entries
from ..tfviews.nodes import Node, canonical_devices, interned_bytes, interned_texts, is_node
from ..tfviews.parity import Parity
from .request import Request

#: Approximate number of executions read at once; each takes half a kilobyte of memory.
PART_ROWS: Final = 50_000
_TRACE_COLUMNS: Final = ("trace", "kind", "key", "step", "base_ns", "accelerator", "duration_ns")

StepRange = tuple[int, int]


def pieces(request: Request) -> Iterator[bytes]:
    """Return the bytes of the file."""
    selection = request.selection
    return job_pieces(selection.jobs[0], selection.steps, selection.parity.compat, selection.kinds)


def job_pieces(
    job: JobReader, steps: StepRange | None = None, compat: str = "2.21", kinds: tuple[int, ...] | None = None
) -> Iterator[bytes]:
    """Return a serialized ProfileProto of ``job`` in pieces.

    It has the steps from ``steps[0]`` to ``steps[1]``, or all. ``kinds``: kinds of steps; None:
    all, or with ``steps`` the main kind of the job. ``compat``: 1.15 records which output an input
    comes from. Newer versions take the first one, unless the job was imported with others. Nodes
    are numbered in graph order, then in the order of their first execution. Operation counts are
    those of the TF profiler. Raises UsageError ``no-such-step``, ``no-such-kind``, StoreError
    ``no-data``.
    """
    return _pieces(_RecordedJob(job, steps, compat, kinds))


def exact_nodes(
    job: JobReader, steps: StepRange | None = None, compat: str = "2.21", kinds: tuple[int, ...] | None = None
) -> list[Node]:
    """Return the nodes of ``job`` with the TF profiler's facts.

    StoreError ``no-data`` if nothing was traced.
    """
    job_profile = profile(Selection((job,), steps, None, Parity(compat, exact=True), kinds), averaged=False)
    if job_profile is None:
        raise StoreError(untraced_reason(job), slug="no-data")
    return job_profile.nodes


def renumbered(traces: pa.Table, kinds: Sequence[int]) -> pa.Table:
    """Return ``traces`` with unique step numbers.

    Steps of the first of ``kinds`` keep their numbers. Each further kind is numbered after the last
    number of the kind before it.
    """
    first_kind = rows_of_kinds(traces, kinds[:1])
    last_step = pc.max(first_kind["step"]).as_py() if first_kind.num_rows else 0
    kinds = sorted(set(column_list(traces, "kind")) - set(column_list(first_kind, "kind")))
    parts = [first_kind]
    for kind in kinds:
        rows = rows_of_kinds(traces, (kind,))
        new_steps = pc.add(rows["step"], pa.scalar(last_step + 1, pa.uint64()))
        parts.append(rows.set_column(rows.schema.get_field_index("step"), "step", new_steps))
        last_step = pc.max(new_steps).as_py()
    return pa.concat_tables(parts)


class _RecordedJob:
    """The nodes and executions of a job in the selected traces.

    ``execution_counts``: number of executions by node id. ``graph``: names in graph order.
    ``signatures``: output signatures by id. ``has_input_slots``: whether the profile records from
    which output slot of its source each input comes.
    """

    def __init__(self, job: JobReader, steps: StepRange | None, compat: str, kinds: tuple[int, ...] | None) -> None:
        """Read ``job``; arguments and errors are those of `job_pieces`."""
        table = job.table("traces", _TRACE_COLUMNS)
        if kinds is not None or steps is not None:
            table = rows_of_kinds(table, resolve_kinds([(job, table)], kinds, separate_functions=False))
        if steps is not None:
            first, last = steps
            table = table.filter(pc.and_(pc.greater_equal(table["step"], first), pc.less_equal(table["step"], last)))
        self._traces = renumbered(table, resolve_kinds([(job, table)], None, separate_functions=False))
        numbers = flat(self._traces["trace"])
        self._executions = [
            table.filter(pc.is_in(table["trace"], value_set=numbers))
            for table in (job.table("ops", COLUMNS), job.table("allocations"), job.table("output_memory"))
        ]
        counts = pc.value_counts(flat(self._executions[0]["node"]))
        self.execution_counts = dict(
            zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True)
        )
        self._names = job.table("names")
        self._canonical_devices = canonical_devices(job.rollup())
        self.nodes = exact_nodes(job, steps, compat, kinds)
        known_names = {node.name for node in self.nodes}
        self.node_ids = {
            text: number for number, text in interned_texts(self._names, NODE).items() if text in known_names
        }
        self.graph = tuple(dict.fromkeys(column_list(job.table("graph_nodes", ["name"]), "name")))
        self.signatures = interned_bytes(self._names, OUTPUTS)
        self.steps = sorted(set(column_list(self._traces, "step")))
        self.has_code = any(column_list(job.table("op_log", ["code"]), "code"))
        self.misses_streams = misses_streams(self._traces)
        self.is_imported = job.info.state == IMPORTED
        self.has_input_slots = Parity(compat).reads_slots or job.info.has_input_slots

    def parts(self, order: Sequence[str]) -> Iterator[dict[str, dict[int, Entry]]]:
        """Yield the entries of the nodes in ``order``, several nodes at a time.

        A node that did not run has no entries.
        """
        names: list[str] = []
        executions = 0
        for name in order:
            names.append(name)
            executions += self.execution_counts.get(self.node_ids.get(name, -1), 0)
            if executions >= PART_ROWS:
                yield self._entries(names)
                names, executions = [], 0
        yield self._entries(names)

    def _entries(self, names: Sequence[str]) -> dict[str, dict[int, Entry]]:
        ids = pa.array([self.node_ids[name] for name in names if name in self.node_ids], pa.uint32())
        ops, allocations, outputs = (table.filter(pc.is_in(table["node"], value_set=ids)) for table in self._executions)
        node_entries = entries(ops, self._traces, self._names, self._canonical_devices, allocations, outputs)
        return {name: node_entries.get(name, {}) for name in names}


def _pieces(recorded: _RecordedJob) -> Iterator[bytes]:
    writer = _Writer(recorded)
    for part in recorded.parts(writer.order):
        yield writer.nodes(part).SerializeToString(deterministic=True)
    yield writer.job_fields(recorded).SerializeToString(deterministic=True)


class _Writer:
    """Makes the messages of nodes, numbered by ``order``."""

    def __init__(self, recorded: _RecordedJob) -> None:
        self._nodes_by_name = {node.name: node for node in recorded.nodes}
        self._has_input_slots = recorded.has_input_slots
        self._code_defs = CodeDefs(literal=recorded.is_imported)
        self._has_stacks = False
        self._signatures = recorded.signatures
        graph_names = frozenset(recorded.graph)
        executed_names = (name for name, number in recorded.node_ids.items() if number in recorded.execution_counts)
        self.order = [*recorded.graph, *(name for name in executed_names if name not in graph_names and is_node(name))]
        self._ids = {name: number for number, name in enumerate(self.order)}

    def nodes(self, part: Mapping[str, Mapping[int, Entry]]) -> Any:
        """Return a ProfileProto with only the nodes of ``part``."""
        message = ProfileProto()
        for name, by_step in part.items():
            number = self._ids[name]
            self._fill(message.nodes[number], self._nodes_by_name[name], number, by_step)
        return message

    def job_fields(self, recorded: _RecordedJob) -> Any:
        """Return a ProfileProto with all fields but the nodes."""
        message = ProfileProto(steps=recorded.steps)
        message.has_trace = self._has_stacks or recorded.has_code
        message.miss_accelerator_stream = recorded.misses_streams
        self._code_defs.fill_table(message.id_to_string)
        return message

    def _fill(self, message: ProfileNode, node: Node, number: int, by_step: Mapping[int, Entry]) -> None:
        facts = node.facts
        definition, node_attributes = PlainNode.FromString(facts.node_def), attributes(facts.node_def)
        device = next((name for name in node.devices if any(name in entry.devices for entry in by_step.values())), "")
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
        for step, entry in by_step.items():
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
