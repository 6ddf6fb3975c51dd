"""The programs that XLA compiled in a job as text, and the ops of one of them."""

import shlex
from collections.abc import Iterator
from typing import Final

from ..numbers import count, counted, duration, percent
from ..query.compiled import Compiled
from ..summaries.compiled import FirstRuns, Program, ProgramOp
from . import colors
from .table import Column, render
from .wrapping import wrapped

#: Maximum number of ops that are shown of a program.
OPS_MAX: Final = 20

_PROGRAMS: Final = (
    Column("PROGRAM", min_width=12, preferred_width=30),
    Column("TIME", right=True),
    Column("SHARE", right=True),
    Column("OPS", right=True, drop_priority=2),
    Column("VARIANTS", right=True, drop_priority=3),
    Column("FIRST RUNS", right=True, drop_priority=1),
)
_OPS: Final = (
    Column("OP", min_width=16, preferred_width=34),
    Column("TYPE", min_width=10, preferred_width=20, drop_priority=1),
    Column("TIME", right=True),
    Column("SHARE", right=True),
    Column("FUSED INTO", min_width=12, preferred_width=24, drop_priority=2),
    Column("LINE", min_width=10, preferred_width=24, drop_priority=3),
)


def lines(answer: Compiled, job: str, width: int | None, top: int) -> Iterator[str]:
    """Yield the programs of ``answer``, and up to ``top`` ops if there is only one."""
    programs = answer.programs
    if not programs:
        return
    share = sum(program.share for program in programs)
    verdict = f"{counted(len(programs), 'program')} compiled by XLA: {percent(share)} of the ops' time"
    verdict += f" in {counted(answer.steps, 'traced step')}"
    yield from (colors.paint("verdict", text) for text in wrapped(f"Verdict: {verdict}.", width))
    yield ""
    yield from render(_PROGRAMS, list(map(_program_cells, programs)), width=width)
    yield ""
    if len(programs) > 1:
        yield f"next: tfprof compiled {job} {shlex.quote(programs[0].name)} shows its ops"
        return
    yield from _op_lines(programs[0], width, top)


def _program_cells(program: Program) -> list[str]:
    numbers = [count(number) if number else "-" for number in (len(program.ops), program.variants)]
    return [program.name, duration(program.ns), percent(program.share), *numbers, _first_runs(program.first_runs)]


def _first_runs(runs: FirstRuns | None) -> str:
    return "-" if runs is None else f"{duration(runs.ns)} in {count(runs.number)}"


def _op_lines(program: Program, width: int | None, top: int) -> Iterator[str]:
    if not program.ops:
        yield from wrapped("note: TensorFlow did not record which ops went into it", width)
        return
    shown = program.ops[:top]
    yield from render(_OPS, [_op_cells(op, program.ns) for op in shown], width=width)
    if len(program.ops) > len(shown):
        yield f"and {len(program.ops) - len(shown):,} more (--top)"
    if all(op.ns is None for op in program.ops):
        yield from wrapped("note: TensorFlow recorded the time of the whole program only", width)


def _op_cells(op: ProgramOp, whole_ns: float | None) -> list[str]:
    share = percent(op.ns / whole_ns) if op.ns is not None and whole_ns else ""
    return [op.node, op.op, duration(op.ns) if op.ns is not None else "", share, op.fused_into, op.line]
