"""The checkers, in the order in which they run."""

from collections.abc import Collection
from typing import Final

from . import expensive, input_bound, memory, operations, placement, retracing, tiny_ops, transfers, uneven, utilization
from .evidence import Evidence
from .report import Advice, Checker

CHECKERS: Final = (
    Checker("AcceleratorUtilizationChecker", "utilization", "GPU use", utilization.check, in_tf_profiler=True),
    Checker("OperationChecker", "operations", "Faster ops", operations.check, in_tf_profiler=True),
    Checker("ExpensiveOperationChecker", "expensive", "Most time", expensive.check, in_tf_profiler=True),
    Checker("InputChecker", "input", "Input", input_bound.check),
    Checker("TransferChecker", "transfers", "Copies", transfers.check),
    Checker("PlacementChecker", "placement", "Placement", placement.check),
    Checker("TinyOperationChecker", "tiny", "Small ops", tiny_ops.check),
    Checker("MemoryChecker", "memory", "Memory", memory.check),
    Checker("RetracingChecker", "retracing", "Retracing", retracing.check),
    Checker("UnevenStepChecker", "uneven", "Uneven steps", uneven.check),
)


def advise(evidence: Evidence, names: Collection[str] | None = None) -> list[Advice]:
    """Return the advice of all checkers, or of those in ``names``.

    If ``evidence.parity`` excludes tfprof's own advice, only the TF profiler's checkers run.
    """
    selected = [
        checker
        for checker in CHECKERS
        if (checker.in_tf_profiler or evidence.parity.has_own_advice) and (names is None or checker.name in names)
    ]
    return [Advice(checker, tuple(checker.check(evidence))) for checker in selected]
