"""Which real-time spans the steps of a profiler window had: spans and windows travel apart and meet here."""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from tfprof.collector.ingest.parsing import Step, fits
from tfprof.collector.records import Record, Span
from tfprof.shim import layout

#: Spans of traced steps that are remembered: several windows' worth, small for fifty jobs.
REMEMBERED: Final = 512


class TracedSteps:
    """The latest traced steps of a job, by kind and ordinal.

    `stored` returns the rows of SPANS that were stored before this process began; it is asked once, and only when a
    window's steps are not among those that came since.
    """

    def __init__(self, stored: Callable[[], pa.Table] | None = None) -> None:
        self._steps: OrderedDict[tuple[int, int], Step] = OrderedDict()
        self._stored = stored

    def remember(self, spans: Iterable[Span], offset: int) -> None:
        """Keep those of ``spans`` that were traced; ``offset`` ns make real times of their monotonic ones."""
        for span in spans:
            if span.flags & layout.FLAG_TRACED:
                start_ns = fits(span.start_mono_ns + offset)
                step = Step(span.kind, span.ordinal, span.runs, span.key, span.thread, start_ns, fits(span.total_ns))
                self._keep(step)

    def of(self, window: Record) -> list[Step]:
        """Return the known steps of the window that the record ``window`` holds, in their order."""
        last = window.step + window.key
        steps = [
            step
            for step in self._steps.values()
            if step.kind == window.flags and step.ordinal < last and step.ordinal + step.runs > window.step
        ]
        return sorted(steps, key=lambda step: step.ordinal)

    def complete(self, window: Record) -> bool:
        """Tell whether every step of the window is known."""
        if self._covered(window) < window.key and self._stored is not None:
            stored, self._stored = self._stored, None
            self._recall(stored())
        return self._covered(window) >= window.key

    def _covered(self, window: Record) -> int:
        first, last = window.step, window.step + window.key
        return sum(min(step.ordinal + step.runs, last) - max(step.ordinal, first) for step in self.of(window))

    def _recall(self, table: pa.Table) -> None:
        flag = pa.scalar(layout.FLAG_TRACED, pa.uint16())
        traced = table.filter(pc.equal(pc.bit_wise_and(table["flags"], flag), flag))
        for row in traced.slice(max(0, traced.num_rows - REMEMBERED)).to_pylist():
            names = ("kind", "ordinal", "count", "key", "thread", "start_ns", "total_ns")
            self._keep(Step(*(row[name] for name in names)))

    def _keep(self, step: Step) -> None:
        self._steps[step.kind, step.ordinal] = step
        if len(self._steps) > REMEMBERED:
            self._steps.popitem(last=False)
