"""Totals of a job's samples and traces, for the list of jobs; updated as rows are stored."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from .catalog import USAGE_COLUMNS, JobInfo
from .protocols import RecordedTotals, Rows

#: The tables that count.
TABLES: Final = ("samples", "traces")


class Totals:
    """The totals of stored rows: the bounds of USAGE_COLUMNS, and the number of traces by kind."""

    def __init__(
        self, usage: Mapping[str, Sequence[float]] | None = None, traced: Mapping[str, int] | None = None
    ) -> None:
        self._usage = dict(usage or {})
        self._traced = Counter(traced or {})

    def add(self, tables: Mapping[str, Rows]) -> None:
        """Add stored rows."""
        samples, traces = map(tables.get, TABLES)
        if samples is not None and samples.num_rows:
            for name in USAGE_COLUMNS:
                stored: list[Any] = samples[name].to_pylist()
                values = [value for value in stored if math.isfinite(value)] or [0]
                self._usage[name] = [bound((*values, *self._usage.get(name, ()))) for bound in (min, max)]
        if traces is not None:
            self._traced.update(map(str, traces["kind"].to_pylist()))

    def values(self) -> RecordedTotals:
        """Return the totals."""
        return RecordedTotals(dict(self._usage), dict(self._traced))


def of_tables(table: Callable[[str, Sequence[str]], pa.Table]) -> RecordedTotals:
    """Return the totals of what is stored; ``table`` returns columns of a stored table."""
    totals = Totals()
    totals.add({"samples": table("samples", USAGE_COLUMNS), "traces": table("traces", ("kind",))})
    return totals.values()


def in_job_file(info: JobInfo) -> RecordedTotals | None:
    """Return the totals in a job file, None if it has none."""
    return None if info.usage is None or info.traced is None else RecordedTotals(info.usage, info.traced)
