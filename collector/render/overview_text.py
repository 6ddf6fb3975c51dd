"""The summary of one job as text for one screen."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median
from typing import Final

from .. import numbers
from ..query.overview import Overview
from ..summaries.spans import ENDING, WAITING, Stage
from ..summaries.step_times import StepTimes
from ..summaries.top import TopOp
from .breakdown_text import parts_texts
from .cells import cells, first_cells
from .jobs_text import cost_part, framework, lost_part, start_text, state
from .table import Column, render
from .wrapping import wrapped

#: Maximum rows of the tables of steps and of ops, and maximum texts of a list.
STEP_ROWS_MAX: Final = 3
OP_ROWS_MAX: Final = 5
TEXTS_MAX: Final = 4
_CURVE_WIDTH: Final = 24
#: Characters beside the curve in a line of a narrow terminal.
_OTHER_WIDTH: Final = 66
#: Bars are cut at this multiple of the median. Otherwise a long first step would flatten all other
#: bars.
_CURVE_CUT: Final = 3
#: I/O below this rate is not shown (bytes a second).
_IO_MIN: Final = 1e6
#: Minimum idle time that is shown, since stored data is some seconds old (ns).
_IDLE_NS: Final = 10 * 10**9
_WIDTH_MIN: Final = 40
#: Characters of a command line that are shown.
_COMMAND_MAX: Final = 400

_STEPS: Final = (
    Column("STEPS", min_width=12, preferred_width=24),
    Column("COUNT", right=True),
    Column("MEDIAN", right=True),
    Column("P90", right=True, drop_priority=3),
    Column("P99", right=True, drop_priority=4),
    Column("MIN", right=True, drop_priority=5),
    Column("MAX", right=True, drop_priority=2),
    Column("OVER TIME", drop_priority=6),
)
_USE: Final = (
    Column("USE", min_width=15),
    Column("MEAN", right=True),
    Column("MAX", right=True),
    Column("OVER TIME", drop_priority=2),
)
_OPS: Final = (
    Column("OP", min_width=12, preferred_width=28),
    Column("DEVICE", drop_priority=2),
    Column("CALLS", right=True, drop_priority=5),
    Column("TIME", right=True),
    Column("SHARE", right=True),
    Column("MIN", right=True, drop_priority=4),
    Column("MAX", right=True, drop_priority=3),
    Column("LINE", min_width=12, preferred_width=24),
)


def _head(overview: Overview, now_ns: int) -> Iterator[list[str]]:
    row = overview.row
    since = f"{numbers.duration(row.duration_ns)} since {start_text(row, now_ns)}"
    pid = f"pid {row.pid}" if row.pid else ""
    yield [f"job {row.id} {row.name or '-'}", state(row), since, f"{row.user or '-'}@{row.host or '-'}", pid]
    steps = numbers.counted_steps(row.steps, row.step_kind)
    epochs = numbers.counted(row.epochs, "epoch") if row.epochs else ""
    traced = f"{numbers.count(row.traced)} traced"
    yield [framework(row), steps, epochs, traced, cost_part(row), lost_part(row), *overview.tags]


def _stage_text(stage: Stage) -> str:
    number = f" ({numbers.count(stage.count)})" if stage.count > 1 else ""
    so_far = " so far" if stage.running and stage.name != WAITING else ""
    return f"{stage.name} {numbers.duration(stage.total_ns)}{number}{so_far}"


def _is_shown(stage: Stage) -> bool:
    """Return whether a stage is shown.

    The stage `ending` is not shown if it took no time. A short wait for the next step is not shown,
    since steps are stored with a delay.
    """
    return stage.name not in {ENDING, WAITING} or stage.total_ns >= (_IDLE_NS if stage.name == WAITING else 1)


def _bars(values: Sequence[float], width: int | None) -> str:
    curve_width = _CURVE_WIDTH if width is None else max(8, min(_CURVE_WIDTH, width - _OTHER_WIDTH))
    return numbers.sparkline(list(values), curve_width)


def clipped(means: Sequence[float]) -> list[float]:
    """Return step times over time, cut at _CURVE_CUT times their median."""
    highest = _CURVE_CUT * median(means) if means else 0
    return [min(mean, highest) for mean in means]


def _step_cells(width: int | None, steps: StepTimes) -> list[str]:
    spread = steps.spread
    times = (spread.p50_ns, spread.p90_ns, spread.p99_ns, spread.min_ns, spread.max_ns)
    name = f"{steps.kind} since {steps.since:,}" if steps.since else steps.kind
    name = f"{name} (traced)" if steps.traced else name
    return [name, numbers.count(steps.count), *map(numbers.duration, times), _bars(clipped(steps.curve), width)]


#: Series: name, whether it is the host's, title, and format of the values.
_SERIES: Final[tuple[tuple[str, bool, str, Callable[[float | None], str]], ...]] = (
    ("cpu_cores", False, "cpu cores", numbers.cores),
    ("rss_bytes", False, "memory", numbers.size),
    ("read_bytes_per_s", False, "read", numbers.rate),
    ("write_bytes_per_s", False, "write", numbers.rate),
    ("cpu_cores", True, "host cores", numbers.cores),
    ("memory_used_bytes", True, "host memory", numbers.size),
)


def _use_rows(overview: Overview, width: int | None) -> Iterator[list[str]]:
    for name, is_host, title, format_value in _SERIES:
        for series in overview.usage.host_series if is_host else overview.usage.job_series:
            is_little_io = format_value is numbers.rate and (series.maximum or 0) < _IO_MIN
            if series.name == name and series.values and not is_little_io:
                total = f" of {overview.usage.cpus}" if is_host and name == "cpu_cores" and overview.usage.cpus else ""
                values = format_value(series.mean), format_value(series.maximum)
                yield [title + total, *values, _bars(series.values, width)]


def _op_cells(op: TopOp) -> list[str]:
    times = list(map(numbers.duration, (op.ns, op.least_ns, op.most_ns)))
    return [
        op.op,
        op.device,
        numbers.quantity(op.calls),
        times[0],
        numbers.percent(op.share),
        *times[1:],
        op.line or "-",
    ]


def _list_lines(title: str, texts: Sequence[str], width: int | None, shown: int = TEXTS_MAX) -> Iterator[str]:
    """Yield a line for each of the first ``shown`` texts, cut at ``width``."""
    for index, text in enumerate(texts[:shown]):
        line = f"{'' if index else title:9}{text}"
        yield line if width is None or cells(line) <= width else _cut(line, width)
    if len(texts) > shown:
        yield f"{'':9}and {len(texts) - shown} more"


def _cut(line: str, width: int) -> str:
    """Return ``line`` cut after a whole word, with an ellipsis."""
    return first_cells(line, width - 1).rsplit(" ", 1)[0].rstrip(" ,;:") + "…"


def _joined_lines(parts: Iterable[str], width: int | None, indent: int) -> list[str]:
    """Join ``parts`` with dots into lines that are wrapped at ``width``, at least at _WIDTH_MIN.

    Lines after the first are indented.
    """
    text_lines: list[str] = []
    for part in filter(None, parts):
        longer = f"{text_lines[-1]} · {part}" if text_lines else part
        if width is not None and text_lines and cells(longer) > max(width, _WIDTH_MIN):
            text_lines.append(" " * indent + part)
        else:
            text_lines[-1:] = [longer]
    return text_lines


def _blocks(overview: Overview, now_ns: int, width: int | None, op_rows: int) -> Iterator[list[str]]:
    texts = list(map(_stage_text, filter(_is_shown, overview.stages)))
    head = [line for parts in _head(overview, now_ns) for line in _joined_lines(parts, width, 2)]
    parts = parts_texts(overview.parts) if overview.parts else []
    yield [
        *head,
        *(wrapped(f"{'command':9}{shlex.join(overview.command)[:_COMMAND_MAX]}", width) if overview.command else ()),
        *_joined_lines([f"{'phases':9}{text}" if not index else text for index, text in enumerate(texts)], width, 9),
        *_joined_lines([f"{'parts':9}{text}" if not index else text for index, text in enumerate(parts)], width, 9),
    ]
    steps, use = (
        [_step_cells(width, steps) for steps in overview.steps[:STEP_ROWS_MAX]],
        list(_use_rows(overview, width)),
    )
    for columns, rows in (
        (_STEPS, steps),
        (_USE, use),
        (_OPS, [_op_cells(op) for op in overview.ops.ops[:op_rows]]),
    ):
        yield render(columns, rows, width=width) if rows else []
    names = ("op", "steps", "advise") if overview.ops.ops else ("steps", "advise")
    commands = [f"tfprof {name} {overview.row.id}" for name in names]
    warnings = [*(event.line for event in overview.warnings), *overview.notes]
    shown_warnings = TEXTS_MAX + sum(event.is_incompleteness for event in overview.warnings)
    yield [
        *_list_lines("alerts", overview.alerts, width),
        *_list_lines("warnings", warnings, width, shown_warnings),
        *_list_lines("advice", [f"{advice.title}: {advice.text}" for advice in overview.advice], width),
        *_joined_lines([f"{'more':9}{commands[0]}", *commands[1:]], width, 9),
    ]


def lines(overview: Overview, now_ns: int, width: int | None, op_rows: int = OP_ROWS_MAX) -> Iterator[str]:
    """Yield the lines of the summary, at most ``width`` wide if possible.

    ``op_rows``: the number of op types.
    """
    for index, block in enumerate(filter(None, _blocks(overview, now_ns, width, op_rows))):
        if index:
            yield ""
        yield from block
