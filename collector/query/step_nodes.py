"""Reads the nodes of each traced step of a profile."""

from collections.abc import Collection
from functools import partial

from ..store.columns import row_tuples
from ..store.protocols import JobReader
from ..summaries.kinds import kind_name, step_kind_of
from ..tfviews.nodes import Node, with_counts
from ..tfviews.parity import Parity
from .kinds import function_names_of
from .node_times import evenly_spaced
from .profile import TRACE_COLUMNS, Profile, SelectedJob, nodes_of
from .selection import ids_of


def nodes_by_step(
    profile: Profile, device: str | None, facts: Collection[str], parity: Parity
) -> dict[str, list[Node]]:
    """Return the nodes of the steps of ``profile`` with their numbers in that step, in time order.

    The keys are kind and number of a step, after the id of its job if there are several. Of each
    job, at most STEPS_MAX steps are read. ``device`` and ``facts``: as for `profile`.
    """
    ids = ids_of([job for job, _ in profile.job_traces])
    nodes: dict[str, list[Node]] = {}
    for job, traces in profile.job_traces:
        prefix = f"{ids[job.info.hex]} " if len(profile.job_traces) > 1 else ""
        read = partial(_job_steps, traces=evenly_spaced(traces), device=device, facts=facts, parity=parity)
        nodes.update((prefix + name, step_nodes) for name, step_nodes in job.on_one_snapshot(read))
    return nodes


def _job_steps(
    job: JobReader, traces: Collection[int], device: str | None, facts: Collection[str], parity: Parity
) -> list[tuple[str, list[Node]]]:
    """Return the names of the steps of ``traces``, and their nodes."""
    table, functions = job.table("traces", TRACE_COLUMNS), function_names_of([job])
    names = {
        trace: f"{kind_name(step_kind_of(kind, key), functions)} {step}"
        for trace, kind, key, step in row_tuples(table, "trace", "kind", "key", "step")
    }
    return [
        (names[trace], with_counts(nodes, averaged=False, parity=parity))
        for trace in traces
        for nodes in [nodes_of(SelectedJob(job, table, (trace,)), device, facts, parity).nodes]
    ]
