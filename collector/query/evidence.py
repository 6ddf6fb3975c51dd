"""From a store to the evidence that checkers look at."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from ...formats import layout
from ..advice.evidence import Evidence, IdenticalGraphs, NewNodes, OpExecution, StepMemory, Timed, Traced
from ..store.columns import pc
from ..store.devices import is_canonical
from ..store.reader import Job
from ..store.schema import DEVICE, LABEL, NODE
from ..summaries.jobs import words
from ..summaries.kinds import leading, of_names
from ..summaries.steps import UNUSUAL
from ..tfviews.entries import Entry
from ..tfviews.nodes import Node, texts
from ..tfviews.own_files import own_place
from ..tfviews.parity import DEFAULT, Parity
from .executions import by_step, step_traces
from .profile import profile
from .required_facts import GRAPH, STACKS
from .step_times import step_times
from .surroundings import host_samples, levels, load, steady

#: Traced steps whose executions are looked at one by one, the latest; executions that are too many for that.
SAMPLE: Final = 8
_ROWS: Final = 400_000
#: Rows of timed steps that are looked at, the latest.
TIMED: Final = 100_000

_TIMED: Final = ["ordinal", "count", "start_ns", "total_ns", "flags", "key"]
_KEPT: Final = """
    SELECT trace, sum(live_bytes + persistent_bytes)::BIGINT AS residual, max(in_use_bytes) AS in_use
    FROM ops GROUP BY trace"""
_FIRST: Final = (
    "SELECT first, count(*) AS nodes FROM (SELECT node, min(trace) AS first FROM ops GROUP BY node) GROUP BY first"
)
_GRAPHS: Final = """
    SELECT count(*) AS graphs, nodes, min(example) AS example, min(graph) AS graph FROM (
        SELECT graph, count(*) AS nodes, sum(hash(name, op)) AS kind, min(name) AS example FROM graph_nodes GROUP BY graph
    ) GROUP BY nodes, kind"""
_LAST: Final = "SELECT node, device, max(trace) AS trace FROM ops GROUP BY node, device"


def gather(job: Job, parity: Parity = DEFAULT) -> Evidence:
    """Read what checkers look at of a job; with exact parity only what tfprof's look at."""
    found = profile(job, needs=(GRAPH, STACKS), parity=parity)
    nodes = tuple(found.nodes) if found else ()
    steps = step_traces(job)
    last = _last(job, nodes, steps)
    if parity.exact:
        return Evidence(nodes=nodes, has_steps=bool(steps), last=last, parity=parity)
    spans, samples = job.table("spans"), job.table("samples")
    kind, timed = _timed(job, spans)
    during = steady(spans)
    return Evidence(
        nodes=nodes,
        has_steps=bool(steps),
        last=last,
        times=step_times(found).nodes if found and found.traces else {},
        parity=parity,
        step_kind=kind,
        timed=timed,
        traced=_traced(job, nodes, steps),
        kept=_kept(job, steps),
        levels=levels(samples, during) if during else (),
        load=load(samples, host_samples(job, samples)),
        new=_new(job),
        graphs=_graphs(job, nodes),
        first_calls=_first_calls(spans),
    )


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    columns: Any = (table[name].to_pylist() for name in table.column_names)
    return list(zip(*columns, strict=True))


def _last(job: Job, nodes: Sequence[Node], steps: Mapping[int, Sequence[int]]) -> dict[str, tuple[int, Entry]]:
    """Return for each node of a GPU the last step in which it has an entry, and the entry."""
    own = {node.name: node.devices[0] for node in nodes if node.devices and "gpu" in node.devices[0]}
    if not own:
        return {}
    names = job.table("names")
    known, devices = texts(names, NODE), {number: text.lower() for number, text in texts(names, DEVICE).items()}
    canonical = {number for number, text in devices.items() if is_canonical(text.encode("utf-8", "surrogateescape"))}
    step_of = {trace: step for step, traces in steps.items() for trace in traces}
    last: dict[str, int] = {}
    for number, device, trace in _rows(job.query(_LAST)):
        name = known.get(number)  # of a running job there may be more than when its names were read
        if name in own and trace in step_of and (device not in canonical or devices[device] == own[name]):
            last[name] = max(last.get(name, 0), step_of[trace])
    return {
        name: (step, entry)
        for step, found in by_step(job, set(last.values()))
        for name, entry in found.items()
        if last.get(name) == step
    }


def _timed(job: Job, spans: pa.Table) -> tuple[str, tuple[Timed, ...]]:
    """Return the kind of step that the job is about, and the latest of them of the thread that has most."""
    there: dict[int, Any] = dict.fromkeys(pc.unique(spans["kind"]).to_pylist())
    kind = leading(there, of_names(words(job.info).get("times")))
    if kind is None:
        return "", ()
    mine = spans.filter(pc.equal(spans["kind"], pa.scalar(kind, pa.uint16())))
    threads = mine.group_by("thread").aggregate([("total_ns", "sum")]).sort_by([("total_ns_sum", "descending")])
    mine = mine.filter(pc.equal(mine["thread"], threads["thread"][0])).sort_by("start_ns")
    rows = _rows(mine.slice(max(0, mine.num_rows - TIMED)).select(_TIMED))
    return layout.SPAN_NAMES[kind], tuple(Timed._make((*row[:4], not row[4] & UNUSUAL, row[5])) for row in rows)


def _first_calls(spans: pa.Table) -> tuple[float, ...]:
    """Return when each function was called first, as a share of the time from the first span to the last."""
    calls = spans.filter(pc.equal(spans["kind"], pa.scalar(layout.FUNCTION, pa.uint16())))
    first: list[Any] = calls.group_by("key").aggregate([("start_ns", "min")])["start_ns_min"].to_pylist()
    if not first:
        return ()
    began, ended = pc.min(spans["start_ns"]).as_py(), pc.max(spans["start_ns"]).as_py()
    return tuple((at - began) / max(1, ended - began) for at in first)


def _traced(job: Job, nodes: Sequence[Node], steps: Mapping[int, Sequence[int]]) -> tuple[Traced, ...]:
    """Return the latest traced steps with their executions, fewer of them where they have many."""
    numbers = [trace for step in sorted(steps)[-SAMPLE:] for trace in steps[step]]
    if not numbers:
        return ()
    listed = ", ".join(map(str, numbers))
    traces = _rows(
        job.query(f"SELECT trace, step, duration_ns, rows FROM traces WHERE trace IN ({listed}) ORDER BY trace DESC")  # noqa: S608  # numbers
    )
    room = _ROWS
    taken: dict[int, tuple[int, int]] = {}
    for trace, step, duration_ns, rows in traces:
        room -= rows
        if room < 0 and taken:
            break
        taken[trace] = (step, duration_ns)
    executions = _executions(job, nodes, taken)
    return tuple(Traced(*taken[trace], tuple(executions[trace])) for trace in reversed(taken))


def _executions(job: Job, nodes: Sequence[Node], traces: Mapping[int, Any]) -> dict[int, list[OpExecution]]:
    names = job.table("names")
    known, devices, labels = texts(names, NODE), texts(names, DEVICE), texts(names, LABEL)
    ops = {node.name: node.op for node in nodes}
    found: dict[int, list[OpExecution]] = {trace: [] for trace in traces}
    rows = job.query(
        f"""SELECT trace, node, device, label, thread, start_ns, start_ns + op_start_ns + op_end_ns AS end_ns
        FROM ops WHERE trace IN ({", ".join(map(str, traces))}) ORDER BY trace, start_ns"""  # noqa: S608  # numbers
    )
    for trace, number, device, label, thread, start_ns, end_ns in _rows(rows):
        name = known[number]
        op = ops.get(name) or labels.get(label, "")
        found[trace].append(OpExecution(name, op, devices[device].lower(), thread, start_ns, end_ns))
    return found


def _kept(job: Job, steps: Mapping[int, Sequence[int]]) -> tuple[StepMemory, ...]:
    """Return what each traced step left behind, by number of the step."""
    step_of = {trace: step for step, traces in steps.items() for trace in traces}
    found = (
        StepMemory(step_of[trace], residual, in_use)
        for trace, residual, in_use in _rows(job.query(_KEPT))
        if trace in step_of
    )
    return tuple(sorted(found))


def _new(job: Job) -> tuple[NewNodes, ...]:
    first = dict(_rows(job.query(_FIRST)))
    traces = job.table("traces", ["trace", "kind", "key"]).select(["trace", "kind", "key"])
    return tuple(NewNodes((kind, key), first.get(trace, 0)) for trace, kind, key in sorted(_rows(traces)))


def _graphs(job: Job, nodes: Sequence[Node]) -> tuple[IdenticalGraphs, ...]:
    """Return the graphs that are alike; the line is told of the largest, of which alone anything is said."""
    rows = _rows(job.query(_GRAPHS))
    largest = max(rows, key=lambda row: row[1], default=None)
    return tuple(IdenticalGraphs._make((*row[:3], _line(job, nodes, row[3]) if row is largest else "")) for row in rows)


def _line(job: Job, nodes: Sequence[Node], graph: int) -> str:
    """Return the user's own line that most nodes of a graph come from."""
    names = {name for (name,) in _rows(job.query(f"SELECT name FROM graph_nodes WHERE graph = {graph}"))}  # noqa: S608  # a number
    places = Counter(place for node in nodes if node.name in names and (place := own_place(node.facts.stack)))
    return places.most_common(1)[0][0] if places else ""
