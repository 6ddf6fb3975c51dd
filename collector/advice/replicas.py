"""Whether the devices of a step have unequal work."""

from collections import defaultdict
from collections.abc import Sequence
from statistics import median
from typing import Final

from ..numbers import duration, percent
from ..summaries.op_classes import DEVICE, class_of
from ..summaries.step_cut import Interval, covered
from ..summaries.step_records import StepTrace
from ..summaries.top import short_device
from .evidence import Evidence
from .report import Report

#: The slowest device works this many times as long as the median one; minimum share of the step.
FACTOR_MIN: Final = 1.5
_SHARE_MIN: Final = 0.2
#: A device that works less than this share of the slowest one has no replica.
_REPLICA_SHARE: Final = 0.05
#: Part of the names of ops of a replica.
_REPLICA: Final = "replica_"


def check(evidence: Evidence) -> Sequence[Report]:
    """Report a replica that works much longer in a step than the others, which wait for it."""
    steps = [step for step in evidence.step_traces if step.duration_ns > 0]
    if not any(_REPLICA in node.name for node in evidence.nodes) or not steps:
        return []
    by_device: dict[str, list[int]] = defaultdict(list)
    for step in steps:
        for device, busy_ns in _busy(step).items():
            by_device[device].append(busy_ns)
    medians = {device: median(times) for device, times in by_device.items()}
    medians = {device: ns for device, ns in medians.items() if "gpu:" in device} or medians  # the host is no replica
    slowest = max(medians, key=lambda device: medians[device], default="")
    others = [ns for device, ns in medians.items() if device != slowest and ns >= _REPLICA_SHARE * medians[slowest]]
    step_ns = median(step.duration_ns for step in steps)
    if not others or medians[slowest] < max(FACTOR_MIN * median(others), _SHARE_MIN * step_ns):
        return []
    share = (medians[slowest] - median(others)) / step_ns
    return [
        Report(
            f"the replicas have unequal work: ops on {short_device(slowest)} run for {duration(medians[slowest])} of a"
            f" step, on the others for {duration(median(others))}; these wait for {percent(share)} of the step.",
            {"share": share, "device": slowest, "slowest_ns": medians[slowest], "others_ns": median(others)},
            "give each replica the same amount of work: equal batches (drop_remainder=True), sequences of equal"
            " length, no further ops on one device",
            saving=share / 2,
            verdict="the replicas have unequal work",
        )
    ]


def _busy(step: StepTrace) -> dict[str, int]:
    """Return the time in which ops run on each CPU or GPU."""
    intervals: dict[str, list[Interval]] = defaultdict(list)
    for execution in step.executions:
        if "device:" in execution.device and class_of(execution, {}).part == DEVICE:
            intervals[execution.device.partition("/stream:")[0]].append((execution.start_ns, execution.end_ns))
    return {device: covered(spans) for device, spans in intervals.items()}
