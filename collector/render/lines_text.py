"""Changes of followed jobs, as lines of text."""

from typing import Final

from .. import numbers
from ..summaries.events import EventSummary
from ..summaries.jobs import JobRow
from ..summaries.lines import StepLine
from .jobs_text import framework, lost_part, state, traced_part

#: Characters of a span's kind and number, and of its time.
_NAME_WIDTH, _TIME_WIDTH = 24, 9
_DOT: Final = " · "


def job_line(row: JobRow) -> str:
    """Return the line for a job that is followed from now on."""
    where = f"{row.user or '-'}@{row.host or '-'}, pid {row.pid or '-'}"
    parts = (f"job {row.id} {row.name or '-'}", state(row), where, framework(row))
    return _DOT.join((*parts, f"{numbers.counted_steps(row.steps, row.step_kind)} so far"))


def end_line(row: JobRow, median_ns: float | None) -> str:
    """Return the line for the end of a job."""
    parts = [f"job {row.id} {row.name or '-'}", state(row), numbers.duration(row.duration_ns)]
    parts.append(numbers.counted_steps(row.steps, row.step_kind))
    if median_ns is not None:
        parts.append(f"median {numbers.duration(median_ns)}")
    return _DOT.join((*parts, traced_part(row), lost_part(row)))


def step_line(line: StepLine) -> str:
    """Return the line for one or more steps.

    It contains the end of the last step, the steps' kind and numbers, the time of a step, and
    marks.
    """
    is_complete = line.last - line.first + 1 == line.count
    number = str(line.first) if line.count == 1 else f"{line.first}-{line.last}" if is_complete else f"to {line.last}"
    end = numbers.time_of_day(line.end_ns, whole_seconds=line.entries > 1)
    duration = numbers.duration(line.mean_ns) if line.max_ns else "-"
    text = f"{end:12}  {f'{line.kind} {number}':{_NAME_WIDTH}}  {duration:>{_TIME_WIDTH}}"
    return f"{text}  {', '.join(_marks(line))}".rstrip()


def _marks(line: StepLine) -> list[str]:
    marks = []
    if line.count > 1:
        marks.append(f"mean of {numbers.count(line.count)}")
    if line.entries > 1 and line.min_ns < line.max_ns:
        marks.append(f"{numbers.duration(line.min_ns)} to {numbers.duration(line.max_ns)}")
    if 0 < line.timed < line.count:
        marks.append(f"{numbers.count(line.timed)} timed")
    for number, word in ((line.traced, "traced"), (line.failed, "failed"), (line.setup, "set up")):
        if number:
            marks.append(word if line.count == 1 else f"{numbers.count(number)} {word}")
    return marks


def event_line(summary: EventSummary) -> str:
    """Return the line for an event of a job."""
    return f"{numbers.time_of_day(summary.last_ns):12}  {summary.line}"


def collector_line(*, restarted: bool) -> str:
    """Return the line for a collector that has ended, or runs again (``restarted``)."""
    if restarted:
        return "the collector runs again"
    return "the collector has ended; the agent starts another one while the job runs"
