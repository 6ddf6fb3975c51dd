"""Alerts about jobs."""

from collections.abc import Sequence
from typing import Annotated, Literal, TypedDict

from ...formats import span_kinds
from ..query.alerts import JobAlert
from .fields import fields
from .ops import OpChangeDocument


class AlertDocument(TypedDict):
    """An alert: an anomaly of a running job."""

    job: Annotated[str, "The id of the job."]
    name: Annotated[str, "The name of the job."]
    host: Annotated[str, "The host of the job; empty if it is unknown."]
    found_ns: Annotated[int, "When it was detected, ns since 1970."]
    since_ns: Annotated[int, "When the anomaly began, ns since 1970."]
    slug: Annotated[str, "The kind of alert (docs/alerts.md)."]
    kind: Annotated[str | None, "The kind of the first affected step; null if the alert concerns none."]
    key: Annotated[int, "The number that distinguishes the call of this step."]
    step: Annotated[int, "The number of this step; of a stall, of the last step before it."]
    before: Annotated[float, "The usual value: ns, bytes, or a number of entries, by the kind of alert."]
    now: Annotated[float, "The value that raised the alert."]
    text: Annotated[str, "The alert as a sentence."]
    traced_before: Annotated[int, "The number of compared traced steps before the change."]
    traced_since: Annotated[int, "The number of compared traced steps since the change."]
    ops: Annotated[list[OpChangeDocument], "The ops that take longer since the change, the largest growth first."]


class AlertsDocument(TypedDict):
    """Alerts, the oldest first."""

    schema: Annotated[Literal["tfprof.alerts/1"], "The format and its version."]
    alerts: Annotated[list[AlertDocument], "The alerts."]


def alerts_document(job_alerts: Sequence[JobAlert]) -> AlertsDocument:
    """Return alerts, the oldest first, with the ops that changed."""
    return {"schema": "tfprof.alerts/1", "alerts": list(map(_alert, job_alerts))}


def _alert(job_alert: JobAlert) -> AlertDocument:
    info, alert = job_alert.job.info, job_alert.alert
    return fields(
        AlertDocument,
        alert,
        job=info.hex,
        name=info.name,
        host=info.host,
        kind=span_kinds.KINDS[alert.kind].name if alert.kind in span_kinds.KINDS else None,
        text=job_alert.text,
        traced_before=job_alert.traced_before,
        traced_since=job_alert.traced_since,
        ops=[fields(OpChangeDocument, op) for op in job_alert.ops],
    )
