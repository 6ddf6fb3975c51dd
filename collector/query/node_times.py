"""Reads the times of nodes and op types: over the traced steps, in each of them, and ranked."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from operator import add
from typing import Final, NamedTuple

from ..store.columns import row_tuples
from ..store.protocols import JobReader
from ..store.schema import NODE, NONE_ID
from ..summaries.kinds import kind_name, step_kind_of
from ..summaries.operators import Operator, Shapes
from ..summaries.top import Times, TopOp, short_devices, top_ops
from ..tfviews.nodes import STREAM, Node, canonical_devices, device_names, interned_texts, with_counts
from ..tfviews.parity import Parity
from .facts import FLOAT_OPS, GRAPH, SHAPES, STACKS, SelectedJob
from .job_selection import Selection, ids_of
from .kind_selection import function_names_of
from .profile import TRACE_COLUMNS, Profile, matching_devices, nodes_of, profile

#: Maximum number of steps of a job that are read. Of more steps, evenly spaced ones are read.
STEPS_MAX: Final = 50
_NS: float = 1e9


class NodeTimes(NamedTuple):
    """The times in ns of nodes by name, one for each of ``steps`` steps."""

    steps: int
    by_node: dict[str, list[int]]

    def renamed(self, names: Mapping[str, str]) -> "NodeTimes":
        """Return the times under new names; nodes that get the same name are summed."""
        by_node: dict[str, list[int]] = {}
        for name, times in self.by_node.items():
            new_name = names.get(name, name)
            by_node[new_name] = list(map(add, by_node[new_name], times)) if new_name in by_node else times
        return NodeTimes(self.steps, by_node)


def node_times(profile: Profile, device: str | None = None) -> NodeTimes:
    """Return the times of nodes in the steps of ``profile``.

    Of each job, at most STEPS_MAX steps are read. ``device``: only times on matching devices, as
    for `profile`.
    """
    selected_traces = [(job, evenly_spaced(traces)) for job, traces in profile.job_traces]
    steps = sum(len(traces) for _, traces in selected_traces)
    by_node: defaultdict[str, list[int]] = defaultdict(lambda: [0] * steps)
    offset = 0
    for job, traces in selected_traces:
        for name, times in job.on_one_snapshot(partial(_times, traces=traces, device=device)).items():
            by_node[name][offset : offset + len(traces)] = times
        offset += len(traces)
    return NodeTimes(steps, dict(by_node))


def evenly_spaced(traces: Sequence[int]) -> Sequence[int]:
    """Return at most STEPS_MAX of ``traces``, evenly spaced, including the first and the last."""
    last = len(traces) - 1
    return traces if last < STEPS_MAX else [traces[index * last // (STEPS_MAX - 1)] for index in range(STEPS_MAX)]


def _times(job: JobReader, traces: Sequence[int], device: str | None) -> dict[str, list[int]]:
    """Return the times of nodes by name, one for each of ``traces``, in ns.

    They are those on the node's canonical device and on streams.
    """
    names = job.table("names")
    devices, nodes, canonical = device_names(names), interned_texts(names, NODE), canonical_devices(job.rollup())
    device_numbers = set(devices if device is None else matching_devices(devices, device))
    streams = {number for number, text in devices.items() if STREAM in text}
    positions = {trace: index for index, trace in enumerate(traces)}
    by_node: defaultdict[str, list[int]] = defaultdict(lambda: [0] * len(traces))
    for trace, node, node_device, ns in row_tuples(job.times(traces), "trace", "node", "device", "ns"):
        if node_device in device_numbers and (
            node_device in streams or devices[node_device] == devices.get(canonical.get(node, NONE_ID))
        ):
            by_node[nodes[node]][positions[trace]] += ns
    return by_node


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


class Ranking(NamedTuple):
    """A profile with sums over its steps, and its op types, the longest time first.

    ``times``: those of `node_times`.
    """

    profile: Profile
    ops: list[TopOp]
    times: Times


def rank_ops(
    job: JobReader,
    steps: tuple[int, int] | None = None,
    kinds: tuple[int, ...] | None = None,
    device: str | None = None,
    since_ns: int = 0,
) -> Ranking | None:
    """Return the op types of the selected traced steps, None if there are none.

    The arguments select as in `profile`. Raises UsageError as `profile` does.
    """
    selection = Selection((job,), steps, device, kinds=kinds, since_ns=since_ns)
    job_profile = profile(selection, required_facts=(STACKS,), averaged=False)
    if job_profile is None or not job_profile.trace_count:
        return None
    times = node_times(job_profile).by_node
    return Ranking(job_profile, top_ops(job_profile.nodes, times, job_profile.trace_count), times)


def operators(selection: Selection) -> list[Operator]:
    """Return the nodes that ran and took time, in the order of the graph; numbers are per step.

    Raises UsageError ``no-such-step``, ``no-such-kind``, ``no-such-device``.
    """
    job_profile = profile(selection, required_facts=(FLOAT_OPS, GRAPH, SHAPES))
    nodes = [node for node in job_profile.nodes if node.stats.micros > 0 and node.entries] if job_profile else []
    output_bytes = {node.name: node.stats.output_bytes for node in nodes}
    return [_operator(node, number, output_bytes) for number, node in enumerate(nodes, 1)]


def _operator(node: Node, number: int, output_bytes: dict[str, int]) -> Operator:
    facts = node.facts
    memory = sum(output_bytes.get(name, 0) for name in dict.fromkeys((node.name, *facts.inputs)))
    return Operator(
        node.name,
        node.op,
        number,
        short_devices(node),
        node.stats.micros / _NS,
        node.stats.float_ops or None,
        memory or None,
        _known(facts.input_shapes),
        _known(facts.output_shapes),
    )


def _known(shapes: Shapes) -> Shapes:
    """Return the shapes that are known."""
    return tuple(shape for shape in shapes if shape)
