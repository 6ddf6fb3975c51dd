"""The answers to questions as JSON documents: plain dicts, lists, texts and numbers, the same for every reader of a store."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

from ..store.catalog import RUNNING
from ..store.reader import Job, Store
from ..summaries.events import events
from ..summaries.host import Series, cpus, host_series, job_series
from ..summaries.jobs import counts_of, functions_of, job_rows
from ..summaries.spans import phases
from ..summaries.steps import steps as step_groups
from ..tfviews.options import TABLE, Options
from ..tfviews.output import Output
from .engine import Answer
from .explanations import kinds_of, why
from .surroundings import host_samples

if TYPE_CHECKING:
    from ..advice.report import Report
    from .advising import JobAdvice


def plain(value: Any) -> Any:
    """Return ``value`` with dataclasses and sets as JSON knows them."""
    if is_dataclass(value) and not isinstance(value, type):
        return {name: plain(part) for name, part in asdict(value).items()}
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(part) for part in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    return value


def jobs_document(store: Store) -> dict[str, Any]:
    """Return all jobs of a store, and what is damaged."""
    rows = job_rows([job.info for job in store.jobs()], time.time_ns())
    document: dict[str, Any] = plain(
        {"store": str(store.path), "jobs": rows, "damaged": [str(error) for error in store.damaged()]}
    )
    return document


def steps_document(job: Job, listed: int | None) -> dict[str, Any]:
    """Return the step times of a job: by kind, and the last ``listed`` entries one by one (None: all)."""
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


def spans_document(job: Job) -> dict[str, Any]:
    """Return the application's own phases."""
    tree = phases(job.table("spans"), functions_of(job.info), live=job.info.state == RUNNING)
    document: dict[str, Any] = plain({"job": job.info.hex, "spans": tree})
    return document


def host_document(job: Job) -> dict[str, Any]:
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


def host_name(job: Job) -> str:
    """Return the host that a job ran on."""
    return str(job.info.identity.get("host") or "unknown host")


def _series(series: Sequence[Series]) -> dict[str, dict[str, object]]:
    return {one.name: {"mean": one.mean, "max": one.most, "values": one.values} for one in series}


def advice_document(found: Sequence["JobAdvice"]) -> dict[str, Any]:
    """Return what the checkers say of one job, or of several."""
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


def view_document(answer: Answer) -> dict[str, Any]:
    """Return what a view was asked and how much it is of; the view itself is its message."""
    about, jobs = answer.about, [job.info.hex for job in answer.about.jobs]
    return {
        "view": answer.view.name,
        "job": jobs[0] if len(jobs) == 1 else None,
        "jobs": jobs,
        "step": answer.options.step,
        "kinds": dict(kinds_of(answer)),
        "steps": about.steps,
        "device": about.device,
        "traces": answer.profile.traces if answer.profile else 0,
        "options": options_document(answer.options),
        "note": why(answer),
    }


def options_document(options: Options) -> dict[str, Any]:
    """Return options by name, as JSON knows them."""
    return {option.name: _option(getattr(options, option.name)) for option in TABLE}


def _option(value: Any) -> Any:
    if isinstance(value, Output):
        return str(value).rstrip(":")
    if isinstance(value, (frozenset, tuple)):
        return sorted(value) if isinstance(value, frozenset) else list(value)
    return value


def status_document(store: str, runtime: str, daemons: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the last status of each daemon of ``store``; ``runtime``: their folder."""
    document: dict[str, Any] = plain({"store": store, "runtime": runtime, **daemons})
    return document
