"""The op view as text: legend and rows as tfprof prints them."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from tfprof.collector.render.numbers import tfprof_bytes, tfprof_count, tfprof_time
from tfprof.collector.render.table import clean
from tfprof.collector.views.nodes import Shape
from tfprof.collector.views.op import Entry, OpView

SIZES: Final = ("bytes", "peak_bytes", "residual_bytes", "output_bytes")


class Heading(NamedTuple):
    """What the legend and the explanation above it say of a column."""

    legend: str
    doc: str


HEADINGS: Final = {
    "bytes": Heading("requested bytes", "bytes the op asked its allocators for, persistent and temporary ones too"),
    "peak_bytes": Heading("peak bytes", "most bytes in use at one moment of the op, summed over its executions"),
    "residual_bytes": Heading("residual bytes", "bytes still in use when the op had ended"),
    "output_bytes": Heading("output bytes", "bytes of the op's outputs, new or passed through"),
    "micros": Heading("total execution time", "time on accelerators and CPUs together"),
    "accelerator_micros": Heading("accelerator execution time", "time of the op's kernels on accelerators"),
    "cpu_micros": Heading("cpu execution time", "time of the op on the CPU, scheduling of kernels included"),
    "params": Heading("# parameters", "elements of what the op declares the shape of"),
    "float_ops": Heading("# float_ops", "floating-point operations, from the types and shapes of ops"),
    "device": Heading("assigned devices", "devices that the op ran on"),
    "op_types": Heading("op types", "what the op is accounted under: its type and its devices"),
    "occurrence": Heading("op occurrence (run|defined)", "times it ran | nodes of it in the graph"),
    "input_shapes": Heading("input shapes", "shapes of the inputs that it was defined with"),
}
_IMPLIED: Final = {"micros": ("micros", "accelerator_micros", "cpu_micros")}


def columns(select: frozenset[str]) -> list[str]:
    """Return the selected columns in printing order; micros brings its two parts along."""
    wanted = {column for word in select for column in _IMPLIED.get(word, (word,))}
    return [column for column in HEADINGS if column in wanted]


def _share(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0


def _counter(name: str, form: Callable[[int], str]) -> Callable[[Entry, OpView], str]:
    def cell(entry: Entry, view: OpView) -> str:
        own, running, whole = (getattr(stats, name) for stats in (entry.own, entry.running, view.total))
        tested = own if name in SIZES else running
        shares = (_share(running, whole), _share(own, whole)) if tested > 0 else (0.0, 0.0)
        return f"{form(own)} ({shares[0]:.2f}%, {shares[1]:.2f}%)".rjust(30)

    return cell


def _devices(entry: Entry, _view: OpView) -> str:
    return "|".join(sorted({device for node in entry.nodes for device in node.devices or ("",)}))


def _op_types(entry: Entry, _view: OpView) -> str:
    return "|".join(sorted({kind for node in entry.nodes for kind in node.op_types}))


def _occurrence(entry: Entry, _view: OpView) -> str:
    return f"{entry.runs}|{len(entry.nodes)}".rjust(10)


_CELLS: Final[dict[str, Callable[[Entry, OpView], str]]] = {
    **{name: _counter(name, tfprof_bytes) for name in SIZES},
    **{name: _counter(name, tfprof_time) for name in ("micros", "accelerator_micros", "cpu_micros")},
    "params": _counter("params", lambda number: f"{tfprof_count(number)} params"),
    "float_ops": _counter("float_ops", lambda number: f"{tfprof_count(number)} float_ops"),
    "device": _devices,
    "op_types": _op_types,
    "occurrence": _occurrence,
}


def shape_text(shape: Shape) -> str:
    """Return dimensions joined by x, `unknown` for an unknown rank."""
    return "x".join(map(str, shape)) or "unknown"


def signatures(entry: Entry) -> list[tuple[str, int, int, int]]:
    """Return (input shapes, runs, nodes, µs) for each distinct input signature, most runs first."""
    runs, nodes, micros = Counter[str](), Counter[str](), Counter[str]()
    for node in entry.nodes:
        text = ",\t".join(f"{at}:{shape_text(shape)}" for at, shape in enumerate(node.facts.input_shapes))
        runs[text] += node.stats.runs
        nodes[text] += 1
        micros[text] += node.stats.micros
    return [(text, runs[text], nodes[text], micros[text]) for text in sorted(nodes, key=lambda t: (-runs[t], t))]


def _row(entry: Entry, view: OpView, shown: list[str]) -> Iterator[str]:
    cells = (_CELLS[column](entry, view) for column in shown if column in _CELLS)
    yield f"{clean(entry.name):<25}" + clean(", ".join(cells))
    if "input_shapes" in shown:
        yield ""
        for text, runs, nodes, micros in signatures(entry):
            yield f"input_type: {text}\t(run*{runs}|defined*{nodes})\texec_time: {tfprof_time(micros)}"
        yield ""


def lines(view: OpView, select: frozenset[str]) -> Iterator[str]:
    """Yield explanation, legend and rows."""
    shown = columns(select)
    yield "Doc:"
    yield "op: nodes of the graph put together by op type; (share with all rows below, own share)"
    for column in shown:
        yield f"{column}: {HEADINGS[column].doc}"
    yield ""
    yield "Profile:"
    yield "node name | " + " | ".join(HEADINGS[column].legend for column in shown)
    for entry in view.entries:
        yield from _row(entry, view, shown)
