"""What is known about a job's nodes besides the executions that were traced.

These facts are graphs, operation counts, shapes and Python stacks; the stacks are read here.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from ..store.columns import pc, row_tuples
from ..store.protocols import JobReader
from ..store.schema import NODE
from ..tfviews.nodes import NO_FACTS, Frame, NodeFacts, interned_texts
from ..tfviews.parity import Parity
from ..tfviews.places import original_name
from ..tfviews.stacks import FRAME_COLUMNS, GraphOp, forward_ops, stacks
from .kind_selection import traces_by_kind

if TYPE_CHECKING:
    from ..flops.counts import Count

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


@dataclass(frozen=True, slots=True)
class SelectedJob:
    """One job, its traces, and the numbers of the selected traces; None for all."""

    job: JobReader
    traces: pa.Table
    numbers: tuple[int, ...] | None

    @property
    def trace_count(self) -> int:
        """The number of selected traces."""
        return self.traces.num_rows if self.numbers is None else len(self.numbers)

    @property
    def trace_numbers(self) -> Sequence[int]:
        """The numbers of the selected traces."""
        numbers: list[Any] = sorted(self.traces["trace"].to_pylist())
        return numbers if self.numbers is None else self.numbers

    @property
    def kinds(self) -> dict[int, int]:
        """The number of selected traces of each kind."""
        traces = self.traces
        if self.numbers is not None:
            traces = traces.filter(pc.is_in(traces["trace"], value_set=pa.array(self.numbers, pa.uint32())))
        return traces_by_kind([traces])


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
