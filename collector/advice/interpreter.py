"""Whether another thread of the job keeps Python's interpreter busy."""

from collections.abc import Sequence
from typing import Final

from ..numbers import duration, percent
from ..summaries.op_classes import COPIES, DEVICE, INPUT
from .evidence import Evidence
from .report import Report

#: Minimum share of the time in which the other threads use a CPU or wait for one, and in which the
#: thread of the steps does neither, and no op runs.
_BUSY_MIN: Final = 0.3
SHARE_MIN: Final = 0.1


def check(evidence: Evidence) -> Sequence[Report]:
    """Report the busiest of the job's other threads if the steps wait for the interpreter."""
    share = waiting_share(evidence)
    if not share or evidence.breakdown is None:
        return []
    thread = evidence.python_threads[0]
    about = f"{thread.name}, which runs {thread.function} ({thread.line})"
    return [
        Report(
            f"another thread of the job, {about}, uses a CPU for {percent(thread.cores)} of the time. Python runs one"
            f" thread at a time: for {percent(share)} of the time, {duration(share * evidence.breakdown.period_ns)} a"
            " step, the thread of the steps neither runs nor waits for a CPU, and no op runs.",
            {"share": share, "cores": thread.cores, "thread": thread.name, "function": thread.function},
            f"move {thread.function} to a process of its own (multiprocessing, subprocess), or let it work less often;"
            " sys.setswitchinterval(…) below 5 ms makes the waits shorter",
            thread.line,
            share,
            f"another thread of the job keeps the interpreter busy: {thread.function}",
        )
    ]


def waiting_share(evidence: Evidence) -> float:
    """Return the share of the time in which the steps wait for the interpreter, 0 if they do not.

    That time is a lower bound: ops count as if none ran on the thread of the steps.
    """
    parts, use, threads = evidence.breakdown, evidence.thread_use, evidence.python_threads
    if parts is None or use is None or not use.is_exact or parts.period_ns <= 0:
        return 0.0
    busy = sum(thread.cores for thread in threads) * _runnable_factor(evidence)
    if busy < _BUSY_MIN:
        return 0.0
    elsewhere = parts.share(INPUT) + parts.share(COPIES) + (0.0 if parts.is_eager else parts.share(DEVICE))
    share = min(busy, 1 - use.cpu - use.queued - elsewhere)
    return share if share >= SHARE_MIN else 0.0


def _runnable_factor(evidence: Evidence) -> float:
    """Return how much longer than they run the job's threads run or wait for a CPU.

    A thread that holds the interpreter keeps it while it waits for a CPU.
    """
    cores = evidence.use.cores if evidence.use else 0.0
    queued = evidence.thread_use.queued_all if evidence.thread_use else 0.0
    return 1 + queued / cores if cores > 0 else 1.0
