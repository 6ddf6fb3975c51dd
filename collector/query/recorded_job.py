"""Reads from a job what the TF profiler's files contain.

They contain the nodes of the job, and the executions of these nodes in selected traces.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from ..errors import StoreError
from ..store.catalog import IMPORTED
from ..store.columns import column_list, flat, pc
from ..store.protocols import JobReader
from ..store.schema import NODE, OUTPUTS
from ..summaries.steps import rows_of_kinds
from ..tfviews.entries import COLUMNS, Entry, entries
from ..tfviews.nodes import Node, canonical_devices, interned_bytes, interned_texts
from ..tfviews.parity import Parity
from .explanations import untraced_reason
from .job_selection import Selection
from .kind_selection import resolve_kinds
from .profile import misses_streams, profile

#: Approximate number of executions read at once; each takes half a kilobyte of memory.
PART_ROWS: Final = 50_000
_TRACE_COLUMNS: Final = ("trace", "kind", "key", "step", "base_ns", "accelerator", "duration_ns")

StepRange = tuple[int, int]


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


@dataclass(slots=True)
class RecordedJob:
    """The nodes and executions of a job in the selected traces.

    ``execution_counts``: number of executions by node id. ``literal``: an empty text and line 0 in
    a stack were recorded as such; otherwise they mean unknown.
    """

    ops: pa.Table
    traces: pa.Table
    names: pa.Table
    canonical_devices: Mapping[int, int]
    allocations: pa.Table
    output_memory: pa.Table
    execution_counts: Mapping[int, int]
    graph: Sequence[str]
    node_ids: Mapping[str, int]
    signatures: Mapping[int, bytes]
    nodes: Sequence[Node]
    steps: Sequence[int]
    has_code: bool
    misses_streams: bool
    literal: bool
    has_input_slots: bool

    @classmethod
    def read(
        cls, job: JobReader, steps: StepRange | None = None, compat: str = "2.21", kinds: tuple[int, ...] | None = None
    ) -> "RecordedJob":
        """Read ``job``: its steps from ``steps[0]`` to ``steps[1]``, or all.

        ``kinds``: kinds of steps; None: all, or with ``steps`` the main kind of the job. Steps of
        several kinds get unique numbers (``renumbered``). Raises UsageError ``no-such-step``,
        ``no-such-kind``, StoreError ``no-data``.
        """
        table = job.table("traces", _TRACE_COLUMNS)
        if kinds is not None or steps is not None:
            table = rows_of_kinds(table, resolve_kinds([(job, table)], kinds, separate_functions=False))
        if steps is not None:
            first, last = steps
            table = table.filter(pc.and_(pc.greater_equal(table["step"], first), pc.less_equal(table["step"], last)))
        traces = renumbered(table, resolve_kinds([(job, table)], None, separate_functions=False))
        numbers = flat(traces["trace"])
        ops, allocations, outputs = (
            table.filter(pc.is_in(table["trace"], value_set=numbers))
            for table in (job.table("ops", COLUMNS), job.table("allocations"), job.table("output_memory"))
        )
        value_counts = pc.value_counts(flat(ops["node"]))
        names, nodes = job.table("names"), exact_nodes(job, steps, compat, kinds)
        known_names = {node.name for node in nodes}
        return cls(
            ops=ops,
            traces=traces,
            names=names,
            canonical_devices=canonical_devices(job.rollup()),
            allocations=allocations,
            output_memory=outputs,
            execution_counts=dict(
                zip(value_counts.field("values").to_pylist(), value_counts.field("counts").to_pylist(), strict=True)
            ),
            graph=tuple(dict.fromkeys(column_list(job.table("graph_nodes", ["name"]), "name"))),
            node_ids={name: number for number, name in interned_texts(names, NODE).items() if name in known_names},
            signatures=interned_bytes(names, OUTPUTS),
            nodes=nodes,
            steps=sorted(set(column_list(traces, "step"))),
            has_code=any(column_list(job.table("op_log", ["code"]), "code")),
            misses_streams=misses_streams(traces),
            literal=job.info.state == IMPORTED,
            has_input_slots=Parity(compat).reads_slots or job.info.has_input_slots,
        )

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
        tables = (self.ops, self.allocations, self.output_memory)
        ops, allocations, outputs = (table.filter(pc.is_in(table["node"], value_set=ids)) for table in tables)
        node_entries = entries(ops, self.traces, self.names, self.canonical_devices, allocations, outputs)
        return {name: node_entries.get(name, {}) for name in names}


@dataclass(frozen=True, slots=True)
class OpLogNodes:
    """The nodes of a job, and their names in graph order.

    ``literal``: as for `RecordedJob`.
    """

    names: Sequence[str]
    nodes: Sequence[Node]
    literal: bool

    @classmethod
    def read(cls, job: JobReader) -> "OpLogNodes":
        """Read ``job``; StoreError ``no-data`` if nothing was traced."""
        names = list(dict.fromkeys(column_list(job.table("graph_nodes", ["name"]), "name")))
        return cls(names, exact_nodes(job), job.info.state == IMPORTED)
