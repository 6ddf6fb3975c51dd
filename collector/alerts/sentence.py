"""Describes alerts in sentences."""

from collections.abc import Callable, Mapping
from typing import Final

from ...formats import layout, span_kinds
from ..numbers import count, duration, size
from .alert import LOSSES, MEMORY_GROWTH, PAUSES, SLOWER, SPIKE, STALL, Alert


def sentence(alert: Alert, names: Mapping[int, str]) -> str:
    """Return one line that describes the alert with its numbers.

    If the slug is unknown, return the slug itself. ``names``: names of functions by key.
    """
    write = _SENTENCES.get(alert.slug)
    return alert.slug if write is None else write(alert, _step_text(alert, names))


def _step_text(alert: Alert, names: Mapping[int, str]) -> str:
    kind = span_kinds.KINDS[alert.kind].name if alert.kind in span_kinds.KINDS else "step"
    name = f" {names[alert.key]}" if alert.key in names and alert.kind == layout.FUNCTION else ""
    return f"{kind}{name} {count(alert.step)}"


def _factor(alert: Alert) -> str:
    return f"{alert.now / alert.before:,.1f}x" if alert.before else "more than"


def _slower(alert: Alert, step: str) -> str:
    usual = duration(alert.before)
    return f"steps are slower from {step} on: {duration(alert.now)}, {_factor(alert)} the usual {usual}"


def _pauses(alert: Alert, step: str) -> str:
    times = f"{duration(alert.now)} from a start to the next one, {_factor(alert)} the usual {duration(alert.before)}"
    return f"pauses between steps are longer from {step} on: {times}"


def _spike(alert: Alert, step: str) -> str:
    return f"{step} took {duration(alert.now)}, {_factor(alert)} the usual {duration(alert.before)}"


def _stall(alert: Alert, step: str) -> str:
    pause = duration(alert.now)
    return f"no step for {pause} after {step}; a step usually takes {duration(alert.before)}"


def _memory_growth(alert: Alert, _step: str) -> str:
    period = duration(alert.found_ns - alert.since_ns)
    return f"memory grows steadily: from {size(alert.before)} to {size(alert.now)} in {period}"


def _losses(alert: Alert, _step: str) -> str:
    lost = int(alert.now - alert.before)
    what = "record, traced step or span was" if lost == 1 else "records, traced steps or spans were"
    return f"{count(lost)} {what} lost" + (f"; {count(int(alert.now))} in all" if alert.before else "")


_SENTENCES: Final[Mapping[str, Callable[[Alert, str], str]]] = {
    SLOWER: _slower,
    PAUSES: _pauses,
    SPIKE: _spike,
    STALL: _stall,
    MEMORY_GROWTH: _memory_growth,
    LOSSES: _losses,
}
