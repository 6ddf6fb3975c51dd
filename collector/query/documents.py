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
from .explanations import kinds_of, why
from .listing import ALL_JOBS, JobFilter, ListedJob, listed_jobs
from .surroundings import host_samples

if TYPE_CHECKING:
    from ..advice.report import Report
    from .advising import JobAdvice
    from .alerts import JobAlert
    from .following import JobChange
    from .overview import Overview
    from .watching import Watched, WatchedJob


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
    jobs = [_listed(one) for one in listed_jobs(store, time.time_ns(), job_filter)]
    document: dict[str, Any] = plain(
        {"store": str(store.path), "jobs": jobs, "damaged": [str(error) for error in store.damaged()]}
    )
    return document


def _listed(one: ListedJob) -> dict[str, Any]:
    return {**plain(one.row), **one.usage._asdict(), "tags": one.tags, "traced_of_kind": one.traced}


def show_document(found: "Overview") -> dict[str, Any]:
    """Return the summary of a job."""
    document: dict[str, Any] = plain(
        {
            "job": found.job.info.hex,
            **plain(found.row),
            "tags": found.tags,
            "phases": found.stages,
            "step_times": found.steps,
            "top_ops": {"steps": found.ops.steps, "kinds": found.ops.kinds, "ops": found.ops.ops, "why": found.ops.why},
            "cpus": found.cpus,
            "samples": found.samples,
            "job_series": _series(found.job_series),
            "host_series": _series(found.host_series),
            "alerts": found.alerts,
            "warnings": [*found.warnings],
            "notes": found.notes,
            "advice": [one._asdict() for one in found.advice],
        }
    )
    return document


def change_document(found: "JobChange") -> dict[str, Any]:
    """Return a change of a followed job: its kind, the job, and the details."""
    job = {"event": found.kind, "job": found.row.uid, "id": found.row.id}
    if found.line is not None:
        return {**job, **plain(found.line)}
    if found.event is not None:
        return {**job, **plain(found.event)}
    if found.kind == "collector":
        return {**job, "back": found.back}
    row: dict[str, Any] = plain(found.row)
    return {**job, **row, **({"median_ns": found.median_ns} if found.kind == "end" else {})}


def top_document(store: StoreReader, watched: "Watched", jobs: Sequence["WatchedJob"]) -> dict[str, Any]:
    """Return the current state of ``jobs`` and of the hosts of a store."""
    document: dict[str, Any] = plain(
        {
            "store": str(store.path),
            "at_ns": watched.at_ns,
            "hosts": watched.hosts,
            "damaged": watched.damaged,
            "jobs": [_watched(one) for one in jobs],
        }
    )
    return document


def _watched(one: "WatchedJob") -> dict[str, Any]:
    return {
        **plain(one.row),
        "now": {**plain(one.pace), "change": one.pace.change, "idle_ns": one.idle_ns, **plain(one.usage)},
        "devices": one.devices,
        "slow": one.is_slow,
        "alert": one.alert,
    }


def steps_document(job: JobReader, listed: int | None) -> dict[str, Any]:
    """Return the step times of a job by kind, and its last entries one by one.

    ``listed`` is the number of these entries, None for all.
    """
    found = step_groups(job.table("spans"), listed, functions_of(job.info))
    groups = [
        {
            "kind": one.kind,
            "call": one.call,
            "key": one.key,
            "count": one.count,
            "failed": one.failed,
            "setup": one.setup,
            "untraced": one.untraced,
            "traced": one.traced,
            "traced_cost_ns": one.cost and one.cost.ns,
        }
        for one in found.groups
    ]
    document: dict[str, Any] = plain(
        {
            "job": job.info.hex,
            "counts": counts_of(job.info),
            "timed": found.timed,
            "groups": groups,
            "entries": found.rows,
            "steps": found.steps,
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
    around = host_samples(job, samples)
    cores = cpus(around)
    document: dict[str, Any] = plain(
        {
            "job": job.info.hex,
            "host": host_name(job),
            "cpus": cores,
            "samples": samples.num_rows,
            "job_series": _series(job_series(samples, cores)),
            "host_series": _series(host_series(around)),
        }
    )
    return document


def host_name(job: JobReader) -> str:
    """Return the host of a job."""
    return str(job.info.identity.get("host") or "unknown host")


def _series(series: Sequence[Series]) -> dict[str, dict[str, object]]:
    return {one.name: {"mean": one.mean, "max": one.maximum, "values": one.values} for one in series}


def advice_document(found: Sequence["JobAdvice"]) -> dict[str, Any]:
    """Return the advice about one or several jobs."""
    documents = list(map(_advice, found))
    document: dict[str, Any] = plain(documents[0] if len(documents) == 1 else {"jobs": documents})
    return document


def _advice(found: "JobAdvice") -> dict[str, Any]:
    return {
        "job": found.job.info.hex,
        "checkers": [
            {"name": checker.name, "slug": checker.slug, "reports": list(map(_report, reports))}
            for checker, reports in found.advice
        ],
    }


def _report(report: "Report") -> dict[str, Any]:
    return {"text": report.text, "numbers": report.numbers, "line": report.line or None, "todo": report.todo or None}


def alerts_document(found: Sequence["JobAlert"]) -> dict[str, Any]:
    """Return alerts, the oldest first, with the ops that changed."""
    alerts = [
        {
            "job": one.job.info.hex,
            "name": one.job.info.name,
            "host": one.job.info.identity.get("host"),
            **one.alert._asdict(),
            "kind": layout.SPAN_NAMES.get(one.alert.kind),
            "text": one.text,
            "traced_before": one.before,
            "traced_since": one.since,
            "ops": one.ops,
        }
        for one in found
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
        "traces": answer.profile.traces if answer.profile else 0,
        "options": options_document(answer.options),
        "note": why(answer),
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
