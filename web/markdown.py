"""The summary of a job, or of the difference of two, as Markdown for a ticket or a chat."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..collector.numbers import count, date_and_time, duration, percent, size, total_cost
from ..collector.store.protocols import JobReader, StoreReader
from ..commands.streams import clean
from .documents import document

#: Maximum rows of a table, and maximum characters of a text.
_ROWS_MAX: Final = 20
_TEXT_MAX: Final = 2000
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
    """Yield the lines of a job's summary: what it is, advice, step times, ops, alerts."""
    uid = (job.info.hex,)
    show, advice, alerts = (document(store, name, uid, {}) for name in ("show", "advise", "alerts"))
    yield from (f"# {_text(show['name'] or show['id'])}", "")
    facts = [
        f"job {_text(show['id'])}, {_text(show['state'])}",
        f"{_text(show['user'] or '-')}@{_text(show['host'] or '-')}",
        _text(f"{show['framework']} {show['framework_version']}".strip()),
        f"{duration(show['duration_ns'])} since {date_and_time(show['started_ns'])}",
        f"{count(show['steps'])} {_text(show['step_kind'])} steps",
        f"{count(show['traced'])} traced"
        + ("" if show["cost"] is None else f" (cost {total_cost(show['cost'], show['steps_ns'])})"),
        f"{count(show['lost'])} lost",
    ]
    yield from (" · ".join(fact for fact in facts if fact), "")
    yield from _advice(advice)
    yield from _steps(show)
    yield from _ops(show["top_ops"])
    if alerts["alerts"]:
        yield from ("## Alerts", "")
        yield from (
            f"- {date_and_time(each['found_ns'])} {_text(each['text'])}" for each in alerts["alerts"][-_ROWS_MAX:]
        )
        yield ""


def _advice(advice: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"**{_text(advice['verdict'])}**", "")
    for checker in advice["checkers"]:
        for report in checker["reports"]:
            line = f" ({_text(report['line'])})" if report["line"] else ""
            remedy = f" *To do:* {_text(report['todo'])}." if report["todo"] else ""
            yield f"- {_text(report['text'].rstrip('.'))}{line}.{remedy}"
    yield ""


def _steps(show: Mapping[str, Any]) -> Iterator[str]:
    rows = [
        [
            _text(times["kind"]) + (f" since {count(times['since'])}" if times["since"] else ""),
            count(times["count"]),
            *(duration(times["spread"][name]) for name in ("p50_ns", "p90_ns", "p99_ns", "min_ns", "max_ns")),
        ]
        for times in show["step_times"][:_ROWS_MAX]
    ]
    if rows:
        yield from _table(("steps", "count", "median", "p90", "p99", "min", "max"), rows, 1)


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
        yield from (f"Medians over {count(top['steps'])} traced steps.", "")


def diff_lines(store: StoreReader, before: JobReader, after: JobReader) -> Iterator[str]:
    """Yield the lines about the difference of two jobs."""
    diff = document(store, "diff", (before.info.hex, after.info.hex), {})
    sides = [("before", run) for run in diff["before"]] + [("after", run) for run in diff["after"]]
    yield from (f"# {_text(diff['before'][0]['name'])} and {_text(diff['after'][0]['name'])}", "")
    rows = [
        [side, _text(run["name"]), _text(run["host"]), count(run["steps"]), duration(run["step_ns"])]
        for side, run in sides
    ]
    yield from _table(("", "job", "host", "steps", "median step"), rows, 3)
    if diff["step"] is not None:
        noise = {None: "noise is unknown with one run a side", True: "beyond noise", False: "within noise"}
        yield from (f"**Step: {_change(diff['step'])}** ({noise[diff['step']['significant']]})", "")
    rows = [
        [_text(each["what"]), _text(each["before"]), _text(each["after"])] for each in diff["differences"][:_ROWS_MAX]
    ]
    if rows:
        yield from _table(("what differs", "before", "after"), rows, 3)
    rows = [
        [_text(op["op"]), _text(op["device"]), duration(op["before_ns"]), duration(op["after_ns"]), _change(op)]
        for op in diff["ops"][:_ROWS_MAX]
    ]
    if rows:
        yield from _table(("op", "device", "before", "after", "change"), rows, 2)


def _change(row: Mapping[str, Any]) -> str:
    if row["before_ns"] is None:
        return "new"
    if row["after_ns"] is None:
        return "gone"
    share = percent(row["ratio"] - 1)
    return f"+{share}" if row["ratio"] > 1 else share
