"""Whether memory grows from step to step."""

import re
from collections.abc import Iterator, Sequence
from math import log, prod
from statistics import linear_regression
from typing import Any, Final, NamedTuple

from ..growth import steady_growth
from ..numbers import duration, percent, size
from .evidence import Evidence
from .report import Report

#: Minimum number of samples (one per second); the share of them, and of traced steps, that counts
#: as warm-up; the minimum number of steps after it. With fewer than _FEW_SAMPLES after it, only a
#: large growth is reported: caches fill at first.
SAMPLES_MIN: Final = 12
WARM_UP_SHARE: Final = 0.3
STEPS_MIN: Final = 6
_FEW_SAMPLES: Final = 14
#: Minimum growth that is reported, as a share and in bytes.
_GROWTH_SHARE_MIN: Final = 0.1
_LARGE_SHARE_MIN: Final = 0.25
_GROWTH_BYTES_MIN: Final = 64e6
_NAMED_MAX: Final = 3
#: Maximum factor between the growth per step and the size of what explains it.
_SIZE_FACTOR: Final = 1.4
#: Ops of variables, the size of their elements if they are floats, and the minimum number of
#: variables with the same name and shape.
_VARIABLE_OPS: Final = frozenset({"VarHandleOp", "Variable", "VariableV2"})
_ELEMENT_BYTES: Final = 4
_REPEATED_MIN: Final = 3
_NUMBER: Final = re.compile(r"_\d+$")
_UNEXPLAINED: Final = (
    "The ops of the traced steps do not explain it: none has an output of about this size. The program keeps something"
    " else, or keeps it outside of steps."
)
_REMEDY: Final = (
    "look for objects that a loop collects: fetched arrays and tensors in lists, ops added to the graph, retraced"
    " tf.functions, shuffle buffers"
)
_REMEDY_FOR_VARIABLES: Final = (
    "create tf.Variables, models and optimizers once, before the loop, and assign to them in it; if none of them is"
    " kept, look for other objects that the loop collects"
)
_REMEDY_FOR_PYTHON: Final = (
    "look for what the loop collects (tracemalloc shows the lines): lists of results, caches, tf.Variables and models"
    " made in the loop"
)


def check(evidence: Evidence) -> Sequence[Report]:
    """Report the growth of the processes' memory, and of GPU memory."""
    return [report for report in (_processes(evidence), _gpu(evidence)) if report is not None]


def _grows(values: Sequence[float], share_min: float = _GROWTH_SHARE_MIN) -> bool:
    """Return whether ``values`` grow steadily, and enough to report."""
    trend = steady_growth(values)
    return trend is not None and trend.increase >= max(_GROWTH_BYTES_MIN, share_min * trend.first)


def _processes(evidence: Evidence) -> Report | None:
    samples = evidence.memory_samples[int(len(evidence.memory_samples) * WARM_UP_SHARE) :]
    share_min = _GROWTH_SHARE_MIN if len(samples) >= _FEW_SAMPLES else _LARGE_SHARE_MIN
    if len(evidence.memory_samples) < SAMPLES_MIN or not _grows([sample.rss_bytes for sample in samples], share_min):
        return None
    minutes = [(sample.t_ns - samples[0].t_ns) / 60e9 for sample in samples]
    slope, _ = linear_regression(minutes, [sample.rss_bytes for sample in samples])
    first, last = samples[0].rss_bytes, samples[-1].rss_bytes
    seconds = minutes[-1] * 60
    text = (
        f"the job's memory grows while steps run, by {size(slope)} a minute: from {size(first)} to {size(last)}"
        f" in {duration(seconds * 1e9)}"
    )
    numbers: dict[str, float | str] = {"bytes_per_minute": slope, "first_bytes": first, "last_bytes": last}
    steps_per_s = _steps_per_s(evidence)
    if not steps_per_s or not evidence.nodes:
        return Report(f"{text}.", numbers, _REMEDY)
    step_bytes = slope / 60 / steps_per_s
    keepers = _keepers(evidence, step_bytes)
    text += f", {size(step_bytes)} a step. "
    numbers["bytes_per_step"] = step_bytes
    if variables := _variables_per_step(evidence):
        text += f"An eager step creates tf.Variables, {variables:.3g} in the mean (VarHandleOp). "
        numbers["variables_per_step"] = variables
    if not keepers:
        return Report(f"{text}{_UNEXPLAINED}", numbers, _REMEDY_FOR_VARIABLES if variables else _REMEDY_FOR_PYTHON)
    names = ", ".join(f"{keeper.name} ({size(keeper.size)})" for keeper in keepers)
    return Report(
        f"{text}About as much is in the output of each of these: {names}.",
        numbers | {f"bytes of {keeper.name}": keeper.size for keeper in keepers},
        _REMEDY_FOR_VARIABLES if variables else _REMEDY,
        keepers[0].line,
    )


def _variables_per_step(evidence: Evidence) -> float:
    """Return how many variables an eager step creates, 0 for other steps.

    In a graph, the op only looks a variable up.
    """
    if evidence.breakdown is None or not evidence.breakdown.is_eager:
        return 0.0
    return sum(node.stats.runs for node in evidence.nodes if node.op == "VarHandleOp") / evidence.traced_steps


def _steps_per_s(evidence: Evidence) -> float:
    """Return the steps of the main kind per second, 0 if unknown."""
    groups = evidence.timed_steps
    seconds = (groups[-1].start_ns - groups[0].start_ns) / 1e9 if groups else 0.0
    return sum(group.steps for group in groups[:-1]) / seconds if seconds > 0 else 0.0


class _Keeper(NamedTuple):
    """What may be kept in each step: a name, its size in bytes, and the user's line."""

    name: str
    size: float
    line: str


def _keepers(evidence: Evidence, step_bytes: float) -> list[_Keeper]:
    """Return the ops and variables of which one more in each step explains the growth.

    The closest sizes come first.
    """
    ops = [
        _Keeper(
            f"{node.op} {node.name}", node.stats.residual_bytes / evidence.traced_steps, evidence.places.location(node)
        )
        for node in evidence.nodes
        if not node.facts.parameter_shape
    ]
    keepers = [
        keeper
        for keeper in (*_repeated_variables(evidence), *ops)
        if step_bytes / _SIZE_FACTOR <= keeper.size <= step_bytes * _SIZE_FACTOR
    ]
    return sorted(keepers, key=lambda keeper: abs(log(keeper.size / step_bytes)))[:_NAMED_MAX]


def _repeated_variables(evidence: Evidence) -> Iterator[_Keeper]:
    """Yield variables of which there are several whose names differ only in a number."""
    by_name: dict[tuple[str, tuple[int, ...]], list[Any]] = {}
    for node in evidence.nodes:
        if node.op in _VARIABLE_OPS and node.facts.parameter_shape:
            by_name.setdefault((_NUMBER.sub("", node.name), node.facts.parameter_shape), []).append(node)
    for (name, shape), nodes in by_name.items():
        if len(nodes) >= _REPEATED_MIN:
            line = evidence.places.location(nodes[-1])
            yield _Keeper(f"the {len(nodes)} variables {name}, {name}_1, …", prod(shape) * _ELEMENT_BYTES, line)


def _gpu(evidence: Evidence) -> Report | None:
    steps = [step for step in evidence.step_memory if step.in_use > 0]
    steps = steps[int(len(steps) * WARM_UP_SHARE) :]
    if len(steps) < STEPS_MIN or not _grows([step.in_use for step in steps]):
        return None
    first, last = steps[0], steps[-1]
    return Report(
        f"the memory in use on a GPU grows from step to step: {size(last.in_use)} in step {last.step},"
        f" {percent(last.in_use / first.in_use - 1)} more than in step {first.step}.",
        {"first_bytes": first.in_use, "last_bytes": last.in_use, "first_step": first.step, "last_step": last.step},
        "look for tensors that Python keeps from step to step, and for inputs that get longer: pad or bucket them",
    )
