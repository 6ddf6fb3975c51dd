"""Whether GPUs wait for copies."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Final

from ..numbers import duration, percent
from ..summaries.op_classes import DIRECTIONS, copy_direction
from ..summaries.step_cut import Interval, covered, exposed
from ..summaries.step_records import OpExecution
from ..tfviews.nodes import STREAM
from .evidence import Evidence
from .main_call import share_in_steps
from .report import Report

#: Minimum share of a step that is reported: the time of copies without a concurrent kernel.
SHARE_MIN: Final = 0.1

_GPU: Final = re.compile(r"gpu:\d+")
_REMEDIES: Final = {
    "hd": (
        "hand batches over ahead: tf.data.experimental.prefetch_to_device or copy_to_device;"
        " feed smaller types and cast on the GPU"
    ),
    "dh": "fetch less often and less: losses and summaries every N steps; keep ops that read the values on the GPU",
    "dd": "look for ops that copy: gathers, slices, changes of layout between NHWC and NCHW",
    "pp": "put ops that exchange data on one GPU",
}


def check(evidence: Evidence) -> Sequence[Report]:
    """Report for each GPU the time of copies without a concurrent kernel in the median step."""
    steps = [(step.duration_ns, *_by_gpu(step.executions)) for step in evidence.step_traces if step.duration_ns > 0]
    reports = []
    for gpu in sorted({gpu for _, copies, _ in steps for gpu in copies}):
        gpu_steps = [(duration_ns, copies.get(gpu, {}), kernels[gpu]) for duration_ns, copies, kernels in steps]
        exposed_ns = [
            exposed((span for spans in copies.values() for span in spans), kernels) for _, copies, kernels in gpu_steps
        ]
        share = median(ns / duration_ns for ns, (duration_ns, *_) in zip(exposed_ns, gpu_steps, strict=True))
        if share >= SHARE_MIN:
            copy_ns: Counter[str] = Counter()
            for _, copies, _ in gpu_steps:
                copy_ns.update({direction: covered(spans) for direction, spans in copies.items()})
            kernel_ns = median(covered(kernels) for _, _, kernels in gpu_steps)
            report = _report(gpu, share, median(exposed_ns), kernel_ns, copy_ns)
            reports.append(replace(report, saving=share * share_in_steps(evidence)))
    return reports


def _by_gpu(
    executions: Sequence[OpExecution],
) -> tuple[dict[str, dict[str, list[Interval]]], dict[str, list[Interval]]]:
    """Return the copies by GPU and direction, and the kernels by GPU."""
    copies: dict[str, dict[str, list[Interval]]] = defaultdict(lambda: defaultdict(list))
    kernels: dict[str, list[Interval]] = defaultdict(list)
    for execution in executions:
        gpu = _GPU.search(execution.device)
        if gpu is None:
            continue
        direction, span = copy_direction(execution), (execution.start_ns, execution.end_ns)
        if direction is not None:
            copies[gpu[0]][direction].append(span)
        elif STREAM in execution.device:
            kernels[gpu[0]].append(span)
    return copies, kernels


def _report(gpu: str, share: float, exposed_ns: float, kernel_ns: float, copy_ns: Counter[str]) -> Report:
    ((direction, _),) = copy_ns.most_common(1)
    direction_text = DIRECTIONS.get(direction, "")
    return Report(
        f"{gpu.upper()} waits for copies during {percent(share)} of a step: copies run for {duration(exposed_ns)}"
        f" without a kernel; kernels run for {duration(kernel_ns)}."
        + (
            f" Most of their time is for copies {'' if direction == 'dd' else 'from '}{direction_text}."
            if direction_text
            else ""
        ),
        {
            "device": gpu,
            "share": share,
            "copies_ns_per_step": exposed_ns,
            "kernels_ns_per_step": kernel_ns,
            "way": direction_text,
        },
        _REMEDIES.get(direction, _REMEDIES["hd"]),
    )
