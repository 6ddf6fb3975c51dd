"""Ops that take longer than before."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .top import TopOp

#: Maximum number of changes, and the share of all growth that each exceeds.
CHANGES_MAX: Final = 3
_SHARE_MIN: Final = 0.05


@dataclass(frozen=True, slots=True)
class OpChange:
    """An op type on a device, with its median time per step before and now.

    ``line``: the user's line with the most time of these ops.
    """

    op: str
    device: str
    before_us: float
    now_us: float
    line: str


def op_changes(before: Sequence[TopOp], now: Sequence[TopOp]) -> tuple[OpChange, ...]:
    """Return up to CHANGES_MAX ops with the largest growth of their median time, largest first.

    Each has more than _SHARE_MIN of the growth of all ops that take longer.
    """
    before_us = {(op.op, op.device): op.median_us for op in before}
    changes = [OpChange(op.op, op.device, before_us.get((op.op, op.device), 0.0), op.median_us, op.line) for op in now]
    growth = sum(max(0.0, change.now_us - change.before_us) for change in changes)
    large_changes = [change for change in changes if change.now_us - change.before_us > _SHARE_MIN * growth]
    return tuple(sorted(large_changes, key=lambda change: change.before_us - change.now_us)[:CHANGES_MAX])
