"""Whether ops that a step may not need take much of the time of all ops."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ..numbers import duration, percent
from ..summaries.top import heaviest
from ..tfviews.nodes import total_of
from .evidence import Evidence
from .main_call import share_of_step
from .report import Report


class _Sort(NamedTuple):
    """A sort of ops: their types, minimum share of the time of all ops, and texts about them."""

    ops: re.Pattern[str]
    share_min: float
    what: str
    verdict: str
    remedy: str


_SORTS: Final = (
    _Sort(
        re.compile(r"Print(V2)?|StringFormat|CheckNumerics(V2)?|Debug\w+|Assert"),
        0.1,
        "ops that print or check values",
        "ops print or check values in each step",
        "take tf.print, check_numerics and assertions out of the step, or run them every N steps (tf.cond); print few"
        " values (summarize=…)",
    ),
    _Sort(
        re.compile(r"(Histogram|Image|Audio|Scalar|Tensor|Merge)Summary(V2)?|Write\w*Summary"),
        0.1,
        "ops that make summaries",
        "summaries are made in each step",
        "make and fetch summaries every N steps, in a run or a branch (tf.cond) of their own",
    ),
    _Sort(
        re.compile(r"_?(Mkl)?Transpose"),
        0.2,
        "transposes",
        "tensors are transposed in each step",
        "keep one layout through the model (data_format), and transpose once, in the input pipeline; let matmul"
        " transpose (transpose_a, transpose_b)",
    ),
    _Sort(
        re.compile(r"UnsortedSegmentSum"),
        0.2,
        "making dense tensors of sparse gradients of gathers (embeddings), so that each step updates all rows",
        "sparse gradients become dense",
        "keep the gradient an IndexedSlices: no regularizer, clipping by norm, or convert_to_tensor on it, and an"
        " optimizer that updates rows (plain SGD; LazyAdam); fewer rows",
    ),
)


def check(evidence: Evidence) -> Sequence[Report]:
    """Report each sort of ops that takes much of the time of all ops."""
    return list(_reports(evidence))


def _reports(evidence: Evidence) -> Iterator[Report]:
    total_time = total_of(evidence.nodes).micros
    for sort in _SORTS:
        nodes = [node for node in evidence.nodes if sort.ops.fullmatch(node.op)]
        time = total_of(nodes).micros
        share = time / total_time if total_time > 0 else 0.0
        if share < sort.share_min:
            continue
        op = max(nodes, key=lambda node: node.stats.micros).op
        yield Report(
            f"{percent(share)} of the time of all ops is in {sort.what}: {duration(evidence.ns_per_step(time))} a step,"
            f" most of it {op}.",
            {"share": share, "ns_per_step": evidence.ns_per_step(time), "op": op},
            sort.remedy,
            heaviest(nodes, evidence.places.location),
            share_of_step(evidence, share, evidence.ns_per_step(time)),
            sort.verdict,
        )
