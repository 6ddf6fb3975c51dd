"""The checkers, in the order in which they run."""

from collections.abc import Collection
from typing import Final

from . import (
    avoidable,
    between_steps,
    expensive,
    fetches,
    input_bound,
    interpreter,
    memory,
    missing_data,
    operations,
    overhead,
    placement,
    precision,
    python_parts,
    replicas,
    retracing,
    slower,
    starved,
    threads,
    tiny_ops,
    transfers,
    uneven,
    utilization,
)
from .evidence import Evidence
from .report import Advice, Checker

CHECKERS: Final = (
    Checker(
        "AcceleratorUtilizationChecker",
        "utilization",
        "GPU use",
        utilization.check,
        missing_data.of_gpus,
        "a GPU is little used",
        rank=3,
        in_tf_profiler=True,
    ),
    Checker(
        "OperationChecker",
        "operations",
        "Faster ops",
        operations.check,
        missing_data.of_traces,
        "faster ops exist for some of the job's ops",
        in_tf_profiler=True,
    ),
    Checker(
        "ExpensiveOperationChecker",
        "expensive",
        "Most time",
        expensive.check,
        missing_data.of_traces,
        "",
        in_tf_profiler=True,
    ),
    Checker("InputChecker", "input", "Input", input_bound.check, missing_data.of_input, "steps wait for input"),
    Checker(
        "PauseChecker",
        "between",
        "Between steps",
        between_steps.check,
        missing_data.of_pauses,
        "much of the time goes by between the steps",
    ),
    Checker(
        "PythonChecker",
        "python",
        "Python in steps",
        python_parts.check,
        missing_data.of_parts,
        "Python takes much of the steps",
    ),
    Checker(
        "InterpreterChecker",
        "interpreter",
        "Other threads",
        interpreter.check,
        missing_data.of_parts,
        "another thread keeps the interpreter busy",
        rank=1,
    ),
    Checker(
        "OverheadChecker",
        "overhead",
        "Small steps",
        overhead.check,
        missing_data.of_parts,
        "steps are small",
    ),
    Checker(
        "FetchChecker",
        "fetches",
        "Feeds and fetches",
        fetches.check,
        missing_data.of_parts,
        "feeds and fetches take much of the step",
    ),
    Checker(
        "PrecisionChecker",
        "float64",
        "Precision",
        precision.check,
        missing_data.of_traces,
        "ops compute in float64",
    ),
    Checker(
        "AvoidableOperationChecker",
        "avoidable",
        "Avoidable ops",
        avoidable.check,
        missing_data.of_traces,
        "ops that a step may not need take much of its time",
    ),
    Checker(
        "ThreadChecker",
        "threads",
        "Threads",
        threads.check,
        missing_data.of_host,
        "the job's threads do not fit the CPUs",
    ),
    Checker(
        "ReplicaChecker",
        "replicas",
        "Replicas",
        replicas.check,
        missing_data.of_replicas,
        "the replicas have unequal work",
    ),
    Checker("TransferChecker", "transfers", "Copies", transfers.check, missing_data.of_gpus, "GPUs wait for copies"),
    Checker(
        "PlacementChecker",
        "placement",
        "Placement",
        placement.check,
        missing_data.of_gpus,
        "ops run on the CPU beside a GPU",
    ),
    Checker(
        "TinyOperationChecker",
        "tiny",
        "Small ops",
        tiny_ops.check,
        missing_data.of_executions,
        "starting small ops takes longer than running them",
    ),
    Checker(
        "MemoryChecker", "memory", "Memory", memory.check, missing_data.of_memory, "the job's memory grows", rank=1
    ),
    Checker(
        "RetracingChecker",
        "retracing",
        "Retracing",
        retracing.check,
        missing_data.of_graphs,
        "graphs are built again while steps run",
        rank=0,
    ),
    Checker(
        "SlowerStepChecker",
        "slower",
        "Slower steps",
        slower.check,
        missing_data.of_steps,
        "steps have become slower",
        rank=1,
    ),
    Checker(
        "StarvationChecker",
        "starved",
        "Host",
        starved.check,
        missing_data.of_host,
        "the job waits for CPUs that other processes use",
    ),
    Checker(
        "UnevenStepChecker",
        "uneven",
        "Uneven steps",
        uneven.check,
        missing_data.of_steps,
        "some steps take far longer than the others",
    ),
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
    return [Advice(checker, tuple(checker.check(evidence)), checker.missing(evidence)) for checker in selected]
