"""The checkers, in the order in which they run."""

from collections.abc import Collection
from typing import Final

from tfprof.collector.views.advice import (
    expensive,
    input_bound,
    memory,
    operations,
    placement,
    retracing,
    tiny_ops,
    transfers,
    uneven,
    utilization,
)
from tfprof.collector.views.advice.evidence import Evidence
from tfprof.collector.views.advice.report import Advice, Checker

CHECKERS: Final = (
    Checker("AcceleratorUtilizationChecker", "utilization", utilization.check, tfprofs=True),
    Checker("OperationChecker", "operations", operations.check, tfprofs=True),
    Checker("ExpensiveOperationChecker", "expensive", expensive.check, tfprofs=True),
    Checker("InputChecker", "input", input_bound.check),
    Checker("TransferChecker", "transfers", transfers.check),
    Checker("PlacementChecker", "placement", placement.check),
    Checker("TinyOperationChecker", "tiny", tiny_ops.check),
    Checker("MemoryChecker", "memory", memory.check),
    Checker("RetracingChecker", "retracing", retracing.check),
    Checker("UnevenStepChecker", "uneven", uneven.check),
)


def advise(evidence: Evidence, names: Collection[str] | None = None) -> list[Advice]:
    """Return what each checker says, those of ``names`` only if any are given; under strict rules only tfprof's are asked."""
    asked = [
        one for one in CHECKERS if (one.tfprofs or not evidence.rules.strict) and (names is None or one.name in names)
    ]
    return [Advice(checker, tuple(checker.check(evidence))) for checker in asked]
