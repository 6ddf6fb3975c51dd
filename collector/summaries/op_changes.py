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
    """An op type on a device, with its time per step before and now.

    ``line``: the user's line with the most time of these ops.
    """

    op: str
    device: str
    before_ns: float
    now_ns: float
    line: str


def op_changes(before: Sequence[TopOp], now: Sequence[TopOp]) -> tuple[OpChange, ...]:
    """Return up to CHANGES_MAX ops with the largest growth of their time, largest first.

    Each has more than _SHARE_MIN of the growth of all ops that take longer.
    """
    before_ns = {(op.op, op.device): op.ns for op in before}
    changes = [OpChange(op.op, op.device, before_ns.get((op.op, op.device), 0.0), op.ns, op.line) for op in now]
    growth = sum(max(0.0, change.now_ns - change.before_ns) for change in changes)
    large_changes = [change for change in changes if change.now_ns - change.before_ns > _SHARE_MIN * growth]
    return tuple(sorted(large_changes, key=lambda change: change.before_ns - change.now_ns)[:CHANGES_MAX])
