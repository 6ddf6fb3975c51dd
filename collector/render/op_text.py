"""The op view as text: legend and rows as the TF profiler prints them."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from ..numbers import tf_profiler_bytes, tf_profiler_count, tf_profiler_time
from ..tfviews.encoding import octets
from ..tfviews.nodes import NO_STATS, TIMES, rounded_quotient, shape_text
from ..tfviews.op import ROOT, OpTypeEntry, OpView
from ..tfviews.order import ordered
from ..tfviews.parity import DEFAULT, Parity
from .legends import columns, explanation, legend, notice

#: Entry whose row is printed in place of the legend if the view has no op type.
_EMPTY_ROOT: Final = OpTypeEntry(ROOT, (), NO_STATS, NO_STATS)
SIZES: Final = ("bytes", "peak_bytes", "residual_bytes", "output_bytes")
#: Width of the column of names.
_WIDTH: Final = 25


def _share(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0


#: Returns the text of an entry in a column.
_Cell = Callable[[OpTypeEntry, OpView], str]


def _counter(name: str, format_value: Callable[[int], str]) -> _Cell:
    def cell(entry: OpTypeEntry, view: OpView) -> str:
        own, running, whole = (getattr(stats, name) for stats in (entry.own, entry.running_total, view.total))
        decisive_number = own if name in SIZES else running
        shares = (_share(running, whole), _share(own, whole)) if decisive_number > 0 else (0.0, 0.0)
        return f"{format_value(own)} ({shares[0]:.2f}%, {shares[1]:.2f}%)".rjust(30)

    return cell


def _devices(entry: OpTypeEntry, _view: OpView) -> str:
    return "|".join(sorted({device for node in entry.nodes for device in node.devices or ("",)}))


def _op_types(entry: OpTypeEntry, _view: OpView) -> str:
    return "|".join(sorted({kind for node in entry.nodes for kind in node.op_types}))


def _occurrence(entry: OpTypeEntry, _view: OpView) -> str:
    return f"{entry.runs}|{len(entry.nodes)}".rjust(10)


_CELLS: Final[dict[str, _Cell]] = {
    **{name: _counter(name, tf_profiler_bytes) for name in SIZES},
    "params": _counter("params", lambda number: f"{tf_profiler_count(number)} params"),
    "float_ops": _counter("float_ops", lambda number: f"{tf_profiler_count(number)} float_ops"),
    "device": _devices,
    "op_types": _op_types,
    "occurrence": _occurrence,
}


def _cells(time_unit: int) -> dict[str, _Cell]:
    """Return the cells by column; ``time_unit``: as `Parity.time_unit`."""
    return {
        **_CELLS,
        **{name: _counter(name, lambda time: tf_profiler_time(rounded_quotient(time, time_unit))) for name in TIMES},
    }


def signatures(entry: OpTypeEntry, parity: Parity = DEFAULT) -> list[tuple[str, int, int, int]]:
    """Return (input shapes, runs, nodes, time) of each input signature, most runs first."""
    runs, nodes, times = Counter[str](), Counter[str](), Counter[str]()
    for node in entry.nodes:
        shapes = node.facts.input_shapes
        text = ",\t".join(f"{position}:{shape_text(shape)}" for position, shape in enumerate(shapes))
        runs[text] += node.stats.runs
        nodes[text] += 1
        times[text] += node.stats.micros
    texts = ordered(sorted(nodes), runs.__getitem__, descending=True, parity=parity)
    return [(text, runs[text], nodes[text], times[text]) for text in texts]


def _name(entry: OpTypeEntry, parity: Parity) -> str:
    """Return the entry's name, padded to the width of its column; the TF profiler counts bytes."""
    return entry.name + " " * (_WIDTH - len(entry.name if parity.has_own_layout else octets(entry.name)))


def _row(entry: OpTypeEntry, view: OpView, shown_columns: list[str], parity: Parity, time_unit: int) -> Iterator[str]:
    cells_by_column = _cells(time_unit)
    cells = (cells_by_column[column](entry, view) for column in shown_columns if column in cells_by_column)
    yield _name(entry, parity) + ", ".join(cells)
    if "input_shapes" in shown_columns:
        yield ""
        for text, runs, nodes, time in signatures(entry, parity):
            time_text = tf_profiler_time(rounded_quotient(time, time_unit))
            yield f"input_type: {text}\t(run*{runs}|defined*{nodes})\texec_time: {time_text}"
        yield ""


def lines(
    view: OpView,
    select: frozenset[str],
    *,
    missing_stream: bool = False,
    parity: Parity = DEFAULT,
    time_unit: int = 1,
) -> Iterator[str]:
    """Yield explanation, legend and rows; ``time_unit``: how many units of a time are a µs."""
    shown_columns = columns(select)
    if missing_stream:
        yield from notice(parity)
    yield from explanation("op", select)
    if not view.op_types:
        yield next(_row(_EMPTY_ROOT, view, shown_columns, parity, time_unit))
        return
    yield legend(shown_columns)
    for entry in view.entries:
        yield from _row(entry, view, shown_columns, parity, time_unit)
