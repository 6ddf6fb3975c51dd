"""The exporters of `-output`.

An exporter is the function `files` of a module in this folder. Its row in tfviews/output_option.py
has the name of the module.
"""

from collections.abc import Callable, Iterator
from typing import Final

from ..loader import load
from ..query.engine import Answer, QueryEngine
from ..tfviews.output_option import FILE_OUTPUT_TYPES, NONE, STDOUT, File

#: Rows of the exporters, by name.
EXPORTERS: Final = {row.name: row for row in FILE_OUTPUT_TYPES}


def outputs(view: str) -> frozenset[str]:
    """Return the types of `-output` that ``view`` supports."""
    return frozenset({STDOUT, NONE, *(row.name for row in FILE_OUTPUT_TYPES if view in row.views)})


def files(engine: QueryEngine, answer: Answer) -> Iterator[File]:
    """Yield the files of the exporter that the answer's options name.

    RefusedOutputError if the exporter cannot make them.
    """
    make: Callable[[QueryEngine, Answer], Iterator[File]] = load(f"{__package__}.{answer.options.output.type}:files")
    return make(engine, answer)
