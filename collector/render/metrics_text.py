"""The figures of a store in the text format of Prometheus (version 0.0.4)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import accumulate
from typing import Any, Final, NamedTuple

from ...commands.streams import clean
from ...formats.layout import SECOND_NS
from ...formats.version import VERSION
from ..query.metrics import JobMetrics, StoreMetrics
from ..summaries.job_totals import BOUNDS_NS
from ..summaries.jobs import ENDED
from .short import shortened

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"
#: Maximum number of characters of a label's value.
_LABEL_MAX: Final = 120
_BOUNDS: Final = (*(repr(bound / SECOND_NS) for bound in BOUNDS_NS), "+Inf")
_AGENT, _COLLECTOR = "agent", "collector"
Labels = dict[str, str]
Statuses = Mapping[str, Mapping[str, Any]]


class _Sample(NamedTuple):
    """A value, None if it is unknown; ``suffix`` follows the name of its family."""

    value: float | None
    labels: Mapping[str, str] = {}
    suffix: str = ""


class _Family(NamedTuple):
    """A family of metrics: its name, type, help and the function that finds its samples."""

    name: str
    kind: str
    help: str
    samples: Callable[[StoreMetrics, Statuses], Iterable[_Sample]]


def _job_labels(job: JobMetrics) -> Labels:
    return {"job_id": job.row.uid, "name": job.row.name, "host": job.row.host}


def _of_jobs(find: Callable[[JobMetrics], Iterable[_Sample]]) -> Callable[[StoreMetrics, Statuses], Iterator[_Sample]]:
    """Return the function that finds the samples of all jobs; ``find`` finds those of one."""

    def samples(store: StoreMetrics, _statuses: Statuses) -> Iterator[_Sample]:
        for job in store.jobs:
            labels = _job_labels(job)
            yield from (sample._replace(labels={**labels, **sample.labels}) for sample in find(job))

    return samples


def _of_job(find: Callable[[JobMetrics], float | None]) -> Callable[[StoreMetrics, Statuses], Iterator[_Sample]]:
    """Return the function that finds a value for each job."""
    return _of_jobs(lambda job: [_Sample(find(job))])


def _labeled(label: str, values: Mapping[str, float]) -> Iterator[_Sample]:
    return (_Sample(value, {label: name}) for name, value in values.items())


def _about(job: JobMetrics) -> Iterator[_Sample]:
    row = job.row
    names = {"pid": "" if row.pid is None else str(row.pid), "user": row.user}
    yield _Sample(1, {**names, "framework": row.framework, "framework_version": row.framework_version})


def _exit_status(job: JobMetrics) -> float | None:
    return 128 + job.row.signal if job.row.signal else job.row.status


def _times(job: JobMetrics) -> Iterator[_Sample]:
    for kind, histogram in job.times.items():
        for bound, count in zip(_BOUNDS, accumulate(histogram.counts), strict=True):
            yield _Sample(count, {"kind": kind, "le": bound}, "_bucket")
        yield _Sample(histogram.sum_ns / SECOND_NS, {"kind": kind}, "_sum")
        yield _Sample(sum(histogram.counts), {"kind": kind}, "_count")


def _parts(job: JobMetrics) -> Iterator[_Sample]:
    if job.parts is not None:
        for part in job.parts.parts:
            yield _Sample(part.mean_ns / SECOND_NS, {"kind": job.parts.kind, "part": part.slug})


def _daemons(find: Callable[[Mapping[str, Any]], Any]) -> Callable[[StoreMetrics, Statuses], Iterator[_Sample]]:
    """Return the function that finds a value for each daemon that runs."""

    def samples(_store: StoreMetrics, statuses: Statuses) -> Iterator[_Sample]:
        return (_Sample(find(status), {"daemon": name}) for name, status in statuses.items() if status["alive"])

    return samples


def _daemon(
    name: str, find: Callable[[Mapping[str, Any]], Any], _store: StoreMetrics, statuses: Statuses
) -> list[_Sample]:
    status = statuses.get(name, {})
    return [_Sample(find(status))] if status.get("alive") else []


def _agent(key: str) -> Callable[[StoreMetrics, Statuses], Iterable[_Sample]]:
    return partial(_daemon, _AGENT, lambda status: status.get(key))


def _collector(key: str) -> Callable[[StoreMetrics, Statuses], Iterable[_Sample]]:
    return partial(_daemon, _COLLECTOR, lambda status: status.get(key))


def _copy(status: Mapping[str, Any]) -> Mapping[str, Any]:
    return status.get("copy") or {}


def _seconds(ns: Any) -> float | None:
    return None if ns is None else ns / SECOND_NS


#: All families, in the order in which they are written.
FAMILIES: Final = (
    _Family("tfprof_build_info", GAUGE, "The version of tfprof.", lambda *_: [_Sample(1, {"version": VERSION})]),
    _Family("tfprof_jobs", GAUGE, "Jobs in the store by state.", lambda store, _: _labeled("state", store.states)),
    _Family(
        "tfprof_left_out",
        GAUGE,
        "What has no figures: jobs that ended long ago, jobs beyond the limit, jobs whose parts of a step"
        " are not computed yet, steps of kinds beyond the limit.",
        lambda store, _: _labeled("what", store.left_out),
    ),
    _Family("tfprof_job_info", GAUGE, "A job.", _of_jobs(_about)),
    _Family(
        "tfprof_job_running", GAUGE, "1 while the job runs, 0 after it.", _of_job(lambda job: job.row.phase != ENDED)
    ),
    _Family(
        "tfprof_job_start_time_seconds",
        GAUGE,
        "When the job started, seconds since 1970.",
        _of_job(lambda job: _seconds(job.row.started_ns)),
    ),
    _Family(
        "tfprof_job_end_time_seconds",
        GAUGE,
        "When the job ended, seconds since 1970.",
        _of_job(lambda job: _seconds(job.row.ended_ns)),
    ),
    _Family(
        "tfprof_job_exit_status",
        GAUGE,
        "The exit status of the job, 128 + n if signal n ended it.",
        _of_job(_exit_status),
    ),
    _Family(
        "tfprof_job_resident_memory_bytes",
        GAUGE,
        "Resident memory of the job's processes.",
        _of_job(lambda job: job.memory_bytes),
    ),
    _Family(
        "tfprof_steps_total",
        COUNTER,
        "Steps that succeeded, recorded or not.",
        _of_jobs(lambda job: _labeled("kind", job.steps)),
    ),
    _Family(
        "tfprof_failed_steps_total",
        COUNTER,
        "Steps that ended by an exception.",
        _of_jobs(lambda job: _labeled("kind", job.failed)),
    ),
    _Family("tfprof_traced_steps_total", COUNTER, "Traced steps.", _of_job(lambda job: job.traced)),
    _Family(
        "tfprof_step_duration_seconds",
        HISTOGRAM,
        "Durations of recorded steps, without traced, failed and setup steps.",
        _of_jobs(_times),
    ),
    _Family(
        "tfprof_step_part_seconds",
        GAUGE,
        "Mean time of each part of a step, from its start to the start of the next one.",
        _of_jobs(_parts),
    ),
    _Family(
        "tfprof_profiling_cost_ratio",
        GAUGE,
        "Cost of profiling as a share of the time in steps.",
        _of_job(lambda job: job.row.cost),
    ),
    _Family(
        "tfprof_lost_total",
        COUNTER,
        "Records and span entries of the job that were lost.",
        _of_jobs(lambda job: _labeled("what", job.lost)),
    ),
    _Family(
        "tfprof_alerts_total",
        COUNTER,
        "Alerts about the job.",
        _of_jobs(lambda job: _labeled("alert", job.alerts)),
    ),
    _Family(
        "tfprof_daemon_up",
        GAUGE,
        "1 if the daemon runs; agent and collector start when needed and end when idle.",
        lambda _, statuses: _labeled("daemon", {name: status["alive"] for name, status in statuses.items()}),
    ),
    _Family(
        "tfprof_daemon_start_time_seconds",
        GAUGE,
        "When the daemon started, seconds since 1970.",
        _daemons(lambda status: _seconds(status.get("started_ns"))),
    ),
    _Family(
        "tfprof_daemon_resident_memory_bytes",
        GAUGE,
        "Resident memory of the daemon.",
        _daemons(lambda status: status.get("rss_bytes")),
    ),
    _Family(
        "tfprof_daemon_cpu_seconds_total",
        COUNTER,
        "CPU time of the daemon.",
        _daemons(lambda status: status.get("cpu_s")),
    ),
    _Family(
        "tfprof_daemon_stalled",
        GAUGE,
        "1 if the daemon cannot hand on or store data now.",
        _daemons(lambda status: bool(status.get("stall") or status.get("stalled"))),
    ),
    _Family(
        "tfprof_daemon_refused_total",
        COUNTER,
        "Processes that the agent refused, messages that the collector refused.",
        _daemons(lambda status: status.get("refused", status.get("refusals"))),
    ),
    _Family(
        "tfprof_daemon_lost_samples_total",
        COUNTER,
        "Samples of processes and hosts that the daemon dropped.",
        _daemons(lambda status: status.get("samples_dropped", status.get("lost_samples"))),
    ),
    _Family("tfprof_agent_lag_bytes", GAUGE, "Records that the agent has not read yet.", _agent("lag_bytes")),
    _Family("tfprof_agent_waiting_channels", GAUGE, "Channels that wait to be opened.", _agent("waiting_channels")),
    _Family(
        "tfprof_collector_lag_seconds",
        GAUGE,
        "How long the oldest message waits to be stored.",
        _collector("lag_s"),
    ),
    _Family("tfprof_collector_open_jobs", GAUGE, "Jobs that the collector has open.", _collector("jobs")),
    _Family("tfprof_collector_rows_total", COUNTER, "Rows that the collector stored.", _collector("rows")),
    _Family(
        "tfprof_collector_messages_total", COUNTER, "Messages that the collector received.", _collector("messages")
    ),
    _Family("tfprof_collector_received_bytes_total", COUNTER, "Bytes of these messages.", _collector("bytes")),
    _Family("tfprof_collector_stalls_total", COUNTER, "Times when writing was not possible.", _collector("stalls")),
    _Family("tfprof_collector_internal_errors_total", COUNTER, "Internal errors.", _collector("failures")),
    _Family(
        "tfprof_collector_copy_time_seconds",
        GAUGE,
        "The time of what is copied to ClickHouse (setting copy-to), seconds since 1970.",
        partial(_daemon, _COLLECTOR, lambda status: _seconds(_copy(status).get("copied_ns"))),
    ),
    _Family(
        "tfprof_collector_copy_failing",
        GAUGE,
        "1 if not everything can be copied to ClickHouse now.",
        partial(_daemon, _COLLECTOR, lambda status: _copy(status).get("error") is not None if _copy(status) else None),
    ),
    _Family(
        "tfprof_collector_quarantined_jobs",
        GAUGE,
        "Jobs whose data is put aside because of errors.",
        partial(_daemon, _COLLECTOR, lambda status: len(status.get("quarantined", ()))),
    ),
)


def lines(store: StoreMetrics, statuses: Statuses) -> Iterator[str]:
    """Yield the lines of the text.

    ``statuses``: the status of the agent and of the collector by name, none for a store without
    daemons. The counters of a daemon that does not run are left out.
    """
    for family in FAMILIES:
        samples = [sample for sample in family.samples(store, statuses) if sample.value is not None]
        if samples:
            yield f"# HELP {family.name} {family.help}"
            yield f"# TYPE {family.name} {family.kind}"
            yield from (f"{family.name}{sample.suffix}{_braces(sample.labels)} {_number(sample)}" for sample in samples)


def _number(sample: _Sample) -> str:
    value = sample.value
    return str(int(value)) if isinstance(value, int) else repr(value)


def _braces(labels: Mapping[str, str]) -> str:
    texts = (f'{name}="{_escaped(value)}"' for name, value in labels.items() if value)
    inner = ",".join(texts)
    return f"{{{inner}}}" if inner else ""


def _escaped(value: str) -> str:
    """Return a label's value, short, without control characters, and with its escapes."""
    return shortened(clean(value), _LABEL_MAX).replace("\\", r"\\").replace('"', r"\"")
