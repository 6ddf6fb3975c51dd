"""Where an answer goes: what `-output` asks for is written, and what is left to print is returned."""

from collections.abc import Iterable

from tfprof.collector.answers import VIEWS, About, Answer, Desk
from tfprof.collector.errors import UsageError
from tfprof.collector.export import files
from tfprof.collector.loader import load
from tfprof.collector.views.options import Options
from tfprof.collector.views.output import FILE, PPROF, STDOUT, TIMELINE

#: What tfprof says where a view cannot be written so.
_REFUSALS = {
    PPROF: "Only 'code' view supports pprof output now.",
    TIMELINE: "op view doesn't support timeline yet. Consider graph/scope/code view.",
}


class RefusedError(UsageError):
    """A view cannot be written as `-output` asks; the message is tfprof's own."""


def refuse(view: str, options: Options) -> None:
    """Raise RefusedError when ``view`` cannot be written as ``-output`` asks."""
    if options.output.type not in VIEWS[view].outputs:
        raise RefusedError(_REFUSALS[options.output.type])


def text_of(lines: Iterable[str]) -> bytes:
    """Return lines as the content of a file."""
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def deliver(
    desk: Desk, about: About, view: str, options: Options, *, whole: bool = False
) -> tuple[Answer, Iterable[str]]:
    """Ask ``view``, write the file that ``options.output`` names, and return the answer and the lines that are to be printed.

    ``whole``: the answer is to have all that its message has. Raises RefusedError where the view cannot be written so,
    TfprofError ``io`` when a file cannot be written, NoSuchStepError, and UsageError ``no-such-device``.
    """
    refuse(view, options)
    output = options.output
    if output.type == TIMELINE:
        return load("tfprof.collector.timelines:timeline")(desk, about, view, options)
    if output.type == PPROF:
        return load("tfprof.collector.pprofs:pprof")(desk, about, view, options)
    answer = desk.ask(about, view, options, whole=whole)
    if output.type == FILE and answer.profile is not None:
        files.write(output.outfile, text_of(answer.lines()))
    return answer, answer.lines() if output.type == STDOUT and answer.profile is not None else ()
