"""Node statistics as TensorFlow's own profiler counts them: a fold of the rollup over a graph's nodes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from tfprof.collector.store.schema import DEVICE, NODE, NONE_ID

#: Part of the name of a device whose rows are kernels of an accelerator.
STREAM: Final = "stream:all"
#: Names that are no node of their own unless a graph says so.
NEVER: Final = frozenset({"RecvTensor", "_SOURCE"})
COPY: Final = "MEMCPY"

_WRAP: Final = 1 << 64
_SIGN: Final = 1 << 63


def signed(number: int) -> int:
    """Return what 64 bits hold of ``number``: tfprof's sums wrap."""
    return (number + _SIGN) % _WRAP - _SIGN


class Stats(NamedTuple):
    """Counters of a node or of several: times in µs, sizes in bytes."""

    runs: int = 0
    micros: int = 0
    accelerator_micros: int = 0
    cpu_micros: int = 0
    bytes: int = 0
    peak_bytes: int = 0
    residual_bytes: int = 0
    output_bytes: int = 0
    params: int = 0

    def plus(self, other: "Stats") -> "Stats":
        """Return the sums of both."""
        return Stats(*map(signed, map(int.__add__, self, other)))


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a job: what it is and what it cost; ``device`` is lower case, empty where it never ran."""

    name: str
    op: str
    device: str
    stats: Stats
    node_def: bytes = b""

    @property
    def op_types(self) -> tuple[str, ...]:
        """What `-account_type_regexes` looks at, in bytewise order."""
        return tuple(sorted({self.op, self.device} if self.device else {self.op}))


def average(total: int, entries: int) -> int:
    """Divide as tfprof does: whole, in unsigned 64 bits, so that a negative total of several steps wraps."""
    if entries <= 0:
        return 0
    return total // entries if total >= 0 else signed((total % _WRAP) // entries)


class _Sums:
    """What accrues for one node while the rollup is folded."""

    __slots__ = ("accelerator", "canonical", "cpu", "entries")

    def __init__(self) -> None:
        self.entries = 0
        self.canonical = NONE_ID
        self.accelerator = 0
        self.cpu: list[tuple[int, list[int]]] = []

    def stats(self, devices: Mapping[int, str], *, averaged: bool) -> tuple[str, Stats]:
        """Return the node's device, and the averages over its entries or the sums: rows of another CPU or GPU do not count."""
        device = devices.get(self.canonical, "")
        taken = [fields for number, fields in self.cpu if devices[number] == device]
        fields = taken[0] if len(taken) == 1 else [sum(column) for column in zip(_NOTHING, *taken, strict=True)]
        runs, cpu, *sizes = fields
        totals = [runs, self.accelerator + cpu, self.accelerator, cpu, *sizes]
        if averaged:
            entries = self.entries
            totals = [average(number, entries) if number else 0 for number in totals]
        return device, Stats(*totals)


_FIELDS: Final = ("runs", "sum_us", "requested_bytes", "peak_bytes", "residual_bytes", "output_bytes")
_NOTHING: Final = (0,) * len(_FIELDS)


def texts(names: pa.Table, kind: int) -> dict[int, str]:
    """Return the interned strings of one kind by id."""
    rows = names.filter(pc.equal(names["kind"], pa.scalar(kind, pa.uint16())))
    ids: list[Any] = rows["id"].to_pylist()
    known: list[Any] = rows["text"].to_pylist()
    return {number: text.decode("utf-8", "surrogateescape") for number, text in zip(ids, known, strict=True)}


def _integers(column: Any) -> list[int]:
    """Return the values of a column of numbers without nulls: to_pylist takes ten times as long."""
    values: Any = pa.concat_arrays(column.cast(pa.int64()).chunks) if column.num_chunks else pa.array([], pa.int64())
    numbers = memoryview(values.buffers()[1]).cast("q") if len(values) else memoryview(b"").cast("q")
    return numbers[values.offset : values.offset + len(values)].tolist()


def _fold(rollup: pa.Table, devices: Mapping[int, str]) -> dict[int, _Sums]:
    streams = {number for number, name in devices.items() if STREAM in name}
    nodes: dict[int, _Sums] = {}
    columns = [_integers(rollup[name]) for name in ("node", "device", "canonical", "traces", *_FIELDS)]
    for node, device, canonical, traces, *fields in zip(*columns, strict=True):
        sums = nodes.get(node)
        if sums is None:
            sums = nodes[node] = _Sums()
        if device == NONE_ID:
            sums.entries, sums.canonical = traces, canonical
        elif device in streams:
            sums.accelerator += fields[1]
        else:
            sums.cpu.append((device, fields))
    return nodes


def _graph(table: pa.Table) -> dict[str, tuple[str, bytes]]:
    """Return op and NodeDef of each graph node by name; the first of a name counts, later ones are skipped."""
    known: dict[str, tuple[str, bytes]] = {}
    names: list[Any] = table["name"].to_pylist()
    ops: list[Any] = table["op"].to_pylist()
    defs: list[Any] = table["node_def"].to_pylist() if "node_def" in table.column_names else [b""] * len(names)
    for name, op, node_def in zip(names, ops, defs, strict=True):
        known.setdefault(name, (op, node_def or b""))
    return known


def _counted(name: str) -> bool:
    return name not in NEVER and COPY not in name


def build(
    rollup: pa.Table,
    names: pa.Table,
    graph: pa.Table,
    op_types: Mapping[int, str] | None = None,
    *,
    averaged: bool = True,
) -> list[Node]:
    """Return every node of a job in name order, with its average over the traced steps in which it ran, or its sums.

    ``rollup``, ``names`` and ``graph`` have the columns of schema.ROLLUP, NAMES and GRAPH_NODES (without `node_def`,
    nodes have none). A node's op is the graph's, else its name; ``op_types`` has, by id, what was seen to run in its place:
    a fused Conv2D keeps the name of the Relu that ends it.
    """
    devices = {number: text.lower() for number, text in texts(names, DEVICE).items()}
    known = _graph(graph)
    names_of = texts(names, NODE)
    types = op_types or {}
    ran: dict[str, Node] = {}
    for number, sums in _fold(rollup, devices).items():
        name = names_of[number]
        if name not in known and not _counted(name):
            continue
        op, node_def = known.get(name, (name, b""))
        ran[name] = Node(name, types.get(number, op), *sums.stats(devices, averaged=averaged), node_def)
    nothing = Stats()
    idle = (Node(name, op, "", nothing, node_def) for name, (op, node_def) in known.items() if name not in ran)
    return sorted([*ran.values(), *idle], key=lambda node: node.name)


def total(nodes: Iterable[Node]) -> Stats:
    """Return the sums over ``nodes``."""
    columns = zip(*(node.stats for node in nodes), strict=True)
    return Stats(*map(signed, map(sum, columns)))
