"""The summary of one job as text for one screen."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median
from typing import Final, NamedTuple

from .. import numbers
from ..summaries.events import EventSummary
from ..summaries.host import Series
from ..summaries.jobs import JobRow
from ..summaries.spread import Spread
from ..summaries.stages import ENDING, WAITING, Stage
from ..summaries.top import TopOp
from ..text import clean
from .jobs_text import framework, started, state
from .table import Column, render

#: Maximum rows of the tables of steps and of ops, and lines of each list.
KINDS: Final = 3
OPS: Final = 5
LISTED: Final = 4
_CURVE: Final = 24
#: Characters beside the curve in a line of a narrow terminal.
_BEFORE: Final = 66
#: Bars are cut at this multiple of the median, since a long first step would flatten all others.
_CURVE_CUT: Final = 3
#: I/O below this rate is not shown (bytes a second).
_IO_MIN: Final = 1e6
#: Minimum idle time that is shown, since stored data is some seconds old (ns).
_IDLE_NS: Final = 10 * 10**9
_WIDTH_MIN: Final = 40

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


class OverviewParts(NamedTuple):
    """The parts of a job's summary that are shown, as the query returns them."""

    row: JobRow
    tags: Sequence[str]
    stages: Sequence[Stage]
    steps: Sequence[tuple[str, int, Spread, bool, Sequence[float]]]
    ops: Sequence[TopOp]
    cpus: int | None
    job_series: Sequence[Series]
    host_series: Sequence[Series]
    alerts: Sequence[str]
    warnings: Sequence[EventSummary]
    notes: Sequence[str]
    advice: Sequence[tuple[str, str]]


def _head(shown: OverviewParts, now_ns: int) -> Iterator[list[str]]:
    row = shown.row
    since = f"{numbers.duration(row.duration_ns)} since {started(row, now_ns)}"
    pid = f"pid {row.pid}" if row.pid else ""
    yield [f"job {row.id} {row.name or '-'}", state(row), since, f"{row.user or '-'}@{row.host or '-'}", pid]
    steps = f"{numbers.count(row.steps)} {row.step_kind} steps".replace("  ", " ")
    epochs = f"{numbers.count(row.epochs)} epoch{'s' * (row.epochs != 1)}" if row.epochs else ""
    cost = "" if row.cost is None else f"cost {numbers.cost(row.cost)}"
    traced = f"{numbers.count(row.traced)} traced"
    yield [framework(row), steps, epochs, traced, cost, f"{numbers.count(row.lost)} lost", *shown.tags]


def _stage(stage: Stage) -> str:
    several = f" ({numbers.count(stage.count)})" if stage.count > 1 else ""
    going_on = " so far" if stage.running and stage.name != WAITING else ""
    return f"{stage.name} {numbers.duration(stage.total_ns)}{several}{going_on}"


def _is_shown(stage: Stage) -> bool:
    """Return whether a stage is shown.

    The end of a job is not shown if it took no time. A short wait is not shown, since steps are
    stored with a delay.
    """
    return stage.name not in {ENDING, WAITING} or stage.total_ns >= (_IDLE_NS if stage.name == WAITING else 1)


def _bars(values: Sequence[float], width: int | None) -> str:
    room = _CURVE if width is None else max(8, min(_CURVE, width - _BEFORE))
    return numbers.sparkline(list(values), room)


def clipped(means: Sequence[float]) -> list[float]:
    """Return step times over time, cut at _CURVE_CUT times their median."""
    highest = _CURVE_CUT * median(means) if means else 0
    return [min(mean, highest) for mean in means]


def _step_cells(
    width: int | None, kind: str, count: int, spread: Spread, traced: bool, curve: Sequence[float]
) -> list[str]:
    times = (spread.p50_ns, spread.p90_ns, spread.p99_ns, spread.min_ns, spread.max_ns)
    name = f"{kind} (traced)" if traced else kind
    return [name, numbers.count(count), *map(numbers.duration, times), _bars(clipped(curve), width)]


#: Series: name, whether it is the host's, title, and format of the values.
_SERIES: Final[tuple[tuple[str, bool, str, Callable[[float | None], str]], ...]] = (
    ("cpu_cores", False, "cpu cores", numbers.cores),
    ("rss_bytes", False, "memory", numbers.size),
    ("read_bytes_per_s", False, "read", numbers.rate),
    ("write_bytes_per_s", False, "write", numbers.rate),
    ("cpu_cores", True, "host cores", numbers.cores),
    ("memory_used_bytes", True, "host memory", numbers.size),
)


def _use(shown: OverviewParts, width: int | None) -> Iterator[list[str]]:
    for name, of_host, title, form in _SERIES:
        for one in shown.host_series if of_host else shown.job_series:
            little = form is numbers.rate and (one.maximum or 0) < _IO_MIN
            if one.name == name and one.values and not little:
                of = f" of {shown.cpus}" if of_host and name == "cpu_cores" and shown.cpus else ""
                yield [title + of, form(one.mean), form(one.maximum), _bars(one.values, width)]


def _op_cells(op: TopOp) -> list[str]:
    times = [numbers.duration(us * 1000) for us in (op.median_us, op.least_us, op.most_us)]
    return [
        op.op,
        op.device,
        numbers.quantity(op.calls),
        times[0],
        numbers.percent(op.share),
        *times[1:],
        op.line or "-",
    ]


def _listed(title: str, texts: Sequence[str], width: int | None) -> Iterator[str]:
    """Yield a line for each of the first LISTED texts, cut at ``width``."""
    for at, text in enumerate(texts[:LISTED]):
        line = f"{title if not at else '':9}{clean(text)}"
        yield line if width is None or len(line) <= width else _cut(line, width)
    if len(texts) > LISTED:
        yield f"{'':9}and {len(texts) - LISTED} more"


def _cut(line: str, width: int) -> str:
    """Return ``line`` cut after a whole word, with an ellipsis."""
    return line[: width - 1].rsplit(" ", 1)[0].rstrip(" ,;:") + "…"


def _filled(parts: Iterable[str], width: int | None, indent: int) -> list[str]:
    """Join ``parts`` with dots into lines of at most ``width``.

    Lines after the first are indented.
    """
    found: list[str] = []
    for part in map(clean, filter(None, parts)):
        longer = f"{found[-1]} · {part}" if found else part
        if width is not None and found and len(longer) > max(width, _WIDTH_MIN):
            found.append(" " * indent + part)
        else:
            found[-1:] = [longer]
    return found


def _blocks(shown: OverviewParts, now_ns: int, width: int | None) -> Iterator[list[str]]:
    texts = list(map(_stage, filter(_is_shown, shown.stages)))
    head = [line for parts in _head(shown, now_ns) for line in _filled(parts, width, 2)]
    yield [*head, *_filled([f"{'phases':9}{texts[0]}", *texts[1:]], width, 9)]
    steps, use = [_step_cells(width, *one) for one in shown.steps[:KINDS]], list(_use(shown, width))
    for columns, rows in ((_STEPS, steps), (_USE, use), (_OPS, [_op_cells(op) for op in shown.ops[:OPS]])):
        yield render(columns, rows, width=width) if rows else []
    short = shown.row.id
    yield [
        *_listed("alerts", shown.alerts, width),
        *_listed("warnings", [*(event.line for event in shown.warnings), *shown.notes], width),
        *_listed("advice", [f"{title}: {text}" for title, text in shown.advice], width),
        *_filled([f"{'more':9}tfprof op {short}", f"tfprof steps {short}", f"tfprof advise {short}"], width, 9),
    ]


def lines(shown: OverviewParts, now_ns: int, width: int | None) -> Iterator[str]:
    """Yield the lines of the summary, no wider than ``width``."""
    for at, block in enumerate(filter(None, _blocks(shown, now_ns, width))):
        if at:
            yield ""
        yield from block
