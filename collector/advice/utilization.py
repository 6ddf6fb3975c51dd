"""Whether GPUs are busy."""

from collections.abc import Iterable, Sequence
from typing import Final

from ..numbers import percent
from ..summaries.top import short_device
from ..tfviews.entries import Entry
from .evidence import Evidence
from .intervals import covered
from .report import Report

#: Minimum share of a step that a GPU should be busy.
UTILIZATION_MIN: Final = 0.5
_TODO: Final = (
    "see what the host does in the gaps between kernels: tfprof graph JOB -step N -output timeline:outfile=F shows them"
)


def check(evidence: Evidence) -> Sequence[Report]:
    """Report for each GPU the share of the last step in which its kernels ran.

    The TF profiler takes the last step of each node, which may differ between nodes, and adds up
    concurrent kernels.
    """
    by_device: dict[str, list[tuple[int, Entry]]] = {}
    for step, entry in evidence.last.values():
        if "gpu" in entry.device:
            by_device.setdefault(entry.device, []).append((step, entry))
    own, reports = evidence.parity.has_own_advice, []
    for device in sorted(by_device):
        found = by_device[device]
        latest = max(step for step, _ in found)
        taken = [entry for step, entry in found if step == latest or not own]
        starts = [entry.start_us for entry in taken if entry.start_us]
        span = max(entry.end_us for entry in taken) - min(starts, default=0)
        if span > 0:
            reports.append(_report(device, _busy(taken, own=own), span, own=own))
    return reports


def _busy(taken: Iterable[Entry], *, own: bool) -> int:
    pairs = [pair for entry in taken for of_device in entry.accelerator.values() for pair in of_device]
    return covered((start, start + lasted) for start, lasted in pairs) if own else sum(lasted for _, lasted in pairs)


def _report(device: str, busy: int, span: int, *, own: bool) -> Report:
    share = busy / span
    low = share < UTILIZATION_MIN
    text = f"{short_device(device)} computes for {percent(share)} of a step{', which is little' if low else ''}."
    return Report(
        text if own else f"device: {device} {'low ' if low else ''}utilization: {share:.2f}",
        {"device": device, "busy_micros": busy, "step_micros": span, "utilization": share},
        _TODO if low else "",
    )
