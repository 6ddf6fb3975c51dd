"""The summary of a job, or a comparison, as Markdown for a ticket, a chat or a CI run."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..collector.numbers import (
    change_text,
    count,
    counted,
    counted_steps,
    date_and_time,
    duration,
    percent,
    size,
    total_cost,
)
from ..collector.query.diffing import Diff, op_spreads, ops_by_change
from ..collector.render import spread_text
from ..collector.render.diff_text import host_text, named_runs, partial_text, verdict
from ..collector.store.protocols import JobReader, StoreReader
from ..collector.summaries.comparison import DIFFERENCE_MIN, OpChange
from ..collector.summaries.parts import TITLES
from ..commands.streams import clean
from .documents import document

#: Maximum rows of a table, and maximum characters of a text.
_ROWS_MAX: Final = 20
_TEXT_MAX: Final = 2000
#: The holder of memory that was allocated before the step.
_BEFORE: Final = "(from before the step)"
_SPECIAL: Final = re.compile(r"([\\`*_\[\]|~])")


def _text(value: object) -> str:
    """Return a foreign text that Markdown and HTML show as it is, on one line."""
    text = clean(str(value))
    cut = text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 1]}…"
    line = cut.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", line)


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]], texts: int) -> Iterator[str]:
    """Yield a table; the first ``texts`` columns are texts, the others numbers."""
    yield f"| {' | '.join(titles)} |"
    yield f"|{'|'.join('---' if at < texts else '---:' for at in range(len(titles)))}|"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def job_lines(store: StoreReader, job: JobReader) -> Iterator[str]:
    """Yield the lines of a job's summary: what it is, advice, step times and parts, ops, alerts."""
    uid = (job.info.hex,)
    names = ("show", "advise", "alerts", "memory")
    show, advice, alerts, memory = (document(store, name, uid, {}) for name in names)
    yield from (f"# {_text(show['name'] or show['id'])}", "")
    facts = [
        f"job {_text(show['id'])}, {_text(show['state'])}",
        f"{_text(show['user'] or '-')}@{_text(show['host'] or '-')}",
        _text(f"{show['framework']} {show['framework_version']}".strip()),
        f"{duration(show['duration_ns'])} since {date_and_time(show['started_ns'])}",
        _text(counted_steps(show["steps"], show["step_kind"])),
        f"{count(show['traced'])} traced"
        + ("" if show["cost"] is None else f" (cost {total_cost(show['cost'], show['steps_ns'])})"),
        f"{'an unknown number' if show['lost'] is None else count(show['lost'])} lost",
    ]
    yield from (" · ".join(fact for fact in facts if fact), "")
    yield from _advice(advice)
    yield from _steps(show)
    yield from _parts(advice["parts"])
    yield from _ops(show["top_ops"])
    yield from _memory(memory)
    if alerts["alerts"]:
        yield from ("## Alerts", "")
        yield from (
            f"- {date_and_time(each['found_ns'])} {_text(each['text'])}" for each in alerts["alerts"][-_ROWS_MAX:]
        )
        yield ""
        yield from _left_out(len(alerts["alerts"]))


def _advice(advice: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"**{_text(advice['verdict'])}**", "")
    for checker in advice["checkers"]:
        for report in checker["reports"]:
            line = f" ({_text(report['line'])})" if report["line"] else ""
            remedy = f" *To do:* {_text(report['todo'])}." if report["todo"] else ""
            yield f"- **{_text(checker['title'])}:** {_text(report['text'].rstrip('.'))}{line}.{remedy}"
    yield ""


def _parts(step: Mapping[str, Any] | None) -> Iterator[str]:
    if step is None:
        return
    rows = [[_text(part["name"]), duration(part["mean_ns"]), percent(part["share"])] for part in step["parts"]]
    yield from _table((f"part of a {_text(step['kind'])} step", "time/step", "share"), rows, 1)
    means = f"Means of {counted(step['steps'], 'step')}"
    if step["traced_steps"]:
        means += f", their inside from {counted(step['traced_steps'], 'traced step')}"
    yield from (f"{means}, from start to start {duration(step['period_ns'])}: {_text(step['verdict'])}.", "")


def _steps(show: Mapping[str, Any]) -> Iterator[str]:
    rows = [
        [
            _text(times["kind"])
            + (" (traced)" if times["traced"] else "")
            + (f" since {count(times['since'])}" if times["since"] else ""),
            count(times["count"]),
            *(duration(times["spread"][name]) for name in ("p50_ns", "p90_ns", "p99_ns", "min_ns", "max_ns")),
        ]
        for times in show["step_times"][:_ROWS_MAX]
    ]
    if rows:
        yield from _table(("steps", "count", "median", "p90", "p99", "min", "max"), rows, 1)
        yield from _left_out(len(show["step_times"]))


def _ops(top: Mapping[str, Any]) -> Iterator[str]:
    rows = [
        [
            *(_text(op[name] or "-") for name in ("op", "device", "line")),
            duration(op["ns"]),
            percent(op["share"]),
            size(op["bytes"]),
        ]
        for op in top["ops"][:_ROWS_MAX]
    ]
    if rows:
        yield from _table(("op", "device", "line", "time/step", "share", "memory"), rows, 3)
        yield from _left_out(len(top["ops"]))
        yield from (f"Medians over {counted(top['steps'], 'traced step')}.", "")


def _memory(memory: Mapping[str, Any]) -> Iterator[str]:
    if not memory["allocators"] and not memory["growth"]:
        return
    yield from ("## Memory at the peak", "", f"{_text(memory['verdict'])}.", "")
    for finding in memory["growth"]:
        line = f" ({_text(finding['line'])})" if finding["line"] else ""
        yield from (f"- {_text(finding['text'])}{line} *To do:* {_text(finding['remedy'])}.", "")
    for each in memory["allocators"]:
        place = _text(f"{each['device']} {each['allocator']}".strip())
        rows = list(_holders(each))
        yield from _table((f"held on {place}", "op", "use", "line", "bytes", "share"), rows[:_ROWS_MAX], 4)
        yield from _left_out(len(rows))


def _holders(allocator: Mapping[str, Any]) -> Iterator[list[str]]:
    whole, before = max(1, allocator["peak_bytes"]), allocator["before_bytes"]
    if before:
        yield [_BEFORE, "-", "-", "-", size(before), percent(before / whole)]
    for holder in allocator["holders"]:
        texts = (holder["node"] or _BEFORE, holder["op"] or "-", holder["use"], holder["line"] or "-")
        yield [*map(_text, texts), size(holder["bytes"]), percent(holder["bytes"] / whole)]


def diff_lines(result: Diff, unit: str) -> Iterator[str]:
    """Yield the lines of a comparison: verdict, what differs exactly, runs, parts, ops.

    ``unit``: what is a sample, run or step.
    """
    ops, common_ratio = ops_by_change(result), result.ops.common_ratio
    yield from (f"**{verdict(result, unit)}**", "")
    if host := host_text(result):
        yield from (_text(host), "")
    if result.differences:
        rows = [list(map(_text, (row.what, row.before, row.after))) for row in result.differences[:_ROWS_MAX]]
        yield from _table(("what differs", "before", "after"), rows, 3)
        yield from _left_out(len(result.differences))
    yield from _runs(result)
    if parts := result.parts:
        rows = [[TITLES[part.slug], duration(part.before_ns), duration(part.after_ns)] for part in parts]
        yield from _table(("part of the step", "before", "after"), rows, 1)
    if abs(common_ratio - 1) > DIFFERENCE_MIN:
        yield from (f"All ops alike: {_text(change_text(common_ratio))}; the changes below leave it out.", "")
    if ops:
        rows = [_op_row(op) for op in ops[:_ROWS_MAX]]
        yield from _table(("op", "device", "", "before", "after", "change", "visible from"), rows, 3)
        yield from _left_out(len(ops))
    if result.partial:
        yield from (f"{_text(partial_text(result.partial))}", "")


def spread_lines(result: Diff) -> Iterator[str]:
    """Yield the lines of the spread of equal runs."""
    ops = op_spreads(result)
    yield from (f"**{spread_text.verdict(result)}**", "")
    yield from _runs(result)
    rows = [
        [_text(op.op), _text(op.device), *map(duration, (op.ns, op.least_ns, op.most_ns)), _visible(op.visible)]
        for op in ops[:_ROWS_MAX]
    ]
    if rows:
        yield from _table(("op", "device", "time/step", "least", "most", "visible from"), rows, 2)
        yield from _left_out(len(ops))


def _runs(result: Diff) -> Iterator[str]:
    rows = [
        [
            *(_text(text) for text in (side, run.row.id, run.row.name, run.row.host)),
            count(run.row.steps),
            duration(run.step_ns),
        ]
        for side, run in named_runs(result)
    ]
    yield from _table(("", "job", "name", "host", "steps", "median step"), rows, 4)


def _op_row(op: OpChange) -> list[str]:
    texts, times = [_text(op.op), _text(op.device)], [duration(op.before_ns), duration(op.after_ns)]
    change = op.change
    if change is None:
        return [*texts, "new" if op.before_ns is None else "gone", *times, "", ""]
    mark = ("**slower**" if change.own_ratio > 1 else "**faster**") if change.significant else ""
    return [*texts, mark, *times, f"{(change.own_ratio - 1) * 100:+.1f} %", _visible(change.visible)]


def _visible(share: float | None) -> str:
    return "-" if share is None else percent(share)


def _left_out(number: int) -> Iterator[str]:
    if number > _ROWS_MAX:
        yield from (f"And {number - _ROWS_MAX:,} more.", "")
