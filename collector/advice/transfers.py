"""Whether GPUs wait for copies."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import median
from typing import Final

from ..numbers import duration, percent
from ..tfviews.nodes import STREAM
from .evidence import Evidence, OpExecution
from .intervals import Interval, covered, exposed
from .report import Report

#: Minimum share of a step, in copies without a concurrent kernel, that is reported.
SHARE_MIN: Final = 0.1

_GPU: Final = re.compile(r"gpu:\d+")
_COPY: Final = re.compile(r"memcpy\W?([hdp])(?:2|to)([hdp])", re.IGNORECASE)
_WAYS: Final = {"hd": "host to device", "dh": "device to host", "dd": "within a device", "pp": "device to device"}
_TODO: Final = {
    "hd": (
        "hand batches over ahead: tf.data.experimental.prefetch_to_device or copy_to_device;"
        " feed smaller types and cast on the GPU"
    ),
    "dh": "fetch less often and less: losses and summaries every N steps; keep ops that read the values on the GPU",
    "dd": "look for ops that copy: gathers, slices, changes of layout between NHWC and NCHW",
    "pp": "keep what works together on one GPU",
}


def way(one: OpExecution) -> str | None:
    """Return the direction of a copy (hd, dh, dd or pp), '' if unknown.

    None if the execution is not a copy.
    """
    found = _COPY.search(one.device) or _COPY.search(one.node) or _COPY.search(one.op)
    if found:
        return (found[1] + found[2]).lower()
    return "" if "memcpy" in one.device or "memcpy" in one.node.lower() else None


def check(evidence: Evidence) -> Sequence[Report]:
    """Report for each GPU the time of copies without a concurrent kernel in the median step."""
    steps = [(step.duration_ns, *_sorted(step.executions)) for step in evidence.traced if step.duration_ns > 0]
    reports = []
    for gpu in sorted({gpu for _, copies, _ in steps for gpu in copies}):
        of_steps = [(whole, copies.get(gpu, {}), busy[gpu]) for whole, copies, busy in steps]
        alone = [exposed((span for spans in copies.values() for span in spans), busy) for _, copies, busy in of_steps]
        share = median(ns / whole for ns, (whole, *_) in zip(alone, of_steps, strict=True))
        if share >= SHARE_MIN:
            ways: Counter[str] = Counter()
            for _, copies, _ in of_steps:
                ways.update({kind: covered(spans) for kind, spans in copies.items()})
            kernels = median(covered(busy) for _, _, busy in of_steps)
            reports.append(_report(gpu, share, median(alone), kernels, ways))
    return reports


def _sorted(
    executions: Sequence[OpExecution],
) -> tuple[dict[str, dict[str, list[Interval]]], dict[str, list[Interval]]]:
    """Return the copies by GPU and direction, and the kernels by GPU."""
    copies: dict[str, dict[str, list[Interval]]] = defaultdict(lambda: defaultdict(list))
    kernels: dict[str, list[Interval]] = defaultdict(list)
    for one in executions:
        gpu = _GPU.search(one.device)
        if gpu is None:
            continue
        kind, span = way(one), (one.start_ns, one.end_ns)
        if kind is not None:
            copies[gpu[0]][kind].append(span)
        elif STREAM in one.device:
            kernels[gpu[0]].append(span)
    return copies, kernels


def _report(gpu: str, share: float, alone: float, kernels: float, ways: Counter[str]) -> Report:
    ((most, _),) = ways.most_common(1)
    direction = _WAYS.get(most, "")
    return Report(
        f"{gpu.upper()} waits for copies during {percent(share)} of a step: copies run for {duration(alone)} without"
        f" a kernel; kernels run for {duration(kernels)}."
        + (f" Most copies go {'' if most == 'dd' else 'from '}{direction}." if direction else ""),
        {
            "device": gpu,
            "share": share,
            "copies_ns_per_step": alone,
            "kernels_ns_per_step": kernels,
            "way": direction,
        },
        _TODO.get(most, _TODO["hd"]),
    )
