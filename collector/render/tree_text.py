"""The scope, graph and code view as text in the TF profiler's form.

Rows are indented below their parents.
"""

from collections.abc import Callable, Iterator
from typing import Final

from ..numbers import tf_profiler_bytes, tf_profiler_count, tf_profiler_time
from ..tfviews.nodes import TIMES, rounded_quotient, shape_text
from ..tfviews.parity import DEFAULT, Parity
from ..tfviews.tensors import ValueLookup, no_value
from ..tfviews.tree import SCOPE_TYPE, Branch, TreeView
from .legends import OP_ORDER, TREE_LEGENDS, TREE_ORDER, columns, explanation, legend, notice

#: Text in place of the own number of an entry that is not accounted.
UNCOUNTED: Final = "--"

#: Returns the texts of a row in a column: usually one, none for an unknown device.
Cell = Callable[[Branch], Iterator[str]]


def pair(branch: Branch, own: str, total: str) -> str:
    """Return `own/total`, or `--/total` if the entry is not accounted."""
    return f"{own if branch.accounted else UNCOUNTED}/{total}"


def counter(name: str, format_value: Callable[[int], str], unit: str = "") -> Cell:
    """Return the cell of the counter ``name`` of Stats."""

    def cell(branch: Branch) -> Iterator[str]:
        yield pair(branch, format_value(getattr(branch.own, name)), format_value(getattr(branch.total, name))) + unit

    return cell


def _params(branch: Branch) -> Iterator[str]:
    shapes = [node.facts.parameter_shape for node in branch.nodes]
    yield from (shape_text(shape) for shape in shapes if shape)
    yield from counter("params", tf_profiler_count, " params")(branch)


def _devices(branch: Branch) -> Iterator[str]:
    yield from (device for node in branch.nodes for device in node.devices)


def _op_types(type_without_node: str) -> Cell:
    """Return the cell of op types.

    ``type_without_node``: the type of entries without a node, such as the root.
    """

    def cell(branch: Branch) -> Iterator[str]:
        yield "|".join(kind for node in branch.nodes for kind in node.op_types) or type_without_node

    return cell


def _occurrence(branch: Branch) -> Iterator[str]:
    runs = pair(branch, tf_profiler_count(branch.own.runs), tf_profiler_count(branch.total.runs))
    yield f"{runs}|{pair(branch, '1', tf_profiler_count(branch.definitions))}"


def _input_shapes(branch: Branch) -> Iterator[str]:
    shapes = (shape for node in branch.nodes for shape in node.facts.input_shapes)
    yield "|".join(f"{position}:{shape_text(shape)}" for position, shape in enumerate(shapes))


def _devices_of_call(branch: Branch) -> Iterator[str]:
    if branch.nodes:
        yield "|".join(sorted({device for node in branch.nodes for device in node.devices or ("",)}))


def _op_types_of_call(branch: Branch) -> Iterator[str]:
    yield "|".join(sorted({kind for node in branch.nodes for kind in node.op_types}))


def _not_in_code(column: str) -> Cell:
    def cell(_branch: Branch) -> Iterator[str]:
        yield f"{column} N/A in code view"

    return cell


_CELLS: Final[dict[str, Cell]] = {
    **{name: counter(name, tf_profiler_bytes) for name in ("bytes", "peak_bytes", "residual_bytes", "output_bytes")},
    "params": _params,
    "float_ops": counter("float_ops", tf_profiler_count, " flops"),
    "device": _devices,
    "occurrence": _occurrence,
    "input_shapes": _input_shapes,
}
#: Cells of the columns other than times, by view.
CELLS: Final[dict[str, dict[str, Cell]]] = {
    "scope": {**_CELLS, "op_types": _op_types(SCOPE_TYPE)},
    "graph": {**_CELLS, "op_types": _op_types("_TFGraphParent")},
    "code": {
        **_CELLS,
        "params": counter("params", tf_profiler_count, " params"),
        "device": _devices_of_call,
        "op_types": _op_types_of_call,
        "occurrence": _not_in_code("occurrence"),
        "input_shapes": _not_in_code("input_shapes"),
    },
}
#: The code view has the order of columns and the legends of the op view.
_ORDERS: Final = {"code": OP_ORDER}
_LEGENDS: Final[dict[str, dict[str, str]]] = {"code": {}}


def rows(
    root: Branch, shown_columns: list[str], cells: dict[str, Cell], values: ValueLookup = no_value
) -> Iterator[str]:
    """Yield a row for each entry, the root first, indented by two spaces per level.

    A variable's value in ``values`` follows its row.
    """
    pending = [(root, "")]
    while pending:
        branch, indent = pending.pop()
        texts = (text for column in shown_columns for text in cells[column](branch))
        yield f"{indent}{branch.name} ({', '.join(texts)})"
        value = values(branch.name)
        if value is not None:
            yield from value.text().removesuffix("\n").split("\n")
        pending.extend((child, indent + "  ") for child in reversed(branch.children))


def lines(
    name: str,
    view: TreeView,
    select: frozenset[str],
    *,
    missing_stream: bool = False,
    parity: Parity = DEFAULT,
    time_unit: int = 1,
    values: ValueLookup = no_value,
) -> Iterator[str]:
    """Yield explanation, legend and rows of the view called ``name``.

    ``time_unit``: how many units of a time are a µs.
    """
    shown_columns = columns(select, _ORDERS.get(name, TREE_ORDER))
    if missing_stream:
        yield from notice(parity)
    yield from explanation(name, select)
    yield legend(shown_columns, _LEGENDS.get(name, TREE_LEGENDS))
    times = {time: counter(time, lambda value: tf_profiler_time(rounded_quotient(value, time_unit))) for time in TIMES}
    yield from rows(view.root, shown_columns, CELLS[name] | times, values)
