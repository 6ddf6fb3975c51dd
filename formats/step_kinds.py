"""Which of several kinds of steps is the job's own."""

from __future__ import annotations

from . import layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping


def leading(times: Mapping[int, int]) -> int | None:
    """Return the kind of step that a job is about, by the ns in steps of each kind; None where there are no steps.

    It is the one with the most time, where a second of training counts as ten, and one of preparation, as initialising and
    saving are, only where there is nothing else.
    """
    weights = layout.STEP_WEIGHTS
    there = [kind for kind in layout.STEP_KINDS if kind in times]
    return max(there, key=lambda kind: (weights[kind] * times[kind], times[kind]), default=None)
