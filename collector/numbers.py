"""Numbers as text: in the formats of the TF profiler, and in those of tfprof's own tables."""

import math
import time
from itertools import pairwise
from typing import Final

_COUNTS: Final = ((1e9, "b"), (1e6, "m"), (1e3, "k"))
_SIZES: Final = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB"))
_QUANTITIES: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_TIMES: Final = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns"))
_SHORT_NS: Final = 60 * 10**9
#: A smaller relative change counts as no change.
_CHANGE_MIN: Final = 0.0005
_BARS: Final = "▁▂▃▄▅▆▇█"


def tf_profiler_count(number: int) -> str:
    """Return a count as the TF profiler prints it: 999, 1.00k, 1.00m, 1.00b."""
    for unit, name in reversed(_COUNTS):
        if number < unit * 1000 and number >= unit:
            return f"{number / unit:.2f}{name}"
    return f"{number}" if number < 1000 else f"{number / 1e9:.2f}b"


def tf_profiler_time(micros: int) -> str:
    """Return µs as the TF profiler prints them: us, ms or sec."""
    if micros < 1000:
        return f"{micros}us"
    return f"{micros / 1e3:.2f}ms" if micros < 1e6 else f"{micros / 1e6:.2f}sec"


def tf_profiler_bytes(size: int) -> str:
    """Return bytes as the TF profiler prints them: B, KB or MB, powers of 1000."""
    if size < 1000:
        return f"{size}B"
    return f"{size / 1e3:.2f}KB" if size < 1e6 else f"{size / 1e6:.2f}MB"


def size(number: float | None) -> str:
    """Return a number of bytes as text: about three digits, and a unit in powers of 1000."""
    if number is None:
        return "-"
    rounded = _three_digits(number)
    for unit, name in _SIZES:
        if abs(rounded) >= unit:
            return f"{number / unit:.{0 if abs(rounded) >= 100 * unit else 1}f} {name}"
    return f"{number:.0f} B"


def rate(number: float | None) -> str:
    """Return bytes per second with a unit."""
    return "-" if number is None else f"{size(number)}/s"


def cores(number: float | None) -> str:
    """Return a number of busy cores."""
    return "-" if number is None else f"{number:.2f}"


def time_of_day(ns: int, *, whole_seconds: bool = False) -> str:
    """Return the local time of day, to the millisecond or (``whole_seconds``) to the second."""
    text = time.strftime("%H:%M:%S", time.localtime(ns / 1e9))
    return text if whole_seconds else f"{text}.{ns // 10**6 % 1000:03d}"


def date_and_time(ns: int) -> str:
    """Return the local date and time, to the second."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(ns / 1e9))


def duration(ns: float | None) -> str:
    """Return nanoseconds in a suitable unit, from ns to hours; "-" if unknown or not finite."""
    if ns is None or not math.isfinite(ns):
        return "-"
    rounded = _three_digits(ns)
    if rounded < 1e3:
        return f"{ns:.0f} ns"
    for unit, name in ((1e3, "µs"), (1e6, "ms"), (1e9, "s")):
        if rounded < unit * 1000 and not (name == "s" and rounded >= 100e9):
            return f"{rounded / unit:.{_digits(rounded / unit)}f} {name}"
    seconds = int(ns / 1e9)
    if seconds < 3600:
        return f"{seconds // 60}m {seconds % 60:02d}s"
    return f"{seconds // 3600}h {seconds % 3600 // 60:02d}m"


def _three_digits(number: float) -> float:
    """Round to three digits, before a unit is chosen: 999.7 µs is 1.00 ms."""
    return float(f"{number:.3g}")


def _digits(value: float) -> int:
    """Return the decimal places for three digits of a positive number, at most two."""
    return 0 if value >= 100 else 1 if value >= 10 else 2


def count(number: int | None) -> str:
    """Return a count with separators between thousands."""
    return "-" if number is None else f"{number:,}"


def counted(number: int, noun: str) -> str:
    """Return a count and what it counts, in the plural unless that is one."""
    return f"{count(number)} {noun}{'s' * (number != 1)}"


def counted_steps(number: int, kind: str) -> str:
    """Return a number of steps with the name of their kind, which may be empty: 600 batch steps."""
    return counted(number, f"{kind} step".strip())


def quantity(number: float) -> str:
    """Return a number with about three digits: 0.17, 2, 14.5, 3.21 M; "-" if it is not finite."""
    if not math.isfinite(number):
        return "-"
    number = _three_digits(number)
    for unit, name in _QUANTITIES:
        if abs(number) >= unit:
            number, ending = number / unit, f" {name}"
            break
    else:
        ending = ""
    if number == int(number) and not ending:
        return f"{number:.0f}"
    return f"{number:.{_digits(abs(number))}f}{ending}"


def range_of(*times_ns: float) -> str:
    """Return several times in the unit of the longest: 0.81/0.84/1.24 ms, 0.4/2.6/179 ms.

    Short times have further digits, so that none of them is shown as 0.
    """
    longest = _three_digits(max(times_ns))
    unit, name = next((unit, name) for unit, name in _TIMES if longest >= unit or unit == 1)
    texts = (f"{time:.0f}" if unit == 1 else _in_unit(time / unit, _digits(longest / unit)) for time in times_ns)
    return "/".join(texts) + f" {name}"


def _in_unit(value: float, digits: int) -> str:
    """Return ``value`` with ``digits`` decimal places, or with more if it is below 10."""
    if 0 < value < 1:
        digits = max(digits, math.ceil(-math.log10(value)))
    elif 1 <= value < 10:
        digits = max(digits, 1)
    return f"{value:.{digits}f}"


def cost(share: float | None) -> str:
    """Return the cost of tracing as a percentage; a measured cost below 0 is shown as 0."""
    return percent(None if share is None else max(0.0, share))


def total_cost(share: float, steps_ns: int) -> str:
    """Return the cost of tracing in a job with ``steps_ns`` ns in steps.

    For a short job it is a time, since a share says little there.
    """
    return duration(max(0.0, share) * steps_ns) if is_short(steps_ns) else cost(share)


def is_short(steps_ns: int) -> bool:
    """Return whether a job with ``steps_ns`` ns in steps is too short for a share to say much."""
    return steps_ns < _SHORT_NS


def percent(share: float | None) -> str:
    """Return a fraction as a percentage; small percentages get more digits."""
    if share is None:
        return "-"
    number = share * 100
    return f"{number:.{0 if abs(number) >= 10 else 1 if abs(number) >= 0.1 or number == 0 else 2}f} %"


def factor(ratio: float) -> str:
    """Return a ratio of times with a multiplication sign: 0.85, 1.5, or 12 times as long."""
    return f"\u00d7{ratio:.{2 if ratio < 1 else 1 if ratio < 10 else 0}f}"


def change_text(ratio: float) -> str:
    """Return a ratio of times as `12 % slower`, `3.0 times as long`, or `unchanged`."""
    if abs(ratio - 1) < _CHANGE_MIN:
        return "unchanged"
    if ratio >= 2:
        return f"{ratio:.1f} times as long"
    return f"{percent(abs(ratio - 1))} {'slower' if ratio > 1 else 'faster'}"


def sparkline(values: list[float], width: int) -> str:
    """Return a row of ``width`` bars, scaled from 0 to the largest bar.

    Each bar is the mean of an equal part of ``values``. Fewer values than ``width`` get one bar
    each.
    """
    if not values:
        return ""
    width = min(width, len(values))
    bounds = [index * len(values) // width for index in range(width + 1)]
    means = [sum(values[a:b]) / (b - a) for a, b in pairwise(bounds)]
    maximum = max(means)
    return "".join(_BARS[min(7, int(8 * max(0.0, mean) / maximum))] if maximum > 0 else _BARS[0] for mean in means)


def bar(share: float, width: int) -> str:
    """Return a bar of ``width`` characters for a share of 1, in eighths of a character."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
