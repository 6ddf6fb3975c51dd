"""The exporters: one row for each, from which routing, completion and the checks of help and docs are made."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from .errors import RefusedError, UsageError
from .forms import lines
from .loader import load
from .query.engine import VIEWS, Answer, Desk
from .tfviews.output import FILE, NONE, PPROF, STDOUT, TIMELINE


class File(NamedTuple):
    """A file that an exporter makes, the lines that are printed about it, and the warnings."""

    path: str
    data: bytes | Iterable[bytes]
    lines: Iterable[str] = ()
    warnings: Iterable[str] = ()


class Exporter(NamedTuple):
    """A type of `-output` that writes files.

    ``views``: those that it can write; ``suffixes``: what its files are usually called; ``refusal``: what the TF profiler says
    of other views.
    """

    name: str
    suffixes: tuple[str, ...]
    views: frozenset[str]
    files: Callable[[Desk, Answer], Iterator[File]]
    refusal: str = ""


def _text(_desk: Desk, answer: Answer) -> Iterator[File]:
    yield File(
        answer.options.output.outfile, (f"{line}\n".encode("utf-8", "surrogateescape") for line in lines(answer))
    )


def _timeline(desk: Desk, answer: Answer) -> Iterator[File]:
    for one in load("tfprof.collector.timelines:timelines")(desk, answer):
        yield File(one.path, one.data, one.said, one.notes)


def _pprof(_desk: Desk, answer: Answer) -> Iterator[File]:
    outfile = answer.options.output.outfile
    try:
        data = load("tfprof.collector.export.pprof:pprof")(answer.folded, answer.options.select)
    except UsageError as error:
        raise RefusedError(str(error.args[0])) from None
    # The TF profiler puts brackets around the name, which a shell takes for a redirection.
    name = f"<{outfile}>" if answer.about.parity.exact else outfile
    yield File(outfile, data, ["", f"Run pprof -png --nodecount=100 --sample_index=1 {name}"])


EXPORTERS: Final = {
    one.name: one
    for one in (
        Exporter(FILE, (".txt",), frozenset(VIEWS), _text),
        Exporter(
            TIMELINE,
            (".json",),
            frozenset(VIEWS) - {"op"},
            _timeline,
            "op view doesn't support timeline yet. Consider graph/scope/code view.",
        ),
        Exporter(PPROF, (".pb.gz",), frozenset({"code"}), _pprof, "Only 'code' view supports pprof output now."),
    )
}


def outputs(view: str) -> frozenset[str]:
    """Return the types of `-output` that ``view`` can be written as."""
    return frozenset({STDOUT, NONE, *(one.name for one in EXPORTERS.values() if view in one.views)})
