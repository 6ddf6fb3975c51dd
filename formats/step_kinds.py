"""Chooses the main step kind of a job."""

from __future__ import annotations

from . import layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping


def main_kind(times: Mapping[int, int], kinds: Mapping[int, tuple[str, str, int]]) -> int | None:
    """Return the main step kind, None without steps; ``times`` has the ns in each kind.

    ``kinds`` has (name, role, weight) of each kind, as `layout.KINDS`. The main kind is that with
    the most weighted time. Of TensorFlow's kinds, training counts ten times. Summaries,
    checkpoints, initialization and input count only if there is nothing else.
    """
    step_kinds = [kind for kind in times if kind in kinds and kinds[kind][1] == layout.STEP_ROLE]
    return max(step_kinds, key=lambda kind: (kinds[kind][2] * times[kind], times[kind]), default=None)
