"""The end of a `tfprof-run`: its report, and the profiles that were asked for.

python -m tfprof.cli.report LAUNCH --store DIR [--problem TEXT] [--dump-steps N,M --dump-dir DIR] [--quiet]
"""

import argparse
import io
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ..collector.errors import StoreError, TfprofError
from ..collector.query.explanations import befell, missed, of_kinds, untraced
from ..collector.query.profile import profile
from ..collector.query.required_facts import STACKS
from ..collector.query.step_times import step_times
from ..collector.render import report_text
from ..collector.render.report_text import Summary
from ..collector.store.reader import Job, Store
from ..collector.summaries.jobs import JobRow, job_rows, over_budget
from ..collector.summaries.steps import steps
from ..collector.summaries.top import top_ops


def _median(job: Job, kind: str) -> float | None:
    groups = [one for one in steps(job.table("spans"), 0).groups if one.kind == kind and one.untraced]
    most = max(groups, key=lambda one: one.untraced.total_ns if one.untraced else 0, default=None)
    return most.untraced.p50_ns if most and most.untraced else None


def _processes(store: Store, launch: str) -> list[tuple[Job, JobRow]]:
    """Return the processes of ``launch``, the one that did the most steps first."""
    jobs = store.jobs()
    rows = job_rows([job.info for job in jobs], time.time_ns())
    mine = [(job, row) for job, row in zip(jobs, rows, strict=True) if row.launch == launch]
    return sorted(mine, key=lambda pair: -pair[1].steps)


def _dear(rows: Iterable[JobRow]) -> str | None:
    """Return why the first of ``rows`` whose cost is above the budget is."""
    why = next(filter(None, map(over_budget, rows)), None)
    return f"the cost is above the budget: {why}" if why else None


def report(store: Store, launch: str, problem: str | None, width: int) -> Iterator[str]:
    """Yield the lines of the report on ``launch``; ``problem`` is what its launcher has to tell besides."""
    processes = _processes(store, launch)
    if not processes:
        missing = StoreError("no data of this command reached the store", slug="no-data")
        yield f"tfprof: no profile: {problem or missing}"
        return
    shown = [Summary(row, _median(job, row.step_kind)) for job, row in processes[: report_text.PROCESSES]]
    rest = [Summary(row, None) for _, row in processes[report_text.PROCESSES :]]
    first = processes[0][0]
    found = profile(first, averaged=False, needs=(STACKS,))
    ops = top_ops(found.nodes, step_times(found).nodes, found.traces) if found and found.traces else []
    why = (of_kinds(found), befell(first), missed(first)) if found else (untraced(first),)
    notes = [*why, _dear(one.row for one in shown)]
    yield from report_text.lines([*shown, *rest], ops, list(filter(None, notes)), width)
    if problem:
        yield f"tfprof: {problem}"


def dumped(store: Store, launch: str, steps: str, folder: str) -> Iterator[tuple[str, bool]]:
    """Write the profiles of ``launch`` that were asked for; yield a line on each, and whether it is there."""
    from .dumps import dump  # noqa: PLC0415  # few launches ask for it

    processes = _processes(store, launch)
    for text, is_there in dump(processes, [int(step) for step in steps.split(",")], Path(folder)) if processes else ():
        yield f"tfprof: {text}", is_there


def _lines(given: argparse.Namespace) -> Iterator[str]:
    """Yield what is to be printed; with ``--quiet`` only what stands in the way of profiles."""
    store = Store(given.store)
    told = list(report(store, given.launch, given.problem, shutil.get_terminal_size().columns))
    if not given.quiet:
        yield from told
    elif given.problem or not _processes(store, given.launch):
        yield told[-1]
    if given.dump_steps:
        for line, is_there in dumped(store, given.launch, given.dump_steps, given.dump_dir):
            if not (given.quiet and is_there):
                yield line


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the report; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("launch", help="id of the launch: 16 hexadecimal digits")
    parser.add_argument("--store", required=True, help="the folder with the results")
    parser.add_argument("--problem", help="what kept the profile from being complete")
    parser.add_argument("--dump-steps", help="write profile_N into --dump-dir, for each N of these")
    parser.add_argument("--dump-dir", default=".", help="the folder for them")
    parser.add_argument("--quiet", action="store_true", help="no report; say only which profiles could not be written")
    given = parser.parse_args(arguments)
    assert isinstance(sys.stdout, io.TextIOWrapper)
    sys.stdout.reconfigure(errors="replace")
    try:
        for line in _lines(given):
            print(line, flush=True)
    except TfprofError as error:
        print(f"tfprof: no profile: {given.problem or error}")
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that the interpreter's last flush has somewhere to go
    return 0


if __name__ == "__main__":
    sys.exit(main())
