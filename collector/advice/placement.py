"""Whether ops run on the CPU while there is a GPU."""

from collections.abc import Sequence
from typing import Final

from ..numbers import duration, percent
from ..summaries.op_classes import WAITING_OPS
from ..summaries.top import heaviest
from ..tfviews.nodes import Node, total_of
from .evidence import Evidence
from .main_call import share_in_steps
from .report import Report

#: Minimum share of all op time for a report, and number of op types that are named.
SHARE_MIN: Final = 0.1
_NAMED_MAX: Final = 3
#: Ops that run only on CPUs, or whose time belongs to other ops.
_CPU_OPS: Final = WAITING_OPS | {
    "Assert",
    "Const",
    "DecodeJpeg",
    "DecodeRaw",
    "EagerPyFunc",
    "MergeV2Checkpoints",
    "NoOp",
    "ParseExample",
    "ParseExampleV2",
    "ParseSingleExample",
    "Print",
    "PrintV2",
    "PyFunc",
    "PyFuncStateless",
    "ReadFile",
    "RestoreV2",
    "SaveV2",
    "ShardedFilename",
    "_Arg",
    "_HostRecv",
    "_HostSend",
    "_Recv",
    "_Retval",
    "_Send",
}


def check(evidence: Evidence) -> Sequence[Report]:
    """Report op types that take time on the CPU although other ops run on a GPU."""
    if not any("gpu" in device for node in evidence.nodes for device in node.devices):
        return []
    on_cpu = [node for node in evidence.nodes if _is_movable(node) and node.stats.cpu_micros > 0]
    time, total_time = total_of(on_cpu).cpu_micros, total_of(evidence.nodes).micros
    share = time / total_time if total_time > 0 else 0.0
    if share < SHARE_MIN:
        return []
    by_type: dict[str, float] = {}
    for node in on_cpu:
        by_type[node.op] = by_type.get(node.op, 0) + evidence.ns_per_step(node.stats.cpu_micros)
    top = sorted(by_type.items(), key=lambda pair: (-pair[1], pair[0]))[:_NAMED_MAX]
    top_types = ", ".join(f"{op} {duration(ns)}" for op, ns in top)
    return [
        Report(
            f"ops on the CPU of a job with a GPU take {percent(share)} of the time of all ops,"
            f" {duration(evidence.ns_per_step(time))} a step: most of all {top_types}.",
            {"share": share, "cpu_ns": evidence.ns_per_step(time), "nodes": len(on_cpu), **dict(top)},
            "remove tf.device('/cpu:0') around them, or see why they have no GPU kernel:"
            " types int32 and string often have none",
            heaviest([node for node in on_cpu if node.op == top[0][0]], evidence.places.location),
            share * share_in_steps(evidence),
        )
    ]


def _is_movable(node: Node) -> bool:
    """Return whether a node ran on a CPU, although it might run on a GPU."""
    return (
        any("cpu" in device for device in node.devices)
        and node.op not in _CPU_OPS
        and not node.op.endswith(("Summary", "SummaryV2"))
        and not node.name.startswith("_")
    )
