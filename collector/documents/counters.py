"""The counters of a node, or of several, per step."""

from typing import Annotated, TypedDict

from ..tfviews.nodes import Stats


class CountersDocument(TypedDict):
    """Counters per step: times are medians over the traced steps, the others are means."""

    time_ns: Annotated[float, "The time of the executions, of all threads together, ns."]
    accelerator_ns: Annotated[float, "The part of this time on accelerators, ns."]
    cpu_ns: Annotated[float, "The part of this time on CPUs, ns."]
    runs: Annotated[float, "The number of executions."]
    bytes: Annotated[float, "The memory that was requested, bytes."]
    peak_bytes: Annotated[float, "The peak of the memory in use, bytes."]
    residual_bytes: Annotated[float, "The memory still held when an execution ended, bytes."]
    output_bytes: Annotated[float, "The size of the outputs, bytes."]
    float_ops: Annotated[float, "The number of floating-point operations."]
    params: Annotated[int, "The number of parameters of the model; it does not depend on steps."]


def counters_document(stats: Stats, steps: int) -> CountersDocument:
    """Return counters per step; ``stats`` are sums over ``steps`` steps, with times in ns."""
    return {
        "time_ns": stats.micros / steps,
        "accelerator_ns": stats.accelerator_micros / steps,
        "cpu_ns": stats.cpu_micros / steps,
        "runs": stats.runs / steps,
        "bytes": stats.bytes / steps,
        "peak_bytes": stats.peak_bytes / steps,
        "residual_bytes": stats.residual_bytes / steps,
        "output_bytes": stats.output_bytes / steps,
        "float_ops": stats.float_ops / steps,
        "params": stats.params,
    }
