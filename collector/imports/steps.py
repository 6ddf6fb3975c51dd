"""Converts a RunMetadata into the rows of a traced step.

The decoder is that of live jobs. Imported steps have the memory of each output, too.
"""

from collections.abc import Iterable, Iterator
from statistics import median_low
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ...formats import layout
from ..decoders.columns import from_rows, saturated
from ..decoders.decode import DecodedStep, decoder
from ..decoders.interner import Interner, NamesFullError
from ..ingest.parsing import Trace, trace_rows
from ..proto.tensorflow_pb2 import RunMetadata
from ..store.columns import as_table
from ..store.schema import DEVICE, NODE
from ..tfviews.nodes import is_node
from .files import BINARY, TEXT, BadFileError, NotRepresentableError, has_unknown_fields, parse

ImportedTables = dict[str, pa.Table]

#: Character that replaces colons in the node names of a profile, since names in RunMetadata end at
#: a colon. No name may contain it.
COLON_SUBSTITUTE: Final = "\ufdd0"
_NS_PER_US: Final = 1000
#: Maximum time between an execution and the median start of its step: a day.
_STEP_MAX_US: Final = 86_400 * 10**6


class ImportedStep(NamedTuple):
    """One step of an import: its number and its RunMetadata.

    ``data`` is the serialized RunMetadata, ``message`` the parsed one, ``path`` the file's name in
    errors. ``accelerator``: flags (devices.accelerator), None if they follow from the message.
    ``has_escaped_names``: whether COLON_SUBSTITUTE replaces colons in names.
    """

    number: int
    data: bytes
    message: Any
    path: str
    accelerator: int | None = None
    has_escaped_names: bool = False


def step(number: int, data: bytes, path: str) -> ImportedStep | None:
    """Return the step in ``data``, a RunMetadata, binary or text; None if it was not traced.

    BadFileError if ``data`` is not a valid RunMetadata.
    """
    message = parse(data, RunMetadata, path, (BINARY, TEXT))
    if not message.ByteSize() or _is_other_message(message):
        raise BadFileError(
            f"{path} is not a valid RunMetadata: it is empty, or it has unknown fields and no executions"
        )
    return ImportedStep(number, message.SerializeToString(), message, path) if message.HasField("step_stats") else None


def _is_other_message(message: Any) -> bool:
    """Whether another kind of message was parsed by accident.

    Such a message has unknown fields and no executions.
    """
    devices = message.step_stats.dev_stats
    if any(device.node_stats for device in devices):
        return False
    return has_unknown_fields((message, message.step_stats, *devices))


class StepTables:
    """The converter of one job's steps into rows, in order."""

    def __init__(self) -> None:
        self._interner = Interner()
        self._decoder = decoder()
        self._trace_count = 0

    def rows(self, step: ImportedStep) -> ImportedTables:
        """Return the rows of ``step`` by table.

        NotRepresentableError if it exceeds the limits of a step.
        """
        trace, self._trace_count = self._trace_count, self._trace_count + 1
        ops, allocations, results = self._decoder.run_metadata([step.data], [trace], self._interner)
        if results[0].error is not None:
            raise NotRepresentableError(f"{step.path}: {results[0].error}")
        batches: dict[str, pa.RecordBatch | pa.Table] = {
            "ops": ops,
            "allocations": allocations.on_gpus,
            "memory_changes": allocations.others,
            "block_addresses": allocations.addresses,
            "output_memory": self._output_memory(step, trace),
            "names": _with_colons(self._interner.new_names()) if step.has_escaped_names else self._interner.new_names(),
            "traces": trace_rows([_trace(step, trace, results[0])]),
        }
        return {name: as_table(batch) for name, batch in batches.items() if batch.num_rows}

    def _output_memory(self, step: ImportedStep, trace: int) -> pa.RecordBatch:
        try:
            return from_rows(list(self._outputs(step, trace)), "output_memory")
        except NamesFullError as error:
            raise NotRepresentableError(f"{step.path}: {error.args[0]}") from None

    def _outputs(self, step: ImportedStep, trace: int) -> Iterator[tuple[int, ...]]:
        """Yield the rows of `output_memory`.

        They are the outputs with an allocation description, of executions with a start time.
        """
        execution_counts: dict[tuple[int, int], int] = {}
        for stats in step.message.step_stats.dev_stats:
            device = self._interner.id(DEVICE, stats.device.encode()) if stats.node_stats else 0
            for node in stats.node_stats:
                node_id = self._interner.id(NODE, node_name(node).encode())
                execution = execution_counts.get((node_id, device), 0)
                execution_counts[node_id, device] = execution + 1
                if node.all_start_micros > 0:
                    for output in node.output:
                        if output.tensor_description.HasField("allocation_description"):
                            memory = output.tensor_description.allocation_description
                            size = max(memory.allocated_bytes, memory.requested_bytes)
                            yield trace, node_id, device, execution, output.slot, size, memory.ptr


def _with_colons(names: pa.Table) -> pa.Table:
    """Return NAMES with colons in place of COLON_SUBSTITUTE."""
    column = names.schema.get_field_index("text")
    texts: list[Any] = names["text"].to_pylist()
    new_texts = pa.array(
        [text.replace(COLON_SUBSTITUTE.encode(), b":") for text in texts], names.schema.field(column).type
    )
    return names.set_column(column, names.schema.field(column), new_texts)


def node_name(stats: Any) -> str:
    """Return the node name of a NodeExecStats."""
    name: str = stats.node_name.partition(":")[0]
    return name


def _trace(step: ImportedStep, trace: int, decoded: DecodedStep) -> Trace:
    start, end, _ = extent(step.message)
    accelerator = decoded.accelerator if step.accelerator is None else step.accelerator
    return Trace(
        trace=trace,
        source=layout.RUN_METADATA,
        kind=layout.RUN,
        step=step.number,
        key=0,
        thread=0,
        start_ns=start,
        duration_ns=end - start,
        base_ns=decoded.base_ns,
        rows=decoded.rows,
        raw_bytes=len(step.data),
        accelerator=accelerator,
    )


class Extent(NamedTuple):
    """Start and end of the executions of a step (real time, ns); both are 0 without start times.

    ``odd_times``: number of executions that are left out because their times cannot be right.
    """

    start_ns: int
    end_ns: int
    odd_times: int


def extent(message: Any) -> Extent:
    """Return the extent of the executions in a RunMetadata.

    Negative times, and times more than _STEP_MAX_US from the median start, cannot be right.
    """
    executions = [node for device in message.step_stats.dev_stats for node in device.node_stats]
    odd_times = sum(node.all_start_micros < 0 for node in executions)
    executions = [node for node in executions if node.all_start_micros > 0]
    if not executions:
        return Extent(0, 0, odd_times)
    middle = median_low(node.all_start_micros for node in executions)
    intervals = [
        (node.all_start_micros, node.all_start_micros + max(0, node.all_end_rel_micros, node.op_end_rel_micros))
        for node in executions
        if abs(node.all_start_micros - middle) <= _STEP_MAX_US
    ]
    starts, ends = zip(*intervals, strict=True)
    odd_times += len(executions) - len(intervals)
    return Extent(saturated(min(starts) * _NS_PER_US), saturated(max(ends) * _NS_PER_US), odd_times)


class Coverage:
    """Share of a graph's nodes that ran, as the TF profiler counts it.

    A node outside of the graph is added to the nodes at its first execution. It counts as run from
    its second execution on.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = set(names)
        self._executed: set[str] = set()

    def add(self, message: Any) -> float:
        """Add the nodes in the RunMetadata ``message``; return the share of nodes that have run."""
        for device in message.step_stats.dev_stats:
            for stats in device.node_stats:
                name = node_name(stats)
                if name in self._names:
                    self._executed.add(name)
                elif is_node(name):
                    self._names.add(name)
        return len(self._executed) / (len(self._names) + 1e-10)
