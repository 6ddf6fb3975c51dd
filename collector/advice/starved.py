"""Whether the job waits for CPUs that other processes use."""

from collections.abc import Sequence
from statistics import median
from typing import Final

from ..numbers import cores, percent
from ..store.devices import ITERATOR_DEVICE
from ..summaries.intervals import Interval, exposed
from ..summaries.op_classes import WAITING
from ..summaries.parts import FOR_CPU
from ..summaries.step_records import StepTrace
from ..summaries.waiting_ops import WAITING_OPS
from .cpu_use import CpuUse, cpu_use
from .evidence import Evidence
from .main_call import share_in_steps
from .report import Report

#: A job is starved if it gets less than this share of the CPU time for which its ops run.
_SUPPLY_SHARE_MAX: Final = 0.6
#: Minimum share of the time in which ops run; a job that works less seldom needs a CPU.
_DEMAND_MIN: Final = 0.2
#: Minimum share of the time in which the thread of the steps waits for a CPU.
_QUEUED_MIN: Final = 0.3
#: Ops that run without using a CPU.
_IDLE_OPS: Final = WAITING_OPS | {"EagerPyFunc", "PyFunc", "PyFuncStateless", "_HostRecv", "_Recv"}
_DEVICE: Final = ITERATOR_DEVICE.decode().lower()
_REMEDY: Final = (
    "see what else runs on the host (tfprof host, tfprof top), and move it or reserve CPUs for the job (taskset,"
    " cgroups); judge ops and pauses only after that"
)


def check(evidence: Evidence) -> Sequence[Report]:
    """Report a job that gets far less CPU time than its ops need, since other processes use it."""
    use = starving_use(evidence)
    if use is None:
        return []
    queued = _queued_share(evidence)
    if queued >= _QUEUED_MIN:
        return [
            Report(
                f"the job waits for CPUs: its main thread is in the queue for one for {percent(queued)} of the time."
                f" Other processes used {cores(use.other_cores)} of the host's {use.cpus}.",
                {"share": queued, **use._asdict()},
                _REMEDY,
                saving=queued,
            )
        ]
    demand = _demand(evidence)
    return [
        Report(
            f"the job waits for CPUs: its ops run for {percent(demand)} of the time, but its processes got only"
            f" {cores(use.own_cores)} CPUs. Other processes used {cores(use.other_cores)} of the host's {use.cpus}.",
            {"share": waiting_share(evidence, use), "demand": demand, **use._asdict()},
            _REMEDY,
            saving=waiting_share(evidence, use),
        )
    ]


def starving_use(evidence: Evidence) -> CpuUse | None:
    """Return the use of the host's CPUs if other processes keep the job from running, else None."""
    use = cpu_use(evidence.load, evidence.timed_steps)
    if use is None or not use.has_competition:
        return None
    if _queued_share(evidence) >= _QUEUED_MIN:
        return use
    demand = _demand(evidence)
    return use if demand >= _DEMAND_MIN and use.own_cores < _SUPPLY_SHARE_MAX * demand else None


def waiting_share(evidence: Evidence, use: CpuUse) -> float:
    """Return the share of the time in which a starved job could have run, and had no CPU."""
    return 1 - use.own_cores / _demand(evidence)


def _queued_share(evidence: Evidence) -> float:
    """Return the share of the time in which the thread of the steps waits for a CPU."""
    parts = evidence.breakdown
    if parts is None or parts.period_ns <= 0:
        return 0.0
    return parts.detail_ns(WAITING).get(FOR_CPU, 0.0) / parts.period_ns


def _demand(evidence: Evidence) -> float:
    """Return the share of the time in which ops run, by the clock; 0 if unknown.

    A job whose ops run all the time needs one CPU at least.
    """
    shares = [_busy_share(step) for step in evidence.step_traces if step.duration_ns > 0]
    return median(shares) * share_in_steps(evidence) if shares else 0.0


def _busy_share(step: StepTrace) -> float:
    """Return the share of a step in which ops run that use a CPU, and none that waits.

    An op that calls a function lasts as long as the waiting ops in the function.
    """
    busy: list[Interval] = []
    waiting: list[Interval] = []
    for execution in step.executions:
        is_waiting = execution.op in _IDLE_OPS or execution.device == _DEVICE
        (waiting if is_waiting else busy).append((execution.start_ns, execution.end_ns))
    return min(1.0, exposed(busy, waiting) / step.duration_ns)
