"""The tables `ops` and `nodes`: the numbers of the op view, most time first."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from ..query.facts import FLOAT_OPS, GRAPH, STACKS
from ..query.job_selection import Selection
from ..query.profile import profile
from ..summaries.top import heaviest
from ..tfviews.nodes import Node, Stats
from ..tfviews.places import Places
from ..tfviews.tree import sum_of
from .columns import NODES, OPS
from .parts import table_of_rows


class _NodesThatRan(NamedTuple):
    """Nodes, most time first; `steps`: number of traced steps that their counters cover."""

    nodes: list[Node]
    steps: int
    places: Places


def ops(selection: Selection) -> Iterator[pa.Table]:
    """Yield a row for each op type with a node that ran."""
    ran = _nodes_that_ran(selection)
    by_op: dict[str, list[Node]] = {}
    for node in ran.nodes:
        by_op.setdefault(node.op, []).append(node)
    groups = [(op, nodes, sum_of([node.stats for node in nodes])) for op, nodes in by_op.items()]
    groups.sort(key=lambda group: (-group[2].micros, group[0]))
    rows = [
        (op, _devices(nodes), heaviest(nodes, ran.places.line), len(nodes), *_per_step(total, ran.steps))
        for op, nodes, total in groups
    ]
    yield table_of_rows(rows, OPS)


def nodes(selection: Selection) -> Iterator[pa.Table]:
    """Yield a row for each node that ran."""
    ran = _nodes_that_ran(selection)
    rows = [
        (node.name, node.op, _devices([node]), ran.places.line(node), node.entries, *_per_step(node.stats, ran.steps))
        for node in ran.nodes
    ]
    yield table_of_rows(rows, NODES)


def _nodes_that_ran(selection: Selection) -> _NodesThatRan:
    job_profile = profile(selection, required_facts=(GRAPH, FLOAT_OPS, STACKS), averaged=False)
    nodes = job_profile.nodes if job_profile else []
    found = sorted((node for node in nodes if node.entries), key=lambda node: (-node.stats.micros, node.name))
    return _NodesThatRan(found, max(1, job_profile.trace_count if job_profile else 0), Places(nodes))


def _per_step(stats: Stats, steps: int) -> list[float]:
    """Return the counters of ``stats``, sums over ``steps`` steps, per step.

    Parameters do not grow with the steps. All but the runs are whole numbers.
    """
    values = stats._replace(params=stats.params * steps)
    return [values.runs / steps, *(round(value / steps) for value in values[1:])]


def _devices(nodes: Sequence[Node]) -> list[str]:
    return sorted({device for node in nodes for device in node.devices})
