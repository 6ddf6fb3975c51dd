"""Whether steps wait for their input."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Final

from tfprof.collector.ingest.executions import ITERATOR_DEVICE
from tfprof.collector.render.numbers import duration, percent
from tfprof.collector.views.advice.evidence import Evidence, Took
from tfprof.collector.views.advice.intervals import covered
from tfprof.collector.views.advice.report import Report

#: Ops that only wait until somebody has a batch for them.
WAITING: Final = frozenset(
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
#: Shares of a step, and of the time from step to step, from which on it is worth a word.
WITHIN: Final = 0.2
BETWEEN: Final = 0.4
#: Fewer pauses between steps tell nothing; shorter ones are the interpreter's.
_PAUSES: Final = 20
_SHORTEST_NS: Final = 500_000

_DEVICE: Final = ITERATOR_DEVICE.decode().lower()
_TODO: Final = (
    "prepare batches ahead: dataset.prefetch(tf.data.AUTOTUNE) last, map(…, num_parallel_calls=tf.data.AUTOTUNE),"
    " cache() what is the same each epoch"
)
_TODO_BETWEEN: Final = "have batches ready: dataset.prefetch(tf.data.AUTOTUNE), tf.data instead of feed_dict; fetch, convert and log less often"


def check(evidence: Evidence) -> Sequence[Report]:
    """Say which part of traced steps went by in ops that wait for input, and which part of the time no step ran."""
    return [report for report in (_within(evidence), _between(evidence)) if report is not None]


def waits(executions: Sequence[Took]) -> int:
    """Return for how long ops waited for input, in ns; what iterators do on such an op's own thread it waits for, too."""
    threads = {one.thread for one in executions if one.op in WAITING}
    return covered(
        (one.start_ns, one.end_ns)
        for one in executions
        if one.op in WAITING or (one.device == _DEVICE and one.thread in threads)
    )


def _within(evidence: Evidence) -> Report | None:
    """Compare waiting ops with the steps that they ran in."""
    whole = sum(one.duration_ns for one in evidence.traced)
    waited = sum(min(waits(one.executions), one.duration_ns) for one in evidence.traced)
    share = waited / whole if whole else 0.0
    if share < WITHIN:
        return None
    steps = len(evidence.traced)
    text = f"{percent(share)} of the time in {steps} traced steps is spent waiting for input: {duration(waited / steps)} a step"
    numbers: dict[str, float | str] = {"share": share, "waiting_ns_per_step": waited / steps, "traced_steps": steps}
    slowest = _slowest_stage(evidence)
    if slowest is not None:
        name, spent = slowest
        text += f"; most of the pipeline's own time is in {name}, {duration(spent / steps)} a step"
        numbers |= {"stage": name, "stage_ns_per_step": spent / steps}
    return Report(text, numbers, _TODO)


def _slowest_stage(evidence: Evidence) -> tuple[str, int] | None:
    """Return the stage of tf.data pipelines with the most time of its own, in ns."""
    stages: Counter[str] = Counter()
    for step in evidence.traced:
        for one in step.executions:
            if one.device == _DEVICE:
                stages[one.node.rpartition("::")[2]] += one.end_ns - one.start_ns
    found = stages.most_common(1)
    return found[0] if found and found[0][1] > 0 else None


def _between(evidence: Evidence) -> Report | None:
    """Compare the pauses between steps with the time from step to step; those around epochs are few, and medians leave them out."""
    pauses, rounds = [], []
    for one, following in pairwise(evidence.timed):
        if one.usual and following.usual and one.ordinal + one.runs == following.ordinal:
            from_start = following.start_ns - one.start_ns
            pauses.append((from_start - one.total_ns) / one.runs)
            rounds.append(from_start / one.runs)
    if len(pauses) < _PAUSES:
        return None
    pause, whole = median(pauses), median(rounds)
    share = pause / whole if whole > 0 else 0.0
    if share < BETWEEN or pause < _SHORTEST_NS:
        return None
    return Report(
        f"{percent(share)} of the time is spent between steps, in Python: {duration(pause)} of {duration(whole)} from step to step",
        {"share": share, "between_ns": pause, "from_step_to_step_ns": whole, "pauses": len(pauses)},
        _TODO_BETWEEN,
    )
