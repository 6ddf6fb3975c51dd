"""Whether steps of a session spend their time on feeds and fetches."""

from collections.abc import Iterator, Sequence
from typing import Final

from ..numbers import duration, percent, size
from ..summaries.kinds import RUN_KIND_NAMES
from ..summaries.parts import Breakdown
from ..summaries.step_cut import AFTER, BEFORE
from .between_steps import has_enough_steps
from .evidence import Evidence
from .report import Report

#: Minimum share, and minimum time (ns), before or after the ops that is reported.
SHARE_MIN: Final = 0.2
_MIN_NS: Final = 1_000_000
#: Minimum size of an output that is named (bytes).
_BYTES_MIN: Final = 1e6
_FETCH_REMEDY: Final = (
    "fetch less, and less often: reduce tensors to small ones in the graph, keep them in variables, fetch losses and"
    " summaries every N steps"
)
_FEED_REMEDY: Final = "use a tf.data pipeline instead of feeds; feed smaller types, and cast in the graph"


def check(evidence: Evidence) -> Sequence[Report]:
    """Report long times before the first op and after the last one of session runs."""
    parts = evidence.breakdown
    if parts is None or not has_enough_steps(parts) or parts.kind not in RUN_KIND_NAMES:
        return []
    return list(_reports(evidence, parts))


def _reports(evidence: Evidence, parts: Breakdown) -> Iterator[Report]:
    largest = max(evidence.nodes, key=lambda node: node.stats.output_bytes, default=None)
    for slug, what, verdict, remedy in (
        (AFTER, "after the last op: results are fetched", "fetching results takes much of the step", _FETCH_REMEDY),
        (BEFORE, "before the first op: values are fed", "feeding values takes much of the step", _FEED_REMEDY),
    ):
        share = parts.share(slug)
        if share < SHARE_MIN or parts.ns(slug) < _MIN_NS:
            continue
        text = f"{percent(share)} of the time, {duration(parts.ns(slug))} a step, goes by {what}."
        output_bytes = largest.stats.output_bytes / evidence.traced_steps if largest else 0.0
        line = ""
        if largest is not None and slug == AFTER and output_bytes >= _BYTES_MIN:
            text += f" The largest output is that of {largest.name}, {size(output_bytes)}."
            line = evidence.places.location(largest)
        yield Report(text, {"share": share, "ns_per_step": parts.ns(slug)}, remedy, line, share, verdict)
