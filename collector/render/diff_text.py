"""The comparison of runs as text: a verdict, the runs, what differs exactly, and a table of ops."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ..numbers import change_text, count, date_and_time, duration, percent
from ..summaries.comparison import DIFFERENCE_MIN, PLANNED_DIFFERENCE, Change, OpChange
from ..summaries.jobs import JobRow
from ..summaries.parts import TITLES, PartChange
from .table import Column, render
from .wrapping import wrapped

#: Maximum number of ops, and of exact differences, that are listed.
OPS_MAX: Final = 12
DIFFERENCES_MAX: Final = 6
_PARTIAL_MAX: Final = 5
_OP_COLUMNS: Final = (
    Column("op", min_width=12, preferred_width=24),
    Column("device", drop_priority=3),
    Column("before", right=True),
    Column("after", right=True),
    Column("change", right=True),
    Column("visible from", right=True, drop_priority=2),
    Column(""),
)
#: The columns of the table of parts: its rows are the parts of a step, then start to start.
_PART_COLUMNS: Final = (
    Column("part of the step", min_width=12),
    *(Column(title, right=True) for title in ("before", "after", "change")),
)
_TOTAL: Final = "start to start"
_RUN_COLUMNS: Final = (
    Column(""),
    Column("job"),
    Column("name", min_width=8, preferred_width=16),
    Column("started", drop_priority=2),
    Column("host", min_width=4, drop_priority=3),
    Column("steps", right=True, drop_priority=4),
    Column("step", right=True),
)


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run: before or after, its job, and the median time of a step in ns, None if unknown."""

    side: str
    row: JobRow
    step_ns: float | None


@dataclass(frozen=True, slots=True)
class DiffParts:
    """The parts of a comparison that are shown; ``differences`` are (what, before, after).

    ``samples``: the number of samples before and after; ``unit``: what a sample is, run or step.
    """

    runs: Sequence[RunLine]
    step: Change | None
    differences: Sequence[tuple[str, str, str]]
    common_ratio: float
    ops: Sequence[OpChange]
    host: str
    samples: tuple[int, int]
    unit: str = "run"
    parts: Sequence[PartChange] = ()
    partial: Sequence[str] = ()


def lines(parts: DiffParts, width: int | None) -> Iterator[str]:
    """Yield the lines of the comparison, the verdict first."""
    yield from wrapped(verdict(parts), width)
    yield from wrapped(parts.host, width)
    for what, before, after in parts.differences[:DIFFERENCES_MAX]:
        yield from wrapped(f"different: {what}: {before} -> {after}", width)
    if parts.differences[DIFFERENCES_MAX:]:
        yield f"different: {len(parts.differences) - DIFFERENCES_MAX:,} more (--json has all)"
    yield ""
    yield from run_table(parts.runs, width)
    if parts.parts:
        yield ""
        yield from render(_PART_COLUMNS, list(_part_rows(parts.parts)), width=width)
    if abs(parts.common_ratio - 1) > DIFFERENCE_MIN:
        alike = f"all ops alike: {change_text(parts.common_ratio)}, which the changes below do not include"
        yield from wrapped(alike, width)
    if parts.ops:
        yield ""
        yield from render(_OP_COLUMNS, [_op_cells(line) for line in parts.ops[:OPS_MAX]], width=width)
    if parts.ops[OPS_MAX:]:
        yield from wrapped(f"left out: {len(parts.ops) - OPS_MAX:,} op types that changed less (--json has all)", width)
    yield from wrapped(partial_text(parts.partial), width)


def partial_text(ops: Sequence[str]) -> str:
    """Return which ops are not compared, '' if all are."""
    more = f" and {len(ops) - _PARTIAL_MAX:,} more" if ops[_PARTIAL_MAX:] else ""
    names = ", ".join(ops[:_PARTIAL_MAX]) + more
    return f"not compared, since not every run has them: {names}" if ops else ""


def _part_rows(changes: Sequence[PartChange]) -> Iterator[list[str]]:
    """Yield a row for each part, then their sum, the time from start to start."""
    rows = [(TITLES[change.slug], change.before_ns, change.after_ns) for change in changes]
    total = (_TOTAL, sum(change.before_ns for change in changes), sum(change.after_ns for change in changes))
    for title, before_ns, after_ns in [*rows, total]:
        difference = after_ns - before_ns
        sign = "-" if difference < 0 else "+"
        yield [title, duration(before_ns), duration(after_ns), f"{sign}{duration(abs(difference))}"]


def verdict(parts: DiffParts) -> str:
    """Return the answer in one line."""
    step = parts.step
    if step is None:
        side = "on one side" if any(line.step_ns for line in parts.runs) else "on either side"
        return f"no untraced steps {side}: only ops are compared"
    times = f"{duration(step.before_ns)} -> {duration(step.after_ns)} a step"
    if step.significant is None:
        few = "one run" if parts.unit == "run" else "so few steps"
        return f"{change_text(step.ratio)}: {times}; {few} a side cannot tell a change from noise"
    before, after = parts.samples
    if step.significant:
        return f"{change_text(step.ratio)}: {times}, beyond noise ({before:,} {parts.unit}s against {after:,})"
    visible = "" if step.visible is None else f"; these {parts.unit}s show changes from {percent(step.visible)} on"
    return f"no change beyond noise: {times} ({change_text(step.ratio)}){visible}{runs_needed(step)}"


def runs_needed(step: Change) -> str:
    """Return how many runs a side would show a change of PLANNED_DIFFERENCE, if these do not."""
    is_shown = step.visible is not None and step.visible <= PLANNED_DIFFERENCE
    return f", {step.runs} runs a side from {percent(PLANNED_DIFFERENCE)} on" if step.runs and not is_shown else ""


def run_table(runs: Sequence[RunLine], width: int | None) -> list[str]:
    """Return the table of the runs."""
    return render(_RUN_COLUMNS, [_run_cells(line) for line in runs], width=width)


def _run_cells(line: RunLine) -> list[str]:
    row = line.row
    started = date_and_time(row.started_ns)
    return [line.side, row.id, row.name, started, row.host, count(row.steps), duration(line.step_ns)]


def _op_cells(line: OpChange) -> list[str]:
    cells = [line.op, line.device, duration(line.before_ns), duration(line.after_ns)]
    if line.change is None:
        return [*cells, "", "", "new" if line.before_ns is None else "gone"]
    change = line.change
    visible = "-" if change.visible is None else percent(change.visible)
    mark = ("slower" if change.own_ratio > 1 else "faster") if change.significant else ""
    return [*cells, f"{(change.own_ratio - 1) * 100:+.1f} %", visible, mark]
