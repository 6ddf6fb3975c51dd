"""The figures of a benchmark against their limits."""

import sys
from collections.abc import Iterable

#: A benchmark fails at this multiple of a limit. Quiet machines meet the limits; slow and busy ones
#: have taken up to 3.5 times as much with the same code.
FAILED_RATIO = 5.0


def report(rows: Iterable[tuple[str, float, str, float]]) -> None:
    """Print title, value, unit and limit of each row; exit with 1 if a value is far above it."""
    ratios = []
    for title, value, unit, limit in rows:
        ratios.append(value / limit)
        print(f"{title:38} {value:8.2f} {unit:24} {ratios[-1]:5.2f} of the limit of {limit:g}", flush=True)
    if max(ratios, default=0.0) > FAILED_RATIO:
        sys.exit(f"failed: more than {FAILED_RATIO:g} times a limit")
