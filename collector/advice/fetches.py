"""Whether steps spend their time on values that move between Python and TensorFlow."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ..numbers import duration, percent, size
from ..summaries.activity_parts import name_and_line
from ..summaries.kinds import RUN_KIND_NAMES
from ..summaries.parts import Breakdown
from ..summaries.step_cut import AFTER, BEFORE
from .between_steps import has_enough_steps
from .evidence import Evidence
from .interpreter import waiting_share
from .report import Report

#: Minimum share, and minimum time (ns), before or after the ops that is reported.
SHARE_MIN: Final = 0.2
_MIN_NS: Final = 1_000_000
#: The same for conversions that the job's code calls.
CALLS_SHARE_MIN: Final = 0.1
_CALLS_MIN_NS: Final = 100_000
#: Minimum size of an output that is named (bytes).
_BYTES_MIN: Final = 1e6


class _Way(NamedTuple):
    """A way of values: the part that has the time, how details of calls begin, and texts."""

    part: str
    call: str
    of_runs: str
    of_calls: str
    verdict: str
    remedy: str
    remedy_for_calls: str


_WAYS: Final = (
    _Way(
        AFTER,
        "fetch in ",
        "goes by after the last op: results are fetched",
        "is in tensor.numpy(), which waits for the tensor and copies it",
        "fetching results takes much of the step",
        "fetch less, and less often: reduce tensors to small ones in the graph, keep them in variables, fetch losses"
        " and summaries every N steps",
        "call numpy() less often and on less: reduce the tensor to a small one with ops first, fetch losses and"
        " statistics every N steps",
    ),
    _Way(
        BEFORE,
        "conversion in ",
        "goes by before the first op: values are fed",
        "is in making tensors of values of Python (tf.constant, tf.convert_to_tensor)",
        "feeding values takes much of the step",
        "use a tf.data pipeline instead of feeds; feed smaller types, and cast in the graph",
        "make tensors that stay the same once, before the loop; for batches use a tf.data pipeline; pass arrays of the"
        " tensor's own type (float32) instead of lists or float64, and cast in TensorFlow",
    ),
)


def check(evidence: Evidence) -> Sequence[Report]:
    """Report long times before the first op and after the last one, and long conversions."""
    parts = evidence.breakdown
    if parts is None or not has_enough_steps(parts):
        return []
    return [report for way in _WAYS for report in (*_calls(parts, way), *_runs(evidence, parts, way))]


def calls_ns(parts: Breakdown) -> float:
    """Return the time of conversions that the job's code calls, ns a step."""
    return sum(ns for way in _WAYS for ns in _of_calls(parts, way).values())


def _of_calls(parts: Breakdown, way: _Way) -> dict[str, float]:
    return {name: ns for name, ns in parts.detail_ns(way.part).items() if name.startswith(way.call)}


def _calls(parts: Breakdown, way: _Way) -> Iterator[Report]:
    """Yield a report on conversions that the job's code calls, in steps or between them."""
    calls = _of_calls(parts, way)
    total_ns = sum(calls.values())
    share = total_ns / parts.period_ns
    if share >= CALLS_SHARE_MIN and total_ns >= _CALLS_MIN_NS:
        place = max(calls, key=lambda name: calls[name]).removeprefix(way.call)
        yield Report(
            f"{percent(share)} of the time, {duration(total_ns)} a step, {way.of_calls}; most of it in {place}.",
            {"share": share, "ns_per_step": total_ns, "name": place},
            way.remedy_for_calls,
            name_and_line(place)[1],
            share,
            way.verdict,
        )


def _runs(evidence: Evidence, parts: Breakdown, way: _Way) -> Iterator[Report]:
    """Yield a report on the time before or after the ops of session runs."""
    if parts.kind not in RUN_KIND_NAMES or waiting_share(evidence):
        return
    share = parts.share(way.part)
    if share < SHARE_MIN or parts.ns(way.part) < _MIN_NS:
        return
    text = f"{percent(share)} of the time, {duration(parts.ns(way.part))} a step, {way.of_runs}."
    largest = max(evidence.nodes, key=lambda node: node.stats.output_bytes, default=None)
    output_bytes = largest.stats.output_bytes / evidence.traced_steps if largest else 0.0
    line = ""
    if largest is not None and way.part == AFTER and output_bytes >= _BYTES_MIN:
        text += f" The largest output is that of {largest.name}, {size(output_bytes)}."
        line = evidence.places.location(largest)
    yield Report(text, {"share": share, "ns_per_step": parts.ns(way.part)}, way.remedy, line, share, way.verdict)
