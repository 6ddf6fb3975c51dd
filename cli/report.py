"""The end of a `tfprof-run`: its report, and the requested profiles.

python -m tfprof.cli.report LAUNCH --store DIR [--problem TEXT] [--dump-steps N,M --dump-dir DIR]
    [--quiet]
"""

import argparse
import io
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..collector.errors import StoreError, TfprofError
from ..collector.query.explanations import (
    cost_note,
    first_warning,
    left_out_kinds_text,
    missed_steps_note,
    untraced_reason,
)
from ..collector.query.profile import Profile
from ..collector.query.ranking import rank_ops
from ..collector.render import report_text
from ..collector.render.heading import wrapped
from ..collector.render.report_text import JobSummary
from ..collector.store.protocols import JobReader, StoreReader
from ..collector.store.reader import open_reader
from ..collector.summaries.jobs import JobRow, functions_of, job_rows
from ..collector.summaries.kinds import function_key, kind_name, step_kind_of
from ..collector.summaries.steps import steps
from ..formats import layout
from .command import width


def _summary(job: JobReader, row: JobRow, profile: Profile | None) -> JobSummary:
    """Return the summary of a job: its row, and the median step time of one step group.

    A group has the steps of one function, or of one set of feeds and fetches. The selected group
    has the largest total time. If ``profile`` covers single functions, only their groups are
    compared.
    """
    groups = [group for group in steps(job.table("spans"), 0).groups if group.kind == row.step_kind and group.untraced]
    keys = set(map(function_key, profile.kind_numbers if profile else ()))
    compared_groups = [group for group in groups if group.key in keys] or groups
    longest = max(compared_groups, key=lambda group: group.untraced.total_ns if group.untraced else 0, default=None)
    if longest is None or longest.untraced is None:
        return JobSummary(row, None)
    kind = step_kind_of(layout.FUNCTION, longest.key)
    name = kind_name(kind, functions_of(job.info)) if keys - {0} and groups[1:] else ""
    return JobSummary(row, longest.untraced.p50_ns, name)


def _jobs(store: StoreReader, launch: str) -> list[tuple[JobReader, JobRow]]:
    """Return the jobs of ``launch``, most steps first.

    Of jobs with equally many steps, lost ones come last.
    """
    all_jobs = store.jobs()
    rows = job_rows([job.info for job in all_jobs], time.time_ns())
    jobs = [(job, row) for job, row in zip(all_jobs, rows, strict=True) if row.launch == launch]
    return sorted(jobs, key=lambda pair: (-pair[1].steps, pair[1].state == "lost"))


def report(store: StoreReader, launch: str, problem: str | None, columns: int | None) -> Iterator[str]:
    """Yield the lines of the report on ``launch``.

    ``problem``: a further message of the launcher. ``columns``: width of the terminal, None without
    one.
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
    other_summaries = [JobSummary(row, None) for _, row in jobs[report_text.JOBS_MAX :]]
    remarks = (
        (left_out_kinds_text(profile), first_warning(first_job), missed_steps_note(first_job))
        if profile
        else (untraced_reason(first_job),)
    )
    costs = (cost_note(job, row) for job, row in jobs[: report_text.JOBS_MAX])
    notes = [*remarks, next(filter(None, costs), None)]
    yield from report_text.lines(
        [*summaries, *other_summaries], top.ops if top else [], list(filter(None, notes)), columns
    )
    if problem:
        yield from wrapped(f"tfprof: {problem}", columns)


def dump_profiles(store: StoreReader, launch: str, steps: str, folder: str) -> Iterator[tuple[str, bool]]:
    """Write the requested profiles of ``launch``.

    Yield for each profile a line and whether it was written.
    """
    from .dumps import dump  # noqa: PLC0415  # few launches ask for it

    jobs = _jobs(store, launch)
    for text, is_written in dump(jobs, [int(step) for step in steps.split(",")], Path(folder)) if jobs else ():
        yield f"tfprof: {text}", is_written


def _lines(options: argparse.Namespace) -> Iterator[str]:
    """Yield the lines to print.

    With ``--quiet`` these are only the problem and the requested profiles that could not be
    written. If nothing of the launch is stored, the report says so all the same.
    """
    store = open_reader(options.store)
    if not options.quiet or not _jobs(store, options.launch):
        # The whole report is made before the first line is printed, since it may fail.
        yield from list(report(store, options.launch, options.problem, width()))
    elif options.problem:
        yield from wrapped(f"tfprof: {options.problem}", width())
    if options.dump_steps:
        for line, is_written in dump_profiles(store, options.launch, options.dump_steps, options.dump_dir):
            if not (options.quiet and is_written):
                yield line


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the report; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("launch", help="id of the launch: 16 hexadecimal digits")
    parser.add_argument("--store", required=True, help="the folder with the results")
    parser.add_argument("--problem", help="why the profile is incomplete")
    parser.add_argument("--dump-steps", help="write profile_N into --dump-dir for each step N of this list")
    parser.add_argument("--dump-dir", default=".", help="the folder for the profiles")
    parser.add_argument(
        "--quiet",
        action="store_true",
        help="no report; print only the problem, and the profiles that could not be written",
    )
    options = parser.parse_args(arguments)
    assert isinstance(sys.stdout, io.TextIOWrapper)
    sys.stdout.reconfigure(errors="replace")
    try:
        for line in _lines(options):
            print(line, flush=True)
    except TfprofError as error:
        print(f"tfprof: no profile: {options.problem or error}")
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that the interpreter's last flush succeeds
    return 0


if __name__ == "__main__":
    sys.exit(main())
