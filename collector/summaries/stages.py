"""What a job's time went into, one stage after the other.

The stages are its start, its fits, evaluations and runs, and what came after them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from .jobs import ENDED, STARTING, JobRow
from .spans import Phase

#: What comes before the first step or fit, and what after the last one.
ENDING: Final = "ending"
WAITING: Final = "no step since"


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a job's life: its name, how many spans are in it, and their time; ``running``: it goes on."""

    name: str
    count: int
    total_ns: int
    running: bool = False


def stages(row: JobRow, phases: Sequence[Phase], spans: pa.Table, now_ns: int) -> list[Stage]:
    """Return the stages of the job of ``row``, with its ``phases`` and its SPANS, seen at ``now_ns``."""
    end_ns = row.ended_ns or now_ns
    if not spans.num_rows:
        return [Stage(STARTING, 1, max(0, end_ns - row.started_ns), row.phase != ENDED)]
    first: Any = pc.min(spans["start_ns"]).as_py()
    last: Any = pc.max(pc.add(spans["start_ns"], spans["total_ns"])).as_py()
    found = [Stage(STARTING, 1, max(0, first - row.started_ns)), *_of_phases(phases)]
    name = ENDING if row.phase == ENDED else WAITING
    return [*found, Stage(name, 1, max(0, end_ns - last), row.phase != ENDED)]


def _of_phases(phases: Sequence[Phase]) -> list[Stage]:
    """Return a stage for each kind of what is at the top of the tree.

    A fit that goes on has what its epochs took so far.
    """
    found: dict[str, Stage] = {}
    for at, phase in enumerate(phases):
        if phase.depth:
            continue
        total = phase.total_ns if not phase.running else _below(phases[at + 1 :])
        before = found.get(phase.kind, Stage(phase.kind, 0, 0))
        number = before.count + (1 if phase.running else phase.count)
        found[phase.kind] = Stage(phase.kind, number, before.total_ns + total, before.running or phase.running)
    return list(found.values())


def _below(phases: Sequence[Phase]) -> int:
    """Return the time of the epochs, or the batches of those that go on, that come before the next entry of depth 0."""
    total, open_epoch = 0, False
    for phase in phases:
        if not phase.depth:
            break
        if phase.depth == 1:
            open_epoch = phase.running
            total += phase.total_ns
        elif open_epoch:
            total += phase.total_ns
    return total
