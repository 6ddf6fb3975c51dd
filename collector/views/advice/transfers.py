"""Whether GPUs wait for copies."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final

from tfprof.collector.render.numbers import duration, percent
from tfprof.collector.views.advice.evidence import Evidence, Took
from tfprof.collector.views.advice.intervals import Interval, covered, exposed
from tfprof.collector.views.advice.report import Report
from tfprof.collector.views.nodes import STREAM

#: Share of a step from which on copies that no kernel hides are worth a word.
EXPOSED: Final = 0.1

_GPU: Final = re.compile(r"gpu:\d+")
_COPY: Final = re.compile(r"memcpy\W?([hdp])(?:2|to)([hdp])", re.IGNORECASE)
_WAYS: Final = {"hd": "host to device", "dh": "device to host", "dd": "within a device", "pp": "device to device"}
_TODO: Final = {
    "hd": "hand batches over ahead: tf.data.experimental.prefetch_to_device or copy_to_device; feed smaller types and cast on the GPU",
    "dh": "fetch less often and less: losses and summaries every N steps; keep ops that read the values on the GPU",
    "dd": "look for ops that copy: gathers, slices, changes of layout between NHWC and NCHW",
    "pp": "keep what works together on one GPU",
}


def way(one: Took) -> str | None:
    """Return from where to where an execution copies: hd, dh, dd, pp; empty where it does not say, None where it does not copy."""
    found = _COPY.search(one.device) or _COPY.search(one.node) or _COPY.search(one.op)
    if found:
        return (found[1] + found[2]).lower()
    return "" if "memcpy" in one.device or "memcpy" in one.node.lower() else None


def check(evidence: Evidence) -> Sequence[Report]:
    """Say of each GPU how long its copies ran while none of its kernels did."""
    whole = sum(step.duration_ns for step in evidence.traced)
    alone: Counter[str] = Counter()
    kernels: Counter[str] = Counter()
    ways: dict[str, Counter[str]] = defaultdict(Counter)
    for step in evidence.traced:
        copies, busy = _sorted(step.executions)
        for gpu, of_gpu in copies.items():
            kernels[gpu] += covered(busy[gpu])
            alone[gpu] += exposed((span for spans in of_gpu.values() for span in spans), busy[gpu])
            for kind, spans in of_gpu.items():
                ways[gpu][kind] += covered(spans)
    steps = len(evidence.traced)
    return [
        _report(gpu, alone[gpu] / steps, kernels[gpu] / steps, ways[gpu], whole / steps)
        for gpu in sorted(alone)
        if whole and alone[gpu] / whole >= EXPOSED
    ]


def _sorted(executions: Sequence[Took]) -> tuple[dict[str, dict[str, list[Interval]]], dict[str, list[Interval]]]:
    """Return by GPU the copies by their way, and the kernels."""
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


def _report(gpu: str, alone: float, kernels: float, ways: Counter[str], step: float) -> Report:
    ((most, _),) = ways.most_common(1)
    direction = _WAYS.get(most, "")
    return Report(
        f"{gpu}: copies that no kernel hides take {percent(alone / step)} of a step, {duration(alone)}"
        f" beside {duration(kernels)} of kernels" + (f"; most of them go from {direction}" if direction else ""),
        {
            "device": gpu,
            "share": alone / step,
            "copies_ns_per_step": alone,
            "kernels_ns_per_step": kernels,
            "way": direction,
        },
        _TODO.get(most, _TODO["hd"]),
    )
