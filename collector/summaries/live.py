"""The figures of a running job or a host now, from its latest rows; as JSON for other processes."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ...formats import span_kinds
from ...formats.layout import SECOND_NS
from ..store.devices import can_be_canonical
from ..store.schema import DEVICE
from ..tfviews.nodes import interned_bytes
from .kinds import KINDS_BY_NAME, main_kind_of, span_kind, step_kind_of
from .step_times import Pace, PaceKeeper, SpanRow
from .top import short_device

#: Columns of the spans and samples of a job, and of the samples of a host, that are used.
SPAN_COLUMNS: Final = ("kind", "key", "ordinal", "start_ns", "total_ns", "count", "flags")
SAMPLE_COLUMNS: Final = ("t_ns", "cpu_user_s", "cpu_system_s", "rss_bytes", "read_bytes", "write_bytes")
HOST_COLUMNS: Final = ("t_ns", "cpus", "cpu_busy_s", "load_1m", "memory_total_bytes", "memory_available_bytes")
#: Number of latest samples that are kept for rates.
SAMPLES_MAX: Final = 6
#: Maximum age of a sample that is used (ns).
SAMPLE_AGE_NS: Final = 10 * SECOND_NS
#: Number of points in a trend.
TREND_POINTS: Final = 8
#: Maximum number of kinds of steps whose pace is kept, in each job: those with the most time. Each
#: function is a kind.
_KINDS_MAX: Final = 50
#: Maximum number of devices of a job that are kept.
_DEVICES_MAX: Final = 64


class CurrentUsage(NamedTuple):
    """Current resource use of a job's processes; unknown values are None.

    ``cpu_cores`` is the number of busy cores, ``memory_bytes`` the resident memory. The other
    fields are rates of I/O.
    """

    cpu_cores: float | None = None
    memory_bytes: int | None = None
    read_bytes_per_s: float | None = None
    write_bytes_per_s: float | None = None

    @property
    def io_bytes_per_s(self) -> float | None:
        """Bytes read and written per second."""
        known_rates = [rate for rate in (self.read_bytes_per_s, self.write_bytes_per_s) if rate is not None]
        return sum(known_rates) if known_rates else None


class KindFigures(NamedTuple):
    """The steps of one span kind: their time (ns), and the kind of step with the most of it.

    A kind of step is a function if the span kind is that of functions. ``steps``: the number of
    steps of the span kind. ``last``: the number of its last step. ``pace``: the pace of the kind of
    step at its last step.
    """

    time_ns: int
    kind: int
    steps: int
    last: int
    pace: Pace


class LiveFigures(NamedTuple):
    """The figures of a running job now.

    ``kinds``: by span kind. ``last_ns``: end of its last step, None without one. ``sampled_ns``:
    time of its last sample, 0 without one; ``usage``: resource use then. ``alert``: time and slug
    of the latest alert. ``devices``: the GPUs of its traced ops, or the CPUs without any.
    """

    kinds: Mapping[int, KindFigures] = {}
    last_ns: int | None = None
    sampled_ns: int = 0
    usage: CurrentUsage = CurrentUsage()
    alert: tuple[int, str] | None = None
    devices: tuple[str, ...] = ()

    def main(self, step_kind: str) -> KindFigures | None:
        """Return the figures of the main kind of step, None without any.

        ``step_kind``: the name of the main kind in the job file, empty if the file has none.
        """
        times = {kind: figures.time_ns for kind, figures in self.kinds.items()}
        return self.kinds.get(KINDS_BY_NAME.get(step_kind, main_kind_of(times, times)) or 0)

    def document(self) -> dict[str, Any]:
        """Return the figures as a JSON object."""
        return {
            "kinds": {str(kind): [*figures[:4], *figures.pace] for kind, figures in self.kinds.items()},
            "last_ns": self.last_ns,
            "sampled_ns": self.sampled_ns,
            "usage": self.usage,
            "alert": self.alert,
            "devices": self.devices,
        }


def figures_of(document: Mapping[str, Any]) -> LiveFigures:
    """Return the figures in a JSON object; LookupError, TypeError or ValueError if it is none."""
    kinds = {int(kind): _kind_figures(*values) for kind, values in document["kinds"].items()}
    alert = document["alert"]
    return LiveFigures(
        kinds,
        document["last_ns"],
        document["sampled_ns"],
        CurrentUsage(*document["usage"]),
        None if alert is None else (alert[0], alert[1]),
        tuple(document["devices"]),
    )


def _kind_figures(time_ns: int, kind: int, steps: int, last: int, *pace: Any) -> KindFigures:
    step_ns, usual_ns, per_s, last_ns, trend = pace
    return KindFigures(time_ns, kind, steps, last, Pace(step_ns, usual_ns, per_s, last_ns, tuple(trend)))


class LiveJob:
    """Keeps the figures of a running job up to date, as its rows arrive.

    `alert`: time and slug of the latest alert.
    """

    def __init__(self) -> None:
        self.alert: tuple[int, str] | None = None
        self._devices: set[str] = set()
        self._paces: dict[int, PaceKeeper] = {}
        self._steps: dict[int, int] = {}
        self._last: dict[int, int] = {}  # kind of span -> number of its last step
        self._times: dict[int, int] = {}
        self._samples: deque[Sequence[Any]] = deque(maxlen=SAMPLES_MAX)

    def add_spans(self, rows: Iterable[Sequence[int]]) -> None:
        """Add rows of SPANS, roughly in order; a row has the columns SPAN_COLUMNS."""
        by_kind: dict[int, list[SpanRow]] = {}
        for kind_of_span, key, ordinal, start, total, count, flags in rows:
            kind = step_kind_of(kind_of_span, key)
            if span_kinds.is_step(kind_of_span):
                self._last[kind_of_span] = max(self._last.get(kind_of_span, 0), ordinal + count - 1)
                steps = max(1, count)  # a forged log may have 0
                by_kind.setdefault(kind, []).append(SpanRow(start, total, steps, flags))
        for kind, spans in by_kind.items():
            self._paces.setdefault(kind, PaceKeeper()).add(spans)
            self._steps[kind] = self._steps.get(kind, 0) + sum(span.steps for span in spans)
            self._times[kind] = self._times.get(kind, 0) + sum(span.total_ns for span in spans)
        for kind in sorted(self._times, key=self._times.__getitem__, reverse=True)[_KINDS_MAX:]:
            del self._paces[kind], self._steps[kind], self._times[kind]

    def add_samples(self, samples: Iterable[Sequence[Any]]) -> None:
        """Add samples, each the values of SAMPLE_COLUMNS."""
        self._samples.extend(samples)

    def add_names(self, names: pa.Table) -> None:
        """Add rows of NAMES."""
        known = [name for name in interned_bytes(names, DEVICE).values() if can_be_canonical(name.lower())]
        devices = {short_device(name.decode("utf-8", "replace")) for name in known}
        self._devices.update(sorted(devices)[: _DEVICES_MAX - len(self._devices)])

    @property
    def devices(self) -> tuple[str, ...]:
        """The GPUs of the traced ops, or the CPUs if there are no GPUs."""
        gpus = [device for device in self._devices if "CPU:" not in device]
        return tuple(sorted(gpus or self._devices))

    def figures(self) -> LiveFigures:
        """Return the figures now."""
        times: dict[int, int] = {}
        main_kinds: dict[int, int] = {}
        for kind, time_ns in self._times.items():
            of_span = span_kind(kind)
            times[of_span] = times.get(of_span, 0) + time_ns
            if time_ns > self._times.get(main_kinds.get(of_span, -1), -1):
                main_kinds[of_span] = kind
        ends = [keeper.last_ns for keeper in self._paces.values() if keeper.last_ns is not None]
        return LiveFigures(
            {
                of_span: KindFigures(
                    times[of_span], kind, self._steps[kind], self._last[of_span], self._paces[kind].pace(TREND_POINTS)
                )
                for of_span, kind in main_kinds.items()
            },
            max(ends, default=None),
            self._samples[-1][0] if self._samples else 0,
            _usage(self._samples),
            self.alert,
            self.devices,
        )


def _usage(samples: Sequence[Sequence[Any]]) -> CurrentUsage:
    """Return the use from the first of ``samples`` to the last."""
    if not samples:
        return CurrentUsage()
    first, last = samples[0], samples[-1]
    seconds = (last[0] - first[0]) / SECOND_NS
    if seconds <= 0:
        return CurrentUsage(memory_bytes=last[3] or None)
    cpu_cores, read_rate, write_rate = (
        max(0.0, now - then) / seconds
        for now, then in ((sum(last[1:3]), sum(first[1:3])), (last[4], first[4]), (last[5], first[5]))
    )
    return CurrentUsage(cpu_cores, last[3] or None, read_rate, write_rate)


class HostFigures(NamedTuple):
    """A host at the real time ``t_ns``: its CPUs, busy cores, load, and memory in bytes."""

    t_ns: int
    cpus: int
    cpu_cores: float | None
    load_1m: float
    memory_used_bytes: int
    memory_bytes: int


def host_figures(samples: Sequence[Sequence[Any]]) -> HostFigures | None:
    """Return the figures of a host from its latest samples, None without any.

    ``samples``: the values of HOST_COLUMNS of each.
    """
    if not samples:
        return None
    t_ns, cpus, busy, load, memory, available = samples[-1]
    seconds = (t_ns - samples[0][0]) / SECOND_NS
    cores = min(float(cpus), max(0.0, busy - samples[0][2]) / seconds) if seconds > 0 else None
    return HostFigures(t_ns, cpus, cores, load, memory - available, memory)
