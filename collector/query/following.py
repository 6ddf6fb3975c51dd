"""Follows running jobs: yields their steps as lines, their events and their ends."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from ...formats.layout import SECOND_NS
from ..errors import StoreError
from ..store import catalog
from ..store.catalog import RUNNING, STALE, JobInfo
from ..store.reader import LocalJob, LocalStore
from ..store.row_follower import RowFollower
from ..summaries.events import EventSummary, events
from ..summaries.jobs import JobRow, functions_of, job_row, short_ids
from ..summaries.lines import StepLine, StepLines
from .overview import step_times_of

#: Intervals of the search for new jobs of a launch, and of the check for a silent job's collector.
_SCAN_NS: Final = 2 * SECOND_NS
_CHECK_NS: Final = 5 * SECOND_NS
#: Time limit for the agent to start another collector in place of one that ended.
PATIENCE_NS: Final = 60 * SECOND_NS
#: Maximum number of past entries that are read, unless all are requested.
_PAST: Final = 20_000


@dataclass(frozen=True, slots=True)
class JobChange:
    """A change of the job of ``row``.

    ``what`` names the change. ``job``: the job is followed from now on. ``steps``: ``line`` has new
    steps. ``warning``: ``event`` is new. ``collector``: the collector ended, or another one runs if
    ``back``. ``end``: the job ended, and ``median_ns`` is the median time of the steps of its main
    kind.
    """

    what: str
    row: JobRow
    line: StepLine | None = None
    event: EventSummary | None = None
    back: bool = False
    median_ns: float | None = None


@dataclass(slots=True)
class _Followed:
    job: LocalJob
    short: str
    rows: RowFollower
    lines: StepLines
    heard_ns: int
    known: bool = False
    gone_ns: int | None = None
    checked_ns: int = 0


class Following:
    """The selected jobs, followed to their ends; `update` never waits.

    A name selects all running jobs of that name. The id of a launch, and ``last``, select all jobs
    of the launch, including later ones. ``past`` is the number of past lines of each job that come
    first, None for all. ``each``: a line for every entry (`StepLines`).
    """

    def __init__(
        self, store: LocalStore, selectors: Sequence[str], now_ns: int, *, each: bool, past: int | None
    ) -> None:
        self._store, self._each, self._past = store, each, past
        self._launches: set[str] = set()
        self._followed: dict[int, _Followed] = {}
        self._others: set[int] = set()
        self._number = 0
        self._scanned_ns = now_ns
        for selector in selectors:
            for job in self._selected(selector):
                self._follow(job, now_ns)

    @property
    def is_over(self) -> bool:
        """Whether every job has ended."""
        return not self._followed

    @property
    def are_several(self) -> bool:
        """Whether more than one job has been followed so far."""
        return self._number > 1

    def update(self, now_ns: int) -> list[JobChange]:
        """Return the changes since the last call; NoSuchJobError if a job was removed."""
        if self._launches and now_ns - self._scanned_ns >= _SCAN_NS:
            self._scanned_ns = now_ns
            self._scan(now_ns)
        return [one for followed in list(self._followed.values()) for one in self._changes(followed, now_ns)]

    def _selected(self, selector: str) -> list[LocalJob]:
        jobs = self._store.jobs()
        by_uid = {job.info.uid: job for job in jobs}
        meant = catalog.matching([job.info for job in jobs], selector)
        running = [info for info in meant if info.state == RUNNING]
        if selector == catalog.LAST or any(info.identity.get("launch") == selector.lower() for info in meant):
            launch = str(meant[-1].identity.get("launch") or "") if meant else ""
            self._launches |= {launch} - {""}
            mates = [job for job in jobs if launch and job.info.identity.get("launch") == launch]
            running = [job.info for job in mates if job.info.state == RUNNING]
        if running:
            return [by_uid[info.uid] for info in running]
        return [self._store.job(selector)]

    def _scan(self, now_ns: int) -> None:
        """Follow new jobs of the launches."""
        known = self._followed.keys() | self._others
        for folder in catalog.folders(self._store.path):
            if int(folder.name, 16) in known:
                continue
            try:
                info = catalog.load(folder)
            except (FileNotFoundError, StoreError):  # it is being created or removed, or is damaged
                continue
            if info.identity.get("launch") in self._launches:
                self._follow(LocalJob(folder, info), now_ns)
            elif info.identity:
                self._others.add(info.uid)

    def _follow(self, job: LocalJob, now_ns: int) -> None:
        if job.info.uid not in self._followed:
            short = short_ids([folder.name for folder in catalog.folders(self._store.path)])[job.info.hex]
            follower = RowFollower(job.folder, ("spans", "events"))
            self._followed[job.info.uid] = _Followed(job, short, follower, StepLines(line_per_entry=self._each), now_ns)
            self._number += 1

    def _changes(self, one: _Followed, now_ns: int) -> Iterator[JobChange]:
        news = one.rows.new_rows()
        info = one.rows.info
        if news:
            one.heard_ns = now_ns
        row = job_row(info, one.short, now_ns)
        past = not one.known
        if past:
            one.known = True
            yield JobChange("job", row)
        over = info.state != RUNNING
        yield from self._news(one, news, row, now_ns, past=past, over=over)
        if not over:
            yield from self._collector(one, info, row, now_ns)
            over = one.gone_ns is not None and now_ns - one.gone_ns > PATIENCE_NS
            info = replace(info, state=STALE) if over else info
        if over:
            yield from self._end(one, info, now_ns)

    def _news(
        self, one: _Followed, news: dict[str, pa.Table], row: JobRow, now_ns: int, *, past: bool, over: bool
    ) -> Iterator[JobChange]:
        spans = news.get("spans")
        cut = past and self._past is not None and spans is not None and spans.num_rows > _PAST
        entries = [] if spans is None else (spans.slice(spans.num_rows - _PAST) if cut else spans).to_pylist()
        one.lines.functions = functions_of(one.rows.info)
        lines = one.lines.add(entries, now_ns)
        if past or over:
            lines += one.lines.remaining()
        if past and self._past is not None:
            lines = lines[max(0, len(lines) - self._past) :]
        yield from (JobChange("steps", row, line=line) for line in lines)
        if "events" in news:
            yield from (
                JobChange("warning", row, event=event) for event in events(news["events"]) if not event.is_harmless
            )

    def _collector(self, one: _Followed, info: JobInfo, row: JobRow, now_ns: int) -> Iterator[JobChange]:
        """Yield a change when the collector of a silent job ends or comes back.

        The agent of a running job starts another collector.
        """
        if now_ns - max(one.heard_ns, one.checked_ns) < _CHECK_NS:
            return
        one.checked_ns = now_ns
        gone = self._store.with_stale_state(info).state == STALE
        if gone != (one.gone_ns is not None):
            one.gone_ns = now_ns if gone else None
            yield JobChange("collector", row, back=not gone)

    def _end(self, one: _Followed, info: JobInfo, now_ns: int) -> Iterator[JobChange]:
        del self._followed[info.uid]
        self._others.add(info.uid)
        row = job_row(info, one.short, now_ns)
        steps = step_times_of(row, one.job.table("spans"), functions_of(info))
        median = steps[0].spread.p50_ns if steps and row.step_kind else None
        yield JobChange("end", row, median_ns=median)
