"""Whether ops compute in float64."""

from collections.abc import Sequence
from typing import Final

from ..numbers import percent
from ..summaries.top import heaviest
from ..tfviews.nodes import total_of
from .evidence import Evidence
from .main_call import share_of_step
from .report import Report

#: Minimum share of the time of all ops that is reported.
SHARE_MIN: Final = 0.3
#: Share of the time of these ops that float32 saves.
_SAVED: Final = 0.5
#: The attribute `T: DT_DOUBLE` in a serialized NodeDef.
_DOUBLE: Final = b"\n\x01T\x12\x020\x02"


def check(evidence: Evidence) -> Sequence[Report]:
    """Report ops in float64 that take much of the time of all ops."""
    doubles = [node for node in evidence.nodes if _DOUBLE in node.facts.node_def and node.stats.micros > 0]
    time, total_time = total_of(doubles).micros, total_of(evidence.nodes).micros
    share = time / total_time if total_time > 0 else 0.0
    if share < SHARE_MIN:
        return []
    return [
        Report(
            f"ops in float64 take {percent(share)} of the time of all ops, {len(doubles)} nodes; float32 needs half of"
            " the memory traffic, and computes twice as much at a time.",
            {"share": share, "nodes": len(doubles)},
            "use float32: tf.float32 constants and inputs (NumPy's default is float64), keras.backend.set_floatx",
            heaviest(doubles, evidence.places.location),
            _SAVED * share_of_step(evidence, share, evidence.ns_per_step(time)),
            "ops compute in float64",
        )
    ]
