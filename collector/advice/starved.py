"""Whether the job waits for CPUs that other processes use, those of other jobs or its own."""

from collections.abc import Sequence
from statistics import median
from typing import Final, NamedTuple

from ..numbers import cores, percent
from ..store.devices import ITERATOR_DEVICE
from ..summaries.op_classes import INPUT, WAITING, WAITING_OPS
from ..summaries.parts import ASLEEP, Breakdown
from ..summaries.step_cut import Interval, exposed
from ..summaries.step_records import StepTrace
from .cpu_use import CpuUse, process_use
from .evidence import Evidence
from .interpreter import waiting_share
from .main_call import share_in_steps
from .report import Report

#: A job is starved if it gets less than this share of the CPU time for which its ops run.
_SUPPLY_SHARE_MAX: Final = 0.6
#: Minimum share of the time in which ops run; a job that works less seldom needs a CPU.
_DEMAND_MIN: Final = 0.2
#: Minimum share of the time in which the thread of the steps, or all threads, wait for a CPU.
_QUEUED_MIN: Final = 0.3
#: Ops that run without using a CPU.
_IDLE_OPS: Final = WAITING_OPS | {"EagerPyFunc", "PyFunc", "PyFuncStateless", "_HostRecv", "_Recv"}
_DEVICE: Final = ITERATOR_DEVICE.decode().lower()
_VERDICT_FOR_CHILDREN: Final = "the job waits for CPUs that its own processes use"
_REMEDY_FOR_CHILDREN: Final = (
    "start fewer processes, or leave CPUs to the one with the steps (taskset); processes that prepare input need no"
    " more CPUs than keep its queue filled"
)
_REMEDY: Final = (
    "see what else runs on the host (tfprof host, tfprof top), and move it or reserve CPUs for the job (taskset,"
    " cgroups); judge ops and pauses only after that"
)


class Starvation(NamedTuple):
    """A job that waits for CPUs: the use of them, the share of the time, and how that is known."""

    use: CpuUse
    share: float
    text: str


def check(evidence: Evidence) -> Sequence[Report]:
    """Report a job that gets far less CPU time than it needs, since other processes use it."""
    found = starvation(evidence)
    if found is None:
        return []
    use = found.use
    is_own = use.child_cores > use.other_cores
    others = f" Other processes used {cores(use.other_cores)} of the host's {use.cpus}."
    own = f" Its further processes used {cores(use.child_cores)} of the host's {use.cpus}."
    return [
        Report(
            f"the job waits for CPUs: {found.text}.{own if use.child_cores else ''}{'' if is_own else others}",
            {"share": found.share, **use._asdict()},
            _REMEDY_FOR_CHILDREN if is_own else _REMEDY,
            saving=found.share,
            verdict=_VERDICT_FOR_CHILDREN if is_own else "",
            of_host=not is_own,
        )
    ]


def starvation(evidence: Evidence) -> Starvation | None:
    """Return how much a job waits for CPUs that other processes use, None if it does not."""
    use = _competition(evidence)
    return None if use is None else _of_steps(evidence, use) or _threads(evidence, use)


def are_steps_held_up(evidence: Evidence) -> bool:
    """Whether pauses in steps are waits for a CPU, or for the interpreter, that others use."""
    use = _competition(evidence)
    return (use is not None and _of_steps(evidence, use) is not None) or waiting_share(evidence) > 0


def _competition(evidence: Evidence) -> CpuUse | None:
    use = process_use(evidence)
    return use if use is not None and use.has_competition else None


def _of_steps(evidence: Evidence, use: CpuUse) -> Starvation | None:
    return _main_thread(evidence, use) or _ops(evidence, use)


def _main_thread(evidence: Evidence, use: CpuUse) -> Starvation | None:
    parts = evidence.breakdown
    share = parts.queued_ns / parts.period_ns if parts is not None and parts.period_ns > 0 else 0.0
    if share < _QUEUED_MIN:
        return None
    return Starvation(use, share, f"its main thread is in the queue for one for {percent(share)} of the time")


def _threads(evidence: Evidence, use: CpuUse) -> Starvation | None:
    """Judge by the waits of all threads of the job, which wait for each other, too.

    Of the time in which they run or wait, other processes take their share in the use of the CPUs.
    A loop that sleeps between its steps, or waits for input, does not need a CPU.
    """
    thread = evidence.thread_use
    if thread is None or not thread.queued_all:
        return None
    runnable = use.own_cores + thread.queued_all
    behind_others = thread.queued_all * use.competing_cores / (use.own_cores + use.competing_cores)
    awake_share = 1 - _detail_share(evidence.breakdown, ASLEEP)
    share = min(min(awake_share, runnable) * behind_others / runnable, 1 - _input_share(evidence))
    if share < _QUEUED_MIN:
        return None
    waits = (
        f"its main process runs for {cores(use.own_cores)} s each second, and its threads wait for a CPU for"
        f" {cores(thread.queued_all)} s"
    )
    return Starvation(use, share, f"{waits}, {percent(share)} of the time behind other processes")


def _ops(evidence: Evidence, use: CpuUse) -> Starvation | None:
    """Judge by the time in which ops run by the clock: a job whose ops always run needs one CPU."""
    demand = _demand(evidence)
    if demand < _DEMAND_MIN or use.own_cores >= _SUPPLY_SHARE_MAX * demand:
        return None
    text = f"its ops run for {percent(demand)} of the time, but its main process got only {cores(use.own_cores)} CPUs"
    awake_share = 1 - _detail_share(evidence.breakdown, ASLEEP) - _input_share(evidence)
    return Starvation(use, min(1 - use.own_cores / demand, awake_share), text)


def _input_share(evidence: Evidence) -> float:
    return evidence.breakdown.share(INPUT) if evidence.breakdown is not None else 0.0


def _detail_share(parts: Breakdown | None, detail: str) -> float:
    """Return the share of the time in which the thread of the steps waits, as ``detail`` says."""
    if parts is None or parts.period_ns <= 0:
        return 0.0
    return parts.detail_ns(WAITING).get(detail, 0.0) / parts.period_ns


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
