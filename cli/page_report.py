"""`tfprof report`: the page of a job, or the difference of two, as one file."""

import time
from collections.abc import Sequence
from pathlib import Path

import click

from ..collector.errors import UsageError
from ..collector.export.files import check_is_new, write
from ..collector.query.diffing import diff
from ..collector.store.opening import open_reader
from ..collector.store.protocols import JobReader, StoreReader
from ..web import markdown
from ..web.report import diff_report, job_report
from .command import jobs_argument, store_option
from .values import NON_EMPTY


@click.command()
@jobs_argument
@click.option(
    "-o",
    "--output",
    "path",
    metavar="FILE",
    type=NON_EMPTY,
    required=True,
    help="The file: .html for a page, .md for text and tables.",
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
@store_option
def report(jobs: Sequence[str], store: str, path: str, *, force: bool) -> None:
    """Write the page of JOB as it is now, or the difference of two JOBs, as one file.

    \b
    tfprof report JOB -o report.html            opens in any browser, without a server
    tfprof report BEFORE AFTER -o diff.html     the difference of two jobs
    tfprof report JOB -o report.md              text and tables, for a ticket
    """  # noqa: D301  # click's mark for lines that are not rewrapped
    form = _FORMS.get(Path(path).suffix.lower())
    if form is None:
        raise UsageError(f"the name {path} does not tell the form: end it with {' or '.join(_FORMS)}")
    reader = open_reader(store)
    chosen = [reader.job(job) for job in jobs]
    if len(chosen) not in {1, 2}:
        raise UsageError("give one JOB, or two: BEFORE and AFTER")
    if not force:
        check_is_new(path)
    write(path, [form(reader, chosen).encode("utf-8", "replace")])


def _html(store: StoreReader, jobs: Sequence[JobReader]) -> str:
    return job_report(store, jobs[0]) if len(jobs) == 1 else diff_report(store, jobs[0], jobs[1])


def _markdown(store: StoreReader, jobs: Sequence[JobReader]) -> str:
    if len(jobs) == 1:
        return "\n".join(markdown.job_lines(store, jobs[0]))
    return "\n".join(markdown.diff_lines(diff(jobs[:1], jobs[1:], time.time_ns()), "run"))


#: Functions that make a file, by the end of its name.
_FORMS = {".html": _html, ".htm": _html, ".md": _markdown}
