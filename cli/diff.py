"""`tfprof diff`: compares runs of a program before and after a change."""

import re
import time
from collections.abc import Iterator, Sequence
from typing import Final

import click

from ..collector.documents.comparison import diff_document
from ..collector.errors import UsageError
from ..collector.query.diffing import Diff, diff, diff_of_job, runs_of_baseline, sides_of_series, spread
from ..collector.render import diff_text, spread_text
from ..collector.store.catalog import SERIES_PREFIX
from ..collector.store.opening import open_reader
from ..collector.store.protocols import JobReader, StoreReader
from ..commands.streams import note, print_lines
from .command import jobs_argument, json_option, print_json, store_option, width
from .values import MOMENT, NON_EMPTY

#: Exit status if the step became slower than `--fail-over` allows.
SLOWER_STATUS: Final = 3
_PERCENT: Final = re.compile(r"([0-9]{1,4}(?:\.[0-9]{1,4})?) ?%?")


class DiffCommand(click.Command):
    """A command whose option `--against` takes all words up to the next option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat `--against` in front of each of its words, then parse ``args``."""
        words: list[str] = []
        is_against = False
        for word in args:
            if word == "--against":
                is_against = True
                continue
            is_against = is_against and not word.startswith("-")
            words += ["--against", word] if is_against else [word]
        return super().parse_args(ctx, words)


def _limit(_context: click.Context, _parameter: click.Parameter, value: str | None) -> float | None:
    """Parse the value of `--fail-over`; return a share."""
    if value is None:
        return None
    match = _PERCENT.fullmatch(value.strip())
    if match is None:
        raise UsageError(f"Invalid option '--fail-over' value: '{value}' (a percentage, such as 5%)")
    return float(match[1]) / 100


@click.command(name="diff", cls=DiffCommand)
@jobs_argument
@click.option(
    "--against", "against", metavar="JOB...", type=NON_EMPTY, multiple=True, help="The runs before the change."
)
@click.option("--baseline", metavar="NAME", type=NON_EMPTY, help="Compare with the last ten ended runs called NAME.")
@click.option(
    "--before",
    "moment_ns",
    metavar="TIME",
    type=MOMENT,
    help="Compare one JOB with itself: its steps before TIME (14:30, 10m) with those after.",
)
@click.option(
    "--fail-over",
    "limit",
    metavar="P%",
    callback=_limit,
    help=f"Exit with {SLOWER_STATUS} if a step takes more than P % longer, beyond noise.",
)
@json_option
@click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown, for the page of a CI run or a ticket.")
@store_option
def diff_(
    jobs: tuple[str, ...],
    store: str,
    against: tuple[str, ...],
    baseline: str | None,
    moment_ns: int | None,
    limit: float | None,
    *,
    as_json: bool,
    as_markdown: bool,
) -> int:
    """Show what became slower or faster from BEFORE to AFTER, the largest change first.

    \b
    tfprof diff BEFORE AFTER                    two runs
    tfprof diff B1 B2 B3 --against A1 A2 A3     several runs: noise is known
    tfprof diff NAME --baseline main            against the last runs called main
    tfprof diff JOB --before 14:30              a job with itself
    tfprof diff repeat:5f3a12                   the runs of `tfprof-run --repeat`
    """  # noqa: D301  # click's mark for lines that are not rewrapped
    if as_json and as_markdown:
        raise UsageError("--json and --markdown exclude each other")
    if moment_ns is None:
        result = compared(open_reader(store), jobs, against, baseline)
    elif len(jobs) != 1 or against or baseline is not None:
        raise UsageError("--before compares one JOB with itself")
    else:
        result = diff_of_job(open_reader(store).job(jobs[0]), moment_ns, time.time_ns())
    if limit is not None and result.is_spread:
        raise UsageError(f"--fail-over needs two sides, and {jobs[0]} has one")
    unit = "run" if moment_ns is None else "step"
    if as_json:
        print_json(diff_document(result))
    elif as_markdown:
        print_lines(_markdown(result, unit))
    else:
        print_lines(text_lines(result, unit, width()))
    uids_of_sides = [{run.row.uid for run in side} for side in (result.before, result.after)]
    if moment_ns is None and not result.is_spread and uids_of_sides[0] == uids_of_sides[1]:
        note("both sides are the same runs")
    if not result.ops.changes:
        note("no op is compared: a side has no traced steps of its main kind")
    return _status(result, limit)


def compared(reader: StoreReader, jobs: Sequence[str], before: Sequence[str] = (), baseline: str | None = None) -> Diff:
    """Return the comparison of the runs that words mean; UsageError if they do not say which.

    A word means a job, or the runs of a series. A series alone is compared with itself: one side
    with the other, or all its runs if it has one side.
    """
    if before and baseline is not None:
        raise UsageError("--against and --baseline exclude each other")
    is_alone = not before and baseline is None
    if is_alone and len(jobs) == 1 and (sides := _sides_of(reader, jobs[0])):
        return diff(sides[0], sides[1], time.time_ns()) if len(sides) > 1 else _spread(jobs[0], sides[0])
    if is_alone:
        if len(jobs) != 2:
            raise UsageError("give two jobs, BEFORE and AFTER, or several with --against or --baseline")
        before, jobs = jobs[:1], jobs[1:]
    if not jobs:
        raise UsageError("no JOB given for the runs after the change")
    after = _runs(reader, jobs)
    old = _runs(reader, before) if baseline is None else runs_of_baseline(reader, baseline, after)
    return diff(old, after, time.time_ns())


def _sides_of(reader: StoreReader, word: str) -> list[list[JobReader]]:
    """Return the runs of the series ``word`` by side; an empty list for other words."""
    if not word.startswith(SERIES_PREFIX):
        return []
    return sides_of_series(reader, word) or [[reader.job(word)]]


def _runs(reader: StoreReader, words: Sequence[str]) -> list[JobReader]:
    runs: list[JobReader] = []
    for word in words:
        sides = _sides_of(reader, word)
        if len(sides) > 1:
            raise UsageError(f"{word} has two sides: {word}:before and {word}:after")
        runs += sides[0] if sides else [reader.job(word)]
    return runs


def _spread(name: str, runs: Sequence[JobReader]) -> Diff:
    if len(runs) == 1:
        raise UsageError(f"{name} has one run that did not fail: a spread needs two")
    return spread(runs, time.time_ns())


def _status(result: Diff, limit: float | None) -> int:
    if limit is None or result.step is None:
        return 0
    if result.step.significant is None:
        note("--fail-over needs several runs: one run a side cannot tell a change from noise")
    return SLOWER_STATUS if result.step.significant and result.step.ratio > 1 + limit else 0


def text_lines(result: Diff, unit: str, columns: int | None) -> Iterator[str]:
    """Yield the lines of a comparison; ``unit``: what is a sample, run or step."""
    if result.is_spread:
        return spread_text.lines(result, columns)
    return diff_text.lines(result, unit, columns)


def _markdown(result: Diff, unit: str) -> Iterator[str]:
    from ..web import markdown  # noqa: PLC0415  # it imports all documents

    if result.is_spread:
        return markdown.spread_lines(result)
    return markdown.diff_lines(result, unit)
