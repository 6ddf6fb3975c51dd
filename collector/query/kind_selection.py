"""Selects a job's traced steps by kind; the default is its main kind."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import pyarrow as pa

from ...formats import layout
from ..errors import UsageError
from ..store.catalog import MAY_CONTINUE
from ..store.columns import column_list, flagged, occurrences, pc
from ..store.protocols import JobReader
from ..store.schema import NODE
from ..summaries.jobs import channel_words, counts_of, current_info, functions_of
from ..summaries.kinds import (
    FunctionNames,
    by_kind,
    function_key,
    kind_name,
    main_kind_of,
    span_kind,
    step_kind_of,
)
from ..summaries.steps import rows_of_kinds, sums_by_kind
from ..tfviews.nodes import interned_texts

#: Columns of TRACES that this module reads.
COLUMNS: Final = ("trace", "kind", "key", "duration_ns")
_SPAN_COLUMNS: Final = ("kind", "key", "ordinal", "count", "total_ns", "flags")
#: Matches the name of a node that computes a gradient.
_GRADIENT: Final = re.compile(r"(?:^|/)gradient(?:s|_tape)(?:_\d+)?/")


def traces_by_kind(traces: Iterable[pa.Table]) -> dict[int, int]:
    """Return the number of traces of each kind."""
    counts: dict[int, int] = {}
    for table in traces:
        for kind_of_span, count in occurrences(table["kind"]):
            is_call = kind_of_span == layout.FUNCTION
            for key, calls in occurrences(rows_of_kinds(table, (kind_of_span,))["key"]) if is_call else [(0, count)]:
                kind = step_kind_of(kind_of_span, key)
                counts[kind] = counts.get(kind, 0) + calls
    return counts


def function_names_of(jobs: Iterable[JobReader]) -> dict[int, str]:
    """Return the names of the jobs' functions, by key."""
    return {key: name for job in jobs for key, name in functions_of(job.info).items()}


def includes(kinds: Collection[int], kind: int) -> bool:
    """Return whether ``kinds`` include ``kind``.

    The kind `function` includes the kind of each function.
    """
    return kind in kinds or span_kind(kind) in kinds


def resolve_kinds(
    jobs: Sequence[tuple[JobReader, pa.Table]], requested: Sequence[int] | None, *, separate_functions: bool = True
) -> tuple[int, ...]:
    """Return the kinds to select from the traces of jobs.

    These are ``requested``; None means the main kind of the jobs. ``separate_functions``: each
    function is a separate kind; otherwise all functions together are one kind. UsageError
    ``no-such-kind`` if there are traces, but none of a kind in ``requested``.
    """
    trace_counts = traces_by_kind(table for _, table in jobs)
    if requested is not None:
        if trace_counts and not any(includes(requested, kind) for kind in trace_counts):
            raise no_such_kind(requested, "traced", trace_counts, function_names_of(job for job, _ in jobs))
        return tuple(requested)
    main_kind = main_kind_of(dict.fromkeys(map(span_kind, trace_counts)), _times(jobs))
    main_kinds = [kind for kind in trace_counts if span_kind(kind) == main_kind]
    if separate_functions and function_key(max(main_kinds, default=0)):
        return (main_kinds[0] if len(main_kinds) == 1 else _main_function(jobs, main_kinds),)
    return tuple(trace_counts) if main_kind is None else (main_kind,)


def no_such_kind(requested: Iterable[int], done: str, counts: Mapping[int, int], names: FunctionNames) -> UsageError:
    """Return the error that no step of the kinds ``requested`` was ``done``, traced or timed.

    ``counts``: the number of such steps by kind. ``names``: names of functions by key.
    """
    requested = list(requested)
    known = [kind_name(kind, names) for kind in requested if not function_key(kind) or function_key(kind) in names]
    what = f"the kind {' or '.join(known)}" if len(known) == len(requested) else "a function of that name"
    present = ", ".join(f"{number} {kind_name(kind, names)}" for kind, number in counts.items())
    return UsageError(f"no step of {what} was {done}; there are {present}", slug="no-such-kind")


def _times(jobs: Sequence[tuple[JobReader, pa.Table]]) -> dict[int, int]:
    """Return the time in steps of each span kind, ns."""
    times: dict[int, int] = {}
    for job, table in jobs:
        for kind, time_ns in {**_traced_times(table), **by_kind(channel_words(job.info).get("times"))}.items():
            times[kind] = times.get(kind, 0) + time_ns
    return times


def _traced_times(table: pa.Table) -> dict[int, int]:
    """Return the time in traced steps of each span kind, ns.

    Imported jobs have no other times.
    """
    return {
        kind: pc.sum(rows_of_kinds(table, (kind,))["duration_ns"]).as_py() for kind, _ in occurrences(table["kind"])
    }


def _main_function(jobs: Sequence[tuple[JobReader, pa.Table]], kinds: Sequence[int]) -> int:
    """Return the function that took the most time.

    If some compute gradients, only they are compared.
    """
    times = dict.fromkeys(kinds, 0)
    training_kinds: set[int] = set()
    for job, table in jobs:
        for kind, total_ns in sums_by_kind(job.table("spans", _SPAN_COLUMNS), "total_ns").items():
            times[kind] = times.get(kind, 0) + total_ns
        training_kinds.update(kind for kind in kinds if _computes_gradients(job, rows_of_kinds(table, (kind,))))
    return max(kinds, key=lambda kind: (kind in training_kinds, times[kind]))


def _computes_gradients(job: JobReader, traces: pa.Table) -> bool:
    """Return whether a node that computes a gradient ran in the first of ``traces``."""
    if not traces.num_rows:
        return False
    executed = set(column_list(job.rollup(column_list(traces, "trace")[:1]), "node"))
    names = interned_texts(job.table("names"), NODE)
    return any(_GRADIENT.search(names.get(node, "")) for node in executed)


def traces_of_job(
    job: JobReader, columns: Sequence[str], requested: Sequence[int] | None = None, *, separate_functions: bool = True
) -> tuple[pa.Table, tuple[int, ...]]:
    """Return the selected traces of one job, and their kinds (`resolve_kinds`).

    The table has at least ``columns``.
    """
    table = job.table("traces", tuple(dict.fromkeys((*columns, *COLUMNS))))
    kinds = resolve_kinds([(job, table)], requested, separate_functions=separate_functions)
    return rows_of_kinds(table, kinds), kinds


def steps_run(jobs: Iterable[JobReader], kinds: Collection[int]) -> tuple[int, bool]:
    """Return the number of steps of ``kinds`` that ran in ``jobs``, and whether it is an estimate.

    The number is an estimate if ``kinds`` has only some of a job's functions, and the job counted
    calls without timing them.
    """
    count, is_estimate = 0, False
    for job in jobs:
        functions = [kind for kind in kinds if function_key(kind) and layout.FUNCTION not in kinds]
        may_continue = job.info.state in MAY_CONTINUE
        spans = job.table("spans", _SPAN_COLUMNS) if functions or may_continue else None
        counts = counts_of(current_info(job.info, spans) if spans is not None and may_continue else job.info)
        count += sum(counts.get(kind_name(kind), 0) for kind in kinds if not function_key(kind))
        if spans is not None and functions:
            calls = rows_of_kinds(spans, (layout.FUNCTION,))
            selected = rows_of_kinds(calls, functions)
            if selected.num_rows == calls.num_rows:
                count += counts.get(kind_name(layout.FUNCTION), 0)
                continue
            count += pc.sum(selected["count"]).as_py() or 0
            is_estimate = is_estimate or bool(pc.any(flagged(calls, layout.FLAG_SAMPLED)).as_py())
    return count, is_estimate


def by_name(kinds: Mapping[int, int], names: Mapping[int, str]) -> dict[str, int]:
    """Return ``kinds`` with the names of the kinds as keys."""
    return {kind_name(kind, names): number for kind, number in kinds.items()}
