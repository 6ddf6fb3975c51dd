"""The stages of a job and their times: the start, the fits, evaluations and runs, and the end."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ...formats import layout
from .jobs import ENDED, STARTING, JobRow
from .spans import SpanNode

#: Names of the stage after the last step or fit: of an ended job, and of a running one.
ENDING: Final = "ending"
WAITING: Final = "no step since"


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of a job: its name, and the number and total time of its spans.

    ``running``: whether the stage has not ended.
    """

    name: str
    count: int
    total_ns: int
    running: bool = False


def stages(row: JobRow, tree: Sequence[SpanNode], spans: pa.Table, now_ns: int) -> list[Stage]:
    """Return the stages of the job of ``row`` at ``now_ns``, from its SPANS and their ``tree``."""
    end_ns = row.ended_ns or now_ns
    spans = spans.filter(pc.not_equal(spans["kind"], pa.scalar(layout.ACTIVITY, pa.uint16())))
    if not spans.num_rows:
        return [Stage(STARTING, 1, max(0, end_ns - row.started_ns), row.phase != ENDED)]
    first_start: Any = pc.min(spans["start_ns"]).as_py()
    last_end: Any = pc.max(pc.add(spans["start_ns"], spans["total_ns"])).as_py()
    ended_stages = [Stage(STARTING, 1, max(0, first_start - row.started_ns)), *_span_stages(tree)]
    name = ENDING if row.phase == ENDED else WAITING
    return [*ended_stages, Stage(name, 1, max(0, end_ns - last_end), row.phase != ENDED)]


def _span_stages(tree: Sequence[SpanNode]) -> list[Stage]:
    """Return a stage for each kind of span at depth 0.

    A running fit has the time of its epochs so far.
    """
    stages_by_kind: dict[str, Stage] = {}
    for index, node in enumerate(tree):
        if node.depth:
            continue
        total = node.total_ns if not node.running else _epochs_ns(tree[index + 1 :])
        earlier = stages_by_kind.get(node.kind, Stage(node.kind, 0, 0))
        number = earlier.count + (1 if node.running else node.count)
        stages_by_kind[node.kind] = Stage(node.kind, number, earlier.total_ns + total, earlier.running or node.running)
    return list(stages_by_kind.values())


def _epochs_ns(nodes: Sequence[SpanNode]) -> int:
    """Return the total time of the epochs in ``nodes`` before the first node of depth 0.

    A running epoch has the time of its batches.
    """
    total, open_epoch = 0, False
    for node in nodes:
        if not node.depth:
            break
        if node.depth == 1:
            open_epoch = node.running
            total += node.total_ns
        elif open_epoch:
            total += node.total_ns
    return total
