"""Parses a moment that a user gives, such as 30m, 14:30 or 2026-01-31."""

import re
import time
from datetime import datetime, timedelta
from typing import Final

_SECOND_NS: Final = 10**9
_UNITS_NS: Final = {"s": _SECOND_NS, "m": 60 * _SECOND_NS, "h": 3600 * _SECOND_NS, "d": 86_400 * _SECOND_NS}
_AGO: Final = re.compile(r"([0-9]{1,9})([smhd])", re.ASCII)
#: Pattern of a text -> its precision in ns. Other texts are precise to the microsecond.
_PRECISIONS: Final = {
    re.compile(r"[0-9-]+"): _UNITS_NS["d"],
    re.compile(r"(?:[0-9-]+[T ])?\d{1,2}:\d\d"): _UNITS_NS["m"],
    re.compile(r"(?:[0-9-]+[T ])?\d{1,2}:\d\d:\d\d"): _SECOND_NS,
}


def parse_moment(text: str) -> tuple[int, int]:
    """Return the moment that ``text`` names, and its end by the precision of the text.

    Both are real time in ns: `14:30` lasts a minute. The text is a duration before now (30m, 2h,
    3d), a local time within the last 24 hours, or a date with or without a time. ValueError if it
    is invalid.
    """
    ago = _AGO.fullmatch(text)
    if ago:
        moment_ns = time.time_ns() - int(ago[1]) * _UNITS_NS[ago[2]]
        return moment_ns, moment_ns
    try:
        start_ns = int(_local(text).timestamp() * 1e9)
    except OverflowError:
        raise ValueError(text) from None
    return start_ns, start_ns + next((ns for pattern, ns in _PRECISIONS.items() if pattern.fullmatch(text)), 1000) - 1


def _local(text: str) -> datetime:
    if ":" not in text or "-" in text:
        return datetime.fromisoformat(text).astimezone()
    now = datetime.now().astimezone()
    hour, rest = text.split(":", 1)
    today = datetime.fromisoformat(f"{now.date().isoformat()} {hour:0>2}:{rest}").astimezone()
    return today if today <= now else today - timedelta(days=1)
