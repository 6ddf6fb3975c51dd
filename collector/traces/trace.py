"""Reads jobs as one trace: a stream of parts (model.py) on one time axis."""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Final

from ..query.job_selection import Selection, ids_of
from ..store.columns import integer, pc
from ..store.protocols import JobReader
from .chosen import JobTraces, chosen_traces
from .job_trace import LAST_NS, JobTrace
from .labels import Labels
from .model import Part, Process

#: The highest process id of Linux.
_PID_MAX: Final = 1 << 22
#: An interval that nothing overlaps: of a job without a selected step, nothing is shown.
_NOTHING: Final = (1, 0)


class Trace:
    """The trace of the jobs of a selection.

    ``origin_ns``: the start of the earliest part (real time, ns). ``is_empty``: there is nothing to
    show. ``steps``: number of traced steps; ``left_out``: number of those that were left out
    because they are too many. ``jobs``: the jobs, one by one. ``windows_ns``: start and end of the
    traced steps of each job that has some, with their executions.
    """

    def __init__(
        self,
        selection: Selection,
        rows_max: int | None = None,
        labels: Labels | None = None,
        *,
        needs_traces: bool = True,
    ) -> None:
        """Choose the traced steps; arguments and errors as in `chosen_traces`.

        ``labels``: labels of the only job, which several traces share. Steps without start times
        are left out.
        """
        chosen = [
            traces._replace(traces=traces.traces.filter(pc.greater(traces.traces["start_ns"], integer(0))))
            for traces in chosen_traces(selection, rows_max, needs_traces=needs_traces)
        ]
        self.left_out = sum(traces.left_out for traces in chosen)
        self.steps = sum(traces.traces.num_rows for traces in chosen)
        tracks = count(1)
        self.jobs = [
            JobTrace(process, traces, tracks, window, labels)
            for process, traces, window in zip(
                _processes(selection.jobs), chosen, _windows(selection, chosen), strict=True
            )
        ]
        starts_ns = [start for job in self.jobs for start in job.starts_ns()]
        self.windows_ns = [window for traces in chosen for window in (traces.executed_ns,) if window]
        self.is_empty, self.origin_ns = not starts_ns, min(starts_ns, default=0)

    def parts(self, *, with_curves: bool = True) -> Iterator[Part]:
        """Yield the parts: of each job its process, its spans, marks and curves, its executions.

        A track comes before what is on it. Executions are read in batches of whole steps.
        """
        for job in self.jobs:
            yield from job.parts(with_curves=with_curves)


def _windows(selection: Selection, chosen: Sequence[JobTraces]) -> list[tuple[int, int]]:
    """Return the interval that is shown of each job.

    If steps are left out because there are too many, it is the same one for all jobs.
    """
    windows = [traces.window_ns for traces in chosen]
    if selection.steps is not None:
        return [window or _NOTHING for window in windows]
    if any(traces.left_out for traces in chosen) and any(windows) and not selection.since_ns:
        starts, ends = zip(*filter(None, windows), strict=True)
        return [(min(starts), max(ends))] * len(chosen)
    return [(selection.since_ns, LAST_NS)] * len(chosen)


def _processes(jobs: Sequence[JobReader]) -> Iterator[Process]:
    ids = ids_of(jobs)
    used_pids = {0}
    for number, job in enumerate(jobs, 1):
        pid = job.info.pid
        own_pid = _PID_MAX + number if pid in used_pids else pid
        used_pids.add(pid)
        yield Process(number, ids[job.info.hex], job.info.name, job.info.host, pid, own_pid)
