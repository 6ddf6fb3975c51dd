"""Whether faster ops exist for the same purpose."""

from collections.abc import Sequence
from typing import Final

from ..tfviews.nodes import total_of
from .evidence import Evidence
from .report import Report

_BATCH_NORM: Final = "BatchNorm"
_FUSED: Final = "FusedBatchNorm"
#: The fused op, and its later versions, which the TF profiler does not know.
_FUSED_VERSIONS: Final = frozenset({_FUSED, "FusedBatchNormV2", "FusedBatchNormV3"})


def check(evidence: Evidence) -> Sequence[Report]:
    """Report batch normalization that is not fused, and ops on a GPU in data format NHWC."""
    reports = []
    fused = _FUSED_VERSIONS if evidence.parity.has_own_advice else {_FUSED}
    norms = [node for node in evidence.nodes if _BATCH_NORM in node.name]
    if norms and not any(fused.intersection(node.op_types) for node in evidence.nodes):
        reports.append(
            Report(
                _text(
                    evidence,
                    "Maybe use faster FusedBatchNorm instead of BatchNorm",
                    f"batch normalization is computed by {len(norms)} ops, {norms[0].name} among them;"
                    " one fused op is faster.",
                ),
                {"nodes": len(norms), "ns": evidence.ns_per_step(total_of(norms).micros), "example": norms[0].name},
                "give the layer fused=True and inputs of rank 4",
                evidence.places.location(norms[0]),
            )
        )
    nhwc = [node for node in evidence.nodes if node.facts.data_format == "NHWC" and "gpu" in "".join(node.devices)]
    if nhwc:
        reports.append(
            Report(
                _text(
                    evidence,
                    "Found operation using NHWC data_format on GPU. Maybe NCHW is faster.",
                    f"{len(nhwc)} ops on a GPU, {nhwc[0].name} among them, have data_format NHWC;"
                    " in float32 NCHW may be faster.",
                ),
                {"nodes": len(nhwc), "ns": evidence.ns_per_step(total_of(nhwc).micros), "example": nhwc[0].name},
                "try data_format='channels_first' with float32; with float16 on tensor cores, NHWC is faster",
                evidence.places.location(nhwc[0]),
            )
        )
    return reports


def _text(evidence: Evidence, tf_message: str, own_text: str) -> str:
    return own_text if evidence.parity.has_own_advice else tf_message
