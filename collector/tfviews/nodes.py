"""Node statistics as the TF profiler counts them.

They are computed from the rollup and a graph's nodes.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ..store.columns import integers
from ..store.schema import DEVICE, NODE, NONE_ID
from .encoding import octets
from .parity import DEFAULT, Parity

#: Part of the name of a device with the kernels of an accelerator.
STREAM: Final = "stream:all"
#: Names that are nodes only if a graph has them.
_NOT_NODES: Final = frozenset({"RecvTensor", "_SOURCE"})
_COPY_MARK: Final = "MEMCPY"

_WRAP: Final = 1 << 64
_SIGN: Final = 1 << 63


def wrap_int64(number: int) -> int:
    """Return ``number`` wrapped to signed 64 bits, as the TF profiler's sums wrap."""
    return (number + _SIGN) % _WRAP - _SIGN


class Stats(NamedTuple):
    """Counters of a node or of several; sizes are in bytes.

    The names are those of the TF profiler's columns. Times are in µs as there, or in ns if
    `Parity.has_unit_times`.
    """

    runs: int = 0
    micros: int = 0
    accelerator_micros: int = 0
    cpu_micros: int = 0
    bytes: int = 0
    peak_bytes: int = 0
    residual_bytes: int = 0
    output_bytes: int = 0
    params: int = 0
    float_ops: int = 0

    def plus(self, other: "Stats") -> "Stats":
        """Return the sums of these counters and the ``other`` ones."""
        return Stats(*map(wrap_int64, map(int.__add__, self, other)))


#: The counters that are times.
TIMES: Final = ("micros", "accelerator_micros", "cpu_micros")
#: Counters of a node that did not run.
NO_STATS: Final = Stats()


#: Sizes of dimensions: -1 is an unknown size, the empty shape an unknown rank; a scalar is (1,), as
#: in the TF profiler.
Shape = tuple[int, ...]


def shape_text(shape: Shape) -> str:
    """Return dimensions joined by x, `unknown` for an unknown rank."""
    return "x".join(map(str, shape)) or "unknown"


class Frame(NamedTuple):
    """One frame of the Python stack that created a node.

    `start_line`: the function's first line, -1 if unknown; `text`: the source line, empty if
    unknown.
    """

    file: str
    line: int
    function: str
    start_line: int = -1
    text: str = ""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """Static facts about a node: from the graph, an op log, and the job's Python stacks."""

    node_def: bytes = b""
    parameter_shape: Shape = ()
    inputs: tuple[str, ...] = ()  # names of the source nodes, by input position, control inputs too
    input_shapes: tuple[Shape, ...] = ()  # as long as `inputs`
    output_shapes: tuple[Shape, ...] = ()
    data_format: str = ""
    types: tuple[str, ...] = ()  # besides op type and device, such as `_trainable_variables`
    float_ops: int = 0  # of one execution
    stack: tuple[Frame, ...] | None = None  # outermost first
    forward: str = ""  # name of the op that the node is a gradient of, if `gradients` finds it


NO_FACTS: Final = NodeFacts()


class Node(NamedTuple):
    """A node of one or several jobs, with its counters.

    `op`: its op type, named as in TensorFlow's NodeDef. `devices`: its canonical devices in lower
    case, empty if it ran on no CPU or GPU. `entries`: in how many of the selected traced steps the
    TF profiler has an entry of the node (`entries.Entry`); None if it has none in any step of the
    job. `in_graph`: whether a graph of the job has the node; also true if no graph is known.
    Otherwise TensorFlow added the node, or it ran outside of graphs.
    """

    name: str
    op: str
    devices: tuple[str, ...]
    stats: Stats
    facts: NodeFacts = NO_FACTS
    entries: int | None = None
    in_graph: bool = True

    @property
    def op_types(self) -> tuple[str, ...]:
        """The strings that `-account_type_regexes` matches, in bytewise order."""
        return tuple(sorted({self.op, *self.devices, *self.facts.types}))


def average(total: int, entries: int) -> int:
    """Divide ``total`` by ``entries`` like the TF profiler, as unsigned integers of 64 bits.

    A negative total of several entries wraps. Return 0 if ``entries`` is not positive.
    """
    if entries <= 0:
        return 0
    return total // entries if total >= 0 else wrap_int64((total % _WRAP) // entries)


class _Sums:
    """Running sums of one node while the rollup is folded.

    ``accelerator``: the time on streams. ``device_rows``: (device, counters) on other devices.
    """

    __slots__ = ("accelerator", "device_rows", "entries")

    def __init__(self) -> None:
        self.entries = 0
        self.accelerator = 0
        self.device_rows: list[tuple[int, list[int]]] = []

    def stats(self, devices: Mapping[int, str], device: str) -> Stats:
        """Return the sums over the rows of ``device`` and of accelerator streams."""
        rows = [fields for number, fields in self.device_rows if devices[number] == device]
        fields = rows[0] if len(rows) == 1 else [sum(column) for column in zip(_NO_FIELDS, *rows, strict=True)]
        runs, cpu, *sizes = fields
        return Stats(runs, self.accelerator + cpu, self.accelerator, cpu, *sizes)


_FIELDS: Final = ("runs", "sum_us", "requested_bytes", "peak_bytes", "residual_bytes", "output_bytes")
_NO_FIELDS: Final = (0,) * len(_FIELDS)
_TIME: Final = _FIELDS.index("sum_us")


def device_names(names: pa.Table) -> dict[int, str]:
    """Return the names of devices by id, in lower case like the TF profiler.

    Only ASCII letters change.
    """
    return {
        number: octets(text).lower().decode("utf-8", "surrogateescape")
        for number, text in interned_texts(names, DEVICE).items()
    }


def interned_bytes(names: pa.Table, kind: int) -> dict[int, bytes]:
    """Return the interned bytes of one kind by id."""
    rows = names.filter(pc.equal(names["kind"], pa.scalar(kind, pa.uint16())))
    ids: list[Any] = rows["id"].to_pylist()
    contents: list[Any] = rows["text"].to_pylist()
    return dict(zip(ids, contents, strict=True))


def stream_devices(names: pa.Table) -> list[int]:
    """Return the ids of the devices that have the kernels of a GPU."""
    return [number for number, name in device_names(names).items() if STREAM in name]


def interned_texts(names: pa.Table, kind: int) -> dict[int, str]:
    """Return the interned strings of one kind by id."""
    return {number: text.decode("utf-8", "surrogateescape") for number, text in interned_bytes(names, kind).items()}


def _fold(rollup: pa.Table, devices: Mapping[int, str], times: pa.Table | None) -> dict[int, _Sums]:
    """Return the sums by node; ``times``: the times of units instead of those in ``rollup``."""
    streams = {number for number, name in devices.items() if STREAM in name}
    unit_times = None if times is None else _by_unit(times)
    nodes: dict[int, _Sums] = {}
    columns = [integers(rollup[name]) for name in ("node", "device", "traces", *_FIELDS)]
    for node, device, traces, *fields in zip(*columns, strict=True):
        sums = nodes.get(node)
        if sums is None:
            sums = nodes[node] = _Sums()
        if unit_times is not None:
            fields[_TIME] = unit_times.get((node, device), 0)
        if device == NONE_ID:
            sums.entries = traces
        elif device in streams:
            sums.accelerator += fields[_TIME]
        else:
            sums.device_rows.append((device, fields))
    return nodes


def _by_unit(times: pa.Table) -> dict[tuple[int, int], int]:
    node, device, ns = (integers(times[name]) for name in ("node", "device", "ns"))
    return dict(zip(zip(node, device, strict=True), ns, strict=True))


def _ops(table: pa.Table) -> dict[str, str]:
    """Return the op type of each graph node by name.

    If several nodes have the same name, the first is used.
    """
    names: list[Any] = table["name"].to_pylist()
    ops: list[Any] = table["op"].to_pylist()
    return dict(zip(reversed(names), reversed(ops), strict=True))


def is_node(name: str) -> bool:
    """Return whether ``name`` is the name of a node, by the rules of the TF profiler."""
    return name not in _NOT_NODES and _COPY_MARK not in name


def canonical_devices(total: pa.Table) -> dict[int, int]:
    """Return the canonical device of each node in ``total`` (a ROLLUP).

    Both are ids; NONE_ID stands for no device.
    """
    rows = total.filter(pc.equal(total["device"], pa.scalar(NONE_ID, pa.uint32())))
    return dict(zip(integers(rows["node"]), integers(rows["canonical"]), strict=True))


def nodes_from_rollup(
    rollup: pa.Table,
    names: pa.Table,
    graph: pa.Table,
    op_types: Mapping[int, str] | None = None,
    *,
    facts: Mapping[str, NodeFacts] | None = None,
    total: pa.Table | None = None,
    times: pa.Table | None = None,
) -> list[Node]:
    """Return every node of a job in name order, with its sums over the selected steps.

    Parameters and float_ops are 0. ``rollup`` covers the selected steps, ``total`` the whole job
    (default: ``rollup``): op type and canonical device are those of the whole job. ``times``: the
    times of units (`JobReader.unit_times`), instead of those in ``rollup``. ``names`` and ``graph``
    have columns of NAMES and GRAPH_NODES. ``op_types``: the op types that ran, by node id, where
    they are known. They may differ from the graph: a fused Conv2D runs under the name of its last
    op, a Relu. For any other node, the op type is that in the graph; without a graph, it is the
    node's name.
    """
    devices = device_names(names)
    graph_ops, types, known_facts = _ops(graph), op_types or {}, facts or {}
    sums_by_node = _fold(rollup, devices, times)
    total = rollup if total is None else total
    canonical = canonical_devices(total)
    ran = set(total["node"].to_pylist())  # other names are only those of allocations
    nodes: dict[str, Node] = {}
    for number, name in interned_texts(names, NODE).items():
        if name not in graph_ops and not (number in ran and is_node(name)):
            continue
        device = devices.get(canonical.get(number, NONE_ID), "")
        sums = sums_by_node.get(number)
        stats = sums.stats(devices, device) if sums else NO_STATS
        op = types.get(number) or graph_ops.get(name, name)
        entries = (sums.entries if sums else 0) if number in canonical else None
        in_graph = name in graph_ops or not graph_ops
        node_facts = known_facts.get(name, NO_FACTS)
        nodes[name] = Node(name, op, (device,) if device else (), stats, node_facts, entries, in_graph)
    for name, op in graph_ops.items():
        if name not in nodes:
            nodes[name] = Node(name, op, (), NO_STATS, known_facts.get(name, NO_FACTS))
    return sorted(nodes.values(), key=name_bytes)


def merge_jobs(jobs: Sequence[Sequence[Node]]) -> list[Node]:
    """Merge the results of ``nodes_from_rollup`` for several jobs by name.

    Op type and static facts of a node are those of the first job that has them. A job without the
    node's graph may have the node's name as op type.
    """
    nodes: dict[str, Node] = {}
    for node in chain.from_iterable(jobs):
        earlier = nodes.get(node.name)
        nodes[node.name] = node if earlier is None else _merge_pair(earlier, node)
    return sorted(nodes.values(), key=name_bytes)


def _merge_pair(first: Node, second: Node) -> Node:
    counts = [entries for entries in (first.entries, second.entries) if entries is not None]
    devices = tuple(sorted({*first.devices, *second.devices}))
    facts = second.facts if first.facts is NO_FACTS else first.facts
    stats = first.stats.plus(second.stats)
    in_graph = first.in_graph or second.in_graph
    op = second.op if first.op == first.name else first.op
    return Node(first.name, op, devices, stats, facts, sum(counts) if counts else None, in_graph)


def rounded_quotient(number: int, divisor: int) -> int:
    """Return ``number`` divided by a positive ``divisor``, rounded to the nearest integer."""
    return (2 * number + divisor) // (2 * divisor)


def with_counts(
    nodes: Iterable[Node], *, steps: int = 1, averaged: bool = True, parity: Parity = DEFAULT
) -> list[Node]:
    """Return ``nodes`` with parameters and float_ops.

    ``averaged``: return averages over entries instead of sums; times of units are divided by
    ``steps``, the number of selected steps. If ``parity.counts_by_step``, the nodes have their
    float_ops already. Otherwise their float_ops are those of one execution, times the number of
    runs if the node ran.
    """
    counts_by_step, time_steps = parity.counts_by_step, steps if averaged and parity.has_unit_times else 0
    return [
        Node(
            node.name,
            node.op,
            node.devices,
            _final_stats(node, averaged=averaged, time_steps=time_steps, counts_by_step=counts_by_step),
            node.facts,
            node.entries,
            node.in_graph,
        )
        for node in nodes
    ]


def _final_stats(node: Node, *, averaged: bool, time_steps: int, counts_by_step: bool) -> Stats:
    stats, facts, entries = node.stats, node.facts, node.entries
    if averaged and entries is not None and entries != 1:
        positive = entries > 0  # in this usual case, `average` need not be called
        stats = Stats(*[n // entries if positive and n >= 0 else average(n, entries) for n in stats])
    if time_steps:
        accelerator = rounded_quotient(node.stats.accelerator_micros, time_steps)
        cpu = rounded_quotient(node.stats.cpu_micros, time_steps)
        stats = stats._replace(micros=accelerator + cpu, accelerator_micros=accelerator, cpu_micros=cpu)
    if facts is NO_FACTS:
        return stats
    if facts.parameter_shape:
        stats = stats._replace(params=parameters(facts.parameter_shape))
    if counts_by_step:
        return stats
    return stats._replace(float_ops=wrap_int64(facts.float_ops * (1 if entries is None else stats.runs)))


def name_bytes(node: Node) -> bytes:
    """Return the key by which nodes are sorted."""
    return octets(node.name)


def parameters(shape: Shape) -> int:
    """Return the number of elements; 0 if the shape is not fully known."""
    return 0 if not shape or min(shape) < 0 else wrap_int64(math.prod(shape))


def total_of(nodes: Iterable[Node]) -> Stats:
    """Return the sums over ``nodes``."""
    columns = zip(*(node.stats for node in nodes), strict=True)
    return Stats(*map(wrap_int64, map(sum, columns)))
