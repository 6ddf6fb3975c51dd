"""Resource use over time."""

from collections.abc import Sequence
from typing import Annotated, TypedDict

from ..summaries.host import Series


class SeriesDocument(TypedDict):
    """One quantity over time; its unit is in its name."""

    mean: Annotated[float | None, "The mean of the values; null without any."]
    max: Annotated[float | None, "The largest value; null without any."]
    values: Annotated[list[float], "The values, the earliest first."]
    times_ns: Annotated[list[int], "The time of each value, or the end of its interval, ns since 1970."]


def series_documents(all_series: Sequence[Series]) -> dict[str, SeriesDocument]:
    """Return series by name."""
    return {
        series.name: {
            "mean": series.mean,
            "max": series.maximum,
            "values": list(series.values),
            "times_ns": list(series.times_ns),
        }
        for series in all_series
    }
