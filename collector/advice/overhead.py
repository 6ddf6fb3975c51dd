"""Steps that are too small for what starts them: eager ops, single samples, small batches."""

from collections.abc import Sequence
from typing import Final

from ..numbers import count, duration, percent
from ..summaries.kinds import RUN_KIND_NAMES
from ..summaries.op_classes import LAUNCH, PYTHON
from ..summaries.parts import CODE_BETWEEN, EAGER_OPS, UNEXPLAINED, UNRECORDED, Breakdown
from ..summaries.step_cut import AFTER, BEFORE
from .between_steps import KERAS_KINDS, has_enough_steps, has_single_calls, keras_ns
from .evidence import Evidence
from .fetches import calls_ns
from .interpreter import waiting_share
from .report import Report
from .starved import are_steps_held_up

#: Minimum share of the time outside of ops that is reported: of eager steps, and of others.
EAGER_SHARE_MIN: Final = 0.2
SMALL_SHARE_MIN: Final = 0.5
#: Maximum time outside of the ops of a small step (ns).
SMALL_NS: Final = 5_000_000


def check(evidence: Evidence) -> Sequence[Report]:
    """Report steps whose time goes by outside of their ops; the most specific reason counts."""
    parts = evidence.breakdown
    if parts is None or not has_enough_steps(parts):
        return []
    single = _single_calls(evidence, parts)
    if single:
        return single
    if parts.is_eager:  # on a busy host, too: all of a step takes longer
        return [] if waiting_share(evidence) else _eager(parts)
    return [] if are_steps_held_up(evidence) else _small(evidence, parts)


def outside_ns(evidence: Evidence, parts: Breakdown) -> float:
    """Return the time of a step outside of its ops, with what Keras itself takes between steps."""
    between_ns = parts.detail_ns(PYTHON).get(CODE_BETWEEN, 0.0) + parts.detail_ns(UNEXPLAINED).get(UNRECORDED, 0.0)
    is_keras = between_ns < keras_ns(evidence, parts)
    around_ns = parts.ns(BEFORE) + parts.ns(LAUNCH) + parts.ns(AFTER) - calls_ns(parts)
    return around_ns + (between_ns if is_keras else 0.0)


def _single_calls(evidence: Evidence, parts: Breakdown) -> list[Report]:
    """Report a loop of calls of predict that run one batch each."""
    if not has_single_calls(evidence, parts):
        return []
    share = 1 - parts.step_ns / parts.period_ns
    if share < EAGER_SHARE_MIN:
        return []
    return [
        Report(
            f"predict was called {count(evidence.predict_calls)} times, for about one batch each:"
            f" {duration(parts.period_ns)} a call, of which the batch takes {duration(parts.step_ns)}.",
            {"share": share, "calls": evidence.predict_calls, "ns_per_call": parts.period_ns},
            "predict many samples in one call, or call the model itself (model(x), predict_on_batch), which sets up"
            " neither a dataset nor callbacks",
            saving=share,
            verdict="predict is called for single batches",
        )
    ]


def _eager(parts: Breakdown) -> list[Report]:
    python_ns = parts.detail_ns(PYTHON).get(EAGER_OPS, 0.0) + parts.ns(BEFORE) + parts.ns(AFTER) - calls_ns(parts)
    share = python_ns / parts.period_ns
    if share < EAGER_SHARE_MIN:
        return []
    is_keras = parts.kind in KERAS_KINDS
    return [
        Report(
            f"the {parts.kind} steps run op by op: {percent(share)} of the time Python starts ops,"
            f" {duration(python_ns)} a step.",
            {"share": share, "ns_per_step": python_ns},
            "compile without run_eagerly=True" if is_keras else "put the whole step into one tf.function",
            saving=share,
            verdict="steps run eagerly, without a tf.function",
        )
    ]


def _small(evidence: Evidence, parts: Breakdown) -> list[Report]:
    total_ns = outside_ns(evidence, parts)
    share = total_ns / parts.period_ns
    if share < SMALL_SHARE_MIN or total_ns > SMALL_NS:
        return []
    several = "several steps in one tf.function"
    if parts.kind in KERAS_KINDS:
        several = "steps_per_execution=N in compile(…)"
    elif parts.kind in RUN_KIND_NAMES:
        several = "session.make_callable(…) instead of session.run, or several steps in one run (tf.while_loop)"
    return [
        Report(
            f"a {parts.kind} step is small: for {percent(share)} of {duration(parts.period_ns)} from step to step no"
            " op runs, since starting a step takes longer than its ops.",
            {"share": share, "ns_per_step": total_ns},
            f"larger batches; {several}",
            saving=share,
            verdict="steps are too small: the batch, or the work for it",
        )
    ]
