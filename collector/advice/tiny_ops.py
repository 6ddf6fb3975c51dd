"""Whether the overhead of starting many small ops dominates a step."""

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Final

from ..numbers import count, duration, percent
from ..summaries.step_cut import covered
from ..summaries.step_records import StepTrace
from .evidence import Evidence
from .main_call import share_in_steps
from .report import Report
from .starved import are_steps_held_up

#: Duration in ns below which starting an op takes about as long as running it.
TINY_NS: Final = 20_000
#: Minimum number of ops per step, and minimum idle share of a step, that are reported.
OPS_MIN: Final = 200
IDLE_SHARE_MIN: Final = 0.4


def check(evidence: Evidence) -> Sequence[Report]:
    """Report steps of many small ops in which no op runs for a large share of the time.

    The numbers are the ops per step, the duration of the median op, and the share of the step in
    which no op runs. A job that waits for a CPU, or runs eagerly, has the same symptom; that is
    another finding.
    """
    if are_steps_held_up(evidence) or (evidence.breakdown is not None and evidence.breakdown.is_eager):
        return []
    steps = [step for step in evidence.step_traces if step.executions and step.duration_ns > 0]
    if not steps:
        return []
    op_count = median(len(step.executions) for step in steps)
    median_ns = median(execution.end_ns - execution.start_ns for step in steps for execution in step.executions)
    idle_share = median(map(_idle_share, steps))
    if op_count < OPS_MIN or median_ns > TINY_NS or idle_share < IDLE_SHARE_MIN:
        return []
    return [
        Report(
            f"a step runs {count(round(op_count))} ops, half of them for {duration(median_ns)} or less; for"
            f" {percent(idle_share)} of the step no op runs: starting ops takes longer than running them.",
            {"ops_per_step": op_count, "median_op_ns": median_ns, "idle_share": idle_share, "traced_steps": len(steps)},
            "give ops more to do: larger batches, ops on whole tensors instead of loops (while_loop, map_fn),"
            " fused layers, steps in one tf.function, jit_compile=True; fetch fewer single values",
            _location(evidence),
            idle_share * share_in_steps(evidence),
        )
    ]


def _idle_share(step: StepTrace) -> float:
    """Return the share of a step in which none of its ops ran."""
    return max(
        0.0, 1.0 - covered((execution.start_ns, execution.end_ns) for execution in step.executions) / step.duration_ns
    )


def _location(evidence: Evidence) -> str:
    """Return the user's line with the most executions, '' if unknown."""
    runs: Counter[str] = Counter()
    for node in evidence.nodes:
        if node.stats.runs and (location := evidence.places.location(node)):
            runs[location] += node.stats.runs
    return runs.most_common(1)[0][0] if runs else ""
