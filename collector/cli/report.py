"""The end report of a `tfprof-run`: python -m tfprof.collector.cli.report LAUNCH --store DIR [--problem TEXT]."""

import argparse
import io
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence

from tfprof.collector.errors import StoreError, TfprofError
from tfprof.collector.profile import profile
from tfprof.collector.render import report_text
from tfprof.collector.render.report_text import Summary
from tfprof.collector.render.why_text import untraced
from tfprof.collector.store.reader import Job, Store
from tfprof.collector.views.jobs import JobRow, job_rows
from tfprof.collector.views.steps import steps
from tfprof.collector.views.top import top_ops


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
    found = profile(first, averaged=False, needs=())
    ops = top_ops(found.nodes, report_text.OPS) if found else []
    note = None if found else untraced(first)
    yield from report_text.lines([*shown, *rest], ops, found.traces if found else 0, note, width)
    if problem:
        yield f"tfprof: {problem}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the report; return the exit status."""
    parser = argparse.ArgumentParser(prog="tfprof.collector.cli.report", description=__doc__)
    parser.add_argument("launch", help="id of the launch: 16 hexadecimal digits")
    parser.add_argument("--store", required=True, help="the folder with the results")
    parser.add_argument("--problem", help="what kept the profile from being complete")
    given = parser.parse_args(arguments)
    assert isinstance(sys.stdout, io.TextIOWrapper)
    sys.stdout.reconfigure(errors="replace")
    try:
        for line in report(Store(given.store), given.launch, given.problem, shutil.get_terminal_size().columns):
            print(line)
        sys.stdout.flush()
    except TfprofError as error:
        print(f"tfprof: no profile: {given.problem or error}")
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that the interpreter's last flush has somewhere to go
    return 0


if __name__ == "__main__":
    sys.exit(main())
