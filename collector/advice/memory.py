"""Whether memory grows from step to step."""

from collections.abc import Sequence
from statistics import linear_regression
from typing import Final

from ..growth import steady_growth
from ..numbers import duration, percent, size
from ..tfviews.own_files import own_location
from .evidence import Evidence
from .report import Report

#: Minimum number of samples (one per second) and of traced steps; the share of them that counts as
#: warm-up.
SAMPLES_MIN: Final = 20
STEPS_MIN: Final = 6
_WARM_UP_SHARE: Final = 0.3
#: Minimum growth that is reported, as a share and in bytes.
_GROWTH_SHARE_MIN: Final = 0.1
_GROWTH_BYTES_MIN: Final = 64e6
_NAMED_MAX: Final = 3


def check(evidence: Evidence) -> Sequence[Report]:
    """Report the growth of the processes' memory, and of GPU memory."""
    return [report for report in (_processes(evidence), _gpu(evidence)) if report is not None]


def _grows(values: Sequence[float]) -> bool:
    """Return whether ``values`` grow steadily, and enough to report."""
    trend = steady_growth(values)
    return trend is not None and trend.increase >= max(_GROWTH_BYTES_MIN, _GROWTH_SHARE_MIN * trend.first)


def _processes(evidence: Evidence) -> Report | None:
    samples = evidence.memory_samples[int(len(evidence.memory_samples) * _WARM_UP_SHARE) :]
    if len(samples) < SAMPLES_MIN or not _grows([sample.rss_bytes for sample in samples]):
        return None
    minutes = [(sample.t_ns - samples[0].t_ns) / 60e9 for sample in samples]
    slope, _ = linear_regression(minutes, [sample.rss_bytes for sample in samples])
    first, last = samples[0].rss_bytes, samples[-1].rss_bytes
    text = (
        f"the job's memory grows while steps run, by {size(slope)} a minute: from {size(first)} to {size(last)}"
        f" in {duration(minutes[-1] * 60e9)}."
    )
    numbers: dict[str, float | str] = {"bytes_per_minute": slope, "first_bytes": first, "last_bytes": last}
    holders = _holders(evidence)
    if holders:
        text += (
            " The ops that hold the most memory when they end: "
            + ", ".join(f"{op} {size(held)}" for op, held in holders)
            + " a step."
        )
        numbers |= {f"residual_{op}": held for op, held in holders}
    return Report(
        text,
        numbers,
        "look for objects that a loop collects: fetched arrays and tensors in lists, ops added to the graph, retraced"
        " tf.functions, shuffle buffers",
        _location(evidence, holders[0][0]) if holders else "",
    )


def _holders(evidence: Evidence) -> list[tuple[str, int]]:
    """Return the op types that hold the most bytes when their ops end, each with these bytes.

    Variables are excluded, since they always hold memory.
    """
    held_bytes: dict[str, int] = {}
    for node in evidence.nodes:
        if node.stats.residual_bytes > 0 and not node.facts.parameter_shape:
            held_bytes[node.op] = held_bytes.get(node.op, 0) + node.stats.residual_bytes
    return sorted(held_bytes.items(), key=lambda pair: (-pair[1], pair[0]))[:_NAMED_MAX]


def _location(evidence: Evidence, op: str) -> str:
    """Return the user's line that created the node of type ``op`` that holds the most bytes."""
    candidates = [node for node in evidence.nodes if node.op == op and not node.facts.parameter_shape]
    return own_location(max(candidates, key=lambda node: node.stats.residual_bytes).facts.stack)


def _gpu(evidence: Evidence) -> Report | None:
    steps = [step for step in evidence.step_memory if step.in_use > 0]
    steps = steps[int(len(steps) * _WARM_UP_SHARE) :]
    if len(steps) < STEPS_MIN or not _grows([step.in_use for step in steps]):
        return None
    first, last = steps[0], steps[-1]
    return Report(
        f"the memory in use on a GPU grows from step to step: {size(last.in_use)} in step {last.step},"
        f" {percent(last.in_use / first.in_use - 1)} more than in step {first.step}.",
        {"first_bytes": first.in_use, "last_bytes": last.in_use, "first_step": first.step, "last_step": last.step},
        "look for tensors that Python keeps from step to step, and for inputs that get longer: pad or bucket them",
    )
