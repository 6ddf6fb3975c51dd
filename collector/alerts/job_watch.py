"""Watches one job: its step times by kind and key, its last step, its memory, its losses."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from ...formats import layout, span_kinds
from ...formats.layout import SECOND_NS
from ..records import Span, StepStart, measured_start
from ..store.catalog import LOST_COUNTERS, integer_of
from .alert import LOSSES, MEMORY_GROWTH, PAUSES, SLOWER, SPIKE, STALL, Alert
from .growth import WARM_UP_S, MemoryGrowth
from .load import CpuSeconds
from .step_series import Shift, Spike, StepSeries

#: Maximum number of series of a job; a further one replaces that with the least step time.
SERIES_MAX: Final = 16
#: Shifts of a series raise alerts only if the series has at least this share of the job's step
#: time.
SHARE_MIN: Final = 0.1
#: Minimum duration of a stall: a multiple of the usual step time, a number of seconds, and a
#: multiple of the longest silence that has ended.
STALL_FACTOR: Final = 10.0
STALL_S: Final = 15
STALL_SILENCE_FACTOR: Final = 2
#: Minimum interval between two alerts of a job with the same slug (seconds).
HOLD_S: Final = {SPIKE: 300, MEMORY_GROWTH: 600, LOSSES: 300}
#: Limits (ns) beyond which an entry is ignored, since a job may send wrong times: the maximum total
#: time, and the maximum time from now to the end of the entry.
_TOTAL_MAX_NS: Final = 86_400 * SECOND_NS
_FUTURE_MAX_NS: Final = 60 * SECOND_NS
#: Kinds of spans after which a step is due, although they are no steps. No step is due after the
#: end of a `fit`.
_DUE_AFTER: Final = frozenset({layout.EPOCH, layout.PARTIAL_RUN})
#: Flags of special steps, which no series contains.
_SPECIAL_FLAGS: Final = layout.FLAG_FAILED | layout.FLAG_SETUP


class SeriesKey(NamedTuple):
    """The identity of a series; traced steps take longer, so they are separate series."""

    kind: int
    key: int
    is_traced: bool


class SeriesShift(NamedTuple):
    """A shift of the times in ``series``, which has the identity ``key``.

    ``slug`` is that of the alert about it. With PAUSES, the times are those from the start of a
    step to the next start.
    """

    slug: str
    key: SeriesKey
    series: StepSeries
    shift: Shift


class JobWatch:
    """The state of one job, updated by its messages; ``host``: the host on which it runs.

    ``training``: the name that processes of one training have in common.
    """

    def __init__(self, host: str, training: str) -> None:
        self.host = host
        self.training = training
        self.load = CpuSeconds()
        self._series: dict[SeriesKey, StepSeries] = {}
        # Times from the start of a step to the next start. Those up to a sampled step are apart,
        # since they are means over all calls, which may take turns.
        self._periods: dict[bool, dict[SeriesKey, StepSeries]] = {False: {}, True: {}}
        self._last_entries: dict[int, tuple[Span, StepStart]] = {}  # by kind, with its measured start (real time)
        self._memory = MemoryGrowth()
        self._first_step_ns = 0
        self._last_step_ns = 0
        self._step_count = self._counted_ns = 0  # number of steps, and when it was last found to have grown
        self._longest_silence_ns = 0  # of those that ended, from the end of a step to the next end
        self._is_stalled = False
        self._is_step_due = False
        self._sampled_ns = 0
        self._lost_count: int | None = None
        self._alerts: list[Alert] = []
        self._hold_until_ns: dict[str, int] = {}

    # -- input -----------------------------------------------------------------------------------

    def add_spans(self, entries: Iterable[Span], offset: int, now_ns: int) -> None:
        """Add span entries; ``offset`` converts their monotonic times to real times (ns)."""
        for entry in entries:
            if entry.kind == layout.ACTIVITY:
                continue
            start_ns = entry.start_mono_ns + offset
            end_ns = start_ns + entry.total_ns
            if entry.total_ns > _TOTAL_MAX_NS or not 0 < end_ns < now_ns + _FUTURE_MAX_NS:
                continue
            if self._first_step_ns and self._is_step_due:
                self._longest_silence_ns = max(self._longest_silence_ns, end_ns - self._last_step_ns)
            self._last_step_ns = max(self._last_step_ns, end_ns)
            is_step = span_kinds.is_step(entry.kind)
            self._is_step_due = is_step or entry.kind in _DUE_AFTER
            if is_step and entry.steps and not entry.flags & _SPECIAL_FLAGS:
                self._first_step_ns = self._first_step_ns or end_ns
                is_sampled = bool(entry.flags & layout.FLAG_SAMPLED)
                start = measured_start(entry.ordinal, entry.steps, start_ns, entry.total_ns, is_sampled=is_sampled)
                self._add(entry, start, end_ns)
                self._add_period(entry, start)

    def _add(self, entry: Span, start: StepStart, end_ns: int) -> None:
        series_key = SeriesKey(entry.kind, entry.key, bool(entry.flags & layout.FLAG_TRACED))
        series = self._series.get(series_key) or self._new_series(series_key)
        spike = series.add(start, end_ns, entry.total_ns, entry.steps, entry.min_ns, entry.max_ns)
        if spike is not None and not series_key.is_traced:
            self._raise(step_alert(SPIKE, end_ns, series_key, spike))

    def _new_series(self, series_key: SeriesKey) -> StepSeries:
        """Return a new series; if there are SERIES_MAX, it replaces that with the least step time.

        It takes over this time. Otherwise, of several new series that alternate, each would replace
        the other ones for ever.
        """
        series = StepSeries()
        if len(self._series) >= SERIES_MAX:
            smallest = min(self._series, key=lambda known_key: self._series[known_key].total_ns)
            series.total_ns = self._series.pop(smallest).total_ns
            for series_by_key in self._periods.values():
                series_by_key.pop(smallest, None)
        self._series[series_key] = series
        return series

    def _add_period(self, entry: Span, end: StepStart) -> None:
        """Add the time from the measured start of the entry before ``entry`` to ``end``, its own.

        It is left out after a traced step, and if the entries do not directly follow each other.
        """
        last, first = self._last_entries.get(entry.kind, (None, end))
        self._last_entries[entry.kind] = entry, end
        if last is None or last.flags & layout.FLAG_TRACED or last.ordinal + last.steps != entry.ordinal:
            return
        series_key = SeriesKey(last.kind, last.key, is_traced=False)
        if series_key in self._series and end.ns > first.ns:
            steps, total_ns = end.step - first.step, end.ns - first.ns
            series_by_key, mean_ns = self._periods[bool(entry.flags & layout.FLAG_SAMPLED)], total_ns // steps
            series_by_key.setdefault(series_key, StepSeries()).add(first, end.ns, total_ns, steps, mean_ns, mean_ns)

    def add_sample(self, t_ns: int, values: Mapping[str, Any]) -> None:
        """Add a sample of the job's processes."""
        self._sampled_ns = max(self._sampled_ns, t_ns)
        self.load.add(t_ns, (values.get("cpu_user_s") or 0.0) + (values.get("cpu_system_s") or 0.0))
        if self._first_step_ns and t_ns > self._first_step_ns + WARM_UP_S * SECOND_NS:
            self._memory.add(t_ns, values.get("rss_bytes") or 0)

    def add_counters(self, values: Mapping[str, Any], now_ns: int) -> None:
        """Add counters of the job."""
        lost = sum(number for name in LOST_COUNTERS if type(number := values.get(name)) is int)
        if self._lost_count is not None and lost > self._lost_count:
            self._raise(Alert(now_ns, now_ns, LOSSES, before=self._lost_count, now=lost))
        self._lost_count = lost
        counts = values.get("counts")
        step_count = sum(integer_of(counts, name) for name in span_kinds.STEPS) if isinstance(counts, Mapping) else 0
        if step_count > self._step_count:
            self._step_count, self._counted_ns = step_count, self._sampled_ns

    # -- output ----------------------------------------------------------------------------------

    def alerts(self, now_ns: int) -> list[Alert]:
        """Return the alerts since the last call, except those about shifts of step times."""
        self._check_stall()
        growth = self._memory.growth()
        if growth is not None:
            self._raise(Alert(now_ns, growth.since_ns, MEMORY_GROWTH, before=growth.before_bytes, now=growth.now_bytes))
        new_alerts, self._alerts = self._alerts, []
        return new_alerts

    def shifts(self, now_ns: int) -> list[SeriesShift]:
        """Return the shifts of the step times, then those of the pauses between steps.

        The series with the most step time comes first. Series with less than SHARE_MIN of the job's
        step time are left out.
        """
        total_ns = sum(series.total_ns for series in self._series.values())
        keys = sorted(self._series, key=lambda series_key: -self._series[series_key].total_ns)
        large_keys = [series_key for series_key in keys if self._series[series_key].total_ns >= SHARE_MIN * total_ns]
        found = [
            SeriesShift(slug, series_key, series_by_key[series_key], shift)
            for slug, all_series in ((SLOWER, (self._series,)), (PAUSES, self._periods.values()))
            for series_by_key in all_series
            for series_key in large_keys
            if series_key in series_by_key and (shift := series_by_key[series_key].shift(now_ns)) is not None
        ]
        return [shift for shift in found if shift.slug == SLOWER or not self._is_growth_in_steps(shift)]

    def _is_growth_in_steps(self, found: SeriesShift) -> bool:
        """Return whether longer steps may explain most of a longer time from start to start."""
        _, series_key, _, shift = found
        medians = self._series[series_key].medians(shift.from_ns, shift.since_ns)
        return medians is None or medians[1] - medians[0] > (shift.now_ns - shift.before_ns) / 2

    def restart(self) -> None:
        """Restart all series, so that their current times become the usual ones."""
        for series_by_key in (self._series, *self._periods.values()):
            for series in series_by_key.values():
                series.restart()

    def slowdown(self, shift: Shift) -> float | None:
        """Return this job's slowdown factor at the time of another job's ``shift``.

        None if it is unknown.
        """
        series_key = self._main_series_key()
        medians = None if series_key is None else self._series[series_key].medians(shift.from_ns, shift.since_ns)
        return None if medians is None else medians[1] / medians[0]

    def cpu_growth(self, series: StepSeries, shift: Shift) -> float:
        """Return the growth factor of the processor time per step at ``shift``, 0 if unknown."""
        cores_before, cores_now = self.load.cores(shift.from_ns, shift.since_ns), self.load.cores(shift.since_ns)
        rate_before, rate_now = series.rate(shift.from_ns, shift.since_ns), series.rate(shift.since_ns)
        if not (cores_before and cores_now and rate_before and rate_now):
            return 0.0
        return cores_now / rate_now / (cores_before / rate_before)

    def _check_stall(self) -> None:
        series_key = self._main_series_key()
        if series_key is None:
            return
        usual_ns = self._series[series_key].usual_ns
        silent_ns = self._sampled_ns - self._last_step_ns
        threshold_ns = max(
            STALL_FACTOR * usual_ns, STALL_S * SECOND_NS, STALL_SILENCE_FACTOR * self._longest_silence_ns
        )
        # Short steps have an entry only now and then.
        is_silent = min(silent_ns, self._sampled_ns - self._counted_ns) > threshold_ns
        is_stalled = self._is_step_due and usual_ns > 0 and is_silent
        if is_stalled and not self._is_stalled:
            last, since_ns = self._last_entries[series_key.kind][0], self._last_step_ns
            step = last.ordinal + last.steps - 1
            self._raise(Alert(self._sampled_ns, since_ns, STALL, last.kind, last.key, step, usual_ns, silent_ns))
        self._is_stalled = is_stalled

    def _main_series_key(self) -> SeriesKey | None:
        return max(self._series, key=lambda series_key: self._series[series_key].total_ns, default=None)

    def _raise(self, alert: Alert) -> None:
        """Keep ``alert`` unless one with the same slug was raised within HOLD_S."""
        if alert.found_ns >= self._hold_until_ns.get(alert.slug, 0):
            self._hold_until_ns[alert.slug] = alert.found_ns + HOLD_S.get(alert.slug, 0) * SECOND_NS
            self._alerts.append(alert)


def step_alert(slug: str, found_ns: int, series_key: SeriesKey, change: Shift | Spike) -> Alert:
    """Return an alert about the steps of one series."""
    return Alert(
        found_ns, change.since_ns, slug, series_key.kind, series_key.key, change.step, change.before_ns, change.now_ns
    )
