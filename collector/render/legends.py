"""The text around the rows of a view: notice, explanation of columns, legend.

The notice says that an accelerator's stream was not recorded.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ..tfviews.parity import DEFAULT, Parity


class ColumnTexts(NamedTuple):
    """Legend and explanation of a column."""

    legend: str
    doc: str


COLUMN_TEXTS: Final = {
    "bytes": ColumnTexts(
        "requested bytes", "bytes requested from allocators, including persistent and temporary memory"
    ),
    "peak_bytes": ColumnTexts("peak bytes", "most bytes in use at one moment of the op, summed over its executions"),
    "residual_bytes": ColumnTexts("residual bytes", "bytes still in use when the op had ended"),
    "output_bytes": ColumnTexts("output bytes", "bytes of the op's outputs, new or passed through"),
    "micros": ColumnTexts("total execution time", "time on accelerators and CPUs together"),
    "accelerator_micros": ColumnTexts("accelerator execution time", "time of the op's kernels on accelerators"),
    "cpu_micros": ColumnTexts("cpu execution time", "time of the op on the CPU, including the scheduling of kernels"),
    "params": ColumnTexts("# parameters", "elements of the shape that the op declares"),
    "float_ops": ColumnTexts("# float_ops", "floating-point operations, from the types and shapes of ops"),
    "device": ColumnTexts("assigned devices", "devices that the op ran on"),
    "op_types": ColumnTexts("op types", "the type and the devices of the op, which -account_type_regexes matches"),
    "occurrence": ColumnTexts("op occurrence (run|defined)", "number of runs | number of nodes in the graph"),
    "input_shapes": ColumnTexts("input shapes", "shapes of the inputs, as defined in the graph"),
}
#: Columns in the order of the op and the code view, and in that of the scope and the graph view,
#: where `params` and `float_ops` come first.
OP_ORDER: Final = tuple(COLUMN_TEXTS)
TREE_ORDER: Final = tuple(sorted(COLUMN_TEXTS, key=lambda name: name not in {"params", "float_ops"}))
#: Legends that are different in the scope and the graph view.
TREE_LEGENDS: Final = {"occurrence": "op count (run|defined)"}

_VIEWS: Final = {
    "op": "op: nodes of the graph grouped by op type; (share including all rows below, own share)",
    "scope": "scope: nodes of the graph below the scopes of their names; own numbers / sums with all entries below",
    "graph": "graph: nodes, with their inputs below them, each once; own numbers / sums with all entries below",
    "code": "code: nodes below the Python lines that made them; own numbers / sums with all entries below",
}
_IMPLIED_COLUMNS: Final = {"micros": ("micros", "accelerator_micros", "cpu_micros")}


def columns(select: frozenset[str], order: Sequence[str] = OP_ORDER) -> list[str]:
    """Return the selected columns in printing order; micros adds its two parts."""
    selected = {column for word in select for column in _IMPLIED_COLUMNS.get(word, (word,))}
    return [column for column in order if column in selected]


def notice(parity: Parity = DEFAULT) -> Iterator[str]:
    """Yield the TF profiler's notice that an accelerator has no recorded stream."""
    yield from ("", "", "Found accelerator operation but misses accelerator stream stats!", "")
    yield "It's likely a gpu tracing issue rather than tf-profiler issue."
    yield f"If you found your operation missing accelerator time, {parity.missing_time_hint}"
    yield ""


#: Explanation of an attribute without a column.
_NO_COLUMN: Final = "no column: values follow the rows of variables, in jobs that were imported with a checkpoint"


def explanation(view: str, select: frozenset[str]) -> Iterator[str]:
    """Yield the lines above the legend, which explain the view and its columns."""
    yield from ("", "Doc:", _VIEWS[view])
    for word in sorted(select):
        for column in _IMPLIED_COLUMNS.get(word, (word,)):
            texts = COLUMN_TEXTS.get(column)
            yield f"{column}: {texts.doc}" if texts else f"{column}: {_NO_COLUMN}"
    yield from ("", "Profile:")


def legend(shown_columns: Sequence[str], texts_by_column: dict[str, str] | None = None) -> str:
    """Return the line above the rows; ``texts_by_column`` replaces legends by column."""
    replacements = texts_by_column or {}
    return "node name | " + " | ".join(
        replacements.get(column, COLUMN_TEXTS[column].legend) for column in shown_columns
    )
