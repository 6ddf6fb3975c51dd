"""Formats the answers of queries as text (`render`) and as messages (`export`)."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .loader import load
from .query.engine import Answer
from .query.explanations import kinds_of
from .query.selection import ids_of
from .tfviews.op import OpView
from .tfviews.parity import Parity

if TYPE_CHECKING:
    from .query.advising import JobAdvice
    from .query.own_layout import AnswerRows
    from .render.heading import Subject


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


def own_layout_lines(answer_rows: "AnswerRows", width: int | None) -> Iterator[str]:
    """Yield an answer in tfprof's own layout, at most ``width`` wide.

    The last lines say what is left out and how to show it.
    """
    from .render import view_text, wrapping  # noqa: PLC0415  # needed for this layout only

    answer = answer_rows.answer
    yield from view_text.lines(
        _subject(answer_rows), answer.options, answer_rows.rows, answer_rows.spread_steps, width, **answer.values()
    )
    yield from wrapping.wrapped(view_text.omission_text(answer.view.name, answer.options, answer_rows.rows), width)


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
        yield from advice_text.lines(job_advice.advice, width, parity, job_advice.breakdown)


def _subject(answer_rows: "AnswerRows") -> "Subject":
    from .render.heading import Subject  # noqa: PLC0415  # needed for this layout only

    answer = answer_rows.answer
    selection, profile = answer.selection, answer.profile
    ids = ids_of(selection.jobs)
    return Subject(
        view=answer.view.name,
        jobs=[f"{ids[job.info.hex]} {job.info.name}".strip() for job in selection.jobs],
        trace_count=profile.trace_count if profile else 0,
        step=answer.options.step,
        kinds=kinds_of(answer),
        all_steps=answer_rows.all_steps,
        estimated=answer_rows.is_estimate,
        other_kinds=list(profile.other_kinds.items()) if profile else [],
        steps=selection.steps,
        device=selection.device,
        since_ns=selection.since_ns,
        by=answer.options.by,
    )
