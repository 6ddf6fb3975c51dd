"""`-output file`: the text of a view in the TF profiler's layout."""

from collections.abc import Iterator

from ...commands.streams import clean
from ..forms import lines
from ..query.engine import Answer, QueryEngine
from ..tfviews.option_values import File


def files(_engine: QueryEngine, answer: Answer) -> Iterator[File]:
    """Yield the file."""
    data = ((clean(line, kept="\t") + "\n").encode() for line in lines(answer))
    yield File(answer.options.output.outfile, data)
