"""Reads the TF profiler's entries from a store, for selected traced steps, in batches."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from ..store.columns import row_tuples
from ..store.protocols import JobReader
from ..store.schema import DEVICE, NODE
from ..tfviews.entries import COLUMNS, EntriesByStep, Entry, entries
from ..tfviews.nodes import texts
from .kinds import traces_of_job

#: Approximate number of executions in memory while steps are read one after the other.
BATCH_ROWS: Final = 200_000


def step_traces(
    job: JobReader, kinds: Sequence[int] | None = None, *, separate_functions: bool = True
) -> dict[int, tuple[int, ...]]:
    """Return the traces of each step of a job, both ascending.

    ``kinds`` and ``separate_functions`` select the steps (`kinds.resolved`).
    """
    return {
        step: tuple(number for number, _ in traces) for step, traces in _steps(job, kinds, separate_functions).items()
    }


def read(job: JobReader, traces: Collection[int]) -> dict[str, EntriesByStep]:
    """Return the entries, by node and step, of the traces with these numbers."""
    return entries(*job.executions(traces, COLUMNS)) if traces else {}


def by_step(
    job: JobReader,
    steps: Collection[int] | None = None,
    kinds: Sequence[int] | None = None,
    *,
    separate_functions: bool = True,
) -> Iterator[tuple[int, dict[str, Entry]]]:
    """Yield each traced step in ``steps``, ascending, with its entries by node.

    ``steps`` None means all. ``kinds`` and ``separate_functions`` select the steps, too
    (`kinds.resolved`). Executions are read in batches of several steps.
    """
    known = _steps(job, kinds, separate_functions)
    wanted = sorted(known) if steps is None else sorted(set(steps) & set(known))
    for batch in _batches(wanted, known):
        found: dict[int, dict[str, Entry]] = {step: {} for step in batch}
        for name, of_node in read(job, [number for step in batch for number, _ in known[step]]).items():
            for step, entry in of_node.items():
                found[step][name] = entry
        yield from found.items()


def persistent_bytes(
    job: JobReader, kinds: Sequence[int] | None = None, *, separate_functions: bool = True
) -> dict[str, int]:
    """Return the bytes that each node keeps on a GPU across steps.

    They are the maximum of all steps. Nodes without any are left out.
    """
    steps = {number: step for step, traces in _steps(job, kinds, separate_functions).items() for number, _ in traces}
    return job.on_one_snapshot(lambda one: _persistent(one, steps))


def _steps(job: JobReader, kinds: Sequence[int] | None, separate_functions: bool) -> dict[int, list[tuple[int, int]]]:
    """Return (trace, rows) of each step."""
    traces, _ = traces_of_job(job, ["trace", "step", "rows"], kinds, separate_functions=separate_functions)
    found: dict[int, list[tuple[int, int]]] = {}
    for number, step, rows in sorted(row_tuples(traces, "trace", "step", "rows")):
        found.setdefault(step, []).append((number, rows))
    return found


def _batches(steps: Iterable[int], known: Mapping[int, list[tuple[int, int]]]) -> Iterator[list[int]]:
    batch: list[int] = []
    rows = 0
    for step in steps:
        mine = sum(size for _, size in known[step])
        if batch and rows + mine > BATCH_ROWS:
            yield batch
            batch, rows = [], 0
        batch.append(step)
        rows += mine
    if batch:
        yield batch


def _persistent(job: JobReader, steps: Mapping[int, int]) -> dict[str, int]:
    names = job.table("names")
    gpus = {number for number, text in texts(names, DEVICE).items() if "cpu" not in text.lower()}
    own = {node: device for node, device in job.canonical_devices().items() if device in gpus}
    if not own:
        return {}
    sums: dict[tuple[int, int], int] = {}
    for trace, node, device, size in job.persistent_allocations():
        if trace in steps and own.get(node) == device:
            sums[node, steps[trace]] = sums.get((node, steps[trace]), 0) + size
    most: dict[int, int] = {}
    for (node, _), size in sums.items():
        most[node] = max(most.get(node, 0), size)
    known = texts(names, NODE)
    return {known[node]: size for node, size in most.items()}
