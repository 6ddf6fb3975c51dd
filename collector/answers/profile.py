"""From a store to what the views fold: the nodes of one job, or of several, over the traced steps that are asked for."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from tfprof.collector.answers.needs import EVERYTHING
from tfprof.collector.errors import NoSuchStepError, UsageError
from tfprof.collector.store.catalog import IMPORTED
from tfprof.collector.store.devices import GPU, STREAMS
from tfprof.collector.store.reader import Job
from tfprof.collector.store.schema import DEVICE, LABEL, NODE, NONE_ID
from tfprof.collector.views.kernels import op_type
from tfprof.collector.views.nodes import Node, device_names, finished, merged, signed, sums, texts
from tfprof.collector.views.rules import DEFAULT, Rules
from tfprof.shim import layout

if TYPE_CHECKING:
    from tfprof.collector.answers.facts import Known

#: Steps that an error lists.
_LISTED: Final = 20
_XSPACE_TYPES: Final = f"""
    SELECT node, min(label) AS label FROM ops
    WHERE trace IN (SELECT trace FROM traces WHERE source = {layout.XSPACE})
    GROUP BY node"""  # noqa: S608  # a number of ours
_TRACE_COLUMNS: Final = ("trace", "source", "kind", "step", "key", "accelerator")


@dataclass(frozen=True, slots=True)
class Profile:
    """The nodes of one job, or of several, in name order with their statistics over ``traces`` traced steps.

    ``missing_stream``: in some step of theirs a GPU worked of which no kernels' times were recorded. ``uncounted``: so many
    nodes ran whose operations could not be counted, because a shape is not known.
    """

    nodes: list[Node]
    traces: int
    missing_stream: bool = False
    uncounted: int = 0


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


def profile(
    jobs: Job | Sequence[Job],
    step: int = -1,
    *,
    steps: tuple[int, int] | None = None,
    device: str | None = None,
    averaged: bool = True,
    needs: Collection[str] = EVERYTHING,
    rules: Rules = DEFAULT,
) -> Profile | None:
    """Read the nodes of jobs: of one traced step, of those from ``steps[0]`` to ``steps[1]``, or of all (-1).

    Nodes of several jobs are put together by name, and their traced steps count as so many. ``device``: only nodes that ran
    on a device whose name matches, and their times there: part of the name, or a pattern with `*` and `?`, in any case.
    ``averaged``: averages over a node's traced steps, else sums. ``needs``: which facts of nodes are looked at.

    Returns None when nothing was traced yet. Raises UsageError ``no-such-step``, ``no-such-device``.
    """
    chosen = _chosen([jobs] if isinstance(jobs, Job) else jobs, step, steps)
    if not chosen:
        return None
    parts, uncounted = zip(*(_nodes_at_one_moment(one, device, needs, rules) for one in chosen), strict=True)
    nodes = parts[0] if len(parts) == 1 else merged(parts)
    if device is not None and not nodes:
        raise _no_such_device(device, chosen)
    missing = any(misses_streams(one.traces) for one in chosen if not (rules.strict and one.job.info.tells_slots))
    finished_nodes = finished(nodes, averaged=averaged, rules=rules)
    return Profile(finished_nodes, sum(one.count for one in chosen), missing, sum(uncounted))


# -- which traces --------------------------------------------------------------------------------


def _chosen(jobs: Iterable[Job], step: int, steps: tuple[int, int] | None) -> list[_Chosen]:
    """Return the jobs that have any of the traces asked for; none when no job has any trace at all, and none is a mere graph."""
    first, last = (step, step) if step >= 0 else steps or (None, None)
    tables = [(job, job.table("traces", _TRACE_COLUMNS)) for job in jobs]
    known = [(job, table) for job, table in tables if table.num_rows or job.info.state == IMPORTED]
    if first is None or last is None:
        return [_Chosen(job, table, None) for job, table in known]
    if steps is not None and not steps[0] <= first <= steps[1]:
        raise UsageError(f"Options -step={step} is not in the steps {steps[0]}-{steps[1]}", slug="no-such-step")
    chosen = [_Chosen(job, table, numbers) for job, table in known if (numbers := _numbers(table, first, last))]
    if known and not chosen:
        raise _no_such_step(known, first, last)
    return chosen


def misses_streams(traces: pa.Table) -> bool:
    """Whether in some step a GPU is seen and none of its streams; tfprof forgets it of a profile that it reads from a file."""
    told: list[Any] = traces["accelerator"].to_pylist()
    return any(seen & GPU and not seen & STREAMS for seen in told)


def of_first_kind(traces: pa.Table) -> pa.Table:
    """Return the traces whose steps are what users call steps: of the first kind that has any."""
    kinds = set(traces["kind"].to_pylist())
    kind = next((kind for kind in layout.STEP_KINDS if kind in kinds), 0)
    return traces.filter(pc.equal(traces["kind"], pa.scalar(kind, pa.uint16())))


def _numbers(traces: pa.Table, first: int, last: int) -> tuple[int, ...]:
    """Return the traces of the steps ``first`` to ``last``."""
    mine = of_first_kind(traces)
    within = pc.and_(pc.greater_equal(mine["step"], _step(first)), pc.less_equal(mine["step"], _step(last)))
    numbers: list[Any] = mine.filter(within)["trace"].to_pylist()
    return tuple(sorted(numbers))


def _step(number: int) -> Any:
    return pa.scalar(number, pa.uint64())


def _no_such_step(jobs: Iterable[tuple[Job, pa.Table]], first: int, last: int) -> NoSuchStepError:
    known: set[Any] = {step for _, traces in jobs for step in of_first_kind(traces)["step"].to_pylist()}
    steps = sorted(known)
    some = " ".join(map(str, steps[:_LISTED])) + (f" … {steps[-1]}" if len(steps) > _LISTED else "")
    wanted = str(first) if first == last else f"{first}-{last}"
    return NoSuchStepError(f"Options -step={wanted} not found. Available steps: {some}", steps)


# -- the nodes of one job ------------------------------------------------------------------------


def _nodes_at_one_moment(
    chosen: _Chosen, device: str | None, needs: Collection[str], rules: Rules
) -> tuple[list[Node], int]:
    return chosen.job.at_one_moment(lambda job: _nodes(replace(chosen, job=job), device, needs, rules))


def _nodes(chosen: _Chosen, device: str | None, needs: Collection[str], rules: Rules) -> tuple[list[Node], int]:
    """Return the nodes with their sums, and how many of them could not be counted."""
    job = chosen.job
    names = job.table("names")
    total = job.rollup()
    rollup = total if chosen.numbers is None else job.rollup(chosen.numbers)
    ran = None if device is None else _ran_on(rollup, names, device)
    found = _known(chosen, names, rollup, needs, rules) if needs else None
    nodes = sums(
        rollup if ran is None else ran.rollup,
        names,
        job.table("graph_nodes", ["name", "op"]),
        _op_types(job, names, chosen.traces),
        facts=found.facts if found else None,
        total=total,
    )
    nodes = [_counted(node, found) for node in nodes] if found and found.counts else nodes
    nodes = nodes if ran is None else [_narrowed(node, ran) for node in nodes if node.name in ran.nodes]
    return nodes, found.uncounted if found else 0


def _known(chosen: _Chosen, names: pa.Table, rollup: pa.Table, needs: Collection[str], rules: Rules) -> "Known":
    from tfprof.collector.answers.facts import Steps, known  # noqa: PLC0415  # with protobuf, a tenth of a command's start

    return known(chosen.job, names, Steps(chosen.traces, chosen.numbers, rollup), needs, rules)


def _op_types(job: Job, names: pa.Table, traces: pa.Table) -> dict[int, str]:
    """Return the op types that a profiler window saw run, by node."""
    if layout.XSPACE not in set(traces["source"].to_pylist()):
        return {}
    labels = texts(names, LABEL)
    found: list[dict[str, Any]] = job.query(_XSPACE_TYPES).to_pylist()
    return {row["node"]: op_type(text) for row in found if (text := labels.get(row["label"]))}


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


def _ran_on(rollup: pa.Table, names: pa.Table, pattern: str) -> _Ran:
    """Return what ran on devices that ``pattern`` matches."""
    pattern = pattern.lower() if set("*?[") & set(pattern) else f"*{pattern.lower()}*"
    devices = device_names(names)
    matching = {number: text for number, text in devices.items() if fnmatchcase(text, pattern)}
    here = pc.is_in(rollup["device"], value_set=pa.array(matching, pa.uint32()))
    ids = pc.unique(rollup.filter(here)["node"])
    own = pc.and_(pc.equal(rollup["device"], pa.scalar(NONE_ID, pa.uint32())), pc.is_in(rollup["node"], value_set=ids))
    node_names = texts(names, NODE)
    nodes: list[Any] = ids.to_pylist()
    return _Ran(
        rollup.filter(pc.or_(here, own)),
        frozenset(node_names[number] for number in nodes),
        frozenset(matching.values()),
    )


def _narrowed(node: Node, ran: _Ran) -> Node:
    """Return ``node`` with none but the devices that were asked for."""
    return replace(node, devices=tuple(device for device in node.devices if device in ran.devices))


def _no_such_device(pattern: str, chosen: Iterable[_Chosen]) -> UsageError:
    known = sorted({name for one in chosen for name in texts(one.job.table("names"), DEVICE).values()})
    return UsageError(f"nothing ran on a device like '{pattern}'; there are {' '.join(known)}", slug="no-such-device")
