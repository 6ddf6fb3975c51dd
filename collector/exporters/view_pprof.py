"""`-output pprof`: the code view as a pprof file."""

from collections.abc import Iterator

from ..errors import RefusedOutputError, ViewOptionError
from ..export.pprof import pprof
from ..query.engine import Answer, QueryEngine
from ..tfviews.option_values import File


def files(_engine: QueryEngine, answer: Answer) -> Iterator[File]:
    """Yield the file; RefusedOutputError unless exactly one counter is selected."""
    outfile = answer.options.output.outfile
    try:
        data = pprof(answer.tree, answer.options.select, answer.time_unit)
    except ViewOptionError as error:
        raise RefusedOutputError(str(error.args[0]), error.tf_message) from None
    # The TF profiler puts angle brackets around the name, which a shell takes for redirections.
    name = outfile if answer.selection.parity.has_own_layout else f"<{outfile}>"
    yield File(outfile, data, ["", f"Run pprof -png --nodecount=100 --sample_index=1 {name}"])
