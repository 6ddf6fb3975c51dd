"""The memory of a job as text: a verdict, the peak of each allocator, growth, and host memory."""

from collections.abc import Iterator, Sequence
from typing import Final

from ..numbers import count, counted, duration, percent, size
from ..summaries.memory import (
    BEFORE,
    USES,
    AllocatorMemory,
    Finding,
    HeldGrowth,
    Holder,
    HostMemory,
    MemoryUse,
    Named,
    most,
    others,
    verdict,
)
from . import colors
from .table import Column, render
from .wrapping import wrapped

_HOLDER_COLUMNS: Final = (
    Column("HELD AT THE PEAK", min_width=16, preferred_width=32),
    Column("OP", drop_priority=3),
    Column("USE", drop_priority=2),
    Column("BYTES", right=True),
    Column("SHARE", right=True),
    Column("", drop_priority=4, is_bar=True),
    Column("LINE", min_width=10, preferred_width=36, drop_priority=1),
)
_SUM_COLUMNS: Final = (
    Column("", min_width=16, preferred_width=32),
    Column("BYTES", right=True),
    Column("SHARE", right=True),
    Column("", drop_priority=1, is_bar=True),
)
_BAR_WIDTH: Final = 20
_HOLDERS_MAX: Final = 8
_SUMS_MAX: Final = 4
#: A node has a row if it holds at least this share of the peak.
_SHARE_MIN: Final = 0.002
_BEFORE_NAME: Final = "(from before the step)"


def lines(memory: MemoryUse, job: str, width: int | None) -> Iterator[str]:
    """Yield the memory of ``job``, at most ``width`` wide if possible."""
    yield from (colors.paint("verdict", text) for text in wrapped(f"Verdict: {verdict(memory)}.", width))
    for allocator in memory.allocators:
        yield ""
        yield from _allocator_lines(allocator, width)
    yield ""
    yield from _growth_lines(memory, width)
    yield ""
    yield from _host_lines(memory.host, width)
    yield ""
    yield from wrapped(_next(memory, job), width)


def _allocator_lines(memory: AllocatorMemory, width: int | None) -> Iterator[str]:
    yield from (colors.paint("title", text) for text in wrapped(_heading(memory), width))
    rows = [(holder.node or _BEFORE_NAME, holder) for holder in memory.holders]
    yield from render(_HOLDER_COLUMNS, list(_holder_rows(rows, memory)), width=width)
    for title, sums in (("SCOPE", memory.scopes), ("LINE", memory.lines)):
        if sums:
            yield ""
            columns = (_SUM_COLUMNS[0]._replace(title=title), *_SUM_COLUMNS[1:])
            yield from render(columns, _sum_rows(sums, memory.peak_bytes), width=width)
    yield ""
    columns = (_SUM_COLUMNS[0]._replace(title="USE"), *_SUM_COLUMNS[1:])
    uses = [Named(USES[use], amount) for use, amount in memory.uses.items()]
    yield from render(columns, _sum_rows(uses, memory.peak_bytes), width=width)
    for note in _notes(memory):
        yield from wrapped(f"note: {note}", width)


def _heading(memory: AllocatorMemory) -> str:
    least, highest = map(size, memory.peaks)
    peaks = f"is {highest}" if least == highest else f"is {least} to {highest}"
    steps = f"that of {counted(memory.steps, 'traced step')} {peaks}"
    return (
        f"{memory.place}: peak {size(memory.peak_bytes)}, {duration(memory.after_ns)} after the start of"
        f" {memory.kind} step {count(memory.step)}" + (f"; {steps}" if memory.steps > 1 else "")
    )


def _holder_rows(rows: Sequence[tuple[str, Holder]], memory: AllocatorMemory) -> Iterator[list[str]]:
    whole = max(1, memory.peak_bytes)
    before = memory.before_bytes or 0
    if before:
        yield [_BEFORE_NAME, "", "", size(before), percent(before / whole), _bar(before / whole), ""]
    shown = [row for row in rows[:_HOLDERS_MAX] if row[1].bytes >= _SHARE_MIN * whole]
    for name, holder in shown:
        share = holder.bytes / whole
        use = "" if holder.use == BEFORE else holder.use
        yield [name, holder.op, use, size(holder.bytes), percent(share), _bar(share), holder.line]
    rest = rows[len(shown) :]
    if rest:
        amount = sum(holder.bytes for _, holder in rest)
        share = amount / whole
        yield [others(len(rest)), "", "", size(amount), percent(share), _bar(share), ""]


def _sum_rows(sums: Sequence[Named], whole: int) -> list[list[str]]:
    shares = [(named, named.bytes / max(1, whole)) for named in most(sums, _SUMS_MAX)]
    return [[named.name, size(named.bytes), percent(share), _bar(share)] for named, share in shares]


def _bar(share: float) -> str:
    return "█" * round(share * _BAR_WIDTH)


def _notes(memory: AllocatorMemory) -> Iterator[str]:
    if memory.before_bytes is None:
        source = "the profiler session" if memory.is_session else "RunMetadata"
        yield f"{source} has the blocks that the step allocates; variables and other data from before it are not known"
    if memory.block_min:
        yield f"this allocator reports blocks of {memory.block_min:,} bytes or more; smaller ones are not recorded"
    if memory.fragmentation is not None:
        yield f"the allocator reports a fragmentation of {percent(memory.fragmentation)} at the peak"


def _growth_lines(memory: MemoryUse, width: int | None) -> Iterator[str]:
    for finding in memory.findings:
        yield from _finding_lines(finding, width)
    held = [allocator for allocator in memory.allocators if allocator.growth]
    for allocator in held:
        if allocator.growth:
            yield from wrapped(_held_text(allocator.place, allocator.growth), width)
    if not memory.findings and not held:
        missing = memory.growth_missing
        yield from wrapped(f"Growth: unknown, {missing}." if missing else "Growth: none that is steady.", width)


def _finding_lines(finding: Finding, width: int | None) -> Iterator[str]:
    yield from wrapped(f"Growth: {finding.text}", width)
    if finding.line:
        yield f"  your line:  {finding.line}"
    yield from wrapped(f"  what to do: {finding.remedy}", width)


def _held_text(place: str, growth: HeldGrowth) -> str:
    kept = ", ".join(f"{named.name} ({size(named.bytes)})" for named in growth.kept)
    return (
        f"Growth: what is in use on {place} before a step grows from {size(growth.first_bytes)} in step"
        f" {count(growth.first_step)} to {size(growth.last_bytes)} in step {count(growth.last_step)},"
        f" {size(growth.step_bytes)} a step."
        + (f" What a step leaves behind is of {kept}." if kept else " No op leaves memory behind in the traced steps.")
    )


def _host_lines(host: HostMemory | None, width: int | None) -> Iterator[str]:
    if host is None:
        yield "Host memory: no samples."
        return
    yield from (colors.paint("title", line) for line in wrapped(_host_text(host), width))
    if host.peak_bytes is None:
        return
    if host.unknown_bytes is None:
        text = f"note: {host.processes} processes share this figure; what of it is known is not recorded"
        yield from wrapped(text, width)
        return
    rows = [*host.known, Named("not known", host.unknown_bytes)]
    columns = (_SUM_COLUMNS[0]._replace(title="RSS AT THE PEAK"), *_SUM_COLUMNS[1:])
    yield from render(columns, _sum_rows(rows, host.peak_bytes), width=width)
    yield from wrapped(
        "not known: Python, NumPy arrays, libraries, data outside of ops, freed memory that is not given back", width
    )


def _host_text(host: HostMemory) -> str:
    parts = [f"{size(host.most_bytes)} at most in {counted(host.samples, 'sample')}"]
    if host.before_bytes is not None:
        parts.append(f"{size(host.before_bytes)} before the first step")
    if host.peak_bytes is not None:
        parts.append(f"{size(host.peak_bytes)} at the peak above")
    return f"Host memory (RSS): {', '.join([*parts, f'{size(host.last_bytes)} at the end'])}"


def _next(memory: MemoryUse, job: str) -> str:
    commands = [f"export {job} -o memory.svg", f"op {job} -select memory,residual_memory"] if memory.allocators else []
    commands.append(f"host {job}" if memory.host else f"steps {job}")
    return f"next: {' · '.join(f'tfprof {command}' for command in commands)}"
