"""Whether steps, or the pauses between them, take longer from some step on."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import Final

from ..numbers import cores, count, date_and_time, duration
from ..summaries.step_records import periods
from .cpu_use import CpuUse, cpu_use, is_due_to_host
from .evidence import Evidence, StepShift
from .main_call import share_in_steps
from .report import Report

_REMEDY: Final = (
    "see what the program does differently from that step on: larger or other inputs, another branch, a callback, a"
    " learning-rate or data phase, storage that became slow"
)
_REMEDY_FOR_OPS: Final = "see what these ops get from that step on: larger or other inputs, data from slower storage"
_REMEDY_FOR_GROWTH: Final = (
    "look for what grows from step to step: ops that the loop adds to the graph (graph.finalize() finds the line),"
    " lists, sequences, caches"
)
_REMEDY_FOR_PAUSES: Final = (
    "see what the loop does between its steps from then on (tfprof breakdown JOB --since {}): files, a network, a lock,"
    " another process, results that it collects"
)
_VERDICT_FOR_HOST: Final = "steps have become slower, since other processes use the CPUs"
#: A step needs the CPUs as long as before if it uses them for less than this multiple of the time.
_SAME_CPU_FACTOR: Final = 1.3
_VERDICT_FOR_PAUSES: Final = "the pauses between the steps have become longer"
_REMEDY_ON_BUSY_HOST: Final = (
    "see what else runs on the host since then (tfprof host, tfprof top), and move it or reserve CPUs for the job"
)
#: The waits for a CPU before the shift are unknown if that time is short.
_BUSY_HOST: Final = (
    " Other processes have competed for the host's CPUs since then, and it is not known how long the job waited for one"
    " before, so this need not be the job's doing."
)


def check(evidence: Evidence) -> Sequence[Report]:
    """Report a lasting increase of the times, and whether other processes are its cause."""
    shift = evidence.shift or evidence.pause_shift
    if shift is None:
        return []
    normal_steps = [group for group in evidence.timed_steps if group.is_normal]
    before, now = (
        cpu_use(evidence.load, [group for group in normal_steps if (group.last >= shift.step) == is_later])
        for is_later in (False, True)
    )
    share = 1 - shift.before_ns / shift.now_ns
    numbers: dict[str, float | str] = {
        "step": shift.step,
        "before_ns": shift.before_ns,
        "now_ns": shift.now_ns,
        "share": share,
    }
    if before is not None and now is not None:
        numbers |= {"other_cores_before": before.other_cores, "other_cores": now.other_cores}
    is_due = not shift.has_alert and (is_due_to_host(now, before) or _waits_longer(evidence, shift, before, now))
    text = shift_text(shift, evidence.step_kind) + _host_text(before, now, is_due=is_due) + _ops_text(shift)
    report = Report(
        text,
        numbers,
        _remedy(shift, is_due=is_due),
        shift.ops[0].line if shift.ops else "",
        share if shift.of_pauses else share * share_in_steps(evidence),
        _VERDICT_FOR_PAUSES if shift.of_pauses else _VERDICT_FOR_HOST if is_due else "",
        of_host=is_due,
    )
    is_unknown = now is not None and now.has_competition and evidence.shift_use[0] is None
    if is_unknown and not is_due and not shift.has_alert:
        return [replace(report, text=text + _BUSY_HOST, remedy="", saving=0.0, verdict="")]
    return [report]


def _waits_longer(evidence: Evidence, shift: StepShift, before: CpuUse | None, now: CpuUse | None) -> bool:
    """Return whether the job uses the CPUs as long as before for a step, but waits longer for them.

    Beside other processes that compete before the shift and since, this tells who took the time.
    The job uses the CPUs in steps and between them, so times are those from start to start.
    """
    use_before, use_now = evidence.shift_use
    if before is None or now is None or not now.has_competition or use_before is None or use_now is None:
        return False
    period_before_ns, period_ns = (
        fmean(period.ns for period in each) if each else 0.0
        for each in (
            [period for period in periods(evidence.timed_steps) if (period.first.step >= shift.step) == is_later]
            for is_later in (False, True)
        )
    )
    cpu_before_ns, cpu_ns = before.own_cores * period_before_ns, now.own_cores * period_ns
    waits_ns = use_now.queued_all * period_ns - use_before.queued_all * period_before_ns
    return cpu_ns < _SAME_CPU_FACTOR * cpu_before_ns and waits_ns >= (shift.now_ns - shift.before_ns) / 2


def shift_text(shift: StepShift, kind: str) -> str:
    """Return a sentence about a shift in the times of steps of ``kind``."""
    factor = f"{shift.now_ns / shift.before_ns:,.1f} times as long as before"
    times = f"{duration(shift.now_ns)} instead of {duration(shift.before_ns)}"
    if shift.is_gradual and not shift.of_pauses:
        return f"steps take longer and longer: since {kind} {count(shift.step)} {times}, {factor}."
    since = f"since {kind} {count(shift.step)} ({date_and_time(shift.start_ns)})"
    if shift.of_pauses:
        return (
            f"{since}, the time from the start of a step to the next start is {factor}: {times}. Most of it is"
            " due to longer pauses between the steps."
        )
    return f"{since}, steps take {factor}: {times}."


def _host_text(before: CpuUse | None, now: CpuUse | None, *, is_due: bool) -> str:
    if before is None or now is None:
        return ""
    use = f"{cores(now.other_cores)} of its {now.cpus} CPUs, before {cores(before.other_cores)}"
    if is_due:
        return f" The likely reason is the host: other processes use {use}."
    return f" The reason is in the job: other processes of the host use {use}." if not now.has_competition else ""


def _ops_text(shift: StepShift) -> str:
    changes = ", ".join(
        f"{change.op} on {change.device} {duration(change.now_ns)}, before {duration(change.before_ns)}"
        for change in shift.ops
    )
    return f" Ops that take longer: {changes}." if changes else ""


def _remedy(shift: StepShift, *, is_due: bool) -> str:
    if is_due:
        return _REMEDY_ON_BUSY_HOST
    if shift.of_pauses:
        return _REMEDY_FOR_PAUSES.format(date_and_time(shift.start_ns).replace(" ", "T"))
    if shift.is_gradual:
        return _REMEDY_FOR_GROWTH
    return _REMEDY_FOR_OPS if shift.ops else _REMEDY
