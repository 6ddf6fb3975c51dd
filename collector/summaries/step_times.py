"""The step times of each kind of step, and the pace of its latest steps."""

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ...formats import layout
from ...formats.layout import SECOND_NS
from ..store.columns import flagged, pc
from .jobs import JobRow
from .kinds import KINDS_BY_NAME, function_key, kind_name, span_kind
from .series import Spread, spread, weighted_median
from .steps import SPECIAL, requested_steps, rows_of_kinds, sums_by_kind

#: Steps are grouped by their start into parts of this length (ns).
PART_NS: Final = 5 * SECOND_NS
#: Maximum number of parts that are kept; only parts with steps count.
_PARTS_MAX: Final = 120
#: Number of latest parts that determine the current step time.
_CURRENT_PARTS: Final = 3
#: Minimum number of earlier parts that determine a usual step time.
_USUAL_PARTS_MIN: Final = 3
#: Maximum number of parts in one value of a trend.
_TREND_PARTS_MAX: Final = 3
#: Maximum number of rows in the median of a part; the times of further rows are ignored.
_ROWS_MAX: Final = 256
#: The rate is 0 once _IDLE_NS (ns) and the time of _IDLE_STEPS steps have passed since the last
#: step.
_IDLE_NS: Final = 10 * SECOND_NS
_IDLE_STEPS: Final = 5
#: Maximum number of points in a curve over the whole job.
CURVE_POINTS_MAX: Final = 32
#: Maximum number of functions with separate step times.
_FUNCTIONS_MAX: Final = 16


def curve(spans: pa.Table, slices: int) -> list[float]:
    """Return the mean step time (ns) in each of ``slices`` equal slices of time.

    ``spans``: SPANS of one kind. Traced, failed and setup steps are left out, since their times are
    not representative. A slice with no normal step has no value.
    """
    normal_spans = spans.filter(pc.invert(flagged(spans, SPECIAL)))
    if not normal_spans.num_rows:
        return []
    times: list[Any] = [normal_spans[name].to_pylist() for name in ("start_ns", "total_ns", "count")]
    first, last = min(times[0]), max(times[0])
    sums = [[0, 0] for _ in range(slices)]
    for start, total, count in zip(*times, strict=True):
        slice_sum = sums[(start - first) * slices // (last - first + 1)]
        slice_sum[0] += total
        slice_sum[1] += count
    return [total / count for total, count in sums if count]


class SpanRow(NamedTuple):
    """The columns of an entry of SPANS that a pace needs."""

    start_ns: int
    total_ns: int
    steps: int
    flags: int


class Pace(NamedTuple):
    """The current step time of one kind, compared with the usual one; None if too little is known.

    ``step_ns``: median of the last ten seconds or so; ``usual_ns``: median of up to ten minutes
    before; ``per_s``: steps a second now; ``last_ns``: end of the last step in real time;
    ``trend``: medians of up to 15 s each, the latest last. Times are in ns.
    """

    step_ns: float | None
    usual_ns: float | None
    per_s: float | None
    last_ns: int | None
    trend: tuple[float, ...]

    @property
    def change(self) -> float | None:
        """The current step time as a multiple of the usual one."""
        return self.step_ns / self.usual_ns if self.step_ns is not None and self.usual_ns else None

    def at(self, now_ns: int) -> "Pace":
        """Return the pace at ``now_ns``: if the last step was long ago, ``per_s`` is 0."""
        if self.last_ns is None or now_ns - self.last_ns <= max(_IDLE_NS, _IDLE_STEPS * (self.step_ns or 0)):
            return self
        return self._replace(per_s=0.0)


NO_PACE: Final = Pace(None, None, None, None, ())


class _Part:
    """The steps that began in one interval of PART_NS."""

    __slots__ = ("count", "first", "number", "times")

    def __init__(self, number: int, first: SpanRow) -> None:
        self.number, self.first = number, first
        self.count = 0
        self.times: list[tuple[float, int]] = []  # of rows: mean step time and number of steps

    def add(self, row: SpanRow) -> None:
        """Add the steps of a row to ``count``, and their mean time to ``times``.

        The mean is left out for traced, failed and setup steps, and after _ROWS_MAX rows.
        """
        self.count += row.steps
        if not row.flags & SPECIAL and len(self.times) < _ROWS_MAX:
            self.times.append((row.total_ns / row.steps, row.steps))

    @property
    def median_ns(self) -> float | None:
        """The median of all step times, None without any."""
        return weighted_median(self.times) if self.times else None


class PaceKeeper:
    """Computes the pace of the steps of one kind from their spans as they arrive.

    The pace covers the last ten minutes with steps. Of all but the latest parts of that time, only
    the median step time is kept, so that a collector can keep the pace of a thousand jobs.
    """

    def __init__(self) -> None:
        self._medians: deque[float] = deque(maxlen=_PARTS_MAX - _CURRENT_PARTS)  # of the parts before these:
        self._parts: deque[_Part] = deque()
        self._last_ns: int | None = None

    @property
    def last_ns(self) -> int | None:
        """The end of the last step in real time; None before the first step."""
        return self._last_ns

    def add(self, rows: Iterable[SpanRow]) -> None:
        """Add rows, roughly in order of their start."""
        part = self._parts[-1] if self._parts else None
        for row in rows:
            number = row.start_ns // PART_NS
            if part is None or number > self._parts[-1].number:
                part = _Part(number, row)
                self._parts.append(part)
                self._close_earlier_parts()
            elif number != part.number:
                part = self._part_of(number)
            part.add(row)
            end = row.start_ns + row.total_ns
            if self._last_ns is None or end > self._last_ns:
                self._last_ns = end

    def _close_earlier_parts(self) -> None:
        while len(self._parts) > _CURRENT_PARTS:
            median_ns = self._parts.popleft().median_ns
            if median_ns is not None:
                self._medians.append(median_ns)

    def _part_of(self, number: int) -> _Part:
        """Return the part with ``number``, else the last one before it, else the first one."""
        return next((part for part in reversed(self._parts) if part.number <= number), self._parts[0])

    def pace(self, trend_length: int) -> Pace:
        """Return the pace at the last step, with a trend of at most ``trend_length`` values."""
        medians = [*self._medians, *(ns for part in self._parts if (ns := part.median_ns) is not None)]
        current, earlier = medians[-_CURRENT_PARTS:], medians[:-_CURRENT_PARTS]
        step_ns = median(current) if current else None
        usual_ns = median(earlier) if len(earlier) >= _USUAL_PARTS_MIN else None
        return Pace(step_ns, usual_ns, self._per_s(), self._last_ns, _trend(medians, trend_length))

    def _per_s(self) -> float | None:
        """Return the steps a second in the latest parts, None if that is unknown.

        The start of a row of sampled steps is unknown, so time counts from the end of such a row.
        """
        if self._last_ns is None:
            return None
        first, steps = self._parts[0].first, sum(part.count for part in self._parts)
        time_ns = self._last_ns - first.start_ns
        if first.flags & layout.FLAG_SAMPLED:
            steps, time_ns = steps - first.steps, time_ns - first.total_ns
        return steps * SECOND_NS / time_ns if time_ns > 0 else None


def _trend(medians: Sequence[float], length: int) -> tuple[float, ...]:
    size = min(_TREND_PARTS_MAX, max(1, len(medians) // length))
    latest = medians[-size * length :]
    return tuple(median(latest[start : start + size]) for start in range(len(latest) % size, len(latest), size))


@dataclass(frozen=True, slots=True)
class StepTimes:
    """The steps of one kind that have span entries: number, spread of their times, and a curve.

    The number includes the untimed steps of these entries. The spread covers the normal steps,
    which are neither traced nor setup steps. If there are none, it covers the traced and setup
    steps, and ``traced`` tells whether tfprof traced any of them. Failed steps never count.
    ``curve`` has mean times over the whole job. ``since``: if these are the steps since the kind
    became slower, the number of the first one; otherwise 0.
    """

    kind: str
    count: int
    spread: Spread
    traced: bool
    curve: list[float]
    since: int = 0


def step_times_of(row: JobRow, spans: pa.Table, functions: Mapping[int, str]) -> list[StepTimes]:
    """Return the step times of each kind: the job's main kind first, then by total time.

    Each function is a separate kind, and those with the most time are returned; ``functions``: the
    names of functions by key.
    """
    kinds = list(sums_by_kind(spans, "total_ns"))
    left_out = [kind for kind in kinds if function_key(kind)][_FUNCTIONS_MAX:]
    times_by_kind = (
        (kind, times_of_steps(kind_name(kind, functions), rows_of_kinds(spans, (kind,))))
        for kind in kinds
        if kind not in left_out
    )
    main_kind = KINDS_BY_NAME.get(row.step_kind)
    timed = [
        (span_kind(kind) != main_kind, -times.spread.total_ns, times)
        for kind, times in times_by_kind
        if times is not None
    ]
    return [times for _, _, times in sorted(timed, key=lambda entry: entry[:2])]


def median_step(row: JobRow, step_times: Collection[StepTimes], kinds: Collection[str]) -> StepTimes | None:
    """Return the untraced step times of one of ``kinds``, else of the job's main kind.

    ``step_times``: the result of `step_times_of`. None if no step of the main kind was timed.
    """
    main_times = [times for times in step_times if times.kind.partition(":")[0] == row.step_kind and not times.traced]
    return next((times for times in main_times if times.kind in kinds), next(iter(main_times), None))


def times_of_steps(name: str, spans: pa.Table) -> StepTimes | None:
    """Return the step times of ``spans``, all of the kind called ``name``; None without any."""
    succeeded_spans = spans.filter(pc.invert(flagged(spans, layout.FLAG_FAILED)))
    normal_spans = succeeded_spans.filter(pc.invert(flagged(succeeded_spans, SPECIAL)))
    times = spread(normal_spans if normal_spans.num_rows else succeeded_spans)
    if times is None:
        return None
    count = int(pc.sum(succeeded_spans["count"]).as_py())
    is_traced = (
        not normal_spans.num_rows
        and requested_steps(succeeded_spans) < count
        and bool(pc.any(flagged(succeeded_spans, layout.FLAG_TRACED)).as_py())
    )
    return StepTimes(name, count, times, is_traced, curve(spans, CURVE_POINTS_MAX))
