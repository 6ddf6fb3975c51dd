"""Where an answer goes: what `-output` asks for is written, and what is left to print is returned."""

from collections.abc import Iterable
from typing import NamedTuple

from .errors import RefusedError
from .exporters import EXPORTERS
from .forms import lines, screen_lines, screen_warnings
from .loader import load
from .query.engine import About, Answer, Desk
from .tfviews.options import Options
from .tfviews.output import NONE, STDOUT


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
    exporter = EXPORTERS.get(options.output.type)
    if exporter is not None and view not in exporter.views:
        raise RefusedError(exporter.refusal)


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
        screen = load("tfprof.collector.query.screen:ask")(desk, about, view, options)
        if not screen.answer.is_known:
            return Delivery(screen.answer)
        return Delivery(screen.answer, screen_lines(screen, terminal.width), screen_warnings(screen), for_people=True)
    answer = desk.ask(about, view, options, whole=whole)
    if not answer.is_known or options.output.type == NONE:
        return Delivery(answer)
    if options.output.type == STDOUT:
        return Delivery(answer, lines(answer))
    return _written(desk, answer)


def _written(desk: Desk, answer: Answer) -> Delivery:
    """Write the files of the exporter that ``-output`` names."""
    from .export.files import write  # noqa: PLC0415  # few answers are written

    printed: list[str] = []
    warnings: list[str] = []
    for file in EXPORTERS[answer.options.output.type].files(desk, answer):
        write(file.path, file.data)
        printed += file.lines
        warnings += file.warnings
    return Delivery(answer, printed, warnings)
