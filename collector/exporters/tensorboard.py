"""The format `tensorboard`: jobs as a run of TensorBoard's profile page, which XProf reads, too.

A job is a host of the run. Its file is an XSpace (xspace.py).
"""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from ..errors import StoreError
from ..export.folders import Folder
from ..query.explanations import untraced_reason
from ..store.protocols import JobReader
from ..traces.model import Mark, Process, Slices, Track
from ..traces.trace import Trace
from .request import Request
from .timelines import trace_of
from .xspace import BYTES_MAX, XSpace

_RUNS: Final = "plugins/profile"
_SUFFIX: Final = ".xplane.pb"
#: Maximum number of jobs whose ids are in the name of a run, and the number of digits of each id.
_IDS_MAX, _ID = 8, 8
#: Maximum length of a host in the name of a file.
_HOST_MAX: Final = 100
#: Characters that are not in names of hosts.
_ODD: Final = re.compile(r"[^A-Za-z0-9_.-]+")


def folder(request: Request) -> Folder:
    """Return the folder of the run; errors are those of `trace_of`.

    StoreError ``no-data`` if no step was traced.
    """
    trace = trace_of(request)
    jobs = request.selection.jobs
    if not trace.steps:
        raise StoreError(untraced_reason(jobs[0]), slug="no-data")
    return Folder(f"{_RUNS}/{_run_name(trace, jobs)}", _files(request, trace))


def _run_name(trace: Trace, jobs: Sequence[JobReader]) -> str:
    """Return the time of the first traced step, as TensorFlow does, and the ids of the jobs."""
    start = time.localtime(_window(trace)[0] // 10**9)
    return "_".join((time.strftime("%Y_%m_%d_%H_%M_%S", start), *(job.info.hex[:_ID] for job in jobs[:_IDS_MAX])))


def _window(trace: Trace) -> tuple[int, int]:
    starts, ends = zip(*trace.windows_ns, strict=True)
    return min(starts), max(ends)


def _files(request: Request, trace: Trace) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Yield the file of each job, as the parts of the jobs are read."""
    names: set[str] = set()
    window = _window(trace)
    for job in trace.jobs:
        host = _ODD.sub("_", job.process.host)[:_HOST_MAX].strip(".") or "host"
        host = f"{host}_{job.process.id}" if host in names else host
        names.add(host)
        with XSpace(host, window, job.left_out) as space:
            for part in job.parts(with_curves=False):
                _WRITERS[type(part)](space, part)
            space.finish()
            if space.size > BYTES_MAX:
                request.notes.append(f"{host}{_SUFFIX} is larger than 2 GiB, which XProf does not read: select --steps")
            yield f"{host}{_SUFFIX}", space.pieces()


_WRITERS: Final[dict[type[Any], Any]] = {
    Process: XSpace.process,
    Track: XSpace.track,
    Slices: XSpace.slices,
    Mark: XSpace.mark,
}
