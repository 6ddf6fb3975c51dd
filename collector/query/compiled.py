"""Reads what XLA compiled in a job."""

from collections import Counter
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from ...formats import activities, layout
from ..decoders.proto.graph_pb2 import NodeDef
from ..errors import UsageError
from ..store.columns import row_tuples
from ..store.protocols import JobReader
from ..summaries.compiled import FirstRuns, Part, Program, programs
from ..summaries.jobs import functions_of
from ..summaries.steps import rows_of_kinds
from .explanations import untraced_reason
from .node_times import rank_ops

#: Attribute of nodes that are to be compiled, such as those in a scope of `jit_scope`.
_MARK: Final = "_XlaCompile"


class Compiled(NamedTuple):
    """The programs of a job.

    ``steps``: number of its traced steps. ``why``: why there is no program, '' if there is one.
    """

    job: JobReader
    steps: int
    programs: tuple[Program, ...]
    why: str = ""


def compiled(job: JobReader, name: str = "") -> Compiled:
    """Return the programs of ``job``, or the one called ``name``; one snapshot is read.

    UsageError ``no-such-program`` if there is none of that name.
    """
    answer = job.on_one_snapshot(_compiled)
    if not name:
        return answer
    chosen = tuple(program for program in answer.programs if program.name == name)
    if not chosen:
        names = ", ".join(program.name for program in answer.programs) or "none"
        raise UsageError(f"XLA compiled no program {name!r} in this job: it has {names}", slug="no-such-program")
    return answer._replace(programs=chosen)


def parts_of(job: JobReader) -> list[Part]:
    """Return the ops that went into the programs of ``job``."""
    columns = row_tuples(job.table("programs"), *Part._fields)
    return list(dict.fromkeys(Part(*values) for values in columns))


def _compiled(job: JobReader) -> Compiled:
    ranking = rank_ops(job)
    if ranking is None:
        return Compiled(job, 0, (), untraced_reason(job))
    profile = ranking.profile
    parts = parts_of(job)
    marked = [] if parts else _marked_nodes(job)
    found = programs(profile.nodes, ranking.times, profile.trace_count, parts, _first_runs(job), marked)
    why = "" if found else "XLA compiled nothing that ran in the traced steps"
    return Compiled(job, profile.trace_count, tuple(found), why)


def _first_runs(job: JobReader) -> dict[str, FirstRuns]:
    """Return the first runs of functions, by the name of the function."""
    spans, names = rows_of_kinds(job.table("spans"), (layout.ACTIVITY,)), functions_of(job.info)
    counts, times = Counter[str](), Counter[str]()
    for key, count, total_ns in row_tuples(spans, "key", "count", "total_ns"):
        if activities.number_of(key) == activities.FIRST_RUN:
            label = activities.label_of(key, names)
            counts[label] += count
            times[label] += total_ns
    return {name: FirstRuns(number, times[name]) for name, number in counts.items()}


def _marked_nodes(job: JobReader) -> list[str]:
    """Return the nodes of the job's graphs that are to be compiled."""
    rows = row_tuples(job.table("graph_nodes", ["name", "node_def"]), "name", "node_def")
    return [name for name, definition in rows if _MARK.encode() in definition and _is_marked(definition)]


def _is_marked(definition: bytes) -> bool:
    try:
        return NodeDef.FromString(definition).attr[_MARK].b
    except DecodeError:
        return False
