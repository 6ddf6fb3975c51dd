"""What is known about a job's nodes besides the executions that were traced.

These facts are graphs, operation counts, shapes and Python stacks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from ..tfviews.nodes import NodeFacts

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


class SelectedTraces(NamedTuple):
    """The traces of a job, and which of them are selected.

    ``traces`` has all traces. ``numbers`` are the numbers of the selected traces, None for all.
    ``rollup`` is the ROLLUP of the selected traces.
    """

    traces: pa.Table
    numbers: Sequence[int] | None
    rollup: pa.Table
