"""Files that a command writes when a job, or the steps that it traced, are over: `-o run.json`."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from ..collector.errors import TfprofError
from ..collector.exporters.request import Request
from ..collector.exporters.table import STDOUT_PATH, exporter_for, write_exports
from ..collector.query.job_selection import Selection
from ..collector.store.protocols import JobReader
from ..commands.new_outputs import ID, NAME, problems
from ..formats.exports import JOB, SINCE

#: Names of views that `-o` prints. Any other word names a file.
VIEWS: Final = ("ops",)


class Outputs(NamedTuple):
    """What `-o` asks for: views to print, files to write."""

    views: tuple[str, ...]
    paths: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.views or self.paths)


def _outputs(_context: click.Context, _parameter: click.Parameter, values: Sequence[str]) -> Outputs:
    outputs = Outputs(
        tuple(value for value in values if value in VIEWS), tuple(value for value in values if value not in VIEWS)
    )
    if STDOUT_PATH in outputs.paths:
        raise click.BadParameter("standard output has the lines of the command: name a file")
    for problem in problems(outputs.paths):
        raise problem
    return outputs


def output_option(text: str) -> Callable[[Any], Any]:
    """Return the option `-o`, whose value is an Outputs; ``text``: what `-o ops` does."""
    return click.option(
        "-o",
        "--output",
        "outputs",
        metavar="ops|FILE",
        multiple=True,
        callback=_outputs,
        help=f"ops: {text}. FILE: likewise, and write a file (run.json, run.perfetto-trace, …: tfprof export --list).",
    )


def write_outputs(
    jobs: Sequence[JobReader], ids: Sequence[str], paths: Sequence[str], since_ns: int | None = None
) -> Iterator[tuple[str, bool]]:
    """Write ``jobs``, the most important first, to each of ``paths``.

    Yield for each file a text and whether it was written. `{name}` and `{id}` in a path stand for
    the first job; ``ids``: the short ids of the jobs. ``since_ns``: only traced steps that began
    then or later, in formats that can select.
    """
    for path in paths:
        name = path.replace(NAME, _in_path(jobs[0].info.name)).replace(ID, ids[0])
        try:
            yield _write(jobs, name, since_ns), True
        except TfprofError as error:
            yield f"no file: {_without_force(error)}", False


def _write(jobs: Sequence[JobReader], path: str, since_ns: int | None) -> str:
    exporter = exporter_for(path)
    written = jobs[:1] if exporter.subject == JOB else jobs
    request = Request(Selection(tuple(written), since_ns=(since_ns or 0) if SINCE in exporter.options else 0))
    write_exports(request, [path])
    left_out = f"; {len(jobs) - 1} more: tfprof export" if len(written) < len(jobs) else ""
    return "; ".join([f"wrote {path}{left_out}", *request.notes])


def _without_force(error: TfprofError) -> TfprofError:
    """Return ``error`` in the words of a command that has no --force."""
    if error.slug != "file-exists":
        return error
    return TfprofError(str(error.args[0]).partition(": ")[0] + ": remove it, or give another name", slug=error.slug)


def _in_path(name: str) -> str:
    """Return the name of a job as a part of a file's name."""
    clean = "".join(char if char.isprintable() and char != os.sep else "_" for char in name)
    return Path(clean).stem[:100].lstrip(".-") or "job"
