"""The spread of equal runs as text: a verdict, the runs, and a table of ops."""

from collections.abc import Iterator
from typing import Final

from ..numbers import duration, percent
from ..query.diffing import Diff, op_spreads
from ..summaries.comparison import OpSpread
from .diff_text import OPS_MAX, run_table, runs_needed
from .table import Column, render

_OP_COLUMNS: Final = (
    Column("op", min_width=12, preferred_width=24),
    Column("device", drop_priority=3),
    Column("time/step", right=True),
    Column("least", right=True, drop_priority=2),
    Column("most", right=True, drop_priority=2),
    Column("visible from", right=True),
)


def lines(result: Diff, width: int | None) -> Iterator[str]:
    """Yield the lines of the spread, the verdict first."""
    ops = op_spreads(result)
    yield verdict(result)
    yield ""
    yield from run_table(result, width)
    if ops:
        yield ""
        yield from render(_OP_COLUMNS, [_cells(op) for op in ops[:OPS_MAX]], width=width)
    if ops[OPS_MAX:]:
        yield f"left out: {len(ops) - OPS_MAX:,} op types with less time (--json has all)"


def verdict(result: Diff) -> str:
    """Return the answer in one line."""
    times = [run.step_ns for run in result.before if run.step_ns]
    if result.step is None or not times:
        return "no untraced steps: only ops are compared"
    answer = f"{duration(result.step.before_ns)} a step in {len(times):,} runs"
    spread = f"{duration(min(times))} to {duration(max(times))}"
    visible = result.step.visible
    shown = "" if visible is None else f"; {len(times):,} runs a side show changes from {percent(visible)} on"
    return f"{answer}, {spread}{shown}{runs_needed(result.step)}"


def _cells(op: OpSpread) -> list[str]:
    visible = "-" if op.visible is None else percent(op.visible)
    return [op.op, op.device, *map(duration, (op.ns, op.least_ns, op.most_ns)), visible]
