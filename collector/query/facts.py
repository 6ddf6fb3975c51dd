"""What is known about a job's nodes besides the executions that were traced.

These facts are graphs, operation counts, shapes and Python stacks; the stacks are read here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from ..tfviews.nodes import NodeFacts

if TYPE_CHECKING:
    from ..flops.counts import Count
import itertools
from dataclasses import replace
from functools import cache

from ..store.columns import row_tuples
from ..store.protocols import JobReader
from ..store.schema import NODE
from ..tfviews.nodes import NO_FACTS, Frame, interned_texts
from ..tfviews.parity import Parity
from ..tfviews.places import original_name
from ..tfviews.stacks import FRAME_COLUMNS, GraphOp, forward_ops, stacks

#: Names of the facts that a query may require.
GRAPH, FLOAT_OPS, SHAPES, STACKS = "graph", "float_ops", "shapes", "stacks"
ALL_FACTS: Final = frozenset({GRAPH, FLOAT_OPS, SHAPES, STACKS})


@dataclass(frozen=True, slots=True)
class JobFacts:
    """Facts about a job's nodes, by name.

    ``counts``: operations by node, empty unless `Parity.counts_by_step`; ``uncounted``: number of
    nodes whose operations could not be counted.
    """

    facts: Mapping[str, NodeFacts]
    counts: Mapping[str, "Count"]
    uncounted: int = 0


NO_JOB_FACTS: Final = JobFacts({}, {})


class SelectedTraces(NamedTuple):
    """The traces of a job, and which of them are selected.

    ``traces`` has all traces. ``numbers`` are the numbers of the selected traces, None for all.
    ``rollup`` is the ROLLUP of the selected traces.
    """

    traces: pa.Table
    numbers: Sequence[int] | None
    rollup: pa.Table


def with_stacks(
    facts: Mapping[str, NodeFacts], job: JobReader, names: pa.Table, parity: Parity
) -> dict[str, NodeFacts]:
    """Return ``facts`` with Python stacks and forward ops.

    A node that TensorFlow inlined from the body of a function gets the stack and the forward op of
    the node in the body, if ``parity`` follows the inlining.
    """
    stack_by_name = stacks(job.table("frames", FRAME_COLUMNS), job.table("stacks"))
    forward = _forward_ops(job, stack_by_name) if parity.finds_forward_ops else {}
    if parity.follows_inlining:
        body_nodes = {
            name: original_name(name) for name in interned_texts(names, NODE).values() if name not in stack_by_name
        }
        stack_by_name |= {name: stack_by_name[body] for name, body in body_nodes.items() if body in stack_by_name}
    facts_with_stacks = {
        name: replace(facts.get(name, NO_FACTS), stack=stack, forward=forward.get(original_name(name), ""))
        for name, stack in stack_by_name.items()
    }
    return {**facts, **facts_with_stacks}


def _forward_ops(job: JobReader, stack_by_name: Mapping[str, tuple[Frame, ...]]) -> dict[str, str]:
    """Return the forward ops of gradients.

    NodeDefs are read only if names and stacks do not decide.
    """

    @cache
    def node_defs() -> dict[tuple[int, str], bytes]:
        rows = row_tuples(job.table("graph_nodes", ["graph", "name", "node_def"]), "graph", "name", "node_def")
        return {(graph, name): node_def for graph, name, node_def in rows}

    @cache
    def inputs_of(graph: int, name: str) -> tuple[str, ...]:
        from ..flops import attributes  # noqa: PLC0415  # imports protobuf: a tenth of a command's start

        return attributes.attributes(node_defs().get((graph, name), b"")).inputs

    rows = row_tuples(job.table("graph_nodes", ["graph", "name", "op"]), "graph", "name", "op")
    return forward_ops(itertools.starmap(GraphOp, rows), stack_by_name, inputs_of)
