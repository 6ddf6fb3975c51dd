"""From a store to what the views fold: the nodes of one job, or of several, over the traced steps that are asked for."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from tfprof.collector.errors import UsageError
from tfprof.collector.store.reader import Job
from tfprof.collector.store.schema import LABEL
from tfprof.collector.views.attributes import facts
from tfprof.collector.views.kernels import op_type
from tfprof.collector.views.nodes import Facts, Node, build, texts
from tfprof.collector.views.rules import DEFAULT, Rules
from tfprof.shim import layout

#: What may be left out where it is not needed: it takes reading more than the rollup.
GRAPH, FLOAT_OPS, STACKS = "graph", "float_ops", "stacks"
EVERYTHING: Final = frozenset({GRAPH, FLOAT_OPS, STACKS})
#: Steps that an error lists.
_LISTED: Final = 20
_XSPACE_TYPES: Final = f"""
    SELECT node, min(label) AS label FROM ops
    WHERE trace IN (SELECT trace FROM traces WHERE source = {layout.XSPACE})
    GROUP BY node"""  # noqa: S608  # a number of ours


@dataclass(frozen=True, slots=True)
class Profile:
    """The nodes of a job in name order with their statistics over ``traces`` traced steps."""

    nodes: list[Node]
    traces: int


def _of_first_kind(traces: pa.Table) -> pa.Table:
    """Return the traces whose steps are what users call steps: of the first kind that has any."""
    kinds = set(traces["kind"].to_pylist())
    kind = next((kind for kind in layout.STEP_KINDS if kind in kinds), 0)
    return traces.filter(pc.equal(traces["kind"], pa.scalar(kind, pa.uint16())))


def _trace_of(traces: pa.Table, step: int) -> int:
    """Return the trace of ``step``; UsageError lists the steps that there are."""
    mine = _of_first_kind(traces)
    steps: list[Any] = mine["step"].to_pylist()
    if step in steps:
        return int(mine["trace"][steps.index(step)].as_py())
    known = sorted(set(steps))
    some = " ".join(map(str, known[:_LISTED])) + (f" … {known[-1]}" if len(known) > _LISTED else "")
    raise UsageError(f"Options -step={step} not found. Available steps: {some}", slug="no-such-step")


def _op_types(job: Job, names: pa.Table, traces: pa.Table) -> dict[int, str]:
    """Return the op types that a profiler window saw run, by node."""
    if layout.XSPACE not in set(traces["source"].to_pylist()):
        return {}

    labels = texts(names, LABEL)
    found: list[dict[str, Any]] = job.query(_XSPACE_TYPES).to_pylist()
    return {row["node"]: op_type(text) for row in found if (text := labels.get(row["label"]))}


def _facts(graph: pa.Table, needs: Collection[str], rules: Rules) -> Mapping[str, Facts]:
    if not needs:
        return {}
    definitions: Sequence[Any] = list(zip(graph["name"].to_pylist(), graph["node_def"].to_pylist(), strict=True))
    return facts(definitions, rules)


def profile(
    job: Job,
    step: int = -1,
    *,
    averaged: bool = True,
    needs: Collection[str] = EVERYTHING,
    rules: Rules = DEFAULT,
) -> Profile | None:
    """Read the nodes of a job: of one traced step, or of all (-1); None when nothing was traced yet.

    ``needs``: which facts of nodes are looked at; ``averaged``: averages over a node's traced steps, else sums.
    UsageError ``no-such-step`` for a step that was not traced.
    """
    traces = job.table("traces", ["trace", "source", "kind", "step"])
    if not traces.num_rows:
        return None
    one = _trace_of(traces, step) if step >= 0 else None
    names = job.table("names")
    graph = job.table("graph_nodes", ["name", "op", "node_def"] if needs else ["name", "op"])
    total = job.rollup()
    nodes = build(
        total if one is None else job.rollup(one, one),
        names,
        graph,
        _op_types(job, names, traces),
        facts=_facts(graph, needs, rules),
        total=total,
        averaged=averaged,
    )
    return Profile(nodes, traces.num_rows if one is None else 1)
