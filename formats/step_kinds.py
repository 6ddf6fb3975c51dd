"""Chooses the main step kind of a job."""

from __future__ import annotations

from . import layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping


def main_kind(times: Mapping[int, int]) -> int | None:
    """Return the main step kind, None without steps; ``times`` has the ns in each kind.

    It is the kind with the most weighted time. Training counts ten times. Summaries,
    checkpoints, initialization and input count only if there is nothing else.
    """
    weights = layout.STEP_WEIGHTS
    step_kinds = [kind for kind in layout.STEP_KINDS if kind in times]
    return max(step_kinds, key=lambda kind: (weights[kind] * times[kind], times[kind]), default=None)
