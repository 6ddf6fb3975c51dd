"""`-output file`: the text of a view as the TF profiler lays it out."""

from collections.abc import Iterator

from ..forms import lines
from ..query.engine import Answer, QueryEngine
from ..tfviews.output import File


def files(_engine: QueryEngine, answer: Answer) -> Iterator[File]:
    """Yield the one file."""
    data = (f"{line}\n".encode("utf-8", "surrogateescape") for line in lines(answer))
    yield File(answer.options.output.outfile, data)
