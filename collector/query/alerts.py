"""Reads the alerts of jobs, with the ops that explain them.

These ops are found by comparing traced steps before and after the change.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..alerts.alert import SLOWER, Alert
from ..alerts.sentence import sentence
from ..errors import NoSuchStepError
from ..store.protocols import JobReader
from ..summaries.jobs import functions_of
from ..summaries.kinds import step_kind_of
from ..summaries.op_changes import OpChange, op_changes
from ..summaries.top import TopOp
from .kinds import rows_of_kinds
from .ranking import rank_ops

#: Maximum number of traced steps that are compared on each side of the change.
COMPARED_MAX: Final = 10


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


def alerts_of(jobs: Iterable[JobReader]) -> list[JobAlert]:
    """Return the alerts of ``jobs`` in order of detection."""
    alerts = [job_alert for job in jobs for job_alert in job.on_one_snapshot(_explained_alerts)]
    return sorted(alerts, key=lambda job_alert: job_alert.alert.found_ns)


def stored_alerts(job: JobReader) -> list[JobAlert]:
    """Return the alerts of ``job`` in order of detection, without the ops that explain them."""
    names = functions_of(job.info)
    alerts = (Alert(**row) for row in job.table("alerts").to_pylist())
    return [JobAlert(job, alert, sentence(alert, names)) for alert in alerts]


def _explained_alerts(job: JobReader) -> list[JobAlert]:
    return [_explain(job, job_alert.alert, job_alert.text) for job_alert in stored_alerts(job)]


def _explain(job: JobReader, alert: Alert, text: str) -> JobAlert:
    if alert.slug != SLOWER:
        return JobAlert(job, alert, text)
    kind = step_kind_of(alert.kind, alert.key)
    steps = _traced_steps(job, kind)
    steps_before = [step for step in steps if step < alert.step][-COMPARED_MAX:]
    steps_since = [step for step in steps if step >= alert.step][:COMPARED_MAX]
    if not steps_before or not steps_since:
        return JobAlert(job, alert, text, len(steps_before), len(steps_since))
    changes = op_changes(_top_ops(job, kind, steps_before), _top_ops(job, kind, steps_since))
    return JobAlert(job, alert, text, len(steps_before), len(steps_since), changes)


def _traced_steps(job: JobReader, kind: int) -> list[int]:
    steps: list[Any] = rows_of_kinds(job.table("traces", ["kind", "key", "step"]), (kind,))["step"].to_pylist()
    return sorted(set(steps))


def _top_ops(job: JobReader, kind: int, steps: Sequence[int]) -> list[TopOp]:
    try:
        ranking = rank_ops(job, (steps[0], steps[-1]), (kind,))
    except NoSuchStepError:
        return []
    return ranking.ops if ranking else []
