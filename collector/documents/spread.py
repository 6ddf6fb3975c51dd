"""The spread of step times."""

from typing import Annotated, TypedDict


class SpreadDocument(TypedDict):
    """The number of steps, and percentiles, extremes, mean and sum of their times."""

    count: Annotated[int, "The number of steps."]
    p50_ns: Annotated[float, "The median, ns."]
    p90_ns: Annotated[float, "The 90th percentile, ns."]
    p99_ns: Annotated[float, "The 99th percentile, ns."]
    min_ns: Annotated[int, "The shortest time, ns."]
    max_ns: Annotated[int, "The longest time, ns."]
    mean_ns: Annotated[float, "The mean, ns."]
    total_ns: Annotated[int, "The sum, ns."]
    timed: Annotated[int, "The number of times that were measured; the others are estimates."]
