"""Reads the recorded outputs of nodes from a store.

Of several equivalent steps, only one is read.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import pyarrow as pa

from ..flops.executed import EquivalentSteps, ExecutionRow, SampleExecution
from ..store.columns import pc, row_tuples
from ..store.devices import can_be_canonical
from ..store.protocols import ExecutionFilter, JobReader
from ..store.recorded_outputs import SqlOutputs
from ..store.schema import DEVICE, LABEL, NODE, NONE_ID, OUTPUTS
from ..store.sql_queries import Sql
from ..tfviews.nodes import interned_bytes, interned_texts

T = TypeVar("T")
#: Number of traces that are read at once.
_BATCH_TRACES: Final = 256
#: Number of traces that are searched first.
_FIRST_TRACES: Final = 64


class ShapeReader:
    """A reader of the recorded outputs of some traces of a job."""

    def __init__(
        self,
        outputs: SqlOutputs,
        node_names: Mapping[int, str],
        names: pa.Table,
        traces: pa.Table,
        selected: Sequence[int] | None,
    ) -> None:
        """Create a reader of ``outputs``.

        ``node_names``: the names of nodes by id; ``traces``: the job's TRACES; ``selected``: the
        numbers of the selected traces, None for all.
        """
        self._outputs = outputs
        self._traces = traces
        self._selected = selected
        self._node_names = node_names
        self._node_ids = {name: number for number, name in node_names.items()}
        self._labels = interned_texts(names, LABEL)
        self._signatures = interned_bytes(names, OUTPUTS)
        devices = {number: can_be_canonical(text.lower()) for number, text in interned_bytes(names, DEVICE).items()}
        self._devices = (
            None if all(devices.values()) else [number for number, is_candidate in devices.items() if is_candidate]
        )

    def name(self, number: int) -> str:
        """Return the name of a node."""
        return self._node_names.get(number, "")

    def executed_names(self, rollup: pa.Table) -> list[str]:
        """Return the nodes that ran in the traces of ``rollup``."""
        is_executed = pc.and_(pc.not_equal(rollup["device"], NONE_ID), pc.greater(rollup["runs"], 0))
        numbers: list[Any] = pc.unique(rollup.filter(is_executed)["node"]).to_pylist()
        return list(map(self.name, numbers))

    def equivalent_steps(
        self, varying_names: Collection[str], sized_names: Collection[str]
    ) -> Iterator[EquivalentSteps]:
        """Yield the sets of traces in which the nodes ``varying_names`` have equal outputs.

        In the traces of a set, these nodes ran equally often with the same outputs. For the nodes
        ``sized_names``, the bytes of the outputs are equal, too. Yields nothing if none of
        ``varying_names`` ran.
        """
        execution_filter = self._execution_filter(varying_names)
        if execution_filter is None:
            return
        sized_ids = self._ids(sized_names) if sized_names else ()
        group_sizes = self._outputs.trace_groups(execution_filter, sized_ids)
        numbers = list(group_sizes)
        for start in range(0, len(numbers), _BATCH_TRACES):
            batch = numbers[start : start + _BATCH_TRACES]
            rows = self._execution_rows(batch, execution_filter, sized_ids)
            loop_signatures = self._loop_signatures(rows, execution_filter)
            for number in batch:
                yield EquivalentSteps(group_sizes[number], rows[number], loop_signatures.get(number, {}))

    def _loop_signatures(
        self, rows: Mapping[int, Sequence[ExecutionRow]], execution_filter: ExecutionFilter
    ) -> dict[int, dict[str, list[bytes]]]:
        """Return the output signatures of each node with several executions, by trace and name.

        The signatures of a node are in order of the start of its executions.
        """
        repeated_names = {
            trace: {name for name, count in Counter(row.node for row in trace_rows).items() if count > 1}
            for trace, trace_rows in rows.items()
        }
        traces = [trace for trace, names in repeated_names.items() if names]
        if not traces:
            return {}
        loop_signatures: dict[int, dict[str, list[bytes]]] = {}
        node_ids = self._ids(set().union(*repeated_names.values()))
        for trace, node, outputs in self._outputs.outputs_in_order(traces, execution_filter, node_ids):
            name = self.name(node)
            if name in repeated_names[trace]:
                loop_signatures.setdefault(trace, {}).setdefault(name, []).append(self._signatures.get(outputs, b""))
        return loop_signatures

    def _execution_rows(
        self, traces: Sequence[int], execution_filter: ExecutionFilter, sized_ids: Collection[int] | None
    ) -> Mapping[int, list[ExecutionRow]]:
        rows: dict[int, list[ExecutionRow]] = {trace: [] for trace in traces}
        for trace, node, outputs, size, runs in self._outputs.output_counts(traces, execution_filter, sized_ids):
            rows[trace].append(ExecutionRow(self.name(node), self._signatures.get(outputs, b""), size, runs))
        return rows

    def sample_executions(self, names: Iterable[str]) -> dict[str, SampleExecution]:
        """Return a sample execution of each node in ``names``.

        If possible, the execution is from the first trace of a kind of step.
        """
        wanted_names, first_traces = set(names), self._first_traces()
        sample_executions = self._sample_executions(wanted_names, first_traces) if first_traces else {}
        missing_names = wanted_names - sample_executions.keys()
        return sample_executions | self._sample_executions(missing_names, None) if missing_names else sample_executions

    def _first_traces(self) -> list[int]:
        selected = None if self._selected is None else frozenset(self._selected)
        trace_by_kind: dict[Any, int] = {}
        for trace, *kind in row_tuples(self._traces, "trace", "source", "kind", "key"):
            if selected is None or trace in selected:
                trace_by_kind.setdefault(tuple(kind), trace)
        return list(trace_by_kind.values())[:_FIRST_TRACES]

    def _sample_executions(self, names: Collection[str], traces: Collection[int] | None) -> dict[str, SampleExecution]:
        execution_filter = self._execution_filter(names)
        if execution_filter is None:
            return {}
        return {
            self.name(node): SampleExecution(self._labels.get(label, ""), self._signatures.get(outputs, b""))
            for node, outputs, label in self._outputs.example_outputs(traces, execution_filter)
        }

    def first_signatures(
        self, names: Collection[str], *, first_traces_only: bool = False
    ) -> Iterator[tuple[str, bytes]]:
        """Yield (name, output signature) for each output signature of the nodes.

        The signatures of a node are in order of their first occurrence. A signature may be yielded
        twice. ``first_traces_only``: read only the first traces.
        """
        if not any(name in self._node_ids for name in names):
            return
        by_node: dict[int, list[tuple[int, int]]] = {}
        first_occurrences = self._outputs.first_occurrences(
            ExecutionFilter(self._ids(names)), _FIRST_TRACES if first_traces_only else None
        )
        for node, outputs, trace in first_occurrences:
            by_node.setdefault(node, []).append((trace, outputs))
        for node, occurrences in by_node.items():
            has_several = len(occurrences) > 1 and occurrences[0][0] == occurrences[1][0]
            for outputs in (
                dict.fromkeys(self._outputs.outputs_in_trace(node, occurrences[0][0])) if has_several else ()
            ):
                yield self.name(node), self._signatures.get(outputs, b"")
            for _, outputs in occurrences:
                yield self.name(node), self._signatures.get(outputs, b"")

    def _execution_filter(self, names: Collection[str]) -> ExecutionFilter | None:
        """Return a filter for the executions of ``names`` on CPUs and GPUs in the selected traces.

        None if no name is known.
        """
        if not any(name in self._node_ids for name in names):
            return None
        return ExecutionFilter(self._ids(names), self._devices, self._selected)

    def _ids(self, names: Collection[str]) -> set[int] | None:
        """Return the ids of the known nodes in ``names``; None if these are all nodes."""
        numbers = {self._node_ids[name] for name in names if name in self._node_ids}
        return None if len(numbers) == len(self._node_names) else numbers


def read_shapes(
    job: JobReader,
    names: pa.Table,
    traces: pa.Table,
    selected: Sequence[int] | None,
    action: Callable[[ShapeReader], T],
) -> T:
    """Return the result of ``action`` on a reader of one snapshot of ``job``.

    ``action`` may be called more than once. ``names``: the job's NAMES; ``traces`` and
    ``selected``: as for ShapeReader.
    """
    node_names = interned_texts(names, NODE)

    def read(sql: Sql) -> T:
        outputs = SqlOutputs(sql, max(node_names, default=0))
        return action(ShapeReader(outputs, node_names, names, traces, selected))

    return job.with_sql(read)
