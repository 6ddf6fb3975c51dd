"""The spread of equal runs as text: a verdict, the runs, and a table of ops."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ..numbers import duration, percent
from ..summaries.comparison import Change, OpSpread
from .diff_text import OPS_MAX, RunLine, run_table, runs_needed
from .table import Column, render

_OP_COLUMNS: Final = (
    Column("op", min_width=12, preferred_width=24),
    Column("device", drop_priority=3),
    Column("time/step", right=True),
    Column("least", right=True, drop_priority=2),
    Column("most", right=True, drop_priority=2),
    Column("visible from", right=True),
)


@dataclass(frozen=True, slots=True)
class SpreadParts:
    """What is shown; ``step``: how the runs' step compares with itself, None if none was timed."""

    runs: Sequence[RunLine]
    step: Change | None
    ops: Sequence[OpSpread]


def lines(parts: SpreadParts, width: int | None) -> Iterator[str]:
    """Yield the lines of the spread, the verdict first."""
    yield verdict(parts)
    yield ""
    yield from run_table(parts.runs, width)
    if parts.ops:
        yield ""
        yield from render(_OP_COLUMNS, [_cells(op) for op in parts.ops[:OPS_MAX]], width=width)
    if parts.ops[OPS_MAX:]:
        yield f"left out: {len(parts.ops) - OPS_MAX:,} op types with less time (--json has all)"


def verdict(parts: SpreadParts) -> str:
    """Return the answer in one line."""
    times = [line.step_ns for line in parts.runs if line.step_ns]
    if parts.step is None or not times:
        return "no untraced steps: only ops are compared"
    answer = f"{duration(parts.step.before_ns)} a step in {len(times):,} runs"
    spread = f"{duration(min(times))} to {duration(max(times))}"
    visible = parts.step.visible
    shown = "" if visible is None else f"; {len(times):,} runs a side show changes from {percent(visible)} on"
    return f"{answer}, {spread}{shown}{runs_needed(parts.step)}"


def _cells(op: OpSpread) -> list[str]:
    visible = "-" if op.visible is None else percent(op.visible)
    return [op.op, op.device, *map(duration, (op.ns, op.least_ns, op.most_ns)), visible]
