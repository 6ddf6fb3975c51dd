"""Where an answer goes: what `-output` asks for is written, and what is left to print is returned."""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from .errors import UsageError
from .loader import load
from .query.engine import VIEWS, About, Answer, Desk
from .tfviews.options import Options
from .tfviews.output import FILE, NONE, PPROF, STDOUT, TIMELINE

#: What tfprof says where a view cannot be written so.
_REFUSALS: Final = {
    PPROF: "Only 'code' view supports pprof output now.",
    TIMELINE: "op view doesn't support timeline yet. Consider graph/scope/code view.",
}


class RefusedError(UsageError):
    """A view cannot be written as `-output` asks; the message is tfprof's own."""


class Delivery(NamedTuple):
    """An answer, the lines to print on standard output, and those on standard error.

    ``for_people``: the lines are not tfprof's own.
    """

    answer: Answer
    said: Iterable[str] = ()
    notes: Iterable[str] = ()
    for_people: bool = False


def refuse(view: str, options: Options) -> None:
    """Raise RefusedError when ``view`` cannot be written as ``-output`` asks."""
    if options.output.type not in VIEWS[view].outputs:
        raise RefusedError(_REFUSALS[options.output.type])


class Terminal(NamedTuple):
    """What is printed on: so many columns wide, None where that does not matter."""

    width: int | None


def deliver(
    desk: Desk, about: About, view: str, options: Options, *, whole: bool = False, terminal: Terminal | None = None
) -> Delivery:
    """Ask ``view``, write the file that ``options.output`` names, and return the answer with what is to be printed.

    ``terminal``: what is printed is for people to read, unless tfprof is followed exactly; else it is as tfprof prints it.

    ``whole``: the answer is to have all that its message has. Nothing is written where nothing is known: no step was traced,
    or no stack for the code view. Raises RefusedError where the view cannot be written so, TfprofError ``io`` when a file
    cannot be written, NoSuchStepError, and UsageError ``no-such-device``.
    """
    refuse(view, options)
    if terminal is not None and options.output.type == STDOUT and not about.parity.exact:
        screen = load("tfprof.collector.query.screen:ask")(desk, about, view, options, terminal.width)
        if not screen.answer.is_known:
            return Delivery(screen.answer)
        return Delivery(screen.answer, screen.lines(), screen.notes(), for_people=True)
    answer = desk.ask(about, view, options, whole=whole)
    return _DELIVERIES[options.output.type](desk, answer) if answer.is_known else Delivery(answer)


def _write(path: str, data: bytes | Iterable[bytes]) -> None:
    load("tfprof.collector.export.files:write")(path, data)


def _nowhere(_desk: Desk, answer: Answer) -> Delivery:
    return Delivery(answer)


def _to_stdout(_desk: Desk, answer: Answer) -> Delivery:
    return Delivery(answer, answer.lines())


def _to_file(_desk: Desk, answer: Answer) -> Delivery:
    text = (f"{line}\n".encode("utf-8", "surrogateescape") for line in answer.lines())
    _write(answer.options.output.outfile, text)
    return Delivery(answer)


def _to_timeline(desk: Desk, answer: Answer) -> Delivery:
    made = load("tfprof.collector.query.timelines:timelines")(desk, answer)
    said: list[str] = []
    notes: list[str] = []
    for one in made:
        _write(one.path, one.data)
        said += one.said
        notes += one.notes
    return Delivery(answer, said, notes)


def _to_pprof(_desk: Desk, answer: Answer) -> Delivery:
    outfile = answer.options.output.outfile
    try:
        data = load("tfprof.collector.export.pprof:pprof")(answer.folded, answer.options.select)
    except UsageError as error:
        raise RefusedError(str(error.args[0])) from None
    _write(outfile, data)
    told = (
        f"<{outfile}>" if answer.about.parity.exact else outfile
    )  # TensorFlow's brackets, which a shell would take for more
    return Delivery(answer, ["", f"Run pprof -png --nodecount=100 --sample_index=1 {told}"])


_DELIVERIES: Final[dict[str, Callable[[Desk, Answer], Delivery]]] = {
    STDOUT: _to_stdout,
    NONE: _nowhere,
    FILE: _to_file,
    TIMELINE: _to_timeline,
    PPROF: _to_pprof,
}
