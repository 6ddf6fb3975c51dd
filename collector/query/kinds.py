"""Which of a job's traced steps a question is about: those of one kind, if it does not say otherwise."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import UsageError
from ..store.reader import Job
from ..summaries.jobs import words
from ..summaries.kinds import leading, named, of_names

#: Columns of TRACES that are looked at here.
COLUMNS: Final = ("kind", "duration_ns")


def counted(traces: Iterable[pa.Table]) -> dict[int, int]:
    """Return how many traces there are of each kind."""
    found: dict[int, int] = {}
    for table in traces:
        rows: list[Any] = table.group_by("kind").aggregate([([], "count_all")]).to_pylist()
        for row in rows:
            found[row["kind"]] = found.get(row["kind"], 0) + row["count_all"]
    return found


def resolved(jobs: Sequence[tuple[Job, pa.Table]], asked: Sequence[int] | None) -> tuple[int, ...]:
    """Return the kinds that are meant in the traces of jobs: those ``asked`` for, or (None) the one that the jobs are about.

    UsageError ``no-such-kind`` where there are traces, and none of any kind asked for.
    """
    there = counted(table for _, table in jobs)
    if asked is not None:
        if there and not there.keys() & set(asked):
            known = ", ".join(f"{number} {named(kind)}" for kind, number in there.items())
            wanted = " or ".join(map(named, asked))
            raise UsageError(f"no step of the kind {wanted} was traced; there are {known}", slug="no-such-kind")
        return tuple(asked)
    times: dict[int, int] = {}
    for job, table in jobs:
        for kind, time_ns in {**_traced_times(table), **of_names(words(job.info).get("times"))}.items():
            times[kind] = times.get(kind, 0) + time_ns
    main = leading(there, times)
    return tuple(there) if main is None else (main,)


def _traced_times(table: pa.Table) -> dict[int, int]:
    """Return the time in traced steps of each kind: all that is known of jobs that were imported."""
    rows: list[Any] = table.group_by("kind").aggregate([("duration_ns", "sum")]).to_pylist()
    return {row["kind"]: row["duration_ns_sum"] for row in rows}


def of_kinds(traces: pa.Table, kinds: Sequence[int]) -> pa.Table:
    """Return the traces of some kinds."""
    return traces.filter(pc.is_in(traces["kind"], value_set=pa.array(kinds, pa.uint16())))


def of_job(job: Job, columns: Sequence[str], asked: Sequence[int] | None = None) -> tuple[pa.Table, tuple[int, ...]]:
    """Return the traces of one job that are meant, with ``columns`` among others, and their kinds."""
    table = job.table("traces", tuple(dict.fromkeys((*columns, *COLUMNS))))
    kinds = resolved([(job, table)], asked)
    return of_kinds(table, kinds), kinds
