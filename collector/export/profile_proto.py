"""A job as the files of TensorFlow's own tfprof: what its profiler would write of the same graph and traced steps."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from ..errors import FormatError, StoreError
from ..flops.attributes import attributes
from ..proto.tfprof_log_pb2 import ExecProfile, PlainNode, ProfileNode, ProfileProto
from ..query.kinds import of_kinds, resolved
from ..query.profile import misses_streams, profile
from ..query.required_facts import EVERYTHING
from ..render.explanations import untraced
from ..store import outputs as signatures
from ..store.columns import flat, listed, pc
from ..store.devices import host_device
from ..store.reader import Job
from ..store.schema import NODE, OUTPUTS
from ..tfviews.encoding import octets
from ..tfviews.entries import COLUMNS, Entry, MemoryRecord, Output, entries
from ..tfviews.nodes import COPY, NEVER, Node, canonical_devices, raw, texts
from ..tfviews.parity import Parity
from .code_defs import CodeDefs

#: Nodes with about so many executions are written at once: what is known of one takes half a kilobyte meanwhile.
PART_ROWS: Final = 50_000
_TRACES: Final = ("trace", "kind", "step", "base_ns", "accelerator", "duration_ns")

Steps = tuple[int, int]


def profile_proto(
    job: Job, steps: Steps | None = None, compat: str = "2.21", kinds: Sequence[int] | None = None
) -> Any:
    """Return the ProfileProto of ``pieces``."""
    return ProfileProto.FromString(b"".join(pieces(job, steps, compat, kinds)))


def pieces(
    job: Job, steps: Steps | None = None, compat: str = "2.21", kinds: Sequence[int] | None = None
) -> Iterator[bytes]:
    """Yield a serialised ProfileProto of ``job``, of its steps from ``steps[0]`` to ``steps[1]`` or of all, bit by bit.

    Nodes have numbers in the order of the graph, then in that of their first execution. Numbers of operations are
    those of tfprof. ``compat``: 1.15 tells which output an input is of, newer versions take the first. Steps of a second
    kind go on after the last of the first (``renumbered``). ``kinds``: of which kinds the steps are; None: of all, and of the
    one that the job is about where ``steps`` are named. Raises UsageError ``no-such-step``, ``no-such-kind``, StoreError ``no-data``.
    """
    table = job.table("traces", _TRACES)
    if kinds is not None or steps is not None:
        table = of_kinds(table, resolved([(job, table)], kinds))
    if steps is not None:
        table = table.filter(pc.and_(pc.greater_equal(table["step"], steps[0]), pc.less_equal(table["step"], steps[1])))
    traces = renumbered(table, resolved([(job, table)], None))
    recorded = _Recorded.of(job, traces)
    slots = compat == "1.15" or job.info.tells_slots
    writer = _Writer(exact_nodes(job, steps, compat, kinds), recorded, CodeDefs.of(job.info), slots=slots)
    for part in recorded.parts(writer.order):
        yield writer.nodes(part).SerializeToString(deterministic=True)
    yield writer.rest(traces, job.table("op_log", ["code"])).SerializeToString(deterministic=True)


def exact_nodes(
    job: Job, steps: Steps | None = None, compat: str = "2.21", kinds: Sequence[int] | None = None
) -> list[Node]:
    """Return the nodes of ``job`` with all that tfprof would know of them; StoreError ``no-data`` where nothing was traced."""
    found = profile(job, steps=steps, kinds=kinds, averaged=False, needs=EVERYTHING, parity=Parity(compat, exact=True))
    if found is None:
        raise StoreError(untraced(job), slug="no-data")
    return found.nodes


def renumbered(traces: pa.Table, kinds: Sequence[int]) -> pa.Table:
    """Return ``traces`` with steps that no two kinds share: those of ``kinds``, of one, keep their numbers, the others follow."""
    first = of_kinds(traces, kinds[:1])
    last = pc.max(first["step"]).as_py() if first.num_rows else 0
    kinds = sorted(set(listed(traces, "kind")) - set(listed(first, "kind")))
    parts = [first]
    for kind in kinds:
        other = traces.filter(pc.equal(traces["kind"], pa.scalar(kind, pa.uint16())))
        moved = pc.add(other["step"], pa.scalar(last + 1, pa.uint64()))
        parts.append(other.set_column(other.schema.get_field_index("step"), "step", moved))
        last = pc.max(moved).as_py()
    return pa.concat_tables(parts)


# -- what the store has --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Recorded:
    """The executions of a job in the traces that are asked for; ``rows``: how many, by id of the node."""

    ops: pa.Table
    traces: pa.Table
    names: pa.Table
    canonical: Mapping[int, int]
    allocations: pa.Table
    output_memory: pa.Table
    rows: Mapping[int, int]
    graph: tuple[str, ...]
    node_ids: Mapping[str, int]
    signatures: Mapping[int, bytes]

    @classmethod
    def of(cls, job: Job, traces: pa.Table) -> "_Recorded":
        """Read what ``job`` has of ``traces``."""
        numbers = flat(traces["trace"])
        ops, allocations, outputs = (
            table.filter(pc.is_in(table["trace"], value_set=numbers))
            for table in (job.table("ops", COLUMNS), job.table("allocations"), job.table("output_memory"))
        )
        counted = pc.value_counts(flat(ops["node"]))
        names = job.table("names")
        return cls(
            ops=ops,
            traces=traces,
            names=names,
            canonical=canonical_devices(job.rollup()),
            allocations=allocations,
            output_memory=outputs,
            rows=dict(zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True)),
            graph=tuple(dict.fromkeys(listed(job.table("graph_nodes", ["name"]), "name"))),
            node_ids={name: number for number, name in texts(names, NODE).items()},
            signatures=raw(names, OUTPUTS),
        )

    def parts(self, order: Sequence[str]) -> Iterator[dict[str, dict[int, Entry]]]:
        """Yield the entries of all nodes in ``order``, some nodes at once; nodes that did not run have none."""
        part: list[str] = []
        rows = 0
        for name in order:
            part.append(name)
            rows += self.rows.get(self.node_ids.get(name, -1), 0)
            if rows >= PART_ROWS:
                yield self._entries(part)
                part, rows = [], 0
        yield self._entries(part)

    def _entries(self, part: Sequence[str]) -> dict[str, dict[int, Entry]]:
        ids = pa.array([self.node_ids[name] for name in part if name in self.node_ids], pa.uint32())
        tables = (self.ops, self.allocations, self.output_memory)
        ops, allocations, outputs = (table.filter(pc.is_in(table["node"], value_set=ids)) for table in tables)
        found = entries(ops, self.traces, self.names, self.canonical, allocations, outputs)
        return {name: found.get(name, {}) for name in part}


# -- what is written of it -----------------------------------------------------------------------


class _Writer:
    """Makes the messages of the nodes ``known``, each by its number in ``order``."""

    def __init__(self, known: Sequence[Node], recorded: _Recorded, codes: CodeDefs, *, slots: bool) -> None:
        self._known = {node.name: node for node in known}
        self._slots = slots
        self._codes = codes
        self._stacks = False
        self._signatures = recorded.signatures
        in_graph = frozenset(recorded.graph)
        ran = (name for name, number in recorded.node_ids.items() if number in recorded.rows)
        self.order = [*recorded.graph, *(name for name in ran if name not in in_graph and _is_node(name))]
        self._ids = {name: number for number, name in enumerate(self.order)}

    def nodes(self, part: Mapping[str, Mapping[int, Entry]]) -> Any:
        """Return a ProfileProto of the nodes of ``part``, and of nothing else."""
        message = ProfileProto()
        for name, steps in part.items():
            number = self._ids[name]
            self._fill(message.nodes[number], self._known[name], number, steps)
        return message

    def rest(self, traces: pa.Table, op_log_rows: pa.Table) -> Any:
        """Return a ProfileProto of all but the nodes."""
        message = ProfileProto(steps=sorted(set(listed(traces, "step"))))
        message.has_trace = self._stacks or any(listed(op_log_rows, "code"))
        message.miss_accelerator_stream = misses_streams(traces)
        self._codes.put(message.id_to_string)
        return message

    def _fill(self, message: ProfileNode, node: Node, number: int, steps: Mapping[int, Entry]) -> None:
        facts = node.facts
        definition, known = PlainNode.FromString(facts.node_def), attributes(facts.node_def)
        device = next((one for one in node.devices if any(one in entry.devices for entry in steps.values())), "")
        message.id, message.name, message.op = number, octets(node.name), octets(node.op)
        message.op_types.extend(sorted(map(octets, {node.op, *facts.types, *filter(None, [device])})))
        message.canonical_device = octets(device)
        message.host_device = host_device(octets(device))
        message.float_ops = facts.float_ops
        message.shape.extend(known.parameter_shape)
        for slot, shape in enumerate(known.output_shapes):
            message.output_shapes[slot].int64_values.extend(shape)  # an empty one where the rank is not known
        for key, value in definition.attr.items():
            message.attrs[key] = value
        for position, (source, slot) in enumerate(zip(known.inputs, known.slots, strict=True)):
            if source in self._ids:
                message.inputs[position] = self._ids[source]
                message.src_output_index[self._ids[source]] = slot if self._slots else 0
        if facts.stack is not None:
            self._stacks = self._stacks or bool(facts.stack)
            message.trace.CopyFrom(self._codes.code(facts.stack))
        for step, entry in steps.items():
            self._fill_entry(message.execs[step], entry)

    def _fill_entry(self, message: ExecProfile, entry: Entry) -> None:
        _fill_times(message, entry)
        for record in entry.memory:
            made = message.memory_execs.add(
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
            for slot, (size, pointer) in self._put_out(record).items():
                made.output_memory[slot].bytes = size
                made.output_memory[slot].ptr = pointer

    def _put_out(self, record: MemoryRecord) -> Mapping[int, Output]:
        """Return what an execution put out: bytes that nobody knows the outputs of are of the first that was allocated.

        A profile without any would be none that tfprof could have written.
        """
        if record.output_memory or not record.output:
            return record.output_memory
        return {_allocated(self._signatures.get(record.outputs, b"")): (record.output, 0)}


@lru_cache(maxsize=1 << 12)
def _allocated(signature: bytes) -> int:
    """Return the first slot of an output signature that has memory of its own, 0 where it does not tell."""
    try:
        return next((output.slot for output in signatures.decode(signature) if output.allocated), 0)
    except FormatError:
        return 0


def _fill_times(message: ExecProfile, entry: Entry) -> None:
    message.run_count = entry.runs
    message.all_start_micros, message.latest_end_micros = entry.start_us, entry.end_us
    message.devices.extend(sorted(map(octets, entry.devices)))
    for devices, times in ((message.accelerator_execs, entry.accelerator), (message.cpu_execs, entry.cpu)):
        for device, pairs in times.items():
            to = devices[_text(device)].times
            for pair in pairs:
                to.add(int64_values=pair)
    for micros, size in entry.allocations:
        message.allocations.add(alloc_micros=micros, alloc_bytes=size)


def _is_node(name: str) -> bool:
    return name not in NEVER and COPY not in name


def _text(text: str) -> str:
    """Return ``text`` as a map's key takes it."""
    return octets(text).decode("utf-8", "replace")
