"""From a store to what the views fold: the nodes of one job, or of several, over the traced steps that are asked for."""

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
from ..flops.kernels import labelled, of_library, op_type
from ..store.catalog import IMPORTED
from ..store.devices import GPU, STREAMS
from ..store.reader import Job
from ..store.schema import DEVICE, LABEL, NODE, NONE_ID
from ..summaries.kinds import named
from ..tfviews.nodes import Node, device_names, finished, merged, signed, sums, texts
from ..tfviews.parity import DEFAULT, Parity
from . import kinds as step_kinds
from .required_facts import EVERYTHING

if TYPE_CHECKING:
    from .facts import Known

#: Steps that an error lists.
_LISTED: Final = 20
_XSPACE_TYPES: Final = f"""
    SELECT node, min(label) AS label FROM ops
    WHERE trace IN (SELECT trace FROM traces WHERE source = {layout.XSPACE})
    GROUP BY node"""  # noqa: S608  # a number of ours
_TRACE_COLUMNS: Final = ("trace", "source", "kind", "step", "key", "accelerator", "duration_ns")


@dataclass(frozen=True, slots=True)
class Profile:
    """The nodes of one job, or of several, in name order with their statistics over ``traces`` traced steps.

    ``missing_stream``: in some step of theirs a GPU worked of which no kernels' times were recorded. ``uncounted``: so many
    nodes ran whose operations could not be counted, because a shape is not known. ``kinds``: how many of the traced steps are
    of each kind; ``others``: those of kinds that are not asked about. ``of``: jobs, and the numbers of their traces.
    """

    nodes: list[Node]
    traces: int
    missing_stream: bool = False
    uncounted: int = 0
    kinds: Mapping[int, int] = field(default_factory=dict)
    others: Mapping[int, int] = field(default_factory=dict)
    of: tuple[tuple[Job, Sequence[int]], ...] = ()


@dataclass(frozen=True, slots=True)
class _Chosen:
    """One job, its traces, and the numbers of those that are asked for; None for all."""

    job: Job
    traces: pa.Table
    numbers: tuple[int, ...] | None

    @property
    def count(self) -> int:
        """How many traces are asked for."""
        return self.traces.num_rows if self.numbers is None else len(self.numbers)

    @property
    def listed(self) -> Sequence[int]:
        """The numbers of the traces that are asked for."""
        numbers: list[Any] = sorted(self.traces["trace"].to_pylist())
        return numbers if self.numbers is None else self.numbers

    @property
    def kinds(self) -> dict[int, int]:
        """How many traces of each kind are asked for."""
        mine = self.traces
        if self.numbers is not None:
            mine = mine.filter(pc.is_in(mine["trace"], value_set=pa.array(self.numbers, pa.uint32())))
        return step_kinds.counted([mine])


def profile(
    jobs: Job | Sequence[Job],
    step: int = -1,
    *,
    steps: tuple[int, int] | None = None,
    kinds: Sequence[int] | None = None,
    device: str | None = None,
    averaged: bool = True,
    needs: Collection[str] = EVERYTHING,
    parity: Parity = DEFAULT,
) -> Profile | None:
    """Read the nodes of jobs: of one traced step, of those from ``steps[0]`` to ``steps[1]``, or of all (-1).

    Nodes of several jobs are put together by name, and their traced steps count as so many. ``device``: only nodes that ran
    on a device whose name matches, and their times there: part of the name, or a pattern with `*` and `?`, in any case.
    ``kinds``: of which kinds the steps are; None: of the one that the jobs are about, and where tfprof is followed exactly,
    which knows no kinds, of all when all steps are asked for.
    ``averaged``: averages over a node's traced steps, else sums. ``needs``: which facts of nodes are looked at.

    Returns None when nothing was traced yet. Raises UsageError ``no-such-step``, ``no-such-kind``, ``no-such-device``.
    """
    if kinds is None and parity.exact and step < 0 and steps is None:
        kinds = layout.STEP_KINDS
    chosen, there = _chosen([jobs] if isinstance(jobs, Job) else jobs, step, steps, kinds)
    if not chosen:
        return None
    parts, uncounted = zip(*(_nodes_at_one_moment(one, device, needs, parity) for one in chosen), strict=True)
    nodes = parts[0] if len(parts) == 1 else merged(parts)
    if device is not None and not nodes:
        raise _no_such_device(device, chosen)
    missing = any(misses_streams(one.traces) for one in chosen if not (parity.exact and one.job.info.tells_slots))
    finished_nodes = finished(nodes, averaged=averaged, parity=parity)
    taken = dict(sum((Counter(one.kinds) for one in chosen), Counter[int]()))
    others = {kind: number for kind, number in there.items() if kind not in taken}
    of = tuple((one.job, one.listed) for one in chosen)
    return Profile(finished_nodes, sum(one.count for one in chosen), missing, sum(uncounted), taken, others, of)


# -- which traces --------------------------------------------------------------------------------


def _chosen(
    jobs: Iterable[Job], step: int, steps: tuple[int, int] | None, asked: Sequence[int] | None
) -> tuple[list[_Chosen], dict[int, int]]:
    """Return the jobs that have any of the traces asked for, and how many traces of each kind there are in all.

    No job when none has any trace at all, and none is a mere graph.
    """
    first, last = (step, step) if step >= 0 else steps or (None, None)
    tables = [(job, job.table("traces", _TRACE_COLUMNS)) for job in jobs]
    known = [(job, table) for job, table in tables if table.num_rows or job.info.state == IMPORTED]
    kinds, there = step_kinds.resolved(known, asked), step_kinds.counted(table for _, table in known)
    if first is None or last is None:
        taken = ((job, table, step_kinds.of_kinds(table, kinds)) for job, table in known)
        return [
            _Chosen(job, table, None if mine.num_rows == table.num_rows else _trace_numbers(mine))
            for job, table, mine in taken
            if mine.num_rows or not table.num_rows
        ], there
    if steps is not None and not steps[0] <= first <= steps[1]:
        raise UsageError(f"Options -step={step} is not in the steps {steps[0]}-{steps[1]}", slug="no-such-step")
    chosen = [_Chosen(job, table, numbers) for job, table in known if (numbers := _numbers(table, kinds, first, last))]
    if known and not chosen:
        raise _no_such_step([table for _, table in known], kinds, first, last)
    return chosen, there


def misses_streams(traces: pa.Table) -> bool:
    """Whether in some step a GPU is seen and none of its streams; tfprof forgets it of a profile that it reads from a file."""
    told: list[Any] = traces["accelerator"].to_pylist()
    return any(seen & GPU and not seen & STREAMS for seen in told)


def _numbers(traces: pa.Table, kinds: Sequence[int], first: int, last: int) -> tuple[int, ...]:
    """Return the traces of the steps ``first`` to ``last`` of some kinds."""
    return _trace_numbers(_within(step_kinds.of_kinds(traces, kinds), first, last))


def _within(traces: pa.Table, first: int, last: int) -> pa.Table:
    return traces.filter(
        pc.and_(pc.greater_equal(traces["step"], _step(first)), pc.less_equal(traces["step"], _step(last)))
    )


def _trace_numbers(traces: pa.Table) -> tuple[int, ...]:
    numbers: list[Any] = traces["trace"].to_pylist()
    return tuple(sorted(numbers))


def _step(number: int) -> Any:
    return pa.scalar(number, pa.uint64())


def _no_such_step(tables: Sequence[pa.Table], kinds: Sequence[int], first: int, last: int) -> NoSuchStepError:
    known: set[Any] = {step for traces in tables for step in step_kinds.of_kinds(traces, kinds)["step"].to_pylist()}
    steps = sorted(known)
    some = " ".join(map(str, steps[:_LISTED])) + (f" … {steps[-1]}" if len(steps) > _LISTED else "")
    wanted = str(first) if first == last else f"{first}-{last}"
    told = f"Options -step={wanted} not found. Available steps: {some}"
    there = step_kinds.counted(tables)
    if len(there) > 1 and len(kinds) < len(there):
        told += f" (of the kind {' or '.join(map(named, kinds))}"
        have = [named(kind) for kind in step_kinds.counted(_within(table, first, last) for table in tables)]
        told += f"; --kind {','.join(have)} has it)" if have else ")"
    return NoSuchStepError(told, steps)


# -- the nodes of one job ------------------------------------------------------------------------


def _nodes_at_one_moment(
    chosen: _Chosen, device: str | None, needs: Collection[str], parity: Parity
) -> tuple[list[Node], int]:
    return chosen.job.at_one_moment(lambda job: _nodes(replace(chosen, job=job), device, needs, parity))


def _nodes(chosen: _Chosen, device: str | None, needs: Collection[str], parity: Parity) -> tuple[list[Node], int]:
    """Return the nodes with their sums, and how many of them could not be counted."""
    job = chosen.job
    names = job.table("names")
    total = job.rollup()
    rollup = total if chosen.numbers is None else job.rollup(chosen.numbers)
    ran = None if device is None else _ran_on(rollup, names, device)
    found = _known(chosen, names, rollup, needs, parity) if needs else None
    graph = job.table("graph_nodes", ["name", "op"])
    seen = _seen(job, names, chosen.traces)
    ran_as = {number: op_type(kernel) for number, kernel in seen.items()}
    nodes = sums(
        rollup if ran is None else ran.rollup,
        names,
        graph,
        ran_as if parity.exact else {**_labelled(names, graph), **ran_as},
        facts=found.facts if found else None,
        total=total,
    )
    nodes = [_counted(node, found) for node in nodes] if found and found.counts else nodes
    kernels = {} if parity.exact else _kernels(names, seen)
    nodes = [_with_kernel(node, kernels[node.name]) if node.name in kernels else node for node in nodes]
    nodes = nodes if ran is None else [_narrowed(node, ran) for node in nodes if node.name in ran.nodes]
    return nodes, found.uncounted if found else 0


def _known(chosen: _Chosen, names: pa.Table, rollup: pa.Table, needs: Collection[str], parity: Parity) -> "Known":
    from .facts import Steps, known  # noqa: PLC0415  # with protobuf, a tenth of a command's start

    return known(chosen.job, names, Steps(chosen.traces, chosen.numbers, rollup), needs, parity)


def _seen(job: Job, names: pa.Table, traces: pa.Table) -> dict[int, str]:
    """Return what a profiler window saw run, by node: op types, or a library's kernels."""
    if layout.XSPACE not in set(traces["source"].to_pylist()):
        return {}
    labels = texts(names, LABEL)
    found: list[dict[str, Any]] = job.query(_XSPACE_TYPES).to_pylist()
    return {row["node"]: text for row in found if (text := labels.get(row["label"]))}


def _kernels(names: pa.Table, seen: Mapping[int, str]) -> dict[str, str]:
    """Return by name the nodes that ran as a library's kernel: their ops go by their own names."""
    is_label = pc.and_(
        pc.equal(names["kind"], pa.scalar(LABEL, pa.uint16())), pc.match_substring(names["text"], "_Mkl")
    )
    said = filter(None, map(labelled, texts(names.filter(is_label), LABEL).values()))
    nodes = texts(names, NODE) if seen else {}
    pairs = chain(said, ((nodes[number], kernel) for number, kernel in seen.items() if number in nodes))
    return {name: kernel for name, kernel in pairs if of_library(kernel)}


def _with_kernel(node: Node, kernel: str) -> Node:
    """Return ``node`` with the kernel among its types."""
    types = tuple(dict.fromkeys((*node.facts.types, kernel)))
    return replace(node, facts=replace(node.facts, types=types))


def _labelled(names: pa.Table, graph: pa.Table) -> dict[int, str]:
    """Return the op types of nodes that no graph has, by id: timeline labels tell those of what TensorFlow put in."""
    known: set[Any] = set(graph["name"].to_pylist())
    absent = {name: number for number, name in texts(names, NODE).items() if name not in known}
    if not absent:
        return {}
    told = [labelled(label) for label in texts(names, LABEL).values() if " = " in label]
    return {absent[name]: op_type(op) for name, op in filter(None, told) if name in absent}


def _counted(node: Node, found: "Known") -> Node:
    """Return ``node`` with the operations of all of its executions: step by step where they differ."""
    count = found.counts.get(node.name)
    if count is None:
        return node
    float_ops = count.one * (1 if node.entries is None else node.stats.runs) if count.total is None else count.total
    return replace(node, stats=node.stats._replace(float_ops=signed(float_ops)))


# -- one device ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Ran:
    """What ran on devices with certain names: its rows of a rollup with the nodes' own rows, names of nodes and devices."""

    rollup: pa.Table
    nodes: frozenset[str]
    devices: frozenset[str]


def matching(devices: Mapping[int, str], pattern: str) -> dict[int, str]:
    """Return those of ``devices`` whose names, in lower case, ``pattern`` matches."""
    pattern = pattern.lower() if set("*?[") & set(pattern) else f"*{pattern.lower()}*"
    return {number: text for number, text in devices.items() if fnmatchcase(text, pattern)}


def _ran_on(rollup: pa.Table, names: pa.Table, pattern: str) -> _Ran:
    """Return what ran on devices that ``pattern`` matches."""
    devices = matching(device_names(names), pattern)
    here = pc.is_in(rollup["device"], value_set=pa.array(devices, pa.uint32()))
    ids = pc.unique(rollup.filter(here)["node"])
    own = pc.and_(pc.equal(rollup["device"], pa.scalar(NONE_ID, pa.uint32())), pc.is_in(rollup["node"], value_set=ids))
    node_names = texts(names, NODE)
    nodes: list[Any] = ids.to_pylist()
    return _Ran(
        rollup.filter(pc.or_(here, own)),
        frozenset(node_names[number] for number in nodes),
        frozenset(devices.values()),
    )


def _narrowed(node: Node, ran: _Ran) -> Node:
    """Return ``node`` with none but the devices that were asked for."""
    return replace(node, devices=tuple(device for device in node.devices if device in ran.devices))


def _no_such_device(pattern: str, chosen: Iterable[_Chosen]) -> UsageError:
    known = sorted({name for one in chosen for name in texts(one.job.table("names"), DEVICE).values()})
    return UsageError(f"nothing ran on a device like '{pattern}'; there are {' '.join(known)}", slug="no-such-device")
