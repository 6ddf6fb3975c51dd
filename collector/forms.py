"""Formats the answers of queries as text (`render`) and as messages (`export`)."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .loader import load
from .query.engine import Answer
from .query.job_selection import ids_of
from .tfviews.op import OpView
from .tfviews.parity import Parity

if TYPE_CHECKING:
    from .query.advising import JobAdvice


class Form(NamedTuple):
    """The functions that print and export a view, and the type of its message.

    `lines` and `message` are names of functions, which are imported on first use. `proto` is the
    name of the type.
    """

    lines: str
    message: str
    proto: str


_TREE: Final = "tfprof.collector.render.tree_text:lines"
#: Forms by name of the view.
FORMS: Final = {
    "scope": Form(_TREE, "tfprof.collector.export.messages:tree_message", "GraphNodeProto"),
    "graph": Form(_TREE, "tfprof.collector.export.messages:tree_message", "GraphNodeProto"),
    "op": Form(
        "tfprof.collector.render.op_text:lines", "tfprof.collector.export.messages:op_message", "MultiGraphNodeProto"
    ),
    "code": Form(_TREE, "tfprof.collector.export.messages:code_message", "MultiGraphNodeProto"),
}


def lines(answer: Answer) -> Iterator[str]:
    """Return the lines of text, as the TF profiler prints them."""
    name, folded = answer.view.name, answer.folded
    missing = answer.profile is not None and answer.profile.missing_stream
    arguments = (folded,) if isinstance(folded, OpView) else (name, folded)
    text_lines: Iterator[str] = load(FORMS[name].lines)(
        *arguments,
        answer.options.select,
        missing_stream=missing,
        parity=answer.selection.parity,
        time_unit=answer.time_unit,
        **answer.values(),
    )
    return text_lines


def message(answer: Answer) -> Any:
    """Return the answer as a GraphNodeProto or MultiGraphNodeProto."""
    return load(FORMS[answer.view.name].message)(answer.folded, time_unit=answer.time_unit, **answer.values())


def empty_message(view: str, name: str = "") -> Any:
    """Return a message of ``view`` with a name and nothing else."""
    return load(f"tfprof.collector.proto.tfprof_output_pb2:{FORMS[view].proto}")(name=name)


def advice_lines(advice: Sequence["JobAdvice"], parity: Parity, width: int | None = None) -> Iterator[str]:
    """Yield the advice as text, at most ``width`` wide.

    If there are several jobs, the name of each is above its advice.
    """
    from .render import advice_text  # noqa: PLC0415  # needed for advice only

    ids = ids_of([job_advice.job for job_advice in advice])
    for index, job_advice in enumerate(advice):
        if len(advice) > 1:
            yield from [""] if index or not parity.has_own_layout else []
            yield f"job {ids[job_advice.job.info.hex]} {job_advice.job.info.name}"
        yield from advice_text.lines(job_advice.advice, width, parity, job_advice.evidence.breakdown)
