"""Reads the TF profiler's entries from a store, for selected traced steps, in batches."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from ..store.columns import row_tuples
from ..store.protocols import JobReader
from ..store.schema import DEVICE, NODE
from ..store.sql_queries import persistent_allocations
from ..tfviews.entries import COLUMNS, EntriesByStep, Entry, entries
from ..tfviews.nodes import interned_texts
from .kind_selection import traces_of_job

#: Maximum number of executions in a batch of several steps.
BATCH_ROWS: Final = 200_000


def step_traces(
    job: JobReader, kinds: Sequence[int] | None = None, *, separate_functions: bool = True
) -> dict[int, tuple[int, ...]]:
    """Return step -> its traces, in ascending order.

    ``kinds`` and ``separate_functions`` select the steps (`kinds.resolve_kinds`).
    """
    return {
        step: tuple(number for number, _ in traces)
        for step, traces in _traces_by_step(job, kinds, separate_functions).items()
    }


def read_entries(job: JobReader, traces: Collection[int]) -> dict[str, EntriesByStep]:
    """Return the entries, by node and step, of the traces with these numbers."""
    return entries(*job.executions(traces, COLUMNS)) if traces else {}


def entries_by_step(
    job: JobReader,
    steps: Collection[int] | None = None,
    kinds: Sequence[int] | None = None,
    *,
    separate_functions: bool = True,
) -> Iterator[tuple[int, dict[str, Entry]]]:
    """Yield each traced step in ``steps``, ascending, with its entries by node.

    ``steps`` None means all. ``kinds`` and ``separate_functions`` select the steps, too
    (`kinds.resolve_kinds`). Executions are read in batches of several steps.
    """
    traces_by_step = _traces_by_step(job, kinds, separate_functions)
    selected_steps = sorted(traces_by_step) if steps is None else sorted(set(steps) & set(traces_by_step))
    sizes = ((step, sum(rows for _, rows in traces_by_step[step])) for step in selected_steps)
    for batch in row_batches(sizes, BATCH_ROWS):
        step_entries: dict[int, dict[str, Entry]] = {step: {} for step in batch}
        traces = [number for step in batch for number, _ in traces_by_step[step]]
        for name, node_entries in read_entries(job, traces).items():
            for step, entry in node_entries.items():
                step_entries[step][name] = entry
        yield from step_entries.items()


def persistent_bytes(
    job: JobReader, kinds: Sequence[int] | None = None, *, separate_functions: bool = True
) -> dict[str, int]:
    """Return the bytes that each node keeps on a GPU across steps, the maximum of all steps.

    Nodes without such bytes are left out.
    """
    step_of_trace = {
        trace: step for step, traces in _traces_by_step(job, kinds, separate_functions).items() for trace, _ in traces
    }
    return job.on_one_snapshot(lambda snapshot: _persistent_bytes(snapshot, step_of_trace))


def _traces_by_step(
    job: JobReader, kinds: Sequence[int] | None, separate_functions: bool
) -> dict[int, list[tuple[int, int]]]:
    """Return (trace, rows) of each step."""
    traces, _ = traces_of_job(job, ["trace", "step", "rows"], kinds, separate_functions=separate_functions)
    traces_by_step: dict[int, list[tuple[int, int]]] = {}
    for trace, step, rows in sorted(row_tuples(traces, "trace", "step", "rows")):
        traces_by_step.setdefault(step, []).append((trace, rows))
    return traces_by_step


def _persistent_bytes(job: JobReader, step_of_trace: Mapping[int, int]) -> dict[str, int]:
    names = job.table("names")
    gpus = {number for number, text in interned_texts(names, DEVICE).items() if "cpu" not in text.lower()}
    gpu_of_node = {node: device for node, device in job.canonical_devices().items() if device in gpus}
    if not gpu_of_node:
        return {}
    sums: dict[tuple[int, int], int] = {}
    for trace, node, device, size in job.with_sql(persistent_allocations):
        if trace in step_of_trace and gpu_of_node.get(node) == device:
            sums[node, step_of_trace[trace]] = sums.get((node, step_of_trace[trace]), 0) + size
    maxima: dict[int, int] = {}
    for (node, _), size in sums.items():
        maxima[node] = max(maxima.get(node, 0), size)
    node_names = interned_texts(names, NODE)
    return {node_names[node]: size for node, size in maxima.items()}


def row_batches(sizes: Iterable[tuple[int, int]], rows_max: int) -> Iterator[list[int]]:
    """Yield batches of numbers, each with at most ``rows_max`` rows unless it is a single number.

    ``sizes``: pairs (number, rows).
    """
    batch: list[int] = []
    rows = 0
    for number, size in sizes:
        if batch and rows + size > rows_max:
            yield batch
            batch, rows = [], 0
        batch.append(number)
        rows += size
    if batch:
        yield batch
