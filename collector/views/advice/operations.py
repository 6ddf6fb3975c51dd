"""Whether there are faster ops for the same."""

from collections.abc import Sequence
from typing import Final

from tfprof.collector.views.advice.evidence import Evidence
from tfprof.collector.views.advice.report import Report

_BATCH_NORM: Final = "BatchNorm"
_FUSED: Final = "FusedBatchNorm"
#: Later versions of the fused op; tfprof does not know them.
_FUSED_TOO: Final = frozenset({_FUSED, "FusedBatchNormV2", "FusedBatchNormV3"})


def check(evidence: Evidence) -> Sequence[Report]:
    """Say where batch normalisation is not fused, and where a GPU has to compute in the layout of CPUs."""
    reports = []
    fused = {_FUSED} if evidence.rules.strict else _FUSED_TOO
    norms = [node for node in evidence.nodes if _BATCH_NORM in node.name]
    if norms and not any(fused.intersection(node.op_types) for node in evidence.nodes):
        reports.append(
            Report(
                "Maybe use faster FusedBatchNorm instead of BatchNorm",
                {"nodes": len(norms), "micros": sum(node.stats.micros for node in norms), "example": norms[0].name},
                "give the layer fused=True and inputs of rank 4",
            )
        )
    nhwc = [node for node in evidence.nodes if node.facts.data_format == "NHWC" and "gpu" in "".join(node.devices)]
    if nhwc:
        reports.append(
            Report(
                "Found operation using NHWC data_format on GPU. Maybe NCHW is faster.",
                {"nodes": len(nhwc), "micros": sum(node.stats.micros for node in nhwc), "example": nhwc[0].name},
                "try data_format='channels_first' with float32; with float16 on tensor cores NHWC is the faster one",
            )
        )
    return reports
