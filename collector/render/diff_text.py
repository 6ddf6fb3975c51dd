"""The comparison of runs as text: a verdict, the runs, what differs exactly, and a table of ops."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ..numbers import change_text, count, date_and_time, duration, percent
from ..query.diffing import Diff, Run, ops_by_change
from ..summaries.comparison import DIFFERENCE_MIN, PLANNED_DIFFERENCE, Change, OpChange
from ..summaries.parts import TITLES, PartChange
from .table import Column, render
from .wrapping import wrapped

#: Maximum number of ops, and of exact differences, that are listed.
OPS_MAX: Final = 12
DIFFERENCES_MAX: Final = 6
_PARTIAL_MAX: Final = 5
#: Share of the host's CPUs by which the use of others must differ to be named.
_OTHERS_MIN: Final = 0.1
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


def lines(result: Diff, unit: str, width: int | None) -> Iterator[str]:
    """Yield the lines of the comparison, the verdict first; ``unit``: a sample, run or step."""
    ops = ops_by_change(result)
    yield from wrapped(verdict(result, unit), width)
    yield from wrapped(host_text(result), width)
    for each in result.differences[:DIFFERENCES_MAX]:
        yield from wrapped(f"different: {each.what}: {each.before} -> {each.after}", width)
    if result.differences[DIFFERENCES_MAX:]:
        yield f"different: {len(result.differences) - DIFFERENCES_MAX:,} more (--json has all)"
    yield ""
    yield from run_table(result, width)
    if parts := result.parts:
        yield ""
        yield from render(_PART_COLUMNS, list(_part_rows(parts)), width=width)
    if abs(result.ops.common_ratio - 1) > DIFFERENCE_MIN:
        alike = f"all ops alike: {change_text(result.ops.common_ratio)}, which the changes below do not include"
        yield from wrapped(alike, width)
    if ops:
        yield ""
        yield from render(_OP_COLUMNS, [_op_cells(op) for op in ops[:OPS_MAX]], width=width)
    if ops[OPS_MAX:]:
        yield from wrapped(f"left out: {len(ops) - OPS_MAX:,} op types that changed less (--json has all)", width)
    yield from wrapped(partial_text(result.partial), width)


def host_text(result: Diff) -> str:
    """Return how others' use of the host changed; '' if it is similar on both sides, or unknown."""
    sides: list[Any] = [[run for run in side if run.others_cores is not None] for side in (result.before, result.after)]
    if not all(sides):
        return ""
    old, new = (sum(run.others_cores for run in side) / len(side) for side in sides)
    cores = sides[1][0].cores
    if abs(new - old) < _OTHERS_MIN * cores:
        return ""
    return f"the host: others used {new:.2f} of {cores} CPUs, {old:.2f} before"


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


def verdict(result: Diff, unit: str) -> str:
    """Return the answer in one line; ``unit``: what is a sample, run or step."""
    step = result.step
    if step is None:
        side = "on one side" if any(run.step_ns for run in (*result.before, *result.after)) else "on either side"
        return f"no untraced steps {side}: only ops are compared"
    times = f"{duration(step.before_ns)} -> {duration(step.after_ns)} a step"
    if step.significant is None:
        few = "one run" if unit == "run" else "so few steps"
        return f"{change_text(step.ratio)}: {times}; {few} a side cannot tell a change from noise"
    if step.significant:
        sides = (result.before, result.after)
        before, after = (len(side) if unit == "run" else side[0].row.steps for side in sides)
        return f"{change_text(step.ratio)}: {times}, beyond noise ({before:,} {unit}s against {after:,})"
    visible = "" if step.visible is None else f"; these {unit}s show changes from {percent(step.visible)} on"
    return f"no change beyond noise: {times} ({change_text(step.ratio)}){visible}{runs_needed(step)}"


def runs_needed(step: Change) -> str:
    """Return how many runs a side would show a change of PLANNED_DIFFERENCE, if these do not."""
    is_shown = step.visible is not None and step.visible <= PLANNED_DIFFERENCE
    return f", {step.runs} runs a side from {percent(PLANNED_DIFFERENCE)} on" if step.runs and not is_shown else ""


def named_runs(result: Diff) -> Iterator[tuple[str, Run]]:
    """Yield each run, with its side."""
    if result.is_spread:
        yield from (("run", run) for run in result.before)
    else:
        yield from (("before", run) for run in result.before)
        yield from (("after", run) for run in result.after)


def run_table(result: Diff, width: int | None) -> list[str]:
    """Return the table of the runs."""
    return render(_RUN_COLUMNS, [_run_cells(side, run) for side, run in named_runs(result)], width=width)


def _run_cells(side: str, run: Run) -> list[str]:
    row = run.row
    started = date_and_time(row.started_ns)
    return [side, row.id, row.name, started, row.host, count(row.steps), duration(run.step_ns)]


def _op_cells(line: OpChange) -> list[str]:
    cells = [line.op, line.device, duration(line.before_ns), duration(line.after_ns)]
    if line.change is None:
        return [*cells, "", "", "new" if line.before_ns is None else "gone"]
    change = line.change
    visible = "-" if change.visible is None else percent(change.visible)
    mark = ("slower" if change.own_ratio > 1 else "faster") if change.significant else ""
    return [*cells, f"{(change.own_ratio - 1) * 100:+.1f} %", visible, mark]
