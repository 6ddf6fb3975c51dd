"""Numbers as text: in the formats of the TF profiler, and in those of tfprof's own tables."""

import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

_COUNTS: Final = ((1e9, "b"), (1e6, "m"), (1e3, "k"))
_SIZES: Final = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB"))
_QUANTITIES: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_TIMES: Final = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns"))
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
    """Return bytes with about three digits and a unit in powers of 1000."""
    if number is None:
        return "-"
    for unit, name in _SIZES:
        if abs(number) >= unit:
            return f"{number / unit:.{0 if abs(number) >= 100 * unit else 1}f} {name}"
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
    """Return nanoseconds in a suitable unit, from ns to hours."""
    if ns is None:
        return "-"
    if ns < 1e3:
        return f"{ns:.0f} ns"
    for unit, name in ((1e3, "µs"), (1e6, "ms"), (1e9, "s")):
        if ns < unit * 1000 and not (name == "s" and ns >= 100e9):
            return f"{ns / unit:.{0 if ns >= 100 * unit else 1 if ns >= 10 * unit else 2}f} {name}"
    seconds = int(ns / 1e9)
    if seconds < 3600:
        return f"{seconds // 60}m {seconds % 60:02d}s"
    return f"{seconds // 3600}h {seconds % 3600 // 60:02d}m"


def count(number: int | None) -> str:
    """Return a count with separators between thousands."""
    return "-" if number is None else f"{number:,}"


def quantity(number: float) -> str:
    """Return a number with about three digits: 0.17, 2, 14.5, 3.21 M."""
    for unit, name in _QUANTITIES:
        if abs(number) >= unit:
            number, ending = number / unit, f" {name}"
            break
    else:
        ending = ""
    if number == int(number) and not ending:
        return f"{number:.0f}"
    return f"{number:.{0 if abs(number) >= 100 else 1 if abs(number) >= 10 else 2}f}{ending}"


def range_of(times_ns: Sequence[float]) -> str:
    """Return minimum, median and maximum of times: 0.81/0.84/1.24 ms.

    All three are in the unit of the maximum.
    """
    values = sorted(times_ns)
    middle = len(values) // 2
    median = values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2
    maximum = values[-1]
    unit, name = next((unit, name) for unit, name in _TIMES if maximum >= unit or unit == 1)
    digits = 0 if maximum >= 100 * unit or unit == 1 else 1 if maximum >= 10 * unit else 2
    return "/".join(f"{value / unit:.{digits}f}" for value in (values[0], median, maximum)) + f" {name}"


def cost(share: float | None) -> str:
    """Return the cost of tracing as a percentage; a measured cost below 0 is shown as 0."""
    return percent(None if share is None else max(0.0, share))


def percent(share: float | None) -> str:
    """Return a fraction as a percentage; small percentages get more digits."""
    if share is None:
        return "-"
    number = share * 100
    return f"{number:.{0 if abs(number) >= 10 else 1 if abs(number) >= 0.1 or number == 0 else 2}f} %"


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
