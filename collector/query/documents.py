"""Answers as JSON documents (dicts, lists, strings and numbers), the same for every client."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

from ...formats import layout
from ..store.catalog import RUNNING
from ..store.protocols import JobReader, StoreReader
from ..summaries.events import events
from ..summaries.host import Series, cpus, host_series, job_series
from ..summaries.jobs import counts_of, functions_of
from ..summaries.spans import span_tree
from ..summaries.steps import steps as step_groups
from ..tfviews.options import TABLE, Options
from ..tfviews.output_option import OutputChoice
from .engine import Answer
from .explanations import incomplete_reason, kinds_of
from .listing import ALL_JOBS, JobFilter, ListedJob, listed_jobs
from .surroundings import host_samples

if TYPE_CHECKING:
    from ..advice.report import Report
    from .advising import JobAdvice
    from .alerts import JobAlert
    from .following import JobChange
    from .overview import Overview
    from .watching import WatchedJob, WatchedStore


def plain(value: Any) -> Any:
    """Return ``value`` with dataclasses and sets converted to JSON types."""
    if is_dataclass(value) and not isinstance(value, type):
        return {name: plain(part) for name, part in asdict(value).items()}
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(part) for part in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    return value


def jobs_document(store: StoreReader, job_filter: JobFilter = ALL_JOBS) -> dict[str, Any]:
    """Return the jobs of a store that ``job_filter`` selects, and the errors of damaged jobs."""
    jobs = [_listed_job_document(listed_job) for listed_job in listed_jobs(store, time.time_ns(), job_filter)]
    document: dict[str, Any] = plain(
        {"store": str(store.path), "jobs": jobs, "damaged": [str(error) for error in store.damaged()]}
    )
    return document


def _listed_job_document(listed_job: ListedJob) -> dict[str, Any]:
    return {
        **plain(listed_job.row),
        **listed_job.usage._asdict(),
        "tags": listed_job.tags,
        "traced_of_kind": listed_job.traced,
    }


def show_document(overview: "Overview") -> dict[str, Any]:
    """Return the summary of a job."""
    document: dict[str, Any] = plain(
        {
            "job": overview.job.info.hex,
            **plain(overview.row),
            "tags": overview.tags,
            "phases": overview.stages,
            "step_times": overview.steps,
            "top_ops": {
                "steps": overview.ops.steps,
                "kinds": overview.ops.kinds,
                "ops": overview.ops.ops,
                "why": overview.ops.why,
            },
            "cpus": overview.cpus,
            "samples": overview.samples,
            "job_series": _series(overview.job_series),
            "host_series": _series(overview.host_series),
            "alerts": overview.alerts,
            "warnings": [*overview.warnings],
            "notes": overview.notes,
            "advice": [advice._asdict() for advice in overview.advice],
        }
    )
    return document


def change_document(change: "JobChange") -> dict[str, Any]:
    """Return a change of a followed job: its kind, the job, and the details."""
    identity = {"event": change.kind, "job": change.row.uid, "id": change.row.id}
    if change.line is not None:
        return {**identity, **plain(change.line)}
    if change.event is not None:
        return {**identity, **plain(change.event)}
    if change.kind == "collector":
        return {**identity, "back": change.back}
    row: dict[str, Any] = plain(change.row)
    return {**identity, **row, **({"median_ns": change.median_ns} if change.kind == "end" else {})}


def top_document(store: StoreReader, watched: "WatchedStore", jobs: Sequence["WatchedJob"]) -> dict[str, Any]:
    """Return the current state of ``jobs`` and of the hosts of a store."""
    document: dict[str, Any] = plain(
        {
            "store": str(store.path),
            "at_ns": watched.at_ns,
            "hosts": watched.hosts,
            "damaged": watched.damaged,
            "jobs": [_watched_job_document(job) for job in jobs],
        }
    )
    return document


def _watched_job_document(job: "WatchedJob") -> dict[str, Any]:
    return {
        **plain(job.row),
        "now": {**plain(job.pace), "change": job.pace.change, "idle_ns": job.idle_ns, **plain(job.usage)},
        "devices": job.devices,
        "slow": job.is_slow,
        "alert": job.alert,
    }


def steps_document(job: JobReader, entries_max: int | None) -> dict[str, Any]:
    """Return the step times of a job by kind, and its last span entries one by one.

    ``entries_max`` is the maximum number of these entries, None for all.
    """
    steps = step_groups(job.table("spans"), entries_max, functions_of(job.info))
    groups = [
        {
            "kind": group.kind,
            "call": group.call,
            "key": group.key,
            "count": group.count,
            "failed": group.failed,
            "setup": group.setup,
            "untraced": group.untraced,
            "traced": group.traced,
            "traced_cost_ns": group.cost and group.cost.ns,
        }
        for group in steps.groups
    ]
    document: dict[str, Any] = plain(
        {
            "job": job.info.hex,
            "counts": counts_of(job.info),
            "timed": steps.timed,
            "groups": groups,
            "entries": steps.entry_count,
            "steps": steps.latest_entries,
            "events": events(job.table("events")),
        }
    )
    return document


def spans_document(job: JobReader) -> dict[str, Any]:
    """Return the tree of a job's spans."""
    tree = span_tree(job.table("spans"), functions_of(job.info), live=job.info.state == RUNNING)
    document: dict[str, Any] = plain({"job": job.info.hex, "spans": tree})
    return document


def host_document(job: JobReader) -> dict[str, Any]:
    """Return CPU, memory and I/O of a job's processes, and of its host while the job ran."""
    samples = job.table("samples")
    host_rows = host_samples(job, samples)
    cores = cpus(host_rows)
    document: dict[str, Any] = plain(
        {
            "job": job.info.hex,
            "host": host_name(job),
            "cpus": cores,
            "samples": samples.num_rows,
            "job_series": _series(job_series(samples, cores)),
            "host_series": _series(host_series(host_rows)),
        }
    )
    return document


def host_name(job: JobReader) -> str:
    """Return the host of a job."""
    return str(job.info.identity.get("host") or "unknown host")


def _series(all_series: Sequence[Series]) -> dict[str, dict[str, object]]:
    return {series.name: {"mean": series.mean, "max": series.maximum, "values": series.values} for series in all_series}


def advice_document(advice: Sequence["JobAdvice"]) -> dict[str, Any]:
    """Return the advice about one or several jobs."""
    documents = list(map(_job_advice_document, advice))
    document: dict[str, Any] = plain(documents[0] if len(documents) == 1 else {"jobs": documents})
    return document


def _job_advice_document(job_advice: "JobAdvice") -> dict[str, Any]:
    return {
        "job": job_advice.job.info.hex,
        "checkers": [
            {"name": checker.name, "slug": checker.slug, "reports": list(map(_report_document, reports))}
            for checker, reports in job_advice.advice
        ],
    }


def _report_document(report: "Report") -> dict[str, Any]:
    return {"text": report.text, "numbers": report.numbers, "line": report.line or None, "todo": report.remedy or None}


def alerts_document(job_alerts: Sequence["JobAlert"]) -> dict[str, Any]:
    """Return alerts, the oldest first, with the ops that changed."""
    alerts = [
        {
            "job": job_alert.job.info.hex,
            "name": job_alert.job.info.name,
            "host": job_alert.job.info.identity.get("host"),
            **job_alert.alert._asdict(),
            "kind": layout.SPAN_NAMES.get(job_alert.alert.kind),
            "text": job_alert.text,
            "traced_before": job_alert.traced_before,
            "traced_since": job_alert.traced_since,
            "ops": job_alert.ops,
        }
        for job_alert in job_alerts
    ]
    document: dict[str, Any] = plain({"alerts": alerts})
    return document


def view_document(answer: Answer) -> dict[str, Any]:
    """Return the options of a view and the steps that it covers.

    The rows are in the view's message.
    """
    selection, jobs = answer.selection, [job.info.hex for job in answer.selection.jobs]
    return {
        "view": answer.view.name,
        "job": jobs[0] if len(jobs) == 1 else None,
        "jobs": jobs,
        "step": answer.options.step,
        "kinds": dict(kinds_of(answer)),
        "steps": selection.steps,
        "device": selection.device,
        "traces": answer.profile.trace_count if answer.profile else 0,
        "options": options_document(answer.options),
        "note": incomplete_reason(answer),
    }


def options_document(options: Options) -> dict[str, Any]:
    """Return options by name, in JSON types."""
    return {option.name: _option(getattr(options, option.name)) for option in TABLE}


def _option(value: Any) -> Any:
    if isinstance(value, OutputChoice):
        return str(value).rstrip(":")
    if isinstance(value, (frozenset, tuple)):
        return sorted(value) if isinstance(value, frozenset) else list(value)
    return value


def status_document(store: str, runtime: str, daemons: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the last status of each daemon of ``store``; ``runtime``: the runtime folder."""
    document: dict[str, Any] = plain({"store": store, "runtime": runtime, **daemons})
    return document
