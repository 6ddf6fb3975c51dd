"""Selects a job's traced steps by kind; the default is its main kind."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, Final

import pyarrow as pa

from ...formats import layout
from ..errors import UsageError
from ..store.columns import column_list, occurrences, pc
from ..store.protocols import JobReader
from ..store.schema import NODE
from ..summaries.jobs import channel_words, counts_of, functions_of
from ..summaries.kinds import function_key, kind_name, main_kind_of, of_names, of_span, span_kind
from ..tfviews.nodes import texts

#: Columns of TRACES that this module reads.
COLUMNS: Final = ("trace", "kind", "key", "duration_ns")
_SPANS: Final = ("kind", "key", "count", "total_ns", "flags")
#: Matches the name of a node that computes a gradient.
_GRADIENT: Final = re.compile(r"(?:^|/)gradient(?:s|_tape)(?:_\d+)?/")


def traces_by_kind(traces: Iterable[pa.Table]) -> dict[int, int]:
    """Return the number of traces of each kind."""
    found: dict[int, int] = {}
    for table in traces:
        for span, number in occurrences(table["kind"]):
            is_call = span == layout.FUNCTION
            for key, times in occurrences(rows_of_kinds(table, (span,))["key"]) if is_call else [(0, number)]:
                kind = of_span(span, key)
                found[kind] = found.get(kind, 0) + times
    return found


def names_of(jobs: Iterable[JobReader]) -> dict[int, str]:
    """Return the names of the jobs' functions, by key."""
    return {key: name for job in jobs for key, name in functions_of(job.info).items()}


def includes(kinds: Collection[int], kind: int) -> bool:
    """Return whether ``kinds`` include ``kind``.

    The kind of all functions includes each function.
    """
    return kind in kinds or span_kind(kind) in kinds


def resolved(
    jobs: Sequence[tuple[JobReader, pa.Table]], wanted: Sequence[int] | None, *, separate_functions: bool = True
) -> tuple[int, ...]:
    """Return the kinds to select from the traces of jobs: ``wanted``, or else the main kind.

    ``wanted`` None means the main kind of the jobs. ``separate_functions``: each function is a
    separate kind; otherwise all functions together are one. UsageError ``no-such-kind`` if there
    are traces, but none of a kind in ``wanted``.
    """
    there = traces_by_kind(table for _, table in jobs)
    if wanted is not None:
        if there and not any(includes(wanted, kind) for kind in there):
            names = names_of(job for job, _ in jobs)
            known = ", ".join(f"{number} {kind_name(kind, names)}" for kind, number in there.items())
            wanted_names = [
                kind_name(kind, names) for kind in wanted if not function_key(kind) or function_key(kind) in names
            ]
            kinds = (
                f"the kind {' or '.join(wanted_names)}"
                if len(wanted_names) == len(wanted)
                else "a function of that name"
            )
            raise UsageError(f"no step of {kinds} was traced; there are {known}", slug="no-such-kind")
        return tuple(wanted)
    main = main_kind_of(dict.fromkeys(map(span_kind, there)), _times(jobs))
    mine = [kind for kind in there if span_kind(kind) == main]
    if separate_functions and function_key(max(mine, default=0)):
        return (mine[0] if len(mine) == 1 else _main_function(jobs, mine),)
    return tuple(there) if main is None else (main,)


def _times(jobs: Sequence[tuple[JobReader, pa.Table]]) -> dict[int, int]:
    """Return the time in steps of each span kind, ns."""
    times: dict[int, int] = {}
    for job, table in jobs:
        for kind, time_ns in {**_traced_times(table), **of_names(channel_words(job.info).get("times"))}.items():
            times[kind] = times.get(kind, 0) + time_ns
    return times


def _traced_times(table: pa.Table) -> dict[int, int]:
    """Return the time in traced steps of each span kind, ns.

    For imported jobs, no other time is known.
    """
    return {
        kind: pc.sum(rows_of_kinds(table, (kind,))["duration_ns"]).as_py() for kind, _ in occurrences(table["kind"])
    }


def _main_function(jobs: Sequence[tuple[JobReader, pa.Table]], kinds: Sequence[int]) -> int:
    """Return the function that took most time; functions that compute gradients go first."""
    times = dict.fromkeys(kinds, 0)
    training: set[int] = set()
    for job, table in jobs:
        calls = rows_of_kinds(job.table("spans", _SPANS), (layout.FUNCTION,))
        rows: list[Any] = calls.group_by("key").aggregate([("total_ns", "sum")]).to_pylist()
        for row in rows:
            kind = of_span(layout.FUNCTION, row["key"])
            times[kind] = times.get(kind, 0) + row["total_ns_sum"]
        training.update(kind for kind in kinds if _computes_gradients(job, rows_of_kinds(table, (kind,))))
    return max(kinds, key=lambda kind: (kind in training, times[kind]))


def _computes_gradients(job: JobReader, traces: pa.Table) -> bool:
    """Return whether a node that computes a gradient ran in the first of ``traces``."""
    if not traces.num_rows:
        return False
    ran = set(column_list(job.rollup(column_list(traces, "trace")[:1]), "node"))
    names = texts(job.table("names"), NODE)
    return any(_GRADIENT.search(names.get(node, "")) for node in ran)


def rows_of_kinds(rows: pa.Table, kinds: Sequence[int]) -> pa.Table:
    """Return the traces or spans of ``kinds``."""
    whole = pa.array([kind for kind in kinds if not function_key(kind)], pa.uint16())
    taken = [pc.is_in(rows["kind"], value_set=whole)]
    keys = pa.array([function_key(kind) for kind in kinds if function_key(kind)], pa.uint32())
    if len(keys):
        is_call = pc.equal(rows["kind"], pa.scalar(layout.FUNCTION, pa.uint16()))
        taken.append(pc.and_(is_call, pc.is_in(rows["key"], value_set=keys)))
    return rows.filter(reduce(pc.or_, taken))


def traces_of_job(
    job: JobReader, columns: Sequence[str], wanted: Sequence[int] | None = None, *, separate_functions: bool = True
) -> tuple[pa.Table, tuple[int, ...]]:
    """Return the selected traces of one job, and their kinds (`resolved`).

    The table has at least ``columns``.
    """
    table = job.table("traces", tuple(dict.fromkeys((*columns, *COLUMNS))))
    kinds = resolved([(job, table)], wanted, separate_functions=separate_functions)
    return rows_of_kinds(table, kinds), kinds


def steps_run(jobs: Iterable[JobReader], kinds: Collection[int]) -> tuple[int, bool]:
    """Return the number of steps of ``kinds`` that ran in ``jobs``, and whether it is an estimate.

    It is an estimate if some calls of functions were counted without being timed.
    """
    number, estimated = 0, False
    for job in jobs:
        counts = counts_of(job.info)
        number += sum(counts.get(kind_name(kind), 0) for kind in kinds if not function_key(kind))
        functions = [kind for kind in kinds if function_key(kind) and layout.FUNCTION not in kinds]
        if functions:
            calls = rows_of_kinds(job.table("spans", _SPANS), (layout.FUNCTION,))
            mine = rows_of_kinds(calls, functions)
            if mine.num_rows == calls.num_rows:
                number += counts.get(kind_name(layout.FUNCTION), 0)
                continue
            number += pc.sum(mine["count"]).as_py() or 0
            sampled = pc.bit_wise_and(calls["flags"], pa.scalar(layout.FLAG_SAMPLED, pa.uint16()))
            estimated = estimated or bool(pc.any(pc.not_equal(sampled, pa.scalar(0, pa.uint16()))).as_py())
    return number, estimated


def by_name(kinds: Mapping[int, int], names: Mapping[int, str]) -> dict[str, int]:
    """Return ``kinds`` with names of kinds as keys."""
    return {kind_name(kind, names): number for kind, number in kinds.items()}
