"""From a store to tfprof's entries: the executions of the traced steps that are asked for, and few others read."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import pyarrow as pa

from ..store import segment
from ..store.columns import flat, floor_divided, pc
from ..store.devices import Devices, only
from ..store.reader import Job
from ..store.rollup import canonical_after, canonical_of
from ..store.schema import DEVICE, JOB_TABLES, NODE, NONE_ID
from ..store.snapshot import Snapshot
from ..store.trace_ranges import generations
from ..tfviews.entries import COLUMNS, Entry, Steps, entries
from ..tfviews.nodes import texts
from .kinds import of_job

#: About as many executions are held at once where steps are read one after the other.
BATCH_ROWS: Final = 200_000

_TRACES: Final = ("trace", "step", "base_ns")
_STARTS: Final = ("trace", "base_ns")
_KEPT: Final = ("trace", "node", "device", "start_ns", "start_us_fix", "persistent_bytes")


def step_traces(job: Job, kinds: Sequence[int] | None = None) -> dict[int, tuple[int, ...]]:
    """Return the traces of each step of a job, both ascending; ``kinds``: of which the steps are, None: of what the job is about."""
    return {step: tuple(number for number, _ in traces) for step, traces in _steps(job, kinds).items()}


def read(job: Job, traces: Collection[int]) -> dict[str, Steps]:
    """Return the entries, by node and step, of the traces with these numbers."""
    return job.settled(lambda snapshot: _read(snapshot, traces)) if traces else {}


def by_step(
    job: Job, steps: Collection[int] | None = None, kinds: Sequence[int] | None = None
) -> Iterator[tuple[int, dict[str, Entry]]]:
    """Yield each of ``steps`` that was traced (all that were), ascending, with its entries by node; not all are held at once."""
    known = _steps(job, kinds)
    wanted = sorted(known) if steps is None else sorted(set(steps) & set(known))
    for batch in _batches(wanted, known):
        found: dict[int, dict[str, Entry]] = {step: {} for step in batch}
        for name, of_node in read(job, [number for step in batch for number, _ in known[step]]).items():
            for step, entry in of_node.items():
                found[step][name] = entry
        yield from found.items()


def persistent_bytes(job: Job, kinds: Sequence[int] | None = None) -> dict[str, int]:
    """Return what each node of a GPU keeps there from step to step: the most bytes of any step, where there are any."""
    steps = {number: step for step, traces in _steps(job, kinds).items() for number, _ in traces}
    return job.settled(lambda snapshot: _persistent(snapshot, steps))


def _steps(job: Job, kinds: Sequence[int] | None) -> dict[int, list[tuple[int, int]]]:
    """Return (trace, rows) of each step."""
    traces, _ = of_job(job, ["trace", "step", "rows"], kinds)
    columns: Any = (traces[name].to_pylist() for name in ("trace", "step", "rows"))
    found: dict[int, list[tuple[int, int]]] = {}
    for number, step, rows in sorted(zip(*columns, strict=True)):
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


def _read(snapshot: Snapshot, wanted: Collection[int]) -> dict[str, Steps]:
    traces = sorted(wanted)
    numbers = pa.array(traces, pa.uint32())
    sealed = list(generations(snapshot, traces))

    def rows(name: str, columns: Sequence[str]) -> pa.Table:
        """Return rows of a table that may be of the traces, and those of the log."""
        groups = (snapshot.groups(name, one.generation, one.traces, columns) for one in sealed)
        return pa.concat_tables([*chain.from_iterable(groups), snapshot.unsealed(name, columns)])

    allocations, outputs = (
        _of(rows(name, JOB_TABLES[name].names), numbers) for name in ("allocations", "output_memory")
    )
    names, chosen = snapshot.table("names"), _of(snapshot.table("traces", _TRACES), numbers)
    return entries(rows("ops", COLUMNS), chosen, names, _canonical(snapshot, names), allocations, outputs)


def _of(table: pa.Table, numbers: Any) -> pa.Table:
    return table.filter(pc.is_in(table["trace"], value_set=numbers))


def _canonical(snapshot: Snapshot, names: pa.Table) -> dict[int, int]:
    """Return node -> device that it belongs to in the whole job."""
    tail = snapshot.unsealed("ops", ["node", "device"])
    devices: list[int] = canonical_after(tail, Devices(only(names)), canonical_of(snapshot.total())).to_pylist()
    return {node: device for node, device in enumerate(devices) if device != NONE_ID}


def _persistent(snapshot: Snapshot, steps: Mapping[int, int]) -> dict[str, int]:
    names = snapshot.table("names")
    gpus = {number for number, text in texts(names, DEVICE).items() if "cpu" not in text.lower()}
    own = {node: device for node, device in _canonical(snapshot, names).items() if device in gpus}
    if not own:
        return {}
    sums: dict[tuple[int, int], int] = {}
    traces = snapshot.table("traces", _STARTS)
    for ops in _parts(snapshot):
        for trace, node, device, size in _kept(ops, traces):
            if trace in steps and own.get(node) == device:
                sums[node, steps[trace]] = sums.get((node, steps[trace]), 0) + size
    most: dict[int, int] = {}
    for (node, _), size in sums.items():
        most[node] = max(most.get(node, 0), size)
    known = texts(names, NODE)
    return {known[node]: size for node, size in most.items()}


def _parts(snapshot: Snapshot) -> Iterator[pa.Table]:
    """Yield the ops of each generation."""
    for _, path in snapshot.segments("ops"):
        yield segment.read(path, "ops", _KEPT)
    yield snapshot.unsealed("ops", _KEPT)


def _kept(ops: pa.Table, traces: pa.Table) -> Iterator[tuple[int, int, int, int]]:
    """Yield trace, node, device and bytes of the executions that began and keep any."""
    ops = ops.filter(pc.not_equal(ops["persistent_bytes"], 0))
    at = pc.index_in(flat(ops["trace"]), value_set=flat(traces["trace"]))
    start = pc.add(pc.fill_null(flat(traces["base_ns"]).take(at), 0), flat(ops["start_ns"]))
    began = pc.greater(pc.add(floor_divided(start, 1000), flat(ops["start_us_fix"])), 0)
    taken = ops.filter(began)
    columns: Any = (taken[name].to_pylist() for name in ("trace", "node", "device", "persistent_bytes"))
    yield from zip(*columns, strict=True)
