"""`tfprof follow`: prints the steps of running jobs as lines."""

import select
import sys
import time
from typing import Final

import click

from ..collector.documents.changes import change_document
from ..collector.documents.text import line
from ..collector.errors import UsageError
from ..collector.query.following import JobChange, JobFollower
from ..collector.render import lines_text
from ..collector.render.wrapping import wrapped
from ..collector.store.opening import open_reader
from ..commands.streams import note, print_lines
from .command import jobs_argument, json_option, store_option, width
from .values import WHOLE

#: Poll interval (seconds). An agent sends the spans of a job every two seconds, or earlier if there
#: are many.
POLL_S: Final = 0.5
#: Default number of past lines.
PAST_LINES: Final = 10
_CLOSED_EVENTS: Final = select.POLLERR | select.POLLHUP | select.POLLNVAL


def _pause(seconds: float) -> None:
    """Wait; BrokenPipeError if the reader of standard output closes it meanwhile."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    if any(event & _CLOSED_EVENTS for _, event in poll.poll(seconds * 1000)):
        raise BrokenPipeError


def _text(change: JobChange) -> str | None:
    if change.line is not None:
        return lines_text.step_line(change.line)
    if change.event is not None:
        return lines_text.event_line(change.event)
    if change.kind == "job":
        return lines_text.job_line(change.row)
    if change.kind == "end":
        return lines_text.end_line(change.row, change.median_ns)
    note(f"job {change.row.id}: {lines_text.collector_line(restarted=change.back)}")
    return None


def _line(change: JobChange, *, as_json: bool, with_id: bool) -> str | None:
    """Return the line for a change.

    Without ``as_json``, a change of the collector is printed as a note, and None is returned.
    ``with_id``: a line about a step or an event begins with the job's id.
    """
    if as_json:
        return line(change_document(change))
    text = _text(change)
    return f"{change.row.id}  {text}" if text and with_id and change.kind not in {"job", "end"} else text


@click.command()
@jobs_argument
@click.option("--last", type=WHOLE, metavar="N", help=f"Begin with the last N lines ({PAST_LINES}).")
@click.option("--all", "from_start", is_flag=True, help="Begin with the job's first step.")
@click.option("--each", "line_per_entry", is_flag=True, help="A line for every recorded entry, without a limit.")
@json_option
@store_option
def follow(
    jobs: tuple[str, ...], store: str, as_json: bool, last: int | None, from_start: bool, line_per_entry: bool
) -> int:
    """Print the steps of JOB as they end, one a line, until the job ends.

    If a kind has more than ten steps in a second, they share one line with their mean, minimum and
    maximum. Each epoch, fit and evaluation gets a line at its end. Each unusual event gets a line,
    too. A name selects all running jobs of that name. The id of a launch, and `last`, select all
    jobs of the launch, including later ones. With --json each line is one JSON document.
    """
    if from_start and last is not None:
        raise UsageError("--last and --all exclude each other")
    if not jobs:
        raise UsageError("no JOB given: the start of a job's id, its name, the id of a launch, or `last`")
    past = None if from_start else PAST_LINES if last is None else last
    follower = JobFollower(open_reader(store), jobs, time.time_ns(), line_per_entry=line_per_entry, past=past)
    reported = 0
    while True:
        changes, with_id = follower.update(time.time_ns()), follower.has_several_jobs
        lines = (_line(change, as_json=as_json, with_id=with_id) for change in changes)
        if changes:
            columns = None if as_json else width()
            print_lines(part for text in filter(None, lines) for part in wrapped(text, columns))
        for error in follower.damage[reported:]:
            note(str(error))
        reported = len(follower.damage)
        if follower.is_over:
            return int(bool(reported))
        _pause(POLL_S)
