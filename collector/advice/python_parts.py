"""Python within the steps: garbage collections, user functions, and functions traced again."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ..numbers import duration, percent
from ..summaries.activity_parts import name_and_line
from ..summaries.op_classes import PYTHON
from ..summaries.parts import TRACING, Breakdown
from .between_steps import has_enough_steps, has_single_calls
from .evidence import Evidence
from .report import Report


class _Sort(NamedTuple):
    """A sort of Python: its part, how its details begin, its minimum share, and texts about it."""

    part: str
    beginnings: tuple[str, ...]
    share_min: float
    what: str
    verdict: str
    remedy: str


_PYTHON_OPS: Final = ("PyFunc", "EagerPyFunc")
_SORTS: Final = (
    _Sort(
        PYTHON,
        ("garbage collection",),
        0.05,
        "garbage collections of Python",
        "garbage collections take place in the loop",
        "keep fewer objects alive and make fewer cycles of them; if the loop calls gc.collect(), call it rarely; after"
        " the warm-up gc.freeze(), or a higher gc.set_threshold()",
    ),
    _Sort(
        PYTHON,
        ("Python function", *_PYTHON_OPS),
        0.1,
        "functions of the user that ops call (py_function, numpy_function)",
        "ops of the step call the user's Python",
        "replace the function by ops of TensorFlow, or call it once for a whole batch, or in the input pipeline",
    ),
    _Sort(
        TRACING,
        ("tracing of", "first run of"),
        0.1,
        "tracing functions and optimizing their graphs",
        "functions are traced again while steps run",
        "call functions with tensors instead of Python numbers, pad or bucket shapes, give them an input_signature or"
        " reduce_retracing=True; make them once, outside of loops",
    ),
)


def check(evidence: Evidence) -> Sequence[Report]:
    """Report the sorts of Python that take much of the time from step to step."""
    parts = evidence.breakdown
    if parts is None or not has_enough_steps(parts):
        return []
    # Each call of predict makes a dataset, whose functions are traced (overhead.py).
    left_out = TRACING if has_single_calls(evidence, parts) else ""
    return list(_reports(parts, [sort for sort in _SORTS if sort.part != left_out]))


def _reports(parts: Breakdown, sorts: Sequence[_Sort]) -> Iterator[Report]:
    for sort in sorts:
        details = {name: ns for name, ns in parts.detail_ns(sort.part).items() if name.startswith(sort.beginnings)}
        total_ns = sum(details.values())
        share = total_ns / parts.period_ns
        if share < sort.share_min:
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
