"""Follows running jobs: yields their steps as lines, their events and their ends."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from ...formats.layout import SECOND_NS
from ..errors import StoreError
from ..store.catalog import RUNNING, STALE, JobInfo
from ..store.protocols import JobReader, StoreReader
from ..store.selectors import LAST, matching
from ..summaries.events import EventSummary, events
from ..summaries.jobs import JobRow, current_info, functions_of, job_row
from ..summaries.lines import StepLine, StepLines
from ..summaries.step_times import median_step, step_times_of
from .followed import FollowedRows, followed

#: Intervals of the search for new jobs of a launch, and of the check for a silent job's collector.
_SCAN_NS: Final = 2 * SECOND_NS
_CHECK_NS: Final = 5 * SECOND_NS
#: Time limit for the agent to start another collector in place of one that ended.
RESTART_TIMEOUT_NS: Final = 60 * SECOND_NS
#: Maximum number of past entries that are read, unless all are requested.
_PAST_MAX: Final = 20_000


@dataclass(frozen=True, slots=True)
class JobChange:
    """A change of the job of ``row``.

    The fields that are set depend on ``kind``. ``job``: the job is followed from now on. ``steps``:
    ``line`` has new steps. ``warning``: ``event`` is new. ``collector``: the collector ended, or if
    ``back``, another collector runs. ``end``: the job ended; ``median_ns`` is the median time of
    the steps of its main kind; for function calls, of the function with the most time.
    """

    kind: str
    row: JobRow
    line: StepLine | None = None
    event: EventSummary | None = None
    back: bool = False
    median_ns: float | None = None


@dataclass(slots=True)
class _FollowedJob:
    """A followed job between updates."""

    reader: JobReader
    short_id: str
    rows: FollowedRows
    lines: StepLines
    last_rows_ns: int
    is_announced: bool = False
    collector_gone_ns: int | None = None
    collector_checked_ns: int = 0


class JobFollower:
    """The selected jobs, followed to their ends; `update` never waits.

    A name selects all running jobs of that name. The id of a launch, and ``last``, select the jobs
    of the launch that run or start later. ``past`` is the number of past lines with which each job
    begins, None for all. ``line_per_entry``: a line for every entry (`StepLines`).
    """

    def __init__(
        self, store: StoreReader, selectors: Sequence[str], now_ns: int, *, line_per_entry: bool, past: int | None
    ) -> None:
        self.damage: list[StoreError] = []
        self._store, self._source = store, followed(store)
        self._line_per_entry, self._past = line_per_entry, past
        self._launches: set[str] = set()
        self._followed: dict[int, _FollowedJob] = {}
        self._ignored: set[int] = set()
        self._followed_count = 0
        self._scanned_ns = now_ns
        for selector in selectors:
            for job in self._selected(selector):
                self._follow(job, now_ns)

    @property
    def is_over(self) -> bool:
        """Whether every job has ended."""
        return not self._followed

    @property
    def has_several_jobs(self) -> bool:
        """Whether more than one job has been followed so far."""
        return self._followed_count > 1

    def update(self, now_ns: int) -> list[JobChange]:
        """Return the changes since the last call.

        NoSuchJobError if a job was removed. StoreError if the only followed job is damaged. If one
        of several jobs is damaged, it is not followed any more, and `damage` has the error.
        """
        if self._launches and not 0 <= now_ns - self._scanned_ns < _SCAN_NS:  # the clock may be set back
            self._scanned_ns = now_ns
            self._scan(now_ns)
        changes: list[JobChange] = []
        for uid, job in list(self._followed.items()):
            try:
                changes += self._changes(job, now_ns)
            except StoreError as error:
                if not self.has_several_jobs:
                    raise
                self._followed.pop(uid, None)
                self._ignored.add(uid)
                self.damage.append(error)
        return changes

    def _selected(self, selector: str) -> list[JobReader]:
        jobs = self._store.jobs()
        by_uid = {job.info.uid: job for job in jobs}
        matches = matching([job.info for job in jobs], selector)
        running = [info for info in matches if info.state == RUNNING]
        if selector == LAST or any(info.identity.get("launch") == selector.lower() for info in matches):
            launch = str(matches[-1].identity.get("launch") or "") if matches else ""
            self._launches |= {launch} - {""}
            launch_jobs = [job for job in jobs if launch and job.info.identity.get("launch") == launch]
            running = [job.info for job in launch_jobs if job.info.state == RUNNING]
            self._ignored |= {job.info.uid for job in launch_jobs if job.info.state != RUNNING}
        if running:
            return [by_uid[info.uid] for info in running]
        return [self._store.job(selector)]

    def _scan(self, now_ns: int) -> None:
        """Follow new jobs of the launches."""
        for job in self._source.new_jobs(self._followed.keys() | self._ignored):
            if job.info.identity.get("launch") in self._launches:
                self._follow(job, now_ns)
            elif job.info.identity:
                self._ignored.add(job.info.uid)

    def _follow(self, job: JobReader, now_ns: int) -> None:
        if job.info.uid not in self._followed:
            lines = StepLines(line_per_entry=self._line_per_entry)
            self._followed[job.info.uid] = _FollowedJob(
                job, self._source.short_id(job.info), self._source.rows(job), lines, now_ns
            )
            self._followed_count += 1

    def _changes(self, job: _FollowedJob, now_ns: int) -> Iterator[JobChange]:
        new_rows = job.rows.new_rows()
        info = job.rows.info
        if new_rows:
            job.last_rows_ns = now_ns
        is_first = not job.is_announced
        if is_first and "spans" in new_rows:
            info = current_info(info, new_rows["spans"])
        row = job_row(info, job.short_id, now_ns)
        if is_first:
            job.is_announced = True
            yield JobChange("job", row)
        has_ended = info.state != RUNNING
        yield from self._row_changes(job, new_rows, row, now_ns, is_first=is_first, has_ended=has_ended)
        if not has_ended:
            yield from self._collector_changes(job, info, row, now_ns)
            has_ended = job.collector_gone_ns is not None and now_ns - job.collector_gone_ns > RESTART_TIMEOUT_NS
            info = replace(info, state=STALE) if has_ended else info
        if has_ended:
            yield from self._end_change(job, info, now_ns)

    def _row_changes(
        self,
        job: _FollowedJob,
        new_rows: Mapping[str, pa.Table],
        row: JobRow,
        now_ns: int,
        *,
        is_first: bool,
        has_ended: bool,
    ) -> Iterator[JobChange]:
        spans = new_rows.get("spans")
        is_cut = is_first and self._past is not None and spans is not None and spans.num_rows > _PAST_MAX
        entries = [] if spans is None else (spans.slice(spans.num_rows - _PAST_MAX) if is_cut else spans).to_pylist()
        job.lines.functions = functions_of(job.rows.info)
        lines = job.lines.add(entries, now_ns)
        if is_first or has_ended:
            lines += job.lines.remaining()
        if is_first and self._past is not None:
            lines = lines[max(0, len(lines) - self._past) :]
        yield from (JobChange("steps", row, line=line) for line in lines)
        if "events" in new_rows:
            yield from (
                JobChange("warning", row, event=event) for event in events(new_rows["events"]) if not event.is_harmless
            )

    def _collector_changes(self, job: _FollowedJob, info: JobInfo, row: JobRow, now_ns: int) -> Iterator[JobChange]:
        """Yield a change when the collector of a silent job ends or comes back.

        The agent of a running job starts another collector.
        """
        if 0 <= now_ns - max(job.last_rows_ns, job.collector_checked_ns) < _CHECK_NS:
            return
        job.collector_checked_ns = now_ns
        is_gone = self._source.is_stale(info)
        if is_gone != (job.collector_gone_ns is not None):
            job.collector_gone_ns = now_ns if is_gone else None
            yield JobChange("collector", row, back=not is_gone)

    def _end_change(self, job: _FollowedJob, info: JobInfo, now_ns: int) -> Iterator[JobChange]:
        del self._followed[info.uid]
        self._ignored.add(info.uid)
        row = job_row(info, job.short_id, now_ns)
        steps = step_times_of(row, job.reader.table("spans"), functions_of(info))
        median = median_step(row, steps, ())
        yield JobChange("end", row, median_ns=median.spread.p50_ns if median else None)
