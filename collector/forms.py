"""Answers as text and as messages: joins what query returns with render and export."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .loader import load
from .query.engine import Answer
from .query.explanations import kinds_of
from .summaries.jobs import counts_of
from .summaries.kinds import named
from .text import clean
from .tfviews.op import OpView
from .tfviews.parity import Parity

if TYPE_CHECKING:
    from .query.advising import JobAdvice
    from .query.screen import Screen
    from .render.heading import Subject


class Form(NamedTuple):
    """How a view is printed and which message it has: functions by name, imported when they are called, and the message's name."""

    lines: str
    message: str
    proto: str


_TREE: Final = "tfprof.collector.render.tree_text:lines"
#: By view.
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
    what = (folded,) if isinstance(folded, OpView) else (name, folded)
    printed: Iterator[str] = load(FORMS[name].lines)(
        *what, answer.options.select, missing_stream=missing, parity=answer.about.parity, **answer.values()
    )
    return printed


def message(answer: Answer) -> Any:
    """Return the GraphNodeProto or MultiGraphNodeProto."""
    return load(FORMS[answer.view.name].message)(answer.folded, **answer.values())


def empty_message(view: str, name: str = "") -> Any:
    """Return the message of ``view`` with nothing in it but its name."""
    return load(f"tfprof.collector.proto.tfprof_output_pb2:{FORMS[view].proto}")(name=name)


def screen_lines(screen: "Screen", width: int | None) -> Iterator[str]:
    """Yield the lines of a screen, no wider than ``width``; at the end what has no row, and how it gets one."""
    from .render import heading, view_text  # noqa: PLC0415  # not for tfprof's own text

    answer = screen.answer
    yield from view_text.lines(
        _subject(answer), answer.options, screen.rows, screen.looked_at, width, **answer.values()
    )
    yield from heading.wrapped(view_text.left_out(answer.view.name, answer.options, screen.rows), width)


def screen_warnings(screen: "Screen") -> list[str]:
    """Return what the numbers of a screen lack."""
    missing = screen.answer.profile is not None and screen.answer.profile.missing_stream
    text = "a GPU worked whose kernels' times were not recorded: its ops have the time of their scheduling alone"
    return [text] * missing


def advice_lines(found: Sequence["JobAdvice"], parity: Parity, width: int | None = None) -> Iterator[str]:
    """Yield the advice as text, no line wider than ``width``, each job's name above it where there are several."""
    from .render import advice_text  # noqa: PLC0415  # for advice alone

    for at, one in enumerate(found):
        if len(found) > 1:
            yield from [""] if at or parity.exact else []
            yield f"job {one.job.info.hex[:4]} {clean(one.job.info.name)}"
        yield from advice_text.lines(one.advice, width, exact=parity.exact)


def _subject(answer: Answer) -> "Subject":
    from .render.heading import Subject  # noqa: PLC0415  # as above

    about, profile, kinds = answer.about, answer.profile, kinds_of(answer)
    return Subject(
        view=answer.view.name,
        jobs=[f"{job.info.hex[:4]} {job.info.name}".strip() for job in about.jobs],
        traces=profile.traces if profile else 0,
        step=answer.options.step,
        kinds=kinds,
        there=sum(counts_of(job.info).get(name, 0) for job in about.jobs for name, _ in kinds),
        others=[(named(kind), number) for kind, number in profile.others.items()] if profile else [],
        steps=about.steps,
        device=about.device,
    )
