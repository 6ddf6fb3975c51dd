"""Reads the source lines of a job's ops, with their costs; a file that changed has no text."""

import errno
import os
import stat
import time
from dataclasses import dataclass
from typing import Final, NamedTuple

from ...commands.streams import clean
from ..store.protocols import JobReader
from ..summaries.op_parts import LineCost, line_costs, shown_lines
from ..tfviews.nodes import total_of
from .facts import STACKS
from .job_selection import Selection
from .profile import profile

_TICK_NS: Final = 10**9 // os.sysconf("SC_CLK_TCK")
#: Maximum size of a file (bytes), and of a line (characters).
SIZE_MAX: Final = 10**6
_LINE_MAX: Final = 300
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
#: Only files with this suffix are read, since whoever writes a job's records could name a file with
#: secrets.
_SUFFIX: Final = ".py"


class SourceLine(NamedTuple):
    """A line to show; ``text`` is None if it is unknown, ``cost`` None if its ops took no time."""

    number: int
    text: str | None
    cost: LineCost | None


class SourceFile(NamedTuple):
    """The shown lines of a file; ``no_text``: why their text is unknown, '' if it is known."""

    path: str
    no_text: str
    lines: tuple[SourceLine, ...]


@dataclass(frozen=True, slots=True)
class JobSource:
    """The files of a job's source lines, the one with the most expensive line first.

    ``total_ns``: the time of all ops per step. ``left_out``: number of lines with a cost that are
    not shown.
    """

    job: JobReader
    traces: int
    total_ns: float
    files: tuple[SourceFile, ...]
    left_out: int


def job_source(job: JobReader) -> JobSource:
    """Return the source lines of ``job``, over its traced steps of the main kind."""
    job_profile = profile(Selection((job,)), required_facts=(STACKS,), averaged=False)
    if job_profile is None:
        return JobSource(job, 0, 0.0, (), 0)
    steps = max(1, job_profile.trace_count)
    costs = line_costs(job_profile.nodes, steps)
    files = tuple(_source_file(job, path, numbers, costs) for path, numbers in shown_lines(costs).items())
    shown = sum(line.cost is not None for file in files for line in file.lines)
    total_ns = total_of(job_profile.nodes).micros / steps
    return JobSource(job, job_profile.trace_count, total_ns, files, len(costs) - shown)


def _source_file(job: JobReader, path: str, numbers: list[int], costs: dict[tuple[str, int], LineCost]) -> SourceFile:
    try:
        texts, no_text = _texts(job, path, max(number for number in numbers if (path, number) in costs)), ""
    except NoTextError as error:
        texts, no_text = [], str(error)
    lines = (
        SourceLine(number, texts[number - 1] if number <= len(texts) else None, costs.get((path, number)))
        for number in numbers
    )
    return SourceFile(path, no_text, tuple(line for line in lines if line.cost or line.text is not None))


def _texts(job: JobReader, path: str, last: int) -> list[str]:
    """Return the lines of a file, which must have at least ``last`` lines."""
    if job.info.host != os.uname().nodename:
        raise NoTextError("the job ran on another host")
    folder = job.info.identity.get("folder")
    is_relative = isinstance(folder, str) and not path.startswith("/")
    texts = source_text(f"{folder}/{path}" if is_relative else path, _began_ns(job))
    if last > len(texts):
        raise NoTextError("it has fewer lines than when the job ran")
    return texts


def _began_ns(job: JobReader) -> int:
    """Return when the process began (real time): an attached one began before its job."""
    ticks, created = job.info.identity.get("started"), job.info.identity.get("created_real_ns")
    recorded = created if isinstance(created, int) else 0
    if not isinstance(ticks, int):
        return recorded
    booted_ns = time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return min(recorded, booted_ns + ticks * _TICK_NS)


class NoTextError(Exception):
    """The text of a file is not available; the message says why."""


def source_text(path: str, before_ns: int) -> list[str]:
    """Return the lines of the file at ``path``, cleaned, without their ends.

    NoTextError if it cannot be read, or if it was changed at ``before_ns`` (real time) or later.
    """
    if not path.endswith(_SUFFIX) or "\0" in path:
        raise NoTextError(f"only files named {_SUFFIX} are read")
    if not path.startswith("/"):
        raise NoTextError("its folder is unknown")
    try:
        fd = os.open(path, _FLAGS)
    except (OSError, UnicodeError) as error:
        raise NoTextError(_reason(error)) from None
    try:
        _check(os.fstat(fd), before_ns)
        with open(fd, "rb", closefd=False) as file:
            content = file.read(SIZE_MAX)
        _check(os.fstat(fd), before_ns)
    except OSError as error:
        raise NoTextError(_reason(error)) from None
    finally:
        os.close(fd)
    text = content.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    return [clean(line[:_LINE_MAX].expandtabs()) for line in text.split("\n")]


def _check(status: os.stat_result, before_ns: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise NoTextError("it is not a regular file")
    if status.st_size > SIZE_MAX:
        raise NoTextError("it is larger than 1 MB")
    # The time of the last change is not enough: a file with old content may have been moved here
    # later.
    if max(status.st_mtime_ns, status.st_ctime_ns) >= before_ns:
        raise NoTextError("it was changed since the job began")


def _reason(error: Exception) -> str:
    number = getattr(error, "errno", None)
    if number == errno.ELOOP:
        return "it is a symbolic link"
    return f"it cannot be read: {os.strerror(number)}" if number else "it cannot be read"
