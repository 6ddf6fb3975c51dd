"""The end of a `tfprof-run`: its report and the requested profiles, or how its runs compare.

python -m tfprof.cli.report LAUNCH|SERIES --store DIR [--problem TEXT]
    [--dump-steps N,M --dump-dir DIR] [--output FILE]... [--quiet] [--brief]
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..collector.errors import StoreError, TfprofError
from ..collector.query.advising import first_advice
from ..collector.query.breakdown import main_breakdown
from ..collector.query.explanations import (
    cost_note,
    left_out_kinds_text,
    main_warnings,
    missed_steps_note,
    own_traces_note,
    untraced_reason,
)
from ..collector.query.node_times import Ranking, rank_ops
from ..collector.query.profile import Profile
from ..collector.render import colors, report_text
from ..collector.render.report_text import JobSummary
from ..collector.render.wrapping import wrapped
from ..collector.store.catalog import SERIES_PREFIX
from ..collector.store.opening import open_reader
from ..collector.store.protocols import JobReader, StoreReader
from ..collector.summaries.jobs import JobRow, functions_of, job_rows
from ..collector.summaries.kinds import FUNCTION_PREFIX
from ..collector.summaries.step_times import median_step, step_times_of
from ..commands.streams import print_lines
from .colored import has_colors
from .command import store_lines, width


def _summary(job: JobReader, row: JobRow, profile: Profile | None) -> JobSummary:
    """Return the summary of a job: its row, and the median step of the kind whose ops it shows."""
    step_times = step_times_of(row, job.table("spans"), functions_of(job.info))
    times = median_step(row, step_times, profile.kinds if profile else ())
    if times is None:
        return JobSummary(row, None)
    functions = [entry for entry in step_times if entry.kind.startswith(FUNCTION_PREFIX)]
    return JobSummary(row, times.spread.p50_ns, times.kind if times in functions and functions[1:] else "")


def _jobs(store: StoreReader, launch: str) -> list[tuple[JobReader, JobRow]]:
    """Return the jobs of ``launch``, most steps first.

    Among jobs with equal numbers of steps, lost jobs come last.
    """
    all_jobs = store.jobs()
    rows = job_rows([job.info for job in all_jobs], time.time_ns())
    jobs = [(job, row) for job, row in zip(all_jobs, rows, strict=True) if row.launch == launch]
    return sorted(jobs, key=lambda pair: (-pair[1].steps, pair[1].state == "lost"))


def report(
    store: StoreReader, launch: str, problem: str | None, columns: int | None, *, is_brief: bool = False
) -> Iterator[str]:
    """Yield the lines of the report on ``launch``.

    ``problem``: a further message of the launcher. ``columns``: width of the terminal, None without
    one. ``is_brief``: whether only the lines about the jobs are wanted.
    """
    jobs = _jobs(store, launch)
    if not jobs:
        no_data = StoreError("no data of this command reached the store", slug="no-data")
        yield f"tfprof: no profile: {problem or no_data}"
        return
    first_job = jobs[0][0]
    top = rank_ops(first_job)
    profile = top.profile if top else None
    summaries = [_summary(job, row, profile if job is first_job else None) for job, row in jobs[: report_text.JOBS_MAX]]
    summaries += [JobSummary(row, None) for _, row in jobs[report_text.JOBS_MAX :]]
    if is_brief:
        yield from report_text.job_lines(summaries, columns)
    else:
        yield from _whole(jobs, summaries, top, columns)
        yield from (f"tfprof: {line}" for line in store_lines(store.address))
    if problem:
        yield from wrapped(f"tfprof: {problem}", columns)


def _whole(
    jobs: Sequence[tuple[JobReader, JobRow]], summaries: Sequence[JobSummary], top: Ranking | None, columns: int | None
) -> Iterator[str]:
    """Yield the lines of a report with parts, ops, notes and advice."""
    first_job = jobs[0][0]
    profile = top.profile if top else None
    parts = main_breakdown(first_job, first_job.table("spans")) if profile else None
    remarks = (
        (
            left_out_kinds_text(profile),
            main_warnings(first_job),
            missed_steps_note(first_job),
            own_traces_note(first_job),
        )
        if profile
        else (untraced_reason(first_job),)
    )
    costs = (cost_note(job, row) for job, row in jobs[: report_text.JOBS_MAX])
    notes = [*remarks, next(filter(None, costs), None)]
    yield from report_text.lines(summaries, top.ops if top else [], list(filter(None, notes)), columns, parts)
    if top is not None and (sentence := first_advice(first_job)):
        yield from wrapped(f"tfprof: {sentence}: tfprof advise {jobs[0][1].id}", columns)


def dump_profiles(store: StoreReader, launch: str, steps: str, folder: str) -> Iterator[tuple[str, bool]]:
    """Write the requested profiles of ``launch``.

    Yield for each profile a line and whether it was written.
    """
    from .dumps import dump  # noqa: PLC0415  # few launches ask for it

    jobs = _jobs(store, launch)
    for text, is_written in dump(jobs, [int(step) for step in steps.split(",")], Path(folder)) if jobs else ():
        yield f"tfprof: {text}", is_written


def write_files(store: StoreReader, launch: str, paths: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Write the jobs of ``launch`` to ``paths``.

    Yield for each file a line and whether it was written.
    """
    from .outputs import write_outputs  # noqa: PLC0415  # few launches ask for it

    jobs = _jobs(store, launch)
    for text, is_written in write_outputs([job for job, _ in jobs], [row.id for _, row in jobs], paths) if jobs else ():
        yield f"tfprof: {text}", is_written


def _comparison(store: StoreReader, series: str) -> Iterator[str]:
    """Yield the lines that compare the runs of ``series``."""
    from .diff import compared, text_lines  # noqa: PLC0415  # few launches are series

    try:
        result = compared(store, [series])
        yield from ("", *text_lines(result, "run", width()), f"tfprof: more with  tfprof diff {series}")
        yield from (f"tfprof: {line}" for line in store_lines(store.address))
    except TfprofError as error:
        yield f"tfprof: no comparison: {error}"


def _lines(options: argparse.Namespace) -> Iterator[str]:
    """Yield the lines to print.

    With ``--quiet`` these are only the problem and the requested profiles that could not be
    written. If nothing of the launch is stored, the report says so even with ``--quiet``.
    """
    store = open_reader(options.store)
    if options.launch.startswith(SERIES_PREFIX):
        yield from _comparison(store, options.launch)
        return
    if not options.quiet or not _jobs(store, options.launch):
        # The whole report is made before the first line is printed, since it may fail.
        yield from list(report(store, options.launch, options.problem, width(), is_brief=options.brief))
    elif options.problem:
        yield from wrapped(f"tfprof: {options.problem}", width())
    if options.dump_steps:
        for line, is_written in dump_profiles(store, options.launch, options.dump_steps, options.dump_dir):
            if not (options.quiet and is_written):
                yield line
    for line, is_written in write_files(store, options.launch, options.output):
        if not (options.quiet and is_written):
            yield line


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the report; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("launch", help="id of the launch: 16 hexadecimal digits; or a series: repeat:ID")
    parser.add_argument("--store", required=True, help="the folder with the results")
    parser.add_argument("--problem", help="why the profile is incomplete")
    parser.add_argument("--dump-steps", help="write profile_N into --dump-dir for each step N of this list")
    parser.add_argument("--dump-dir", default=".", help="the folder for the profiles")
    parser.add_argument("--output", action="append", default=[], help="write the jobs to this file; repeatable")
    parser.add_argument(
        "--quiet",
        action="store_true",
        help="no report; print only the problem, and the profiles that could not be written",
    )
    parser.add_argument("--brief", action="store_true", help="a line per job only")
    options = parser.parse_args(arguments)
    colors.use(has_colors())
    try:
        for line in _lines(options):
            print_lines([line])
    except TfprofError as error:
        print_lines([f"tfprof: no profile: {options.problem or error}"])
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that the interpreter's last flush succeeds
    return 0


if __name__ == "__main__":
    sys.exit(main())
