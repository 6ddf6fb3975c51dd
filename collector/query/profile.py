"""Reads the nodes that views fold.

They are those of one job or of several, over the selected traced steps.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ...formats import layout
from ..errors import NoSuchStepError, UsageError
from ..flops.kernels import of_library, op_type, split_label
from ..store.catalog import IMPORTED, MAY_CONTINUE
from ..store.devices import GPU, STREAMS
from ..store.protocols import JobReader
from ..store.schema import DEVICE, LABEL, NODE, NONE_ID
from ..summaries.kinds import kind_name
from ..tfviews.nodes import Node, device_names, merged, nodes_from_rollup, signed, texts, with_counts
from ..tfviews.parity import DEFAULT, Parity
from . import kinds as step_kinds
from .required_facts import EVERYTHING

if TYPE_CHECKING:
    from .facts import JobFacts

#: Maximum number of steps in an error.
_LISTED: Final = 20
_TRACE_COLUMNS: Final = ("trace", "source", "kind", "step", "key", "accelerator", "duration_ns")


@dataclass(frozen=True, slots=True)
class Profile:
    """The nodes of one job, or of several, in name order with their statistics.

    ``traces``: number of traced steps that they cover. ``missing_stream``: in some step, a GPU ran
    ops, but the times of its kernels were not recorded. ``uncounted``: number of nodes whose
    operations could not be counted because a shape is unknown. ``kinds``: number of traced steps by
    the name of their kind; ``others``: the same for kinds that are not selected. ``of``: the jobs,
    with the numbers of their selected traces. ``numbers``: the kinds in ``kinds``, by number.
    """

    nodes: list[Node]
    traces: int
    missing_stream: bool = False
    uncounted: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict)
    others: Mapping[str, int] = field(default_factory=dict)
    of: tuple[tuple[JobReader, Sequence[int]], ...] = ()
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Chosen:
    """One job, its traces, and the numbers of the selected ones; None for all."""

    job: JobReader
    traces: pa.Table
    numbers: tuple[int, ...] | None

    @property
    def count(self) -> int:
        """The number of selected traces."""
        return self.traces.num_rows if self.numbers is None else len(self.numbers)

    @property
    def listed(self) -> Sequence[int]:
        """The numbers of the selected traces."""
        numbers: list[Any] = sorted(self.traces["trace"].to_pylist())
        return numbers if self.numbers is None else self.numbers

    @property
    def kinds(self) -> dict[int, int]:
        """The number of selected traces of each kind."""
        mine = self.traces
        if self.numbers is not None:
            mine = mine.filter(pc.is_in(mine["trace"], value_set=pa.array(self.numbers, pa.uint32())))
        return step_kinds.traces_by_kind([mine])


def profile(
    jobs: JobReader | Sequence[JobReader],
    step: int = -1,
    *,
    steps: tuple[int, int] | None = None,
    kinds: Sequence[int] | None = None,
    device: str | None = None,
    averaged: bool = True,
    needs: Collection[str] = EVERYTHING,
    parity: Parity = DEFAULT,
) -> Profile | None:
    """Return the nodes of jobs over the selected traced steps, None if nothing was traced yet.

    ``step`` is the number of one step, -1 for all. ``steps`` are the first and the last step, None
    for all. Nodes of several jobs are merged by name, and their numbers of traced steps add up.
    ``device``: only nodes that ran on a matching device, with their times there. It is a part of
    the device's name, or a pattern with `*` and `?`; case is ignored. ``kinds``: kinds of steps;
    None: the main kind of the jobs, or all kinds if ``parity`` does not separate them and all steps
    are selected. ``averaged``: averages over a node's traced steps, else sums. ``needs``: the
    required facts about nodes.

    Raises UsageError ``no-such-step``, ``no-such-kind``, ``no-such-device``.
    """
    if kinds is None and not parity.separates_kinds and step < 0 and steps is None:
        kinds = layout.STEP_KINDS
    jobs = jobs if isinstance(jobs, Sequence) else [jobs]
    chosen, there = _chosen(jobs, step, steps, kinds, separate_functions=parity.separates_kinds)
    if not chosen:
        return None
    parts, uncounted = zip(*(_nodes_on_one_snapshot(one, device, needs, parity) for one in chosen), strict=True)
    nodes = parts[0] if len(parts) == 1 else merged(parts)
    if device is not None and not nodes:
        raise _no_such_device(device, chosen)
    missing = any(
        misses_streams(one.traces) for one in chosen if parity.finds_missing_streams or not one.job.info.has_input_slots
    )
    counted_nodes = with_counts(nodes, averaged=averaged, parity=parity)
    taken = dict(sum((Counter(one.kinds) for one in chosen), Counter[int]()))
    others = {kind: number for kind, number in there.items() if kind not in taken}
    of = tuple((one.job, one.listed) for one in chosen)
    mine, left_out = (step_kinds.by_name(one, step_kinds.names_of(jobs)) for one in (taken, others))
    traces = sum(one.count for one in chosen)
    return Profile(counted_nodes, traces, missing, sum(uncounted), mine, left_out, of, tuple(taken))


# -- which traces --------------------------------------------------------------------------------


def _chosen(
    jobs: Iterable[JobReader],
    step: int,
    steps: tuple[int, int] | None,
    wanted: Sequence[int] | None,
    *,
    separate_functions: bool,
) -> tuple[list[_Chosen], dict[int, int]]:
    """Return the jobs with any selected trace, and the total number of traces of each kind.

    Returns no job if none has a trace and none is an imported graph.
    """
    first, last = (step, step) if step >= 0 else steps or (None, None)
    tables = [(job, job.table("traces", _TRACE_COLUMNS)) for job in jobs]
    known = [(job, table) for job, table in tables if table.num_rows or job.info.state == IMPORTED]
    kinds = step_kinds.resolve_kinds(known, wanted, separate_functions=separate_functions)
    there = step_kinds.traces_by_kind(table for _, table in known)
    if first is None or last is None:
        taken = ((job, table, step_kinds.rows_of_kinds(table, kinds)) for job, table in known)
        return [
            _Chosen(job, table, None if mine.num_rows == table.num_rows else _trace_numbers(mine))
            for job, table, mine in taken
            if mine.num_rows or not table.num_rows
        ], there
    if steps is not None and not steps[0] <= first <= steps[1]:
        raise UsageError(f"Options -step={step} is not in the steps {steps[0]}-{steps[1]}", slug="no-such-step")
    chosen = [_Chosen(job, table, numbers) for job, table in known if (numbers := _numbers(table, kinds, first, last))]
    if known and not chosen:
        raise _no_such_step(known, kinds, first, last)
    return chosen, there


def misses_streams(traces: pa.Table) -> bool:
    """Return whether some step has a GPU, but no stream, so that its kernels' times are missing.

    The TF profiler loses this fact when it reads a file.
    """
    seen_kinds: list[Any] = traces["accelerator"].to_pylist()
    return any(seen & GPU and not seen & STREAMS for seen in seen_kinds)


def _numbers(traces: pa.Table, kinds: Sequence[int], first: int, last: int) -> tuple[int, ...]:
    """Return the traces of the steps ``first`` to ``last`` of ``kinds``."""
    return _trace_numbers(_within(step_kinds.rows_of_kinds(traces, kinds), first, last))


def _within(traces: pa.Table, first: int, last: int) -> pa.Table:
    return traces.filter(
        pc.and_(pc.greater_equal(traces["step"], _step(first)), pc.less_equal(traces["step"], _step(last)))
    )


def _trace_numbers(traces: pa.Table) -> tuple[int, ...]:
    numbers: list[Any] = traces["trace"].to_pylist()
    return tuple(sorted(numbers))


def _step(number: int) -> Any:
    return pa.scalar(number, pa.uint64())


def _no_such_step(
    jobs: Sequence[tuple[JobReader, pa.Table]], kinds: Sequence[int], first: int, last: int
) -> NoSuchStepError:
    names, tables = step_kinds.names_of(job for job, _ in jobs), [table for _, table in jobs]
    known: set[Any] = {
        step for traces in tables for step in step_kinds.rows_of_kinds(traces, kinds)["step"].to_pylist()
    }
    steps = sorted(known)
    some = " ".join(map(str, steps[:_LISTED])) + (f" … {steps[-1]}" if len(steps) > _LISTED else "")
    wanted = str(first) if first == last else f"{first}-{last}"
    text = f"Options -step={wanted} not found. Available steps: {some}"
    there = step_kinds.traces_by_kind(tables)
    if not all(step_kinds.includes(kinds, kind) for kind in there):
        text += f" (of the kind {' or '.join(kind_name(kind, names) for kind in kinds)}"
        have = [
            kind_name(kind, names)
            for kind in step_kinds.traces_by_kind(_within(table, first, last) for table in tables)
        ]
        text += f"; --kind {','.join(have)} has it)" if have else ")"
    return NoSuchStepError(text, steps)


# -- the nodes of one job ------------------------------------------------------------------------


def _nodes_on_one_snapshot(
    chosen: _Chosen, device: str | None, needs: Collection[str], parity: Parity
) -> tuple[list[Node], int]:
    return chosen.job.on_one_snapshot(lambda job: _nodes(replace(chosen, job=job), device, needs, parity))


def _without_later_traces(chosen: _Chosen) -> _Chosen:
    """Return ``chosen`` with its traces by number if more were stored since they were counted."""
    job = chosen.job
    if chosen.numbers is not None or job.info.state not in MAY_CONTINUE:
        return chosen
    has_more = job.table("traces", ("trace",)).num_rows != chosen.traces.num_rows
    return replace(chosen, numbers=tuple(chosen.listed)) if has_more else chosen


def _nodes(chosen: _Chosen, device: str | None, needs: Collection[str], parity: Parity) -> tuple[list[Node], int]:
    """Return the nodes with their sums, and the number of nodes without a count of operations."""
    chosen = _without_later_traces(chosen)
    job = chosen.job
    names = job.table("names")
    total = job.rollup()
    rollup = total if chosen.numbers is None else job.rollup(chosen.numbers)
    part = None if device is None else _on_devices(rollup, names, device)
    found = _job_facts(chosen, names, rollup, needs, parity) if needs else None
    graph = job.table("graph_nodes", ["name", "op"])
    seen = _seen(job, names, chosen.traces)
    ran_as = {number: op_type(kernel) for number, kernel in seen.items()}
    nodes = nodes_from_rollup(
        rollup if part is None else part.rollup,
        names,
        graph,
        {**_labeled(names, graph), **ran_as} if parity.labels_kernels else ran_as,
        facts=found.facts if found else None,
        total=total,
    )
    nodes = [_counted(node, found) for node in nodes] if found and found.counts else nodes
    kernels = _kernels(names, seen) if parity.labels_kernels else {}
    nodes = [_with_kernel(node, kernels[node.name]) if node.name in kernels else node for node in nodes]
    nodes = nodes if part is None else [_narrowed(node, part) for node in nodes if node.name in part.nodes]
    return nodes, found.uncounted if found else 0


def _job_facts(
    chosen: _Chosen, names: pa.Table, rollup: pa.Table, needs: Collection[str], parity: Parity
) -> "JobFacts":
    from .facts import SelectedTraces, job_facts  # noqa: PLC0415  # with protobuf, a tenth of a command's start

    return job_facts(chosen.job, names, SelectedTraces(chosen.traces, chosen.numbers, rollup), needs, parity)


def _seen(job: JobReader, names: pa.Table, traces: pa.Table) -> dict[int, str]:
    """Return the op types, or kernels of a library, that profiler windows recorded, by node id."""
    if layout.XSPACE not in set(traces["source"].to_pylist()):
        return {}
    labels = texts(names, LABEL)
    return {node: text for node, label in job.window_labels().items() if (text := labels.get(label))}


def _kernels(names: pa.Table, seen: Mapping[int, str]) -> dict[str, str]:
    """Return the kernels of nodes that ran as a kernel of a library, by name of the node.

    The nodes keep their op types.
    """
    labeled_kernels = ((found.node, found.kernel) for found in map(split_label, _labels(names, "_Mkl")) if found)
    nodes = texts(names, NODE) if seen else {}
    pairs = chain(labeled_kernels, ((nodes[number], kernel) for number, kernel in seen.items() if number in nodes))
    return {name: kernel for name, kernel in pairs if of_library(kernel)}


def _with_kernel(node: Node, kernel: str) -> Node:
    """Return ``node`` with the kernel among its types."""
    types = tuple(dict.fromkeys((*node.facts.types, kernel)))
    return node._replace(facts=replace(node.facts, types=types))


def _labels(names: pa.Table, part: str) -> list[str]:
    """Return the timeline labels that contain ``part``."""
    labels = names.filter(pc.equal(names["kind"], pa.scalar(LABEL, pa.uint16())))
    return list(texts(labels.filter(pc.match_substring(labels["text"], part)), LABEL).values())


def _labeled(names: pa.Table, graph: pa.Table) -> dict[int, str]:
    """Return the op types in timeline labels that differ from those of the graph, by node id.

    The nodes are in no graph, or ran as another op. TensorFlow adds nodes, folds constants, and
    fuses a convolution into the Relu that follows it.
    """
    ran = {found.node: op_type(found.kernel) for found in map(split_label, _labels(names, " = ")) if found}
    if not ran:
        return {}
    known: dict[Any, Any] = dict(zip(graph["name"].to_pylist(), graph["op"].to_pylist(), strict=True))
    numbers = texts(names, NODE).items()
    return {number: ran[name] for number, name in numbers if name in ran and ran[name] != known.get(name)}


def _counted(node: Node, found: "JobFacts") -> Node:
    """Return ``node`` with the operations of all its executions.

    These are the sum over all steps if the executions differ. Otherwise they are the operations of
    one execution times the number of executions. A node without an entry counts as one execution.
    """
    count = found.counts.get(node.name)
    if count is None:
        return node
    float_ops = count.one * (1 if node.entries is None else node.stats.runs) if count.total is None else count.total
    return node._replace(stats=node.stats._replace(float_ops=signed(float_ops)))


# -- one device ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _OnDevices:
    """The part of a rollup on matching devices.

    ``rollup`` has its rows, and the nodes' own rows. ``nodes`` and ``devices`` are the names of its
    nodes and devices.
    """

    rollup: pa.Table
    nodes: frozenset[str]
    devices: frozenset[str]


def matching_devices(devices: Mapping[int, str], pattern: str) -> dict[int, str]:
    """Return the ``devices`` whose names, in lower case, match ``pattern``."""
    pattern = pattern.lower() if set("*?[") & set(pattern) else f"*{pattern.lower()}*"
    return {number: text for number, text in devices.items() if fnmatchcase(text, pattern)}


def _on_devices(rollup: pa.Table, names: pa.Table, pattern: str) -> _OnDevices:
    """Return the part of ``rollup`` on devices that match ``pattern``."""
    devices = matching_devices(device_names(names), pattern)
    here = pc.is_in(rollup["device"], value_set=pa.array(devices, pa.uint32()))
    ids = pc.unique(rollup.filter(here)["node"])
    own = pc.and_(pc.equal(rollup["device"], pa.scalar(NONE_ID, pa.uint32())), pc.is_in(rollup["node"], value_set=ids))
    node_names = texts(names, NODE)
    nodes: list[Any] = ids.to_pylist()
    return _OnDevices(
        rollup.filter(pc.or_(here, own)),
        frozenset(node_names[number] for number in nodes),
        frozenset(devices.values()),
    )


def _narrowed(node: Node, part: _OnDevices) -> Node:
    """Return ``node`` with the selected devices only."""
    return node._replace(devices=tuple(device for device in node.devices if device in part.devices))


def _no_such_device(pattern: str, chosen: Iterable[_Chosen]) -> UsageError:
    known = sorted({name for one in chosen for name in texts(one.job.table("names"), DEVICE).values()})
    return UsageError(f"nothing ran on a device like '{pattern}'; there are {' '.join(known)}", slug="no-such-device")
