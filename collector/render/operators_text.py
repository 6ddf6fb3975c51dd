"""The table of `tfprof analyze`, whose cells have several lines."""

import textwrap
from collections.abc import Sequence
from typing import Final

from ..summaries.operators import Record, Shapes

_HEADS: Final = (
    *("device self time", "cumulative", "operator info", "computation", "FLOPS"),
    *("memory", "bandwidth", "in_shapes", "out_shapes"),
)
_PREFIXES: Final = ("", "K", "M", "G", "T", "P", "E", "Z", "Y")
#: Columns of a name; further lines of it are indented.
_NAME_WIDTH: Final = 30
_MISSING: Final = "N/A"


def lines(records: Sequence[Record], total: float) -> list[str]:
    """Return the table; ``total``: the time of all operators, of which times are shares."""
    rows, cumulative = [], 0.0
    for rank, record in enumerate(records):
        cumulative += record.time
        rows.append(
            [
                [f"#{rank}", f"{float(record.time):.3}", _share(record.time, total)],
                [f"{float(cumulative):.3}", _share(cumulative, total)],
                [line for text in record.info for line in _wrapped(text)],
                _quantity(record.computation, 1000, "FLO", "FLO"),
                _quantity(record.flops, 1000, "FLOPS", "FLOPS"),
                _quantity(record.memory, 1024, "byte", "iB"),
                _quantity(record.bandwidth, 1024, "byte/s", "iB/s"),
                _shapes(record.in_shapes),
                _shapes(record.out_shapes),
            ]
        )
    return _grid(rows)


def summary(total: float) -> list[str]:
    """Return the line with the time of all operators."""
    return [f"total device time  {total:.6g} s a step"]


def plain(records: Sequence[Record]) -> list[str]:
    """Return what names each record, on one line each."""
    return [" ".join(record.info) for record in records]


def _share(time: float, total: float) -> str:
    return f"{time / total * 100:.1f}%" if total > 0 else _MISSING


def _wrapped(text: str) -> list[str]:
    parts = textwrap.wrap(text, width=_NAME_WIDTH)
    return [part if not at else f"-  {part}" for at, part in enumerate(parts)] or [""]


def _quantity(number: float | None, base: int, unit: str, large_unit: str) -> list[str]:
    """Return a number below ``base``, and its unit; ``large_unit`` is the one with a prefix."""
    if number is None:
        return [_MISSING, unit]
    prefix = 0
    while number >= base and prefix < len(_PREFIXES) - 1:
        number, prefix = number / base, prefix + 1
    return [f"{number:.2f}", f"{_PREFIXES[prefix]}{large_unit if prefix else unit}"]


def _shapes(shapes: Shapes | None) -> list[str]:
    if shapes is None:
        return [str(None)]
    return ["{" + ",".join(map(str, shape)) + "}" for shape in shapes] or [""]


def _grid(rows: Sequence[Sequence[Sequence[str]]]) -> list[str]:
    widths = [
        max(len(head) + 2, *(len(line) for row in rows for line in row[at])) if rows else len(head) + 2
        for at, head in enumerate(_HEADS)
    ]

    def rule(left: str, middle: str, right: str, dash: str) -> str:
        return left + middle.join(dash * (width + 2) for width in widths) + right

    def text(cells: Sequence[str]) -> str:
        return "│" + "│".join(f" {cell.ljust(width)} " for cell, width in zip(cells, widths, strict=True)) + "│"

    table = [rule("╒", "╤", "╕", "═"), text(_HEADS)]
    for number, row in enumerate(rows):
        table.append(rule("├", "┼", "┤", "─") if number else rule("╞", "╪", "╡", "═"))
        height = max(map(len, row))
        table += [text([cell[at] if at < len(cell) else "" for cell in row]) for at in range(height)]
    return [*table, rule("╘", "╧", "╛", "═")]
