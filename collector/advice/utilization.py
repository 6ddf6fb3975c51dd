"""Whether GPUs are busy."""

from collections.abc import Iterable, Sequence
from typing import Final

from ..numbers import percent
from ..summaries.step_cut import covered
from ..summaries.top import short_device
from ..tfviews.entries import Entry
from .evidence import Evidence
from .report import Report

#: Minimum share of a step that a GPU should be busy.
UTILIZATION_MIN: Final = 0.5
_REMEDY: Final = (
    "see what the host does in the gaps between kernels: tfprof graph JOB -step N -output timeline:outfile=F shows them"
)


def check(evidence: Evidence) -> Sequence[Report]:
    """Report for each GPU the share of time in which its kernels ran, in the last step.

    The time is that from the first op on the GPU to the last one. The TF profiler takes the last
    step of each node, which may differ between nodes, and adds up concurrent kernels.
    """
    by_device: dict[str, list[tuple[int, Entry]]] = {}
    for step, entry in evidence.last_entries.values():
        if "gpu" in entry.device:
            by_device.setdefault(entry.device, []).append((step, entry))
    has_own_advice, reports = evidence.parity.has_own_advice, []
    for device in sorted(by_device):
        device_entries = by_device[device]
        latest = max(step for step, _ in device_entries)
        selected = [entry for step, entry in device_entries if step == latest or not has_own_advice]
        starts = [entry.start_us for entry in selected if entry.start_us]
        step_micros = max(entry.end_us for entry in selected) - min(starts, default=0)
        if step_micros > 0:
            busy_micros = _busy_micros(selected, has_own_advice=has_own_advice)
            reports.append(_report(device, busy_micros, step_micros, has_own_advice=has_own_advice))
    return reports


def _busy_micros(entries: Iterable[Entry], *, has_own_advice: bool) -> int:
    pairs = [pair for entry in entries for kernels in entry.accelerator.values() for pair in kernels]
    if has_own_advice:
        return covered((start, start + length) for start, length in pairs)
    return sum(length for _, length in pairs)


def _report(device: str, busy_micros: int, step_micros: int, *, has_own_advice: bool) -> Report:
    share = busy_micros / step_micros
    is_low = share < UTILIZATION_MIN
    text = f"{short_device(device)} computes for {percent(share)} of a step{', which is little' if is_low else ''}."
    return Report(
        text if has_own_advice else f"device: {device} {'low ' if is_low else ''}utilization: {share:.2f}",
        {"device": device, "busy_micros": busy_micros, "step_micros": step_micros, "utilization": share},
        _REMEDY if is_low else "",
    )
