"""What several commands share: options, printing, and messages."""

import gc
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

import click

from ..collector.documents.text import pieces
from ..collector.numbers import count
from ..collector.store.catalog import IMPORTED, RUNNING
from ..collector.store.opening import absolute, scheme_of
from ..collector.store.protocols import JobReader
from ..collector.summaries.jobs import counts_of
from ..commands import settings_files, streams
from ..formats import runtime_dir
from ..formats.errors import TfprofError, UsageError
from .job_names import complete_jobs, complete_names
from .values import NON_EMPTY, WHOLE

F = TypeVar("F", bound=Callable[..., Any])


class FolderOnlyError(UsageError):
    """A command that needs the folder of a store got a URL."""

    slug = "folder-only"


def _store(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str:
    return runtime_dir.require_absolute(runtime_dir.default_store()) if value is None else absolute(value)


def check_folder(address: str, what: str) -> None:
    """Raise FolderOnlyError if ``address`` is a URL; ``what``: what needs a folder."""
    if scheme_of(address):
        text = f"{what} needs the folder of a collector, and {scheme_of(address)}:// is none"
        raise FolderOnlyError(f"{text}: give the path of a store")


def _folder(context: click.Context, parameter: click.Parameter, value: str | None) -> str:
    if value is not None:
        check_folder(value, f"tfprof {context.info_name or ''}")
    return _store(context, parameter, value)


_STORE_HELP: Final = "(TFPROF_STORE, or ~/.local/state/tfprof)"
store_option: Callable[[F], F] = click.option(
    "--store",
    metavar="DIR|URL",
    callback=_store,
    help=f"The folder with the results {_STORE_HELP}, or clickhouse://HOST/DATABASE.",
)
#: The option of commands that work with the collector of a store, or write into it.
folder_option: Callable[[F], F] = click.option(
    "--store", metavar="DIR", callback=_folder, help=f"The folder with the results {_STORE_HELP}."
)
json_option: Callable[[F], F] = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
names_option: Callable[[F], F] = click.option(
    "--name",
    "names",
    multiple=True,
    metavar="NAME",
    type=NON_EMPTY,
    shell_complete=complete_names,
    help="Only jobs called NAME (`*` for any).",
)
pid_option: Callable[[F], F] = click.option(
    "--pid", "pids", metavar="P", type=WHOLE, multiple=True, help="Only jobs with this process id."
)
job_argument: Callable[[F], F] = click.argument("job", type=NON_EMPTY, shell_complete=complete_jobs)
jobs_argument: Callable[[F], F] = click.argument(
    "jobs", nargs=-1, type=NON_EMPTY, metavar="JOB...", shell_complete=complete_jobs
)


def print_json(document: Mapping[str, Any]) -> None:
    """Print a document."""
    streams.print_json(pieces(document))


def check_top(top: int, *, as_json: bool) -> None:
    """Raise UsageError if `--top`, which limits the rows of a screen, is given with `--json`."""
    if top and as_json:
        raise UsageError("--top limits the rows of the screen: --json has all rows")


@contextmanager
def without_gc() -> Iterator[None]:
    """Disable the garbage collector for a command.

    The command ends soon, and collections take a quarter of the time of a large job's answer.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def width() -> int | None:
    """Return the width in columns: $COLUMNS, else the terminal's; None without either."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal():
        from shutil import get_terminal_size  # noqa: PLC0415  # it loads compression libraries

        return get_terminal_size().columns
    return None


def store_lines(store: str) -> list[str]:
    """Return a line with the option that the commands above it need; none for the default store."""
    with suppress(TfprofError):  # the default is no folder
        if store == settings_files.store():
            return []
    return [f"(with --store {shlex.quote(store)})"]


def why_no_spans(job: JobReader, noun: str) -> str:
    """Return why a job has no steps or spans; ``noun``: step or span."""
    counted = sum(counts_of(job.info).values())
    if job.info.state == IMPORTED:
        return f"no {noun}s: the job was imported, and its files contain traced ops only"
    if counted:
        return f"no {noun} has a time to show: {count(counted)} were counted only"
    if job.info.state == RUNNING:
        return f"no {noun}s yet: the job has not run a session, a fit or a tf.function"
    return f"no {noun}s: the job ended before it ran a session, a fit or a tf.function"
