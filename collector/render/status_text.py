"""The state of the daemons as text."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from tfprof.collector.render.numbers import count, duration, size
from tfprof.collector.render.table import Column, clean, render

_PLAIN: Final = (Column(""), Column(""))


def _since(started_ns: Any) -> str:
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(started_ns / 1e9))
    return f"{at} ({duration(max(0, time.time_ns() - started_ns))})"


def _reason(stalled: Any) -> str:
    return f"{stalled['text']} [{stalled['slug']}]" if isinstance(stalled, Mapping) else str(stalled or "no")


def _jobs(jobs: Any) -> str:
    return count(len(jobs)) if isinstance(jobs, Mapping) else count(int(jobs))


#: Keys of a status file that are shown, what they are called, and how they are written.
_ROWS: Final[tuple[tuple[str, str, Callable[[Any], str]], ...]] = (
    ("started_ns", "since", _since),
    ("version", "version", str),
    ("decoder", "decoder", str),
    ("jobs", "jobs open", _jobs),
    ("lag_bytes", "lag", size),
    ("lag_s", "lag", lambda seconds: duration(seconds * 1e9)),
    ("rows", "rows stored", count),
    ("rows_per_s", "rows a second", lambda rate: f"{rate:,.0f}"),
    ("bytes", "received", size),
    ("dropped", "lost", count),
    ("stalls", "stalls", count),
    ("stalled", "stalled now", _reason),
    ("refusals", "refusals", count),
    ("last_refusal", "last refusal", str),
    ("last_error", "last error", str),
    ("rss_bytes", "memory", size),
    ("cpu_s", "CPU time", lambda seconds: duration(seconds * 1e9)),
)


def _running(status: Mapping[str, Any]) -> Iterator[list[str]]:
    for key, label, form in _ROWS:
        if status.get(key) not in (None, ""):  # a status may be a mapping, which no set holds
            yield [label, form(status[key])]


def lines(store: str, statuses: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the state of each daemon of ``store``."""
    yield f"store {clean(store)}"
    for name, status in statuses.items():
        if status["alive"]:
            yield f"{name}: running, pid {status.get('pid')}"
            yield from render(_PLAIN, list(_running(status)), indent="  ")
        else:
            decodes = f", would decode by {status['decoder']}" if "decoder" in status else ""
            yield f"{name}: not running (started when needed{decodes})"
            left = status.get("last_error") or status.get("last_refusal")
            if left:
                yield f"  last said: {clean(str(left))}"
