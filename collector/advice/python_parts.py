"""Python within the steps: garbage collections, and functions of the user."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ..numbers import duration, percent
from ..summaries.activity_parts import name_and_line
from ..summaries.op_classes import PYTHON
from ..summaries.parts import Breakdown
from .between_steps import has_enough_steps
from .evidence import Evidence
from .report import Report


class _Sort(NamedTuple):
    """A sort of Python: how its details begin, its minimum share, and texts about it."""

    beginnings: tuple[str, ...]
    share_min: float
    what: str
    verdict: str
    remedy: str


#: The beginning of the details of garbage collections.
GARBAGE: Final = "garbage collection"
_PYTHON_OPS: Final = ("PyFunc", "EagerPyFunc")
_SORTS: Final = (
    _Sort(
        (GARBAGE,),
        0.05,
        "garbage collections of Python",
        "garbage collections take place in the loop",
        "keep fewer objects alive and make fewer cycles of them; if the loop calls gc.collect(), call it rarely; after"
        " the warm-up gc.freeze(), or a higher gc.set_threshold()",
    ),
    _Sort(
        ("Python function", *_PYTHON_OPS),
        0.1,
        "functions of the user that ops call (py_function, numpy_function)",
        "ops of the step call the user's Python",
        "replace the function by ops of TensorFlow, or call it once for a whole batch, or in the input pipeline",
    ),
)


def check(evidence: Evidence) -> Sequence[Report]:
    """Report the sorts of Python that take much of the time from step to step."""
    parts = evidence.breakdown
    if parts is None or not has_enough_steps(parts):
        return []
    return list(_reports(parts, evidence.longest_ns.get("gc", 0) / parts.steps))


def _reports(parts: Breakdown, longest_collection_ns: float) -> Iterator[Report]:
    for sort in _SORTS:
        details = {name: ns for name, ns in parts.detail_ns(PYTHON).items() if name.startswith(sort.beginnings)}
        total_ns = sum(details.values())
        share = total_ns / parts.period_ns
        # Any job has a full collection now and then.
        once_ns = longest_collection_ns if GARBAGE in sort.beginnings else 0.0
        if total_ns - once_ns < sort.share_min * parts.period_ns:
            continue
        name = max(details, key=lambda detail: details[detail])
        if name.startswith(_PYTHON_OPS) and parts.pipeline:  # on a thread of ops the function has no part
            name = parts.pipeline[0].name
        yield Report(
            f"{percent(share)} of the time from step to step is in {sort.what}: {duration(total_ns)} a step, most of it"
            f" in {name}.",
            {"share": share, "ns_per_step": total_ns, "name": name},
            sort.remedy,
            name_and_line(name)[1],
            saving=share,
            verdict=sort.verdict,
        )
