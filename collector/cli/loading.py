"""From a store to what the op views are folded from."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from tfprof.collector.errors import UsageError
from tfprof.collector.store.reader import Job
from tfprof.collector.store.schema import LABEL
from tfprof.collector.views.attributes import Shapes
from tfprof.collector.views.kernels import op_type
from tfprof.collector.views.nodes import Node, build, texts
from tfprof.shim import layout

#: Steps that an error lists.
_LISTED = 20
_XSPACE_TYPES = f"""
    SELECT node, min(label) AS label FROM ops
    WHERE trace IN (SELECT trace FROM traces WHERE source = {layout.XSPACE})
    GROUP BY node"""  # noqa: S608  # a number of ours


@dataclass(frozen=True, slots=True)
class Traced:
    """The nodes of a job with their statistics over ``traces`` traced steps; ``shapes`` where they were asked for."""

    nodes: list[Node]
    traces: int
    shapes: Shapes


def _trace_of(traces: pa.Table, step: int) -> int:
    """Return the trace of ``step``, of the first kind that has traces; UsageError lists the steps that there are."""
    kinds = set(traces["kind"].to_pylist())
    kind = next((kind for kind in layout.STEP_KINDS if kind in kinds), 0)
    mine = traces.filter(pc.equal(traces["kind"], pa.scalar(kind, pa.uint16())))
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


def traced(job: Job, step: int = -1, *, averaged: bool = True, attributes: bool = True) -> Traced | None:
    """Read the nodes of a job: of one traced step, or of all (-1); None when nothing was traced yet.

    ``attributes``: with parameters and shapes, which takes reading the whole graph.
    """
    traces = job.table("traces", ["trace", "source", "kind", "step"])
    if not traces.num_rows:
        return None
    one = _trace_of(traces, step) if step >= 0 else None
    names = job.table("names")
    graph = job.table("graph_nodes", ["name", "op", "node_def"] if attributes else ["name", "op"])
    nodes = build(job.rollup(one, one), names, graph, _op_types(job, names, traces), averaged=averaged)
    shapes = Shapes.of(nodes if attributes else [])
    return Traced(shapes.counted(nodes) if attributes else nodes, traces.num_rows if one is None else 1, shapes)
