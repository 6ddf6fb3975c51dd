"""Cost of tracing a step: traced steps compared with untraced neighbors.

Neighbors have the same kind, key and thread.
"""

from itertools import groupby
from statistics import median
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ...formats import layout

#: Minimum number of traced steps that have enough neighbors.
PAIRS_MIN: Final = 5
#: The neighbors of a traced step are the untraced steps among this many entries on each side.
_ENTRIES_PER_SIDE: Final = 4
#: Minimum number of neighbors.
_NEIGHBORS_MIN: Final = 2


class StepCost(NamedTuple):
    """Median extra time of ``pairs`` traced steps over their neighbors, in ns and as a share."""

    ns: float
    share: float
    pairs: int


def step_cost(spans: pa.Table) -> StepCost | None:
    """Return the cost of tracing a step, None without enough traced steps.

    ``spans``: SPANS of one kind and key, without failed and setup steps. Only neighbors are
    compared, since a job's first steps are slower than later ones, and are traced more often.
    """
    names = ("thread", "start_ns", "total_ns", "count", "flags")
    columns: Any = (spans[name].to_pylist() for name in names)
    rows = sorted(zip(*columns, strict=True))
    extra_times, neighbor_times = [], []
    for _, thread_rows in groupby(rows, key=lambda row: row[0]):
        steps = [(total / count, bool(flags & layout.FLAG_TRACED)) for _, _, total, count, flags in thread_rows]
        for index, (time_ns, traced) in enumerate(steps):
            if traced:
                neighbors = [
                    ns
                    for ns, is_traced in steps[max(0, index - _ENTRIES_PER_SIDE) : index + _ENTRIES_PER_SIDE + 1]
                    if not is_traced
                ]
                if len(neighbors) >= _NEIGHBORS_MIN:
                    neighbor_times.append(median(neighbors))
                    extra_times.append(time_ns - neighbor_times[-1])
    if len(extra_times) < PAIRS_MIN:
        return None
    neighbor_ns, extra_ns = median(neighbor_times), median(extra_times)
    return StepCost(extra_ns, extra_ns / neighbor_ns if neighbor_ns else 0.0, len(extra_times))
