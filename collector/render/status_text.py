"""The state of the daemons as text."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ..numbers import count, date_and_time, duration, size
from .table import Column, render
from .wrapping import wrapped

_COLUMNS: Final = (Column(""), Column(""))


def _since(started_ns: Any) -> str:
    return f"{date_and_time(started_ns)} ({duration(max(0, time.time_ns() - started_ns))})"


def _error_text(error: Any) -> str:
    """Return the text of an error in a status file, with its slug if it has one."""
    return f"{error['text']} [{error['slug']}]" if isinstance(error, Mapping) else str(error)


def _open_jobs(status: Mapping[str, Any]) -> int | None:
    jobs = status.get("jobs")
    return len(jobs) if isinstance(jobs, Mapping) else jobs


def _lost(status: Mapping[str, Any]) -> int | None:
    """Return the number of records and spans dropped by the open jobs, None if unknown."""
    jobs = status.get("jobs")
    if not isinstance(jobs, Mapping):
        return None
    return sum(int(job.get(name, 0)) for job in jobs.values() for name in ("dropped_records", "dropped_spans"))


def _refusals(status: Mapping[str, Any]) -> int | None:
    refusals = status.get("refusals")
    return status.get("refused") if isinstance(refusals, list) else refusals


def _last_refusal(status: Mapping[str, Any]) -> Any:
    refusals = status.get("refusals")
    return refusals[-1] if isinstance(refusals, list) and refusals else status.get("last_refusal")


def _failures(status: Mapping[str, Any]) -> int | None:
    return status.get("failures") or None


def _first_failure(status: Mapping[str, Any]) -> str:
    """Return the last line of the first traceback in the status file; the log has all of it."""
    return (str(status.get("first_failure") or "").splitlines() or [""])[-1]


def _quarantined(status: Mapping[str, Any]) -> str:
    jobs = status.get("quarantined")
    return "; ".join(f"job {uid}: {reason}" for uid, reason in jobs.items()) if isinstance(jobs, Mapping) else ""


def _of_copy(name: str) -> Callable[[Mapping[str, Any]], Any]:
    """Return the function that finds a value of the copy in ClickHouse, None without a copy."""
    return lambda status: copy.get(name) if isinstance(copy := status.get("copy"), Mapping) else None


def _lookup(name: str) -> Callable[[Mapping[str, Any]], Any]:
    return lambda status: status.get(name)


#: Lines of the status: label, function that finds the value in the status file, and format.
_ROWS: Final[tuple[tuple[str, Callable[[Mapping[str, Any]], Any], Callable[[Any], str]], ...]] = (
    ("since", _lookup("started_ns"), _since),
    ("version", _lookup("version"), str),
    ("decoder", _lookup("decoder"), str),
    ("open jobs", _open_jobs, count),
    ("waiting channels", lambda status: status.get("waiting_channels") or None, count),
    ("lag", _lookup("lag_bytes"), size),
    ("lag", _lookup("lag_s"), lambda seconds: duration(seconds * 1e9)),
    ("on disk", lambda status: status.get("spool_bytes") or None, size),
    ("oldest of it", lambda status: status.get("spool_oldest_ns"), _since),
    ("disk refuses", _lookup("spool_failure"), _error_text),
    ("lost", _lost, count),
    ("rows stored", _lookup("rows"), count),
    ("rows a second", _lookup("rows_per_s"), lambda rate: f"{rate:,.0f}"),
    ("received", _lookup("bytes"), size),
    ("stalls", _lookup("stalls"), count),
    ("stalled by", lambda status: status.get("stall") or status.get("stalled"), _error_text),
    ("lost samples", lambda status: status.get("samples_dropped", status.get("lost_samples")) or None, count),
    ("refusals", _refusals, count),
    ("last refusal", _last_refusal, _error_text),
    ("last error", _lookup("last_error"), _error_text),
    ("internal errors", _failures, count),
    ("first of them", _first_failure, str),
    ("in quarantine", _quarantined, str),
    ("copied to", _of_copy("to"), str),
    ("last copy", _of_copy("copied_ns"), _since),
    ("not copied", _of_copy("error"), _error_text),
    ("memory", _lookup("rss_bytes"), size),
    ("CPU time", _lookup("cpu_s"), lambda seconds: duration(seconds * 1e9)),
)


#: Characters before the texts: the indent, the longest label and the gap.
_LABEL_WIDTH: Final = 4 + max(len(label) for label, *_ in _ROWS)


def _label_rows(status: Mapping[str, Any], text_width: int | None) -> Iterator[list[str]]:
    """Yield label and text of each known value; texts are wrapped at ``text_width``."""
    for label, find_value, format_value in _ROWS:
        value = find_value(status)
        if value is not None and value != "":
            first_line, *more_lines = wrapped(format_value(value), text_width) or [""]
            yield [label, first_line]
            yield from (["", line] for line in more_lines)


def lines(store: str, statuses: Mapping[str, Mapping[str, Any]], width: int | None = None) -> Iterator[str]:
    """Yield the state of each daemon of ``store``; texts are wrapped at ``width``."""
    yield from wrapped(f"store {store}", width)
    for name, status in statuses.items():
        if status["alive"]:
            service = ", as a service (tfprof serve)" if status.get("service") else ""
            yield f"{name}: running, pid {status.get('pid')}{service}"
            text_width = None if width is None else width - _LABEL_WIDTH
            yield from render(_COLUMNS, list(_label_rows(status, text_width)), indent="  ")
        elif status.get("is_remote"):
            yield f"{name}: on another host, which `tfprof status` there shows"
        elif status.get("is_shared"):
            yield f"{name}: a service for all users of this host: systemctl status tfprof"
        else:
            decoder = f"; decoder: {status['decoder']}" if "decoder" in status else ""
            yield from wrapped(f"{name}: not running (started when needed{decoder})", width)
            if status.get("spool_bytes"):
                text = f"  {size(status['spool_bytes'])} on disk for the collector: `tfprof start` sends it"
                yield from wrapped(text, width)
            if status.get("last_error"):
                yield from wrapped(f"  last error: {_error_text(status['last_error'])}", width)
