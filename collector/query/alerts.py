"""Reads the alerts of jobs, with the ops that explain them.

These ops are found by comparing traced steps before and after the change.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ..alerts.alert import SLOWER, STALL, Alert
from ..alerts.sentence import sentence
from ..errors import NoSuchJobError, NoSuchStepError, StoreError
from ..store.columns import pc
from ..store.protocols import JobReader, StoreReader
from ..summaries.jobs import functions_of
from ..summaries.kinds import step_kind_of
from ..summaries.steps import rows_of_kinds
from ..summaries.top import OpChange, TopOp, op_changes
from .node_times import rank_ops

#: Maximum number of traced steps that are compared on each side of the change.
COMPARED_MAX: Final = 10
#: State of a job whose processes have ended by themselves.
_EXITED: Final = "exited"


@dataclass(frozen=True, slots=True)
class JobAlert:
    """An alert of ``job``, and the sentence ``text`` that describes it.

    ``ops`` are the ops that take longer since the change. ``traced_before`` and ``traced_since``
    are the numbers of compared traced steps before the change and since the change.
    """

    job: JobReader
    alert: Alert
    text: str
    traced_before: int = 0
    traced_since: int = 0
    ops: tuple[OpChange, ...] = ()


def all_alerts(store: StoreReader) -> tuple[list[JobAlert], list[StoreError]]:
    """Return the alerts of all jobs as ``alerts_of``, and the errors of damaged jobs."""
    alerts: list[JobAlert] = []
    jobs, damage = store.read()
    errors: list[StoreError] = [*damage]
    for job in jobs:
        try:
            alerts += alerts_of([job])
        except StoreError as error:
            errors.append(error)
        except NoSuchJobError:  # removed meanwhile
            continue
    return sorted(alerts, key=lambda job_alert: job_alert.alert.found_ns), errors


def alerts_of(jobs: Iterable[JobReader]) -> list[JobAlert]:
    """Return the alerts of ``jobs`` in order of detection."""
    alerts = [job_alert for job in jobs for job_alert in job.on_one_snapshot(_explained_alerts)]
    return sorted(alerts, key=lambda job_alert: job_alert.alert.found_ns)


def stored_alerts(job: JobReader) -> list[JobAlert]:
    """Return the alerts of ``job`` in order of detection, without the ops that explain them."""
    names = functions_of(job.info)
    alerts = (Alert(**row) for row in alert_rows(job).to_pylist())
    return [JobAlert(job, alert, sentence(alert, names)) for alert in alerts]


def alert_rows(job: JobReader) -> pa.Table:
    """Return the rows of the alerts of ``job``.

    A stall after the last step of a job that ended normally is left out. The steps are compared by
    time, since the last of many short steps may have been recorded after the alert.
    """
    alerts, end = job.table("alerts"), job.info.end
    stalls = pc.equal(alerts["slug"], STALL)
    if job.info.state != _EXITED or end.get("status") or end.get("signal") or not pc.any(stalls).as_py():
        return alerts
    last_start_ns = pc.max(job.table("spans", ["start_ns"])["start_ns"])
    is_last = pc.less(last_start_ns, alerts["found_ns"]).fill_null(False)
    return alerts.filter(pc.invert(pc.and_(stalls, is_last)))


def _explained_alerts(job: JobReader) -> list[JobAlert]:
    return [_explain(job, job_alert.alert, job_alert.text) for job_alert in stored_alerts(job)]


def _explain(job: JobReader, alert: Alert, text: str) -> JobAlert:
    if alert.slug != SLOWER:
        return JobAlert(job, alert, text)
    return JobAlert(job, alert, text, *changed_ops(job, alert.kind, alert.key, alert.step))


class ChangedOps(NamedTuple):
    """The ops that take longer since a step, and the numbers of traced steps on its two sides."""

    traced_before: int
    traced_since: int
    ops: tuple[OpChange, ...] = ()


def changed_ops(job: JobReader, span_kind: int, key: int, step: int) -> ChangedOps:
    """Compare the traced steps before ``step`` and since then, up to COMPARED_MAX on each side."""
    kind = step_kind_of(span_kind, key)
    steps = _traced_steps(job, kind)
    steps_before = [earlier for earlier in steps if earlier < step][-COMPARED_MAX:]
    steps_since = [later for later in steps if later >= step][:COMPARED_MAX]
    if not steps_before or not steps_since:
        return ChangedOps(len(steps_before), len(steps_since))
    changes = op_changes(_top_ops(job, kind, steps_before), _top_ops(job, kind, steps_since))
    return ChangedOps(len(steps_before), len(steps_since), changes)


def _traced_steps(job: JobReader, kind: int) -> list[int]:
    steps: list[Any] = rows_of_kinds(job.table("traces", ["kind", "key", "step"]), (kind,))["step"].to_pylist()
    return sorted(set(steps))


def _top_ops(job: JobReader, kind: int, steps: Sequence[int]) -> list[TopOp]:
    try:
        ranking = rank_ops(job, (steps[0], steps[-1]), (kind,))
    except NoSuchStepError:
        return []
    return ranking.ops if ranking else []
