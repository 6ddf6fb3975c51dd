"""Reads the time of each node in each traced step, for the spread over steps."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from operator import add
from typing import Final, NamedTuple

from ..store.columns import row_tuples
from ..store.protocols import JobReader
from ..store.schema import NODE, NONE_ID
from ..tfviews.nodes import STREAM, canonical_devices, device_names, interned_texts
from .profile import Profile, matching_devices

#: Maximum number of steps of a job that are read. Of more steps, evenly spaced ones are read.
STEPS_MAX: Final = 50


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
