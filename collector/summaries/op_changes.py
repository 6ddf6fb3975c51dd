"""Ops that take longer than before."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .top import TopOp

#: Maximum number of ops that are listed, and the share of all growth that each exceeds.
LISTED: Final = 3
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


def op_changes(before: Sequence[TopOp], since: Sequence[TopOp]) -> tuple[OpChange, ...]:
    """Return up to LISTED ops with the largest growth of their median time, largest first.

    Each has more than _SHARE_MIN of the growth of all ops that take longer.
    """
    old = {(one.op, one.device): one.median_us for one in before}
    changes = [
        OpChange(one.op, one.device, old.get((one.op, one.device), 0.0), one.median_us, one.line) for one in since
    ]
    growth = sum(max(0.0, one.now_us - one.before_us) for one in changes)
    grown = [one for one in changes if one.now_us - one.before_us > _SHARE_MIN * growth]
    return tuple(sorted(grown, key=lambda one: one.before_us - one.now_us)[:LISTED])
