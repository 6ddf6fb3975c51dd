"""Whether steps wait for their input."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Final

from ..numbers import duration, percent
from ..store.devices import ITERATOR_DEVICE
from ..summaries.top import top_location
from ..tfviews.own_files import stack_lookup
from .evidence import Evidence, OpExecution, StepTrace
from .intervals import covered
from .report import Report

#: Ops that only wait for the next batch.
WAITING_OPS: Final = frozenset(
    {
        "DatasetToSingleElement",
        "IteratorGetNext",
        "IteratorGetNextAsOptional",
        "IteratorGetNextSync",
        "MultiDeviceIteratorGetNextFromShard",
        "QueueDequeue",
        "QueueDequeueMany",
        "QueueDequeueManyV2",
        "QueueDequeueUpTo",
        "QueueDequeueUpToV2",
        "QueueDequeueV2",
    }
)
#: Minimum shares that are reported: of waiting in the time of a step, and of the pause in the time
#: from the start of a step to the next start.
WAITING_SHARE_MIN: Final = 0.2
PAUSE_SHARE_MIN: Final = 0.4
#: Minimum number and minimum median (ns) of the pauses that are reported. The interpreter alone
#: causes shorter pauses.
_PAUSES_MIN: Final = 20
_PAUSE_MIN_NS: Final = 500_000

_DEVICE: Final = ITERATOR_DEVICE.decode().lower()
_REMEDY: Final = (
    "prepare batches ahead: dataset.prefetch(tf.data.AUTOTUNE) last, map(…, num_parallel_calls=tf.data.AUTOTUNE),"
    " cache() what is the same each epoch"
)
_REMEDY_FOR_PAUSES: Final = (
    "have batches ready: dataset.prefetch(tf.data.AUTOTUNE), tf.data instead of feed_dict;"
    " fetch, convert and log less often"
)


def check(evidence: Evidence) -> Sequence[Report]:
    """Report the time that ops wait for input in traced steps, and the pauses between steps.

    The waiting time is given as a share of the step, a pause as a share of the time from the start
    of a step to the next start.
    """
    return [report for report in (_waiting_in_steps(evidence), _pauses_between_steps(evidence)) if report is not None]


def waiting_time(executions: Sequence[OpExecution]) -> int:
    """Return the time in ns in which ops waited for input.

    It includes the work of iterators on the threads of these ops.
    """
    threads = {execution.thread for execution in executions if execution.op in WAITING_OPS}
    return covered(
        (execution.start_ns, execution.end_ns)
        for execution in executions
        if execution.op in WAITING_OPS or (execution.device == _DEVICE and execution.thread in threads)
    )


def _waiting_in_steps(evidence: Evidence) -> Report | None:
    """Compare the time of waiting ops with the duration of their steps.

    The result is a median, since the first batch of an epoch always waits.
    """
    steps = [step for step in evidence.step_traces if step.duration_ns > 0]
    if not steps:
        return None
    waiting_ns = [min(waiting_time(step.executions), step.duration_ns) for step in steps]
    share = median(ns / step.duration_ns for ns, step in zip(waiting_ns, steps, strict=True))
    if share < WAITING_SHARE_MIN:
        return None
    basis = "the traced step" if len(steps) == 1 else f"the median of {len(steps)} traced steps"
    text = f"{percent(share)} of the time in {basis} is spent waiting for input: {duration(median(waiting_ns))} a step."
    numbers: dict[str, float | str] = {
        "share": share,
        "waiting_ns_per_step": median(waiting_ns),
        "traced_steps": len(steps),
    }
    slowest = _slowest_stage(steps)
    if slowest is not None:
        name, own_ns = slowest
        text += f" Most of the pipeline's own time is in its stage {name}: {duration(own_ns)} a step."
        numbers |= {"stage": name, "stage_ns_per_step": own_ns}
    waiting_nodes = [node for node in evidence.nodes if node.op in WAITING_OPS]
    return Report(text, numbers, _REMEDY, top_location(waiting_nodes, evidence.times, stack_lookup(evidence.nodes)))


def _slowest_stage(steps: Sequence[StepTrace]) -> tuple[str, float] | None:
    """Return the tf.data stage with the most own time in the median step, and that time in ns."""
    stages: dict[str, list[int]] = {}
    for at, step in enumerate(steps):
        for execution in step.executions:
            if execution.device == _DEVICE:
                stage_times = stages.setdefault(execution.node.rpartition("::")[2], [0] * len(steps))
                stage_times[at] += execution.end_ns - execution.start_ns
    slowest = max(((name, median(times)) for name, times in stages.items()), key=lambda pair: pair[1], default=None)
    return slowest if slowest and slowest[1] > 0 else None


def _pauses_between_steps(evidence: Evidence) -> Report | None:
    """Compare the pauses between steps with the time from the start of a step to the next start.

    Medians are compared, since they ignore the pauses between epochs.
    """
    pauses, intervals = [], []
    for group, next_group in pairwise(evidence.timed_steps):
        if group.is_normal and next_group.is_normal and group.ordinal + group.steps == next_group.ordinal:
            interval_ns = next_group.start_ns - group.start_ns
            pauses.append((interval_ns - group.total_ns) / group.steps)
            intervals.append(interval_ns / group.steps)
    if len(pauses) < _PAUSES_MIN:
        return None
    pause, interval = median(pauses), median(intervals)
    share = pause / interval if interval > 0 else 0.0
    if share < PAUSE_SHARE_MIN or pause < _PAUSE_MIN_NS:
        return None
    return Report(
        f"{percent(share)} of the time goes by between steps, in Python: {duration(pause)} of the {duration(interval)}"
        " from the start of a step to that of the next.",
        {"share": share, "between_ns": pause, "from_step_to_step_ns": interval, "pauses": len(pauses)},
        _REMEDY_FOR_PAUSES,
    )
