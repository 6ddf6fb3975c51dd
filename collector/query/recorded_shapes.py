"""Reads the recorded outputs of nodes from a store; of equivalent steps only one is read."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import pyarrow as pa

from ..flops.executed import EquivalentSteps, ExecutionRow, Sample
from ..store.columns import pc, row_tuples
from ..store.devices import is_canonical
from ..store.protocols import ExecutionFilter, JobReader, RecordedOutputs
from ..store.schema import DEVICE, LABEL, NODE, NONE_ID, OUTPUTS
from ..tfviews.nodes import interned_bytes, interned_texts

T = TypeVar("T")
#: Number of traces read at once, and of traces searched first for executions.
_AT_ONCE: Final = 256
_SAMPLED: Final = 64


class ShapeReader:
    """A reader of the recorded outputs of some traces of a job."""

    def __init__(
        self,
        outputs: RecordedOutputs,
        nodes: Mapping[int, str],
        names: pa.Table,
        traces: pa.Table,
        chosen: Sequence[int] | None,
    ) -> None:
        """Create a reader of ``outputs``.

        ``nodes``: the names of nodes by id; ``traces``: the job's TRACES; ``chosen``: the numbers
        of the selected traces, None for all.
        """
        self._outputs = outputs
        self._traces = traces
        self._chosen = chosen
        self._node_names = nodes
        self._nodes = {name: number for number, name in nodes.items()}
        self._labels = interned_texts(names, LABEL)
        self._signatures = interned_bytes(names, OUTPUTS)
        devices = {number: is_canonical(text.lower()) for number, text in interned_bytes(names, DEVICE).items()}
        self._devices = None if all(devices.values()) else [number for number, own in devices.items() if own]

    def name(self, number: int) -> str:
        """Return the name of a node."""
        return self._node_names.get(number, "")

    def executed_names(self, rollup: pa.Table) -> list[str]:
        """Return the nodes that ran in the traces of ``rollup``."""
        here = pc.and_(pc.not_equal(rollup["device"], NONE_ID), pc.greater(rollup["runs"], 0))
        numbers: list[Any] = pc.unique(rollup.filter(here)["node"]).to_pylist()
        return list(map(self.name, numbers))

    def equivalent_steps(self, varying: Collection[str], sized: Collection[str]) -> Iterator[EquivalentSteps]:
        """Yield the sets of traces with equal outputs of the nodes ``varying``.

        In the traces of a set, these nodes ran equally often with the same outputs. For ``sized``
        nodes, the bytes of the outputs must be equal, too. Yields nothing if no such node ran.
        """
        which = self._which(varying)
        if which is None:
            return
        with_size = self._among(sized) if sized else ()
        kinds = self._outputs.trace_groups(which, with_size)
        numbers = list(kinds)
        for at in range(0, len(numbers), _AT_ONCE):
            batch = numbers[at : at + _AT_ONCE]
            rows = self._of_traces(batch, which, with_size)
            orders = self._orders(rows, which)
            for number in batch:
                yield EquivalentSteps(kinds[number], rows[number], orders.get(number, {}))

    def _orders(
        self, rows: Mapping[int, Sequence[ExecutionRow]], which: ExecutionFilter
    ) -> dict[int, dict[str, list[bytes]]]:
        """Return the output signatures of each node with several executions, by trace and name.

        The signatures of a node are in order of the start of its executions.
        """
        several = {
            trace: {name for name, count in Counter(row.node for row in found).items() if count > 1}
            for trace, found in rows.items()
        }
        traces = [trace for trace, names in several.items() if names]
        if not traces:
            return {}
        orders: dict[int, dict[str, list[bytes]]] = {}
        among = self._among(set().union(*several.values()))
        for trace, node, outputs in self._outputs.outputs_in_order(traces, which, among):
            name = self.name(node)
            if name in several[trace]:
                orders.setdefault(trace, {}).setdefault(name, []).append(self._signatures.get(outputs, b""))
        return orders

    def _of_traces(
        self, traces: Sequence[int], which: ExecutionFilter, sized: Collection[int] | None
    ) -> Mapping[int, list[ExecutionRow]]:
        rows: dict[int, list[ExecutionRow]] = {trace: [] for trace in traces}
        for trace, node, outputs, bytes_, runs in self._outputs.output_counts(traces, which, sized):
            rows[trace].append(ExecutionRow(self.name(node), self._signatures.get(outputs, b""), bytes_, runs))
        return rows

    def samples(self, ran: Iterable[str]) -> dict[str, Sample]:
        """Return a sample execution of each node in ``ran``.

        If possible, it is from the first trace of a kind of step.
        """
        wanted, first = set(ran), self._first_traces()
        found = self._samples(wanted, first) if first else {}
        missing = wanted - found.keys()
        return found | self._samples(missing, None) if missing else found

    def _first_traces(self) -> list[int]:
        chosen = None if self._chosen is None else frozenset(self._chosen)
        kinds: dict[Any, int] = {}
        for trace, *kind in row_tuples(self._traces, "trace", "source", "kind", "key"):
            if chosen is None or trace in chosen:
                kinds.setdefault(tuple(kind), trace)
        return list(kinds.values())[:_SAMPLED]

    def _samples(self, wanted: Collection[str], traces: Collection[int] | None) -> dict[str, Sample]:
        which = self._which(wanted)
        if which is None:
            return {}
        return {
            self.name(node): Sample(self._labels.get(label, ""), self._signatures.get(outputs, b""))
            for node, outputs, label in self._outputs.example_outputs(traces, which)
        }

    def first(self, names: Collection[str], *, early: bool = False) -> Iterator[tuple[str, bytes]]:
        """Yield (name, output signature) of each node, its signatures in order of first occurrence.

        A signature may be yielded twice. ``early``: read only the first traces.
        """
        if not any(name in self._nodes for name in names):
            return
        by_node: dict[int, list[tuple[int, int]]] = {}
        found = self._outputs.first_seen(ExecutionFilter(self._among(names)), _SAMPLED if early else None)
        for node, outputs, trace in found:
            by_node.setdefault(node, []).append((trace, outputs))
        for node, seen in by_node.items():
            several = len(seen) > 1 and seen[0][0] == seen[1][0]
            for outputs in dict.fromkeys(self._outputs.in_trace(node, seen[0][0])) if several else ():
                yield self.name(node), self._signatures.get(outputs, b"")
            for _, outputs in seen:
                yield self.name(node), self._signatures.get(outputs, b"")

    def _which(self, names: Collection[str]) -> ExecutionFilter | None:
        """Return the executions of ``names`` on CPUs and GPUs in the selected traces.

        None if no name is known.
        """
        if not any(name in self._nodes for name in names):
            return None
        return ExecutionFilter(self._among(names), self._devices, self._chosen)

    def _among(self, names: Collection[str]) -> set[int] | None:
        """Return the ids of the known nodes in ``names``; None if these are all nodes."""
        numbers = {self._nodes[name] for name in names if name in self._nodes}
        return None if len(numbers) == len(self._node_names) else numbers


def read_shapes(
    job: JobReader, names: pa.Table, traces: pa.Table, chosen: Sequence[int] | None, action: Callable[[ShapeReader], T]
) -> T:
    """Return the result of ``action`` on a reader of one snapshot of ``job``.

    ``action`` may be called more than once. ``names``: the job's NAMES; ``traces`` and ``chosen``:
    as for ShapeReader.
    """
    nodes = interned_texts(names, NODE)

    def read(outputs: RecordedOutputs) -> T:
        return action(ShapeReader(outputs, nodes, names, traces, chosen))

    return job.recorded_outputs(read, max(nodes, default=0))
