"""The words that select a job: an id, a name, `last`, NAME~1, NAME@14:30."""

import re
import time
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple, TypeVar

from ..errors import DamagedJobError, NoSuchJobError
from ..moment import parse_moment
from ..suggestion import suggestion
from .catalog import MAY_CONTINUE, SERIES_PREFIX, JobInfo
from .protocols import JobReader

Job = TypeVar("Job", bound=JobReader)

#: Selects the job that was opened last.
LAST: Final = "last"
ID_DIGITS_MIN: Final = 4
#: A whole id.
UID: Final = re.compile(r"[0-9a-f]{16}")
#: Number of runs of a baseline.
BASELINE_RUNS: Final = 10

_PREFIX: Final = re.compile(r"[0-9a-f]{1,16}")
_SELECTOR: Final = re.compile(r"(?P<base>.+?)(?:~(?P<back>[0-9]{1,6}))?(?:@(?P<time>[^@~]+))?", re.DOTALL)
_LAST_SERIES: Final = re.compile(rf"{SERIES_PREFIX}{LAST}(?=:|$)")
#: Maximum number of jobs that an error lists.
_LISTED_MAX: Final = 8


class _Meaning(NamedTuple):
    """Jobs in the order of their opening; ``is_newest``: whether the newest of several is meant."""

    jobs: list[JobInfo]
    is_newest: bool = True


class _Selector(NamedTuple):
    """A parsed selector: the job ``back`` jobs before the last one that matches ``base``.

    ``until_ns``: the job began at this moment or before; None: at any time.
    """

    base: str
    back: int = 0
    until_ns: int | None = None


def select(infos: Iterable[JobInfo], selector: str) -> JobInfo:
    """Return the job that ``selector`` means; NoSuchJobError if it means none or several.

    A selector is a job's name or the beginning of one, the beginning of a uid, the id of a launch,
    a series of runs, a pid, or ``last``. A name or pid means its newest job; NAME~1 is the one
    before it, and NAME@TIME the newest that began at that time or before. A name never means a
    process that a job forked.
    """
    jobs = _in_order(infos)
    if not jobs:
        raise NoSuchJobError("no job was profiled into this store yet")
    parsed = _parse(jobs, selector)
    meaning = _meaning(jobs, parsed.base)
    if not meaning.jobs:
        hint = suggestion(parsed.base, dict.fromkeys(info.name for info in reversed(jobs)))
        raise NoSuchJobError(f"no job {selector!r}{hint or ':'} `tfprof jobs` lists them")
    if len(meaning.jobs) > 1 and not meaning.is_newest:
        raise NoSuchJobError(f"{parsed.base!r} means {len(meaning.jobs)} jobs: {_listed(jobs, meaning.jobs)}")
    candidates = meaning.jobs
    if parsed.until_ns is not None:
        candidates = [info for info in sorted(candidates, key=_started) if info.started_ns <= parsed.until_ns]
    if parsed.back >= len(candidates):
        raise NoSuchJobError(f"no job {selector!r}, only {_listed(jobs, meaning.jobs)}")
    return candidates[-1 - parsed.back]


def selected(jobs: Sequence[Job], errors: Iterable[DamagedJobError], selector: str) -> Job:
    """Return the one of the readable ``jobs`` that ``selector`` means, as `select` does.

    If none matches, and the uid of a damaged job in ``errors`` begins with ``selector``, the
    StoreError of that job is raised.
    """
    infos, by_uid = [job.info for job in jobs], {job.info.uid: job for job in jobs}
    if not matching(infos, selector):
        for error in errors:
            if error.uid.startswith(selector.lower()):
                raise error
    return by_uid[select(infos, selector).uid]


def matching(infos: Iterable[JobInfo], selector: str) -> list[JobInfo]:
    """Return all jobs that ``selector``, without `~` and `@`, may mean; the oldest first."""
    jobs = _in_order(infos)
    return jobs[-1:] if selector == LAST else _meaning(jobs, selector).jobs


def in_series(infos: Iterable[JobInfo], name: str) -> list[JobInfo]:
    """Return the jobs of the series ``name``, or of one side of it, the oldest first.

    `repeat:last` means the newest series.
    """
    jobs = [info for info in _in_order(infos) if info.series]
    newest = ":".join(jobs[-1].series.split(":")[:2]) if jobs else ""
    meant = _LAST_SERIES.sub(newest, name)
    return [info for info in jobs if f"{info.series}:".startswith(f"{meant}:")]


def baseline_runs(infos: Iterable[JobInfo], name: str, without: Collection[int] = ()) -> list[JobInfo]:
    """Return the last BASELINE_RUNS ended jobs that ``name`` may mean, the oldest first.

    ``without``: the uids of jobs that are left out.
    """
    jobs = [info for info in matching(infos, name) if info.uid not in without]
    return [info for info in jobs if info.state not in MAY_CONTINUE][-BASELINE_RUNS:]


def short_ids(uids: Sequence[str]) -> dict[str, str]:
    """Return the shortest unique prefix of each uid, at least ID_DIGITS_MIN digits."""
    ordered = sorted(uids)
    ids = {}
    for index, uid in enumerate(ordered):
        neighbors = ordered[max(0, index - 1) : index] + ordered[index + 1 : index + 2]
        common = max((_common_length(uid, other) for other in neighbors), default=0)
        ids[uid] = uid[: max(ID_DIGITS_MIN, common + 1)]
    return ids


def _common_length(first: str, second: str) -> int:
    return next((index for index, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), len(first))


def _in_order(infos: Iterable[JobInfo]) -> list[JobInfo]:
    return sorted(infos, key=lambda info: info.opened_ns)


def _started(info: JobInfo) -> int:
    return info.started_ns


def _parse(jobs: Sequence[JobInfo], selector: str) -> _Selector:
    """Parse ``selector``; names of jobs may contain `~` and `@`.

    NoSuchJobError if the time is invalid.
    """
    match = _SELECTOR.fullmatch(selector)
    if match is None or not (match["back"] or match["time"]) or any(info.name == selector for info in jobs):
        return _Selector(selector)
    try:
        until_ns = parse_moment(match["time"])[1] if match["time"] else None
    except ValueError:
        message = f"no job {selector!r}: {match['time']!r} is not a time (30m, 14:30, 2026-01-31, 2026-01-31T14:30)"
        raise NoSuchJobError(message) from None
    return _Selector(match["base"], int(match["back"] or 0), until_ns)


def _meaning(jobs: Sequence[JobInfo], base: str) -> _Meaning:
    """Return the first meaning of ``base`` that any job has."""
    if base == LAST:
        return _Meaning(list(jobs))
    lower = base.lower()
    by_id = [info for info in jobs if _PREFIX.fullmatch(lower) and info.hex.startswith(lower)]
    roots = _without_forked(jobs)
    by_launch = [info for info in roots if UID.fullmatch(lower) and info.identity.get("launch") == lower]
    by_prefix = [info for info in roots if base and info.name.lower().startswith(lower)]
    by_stem = [info for info in by_prefix if info.name.rpartition(".")[0].lower() == lower]
    meanings = (
        _Meaning(by_id if UID.fullmatch(lower) else []),
        _Meaning([info for info in roots if info.name == base]),
        _Meaning(in_series(roots, base) if base.startswith(SERIES_PREFIX) else []),
        _Meaning(by_launch, is_newest=False),
        _Meaning(by_id if len(by_id) == 1 else []),
        _Meaning(by_stem, is_newest=_have_one_name(by_stem)),
        _Meaning(by_prefix, is_newest=_have_one_name(by_prefix)),
        _Meaning(by_id, is_newest=False),
        _Meaning([info for info in jobs if str(info.identity.get("pid")) == base]),
    )
    return next((meaning for meaning in meanings if meaning.jobs), _Meaning([]))


def _have_one_name(jobs: Iterable[JobInfo]) -> bool:
    return len({info.name for info in jobs}) == 1


def _without_forked(jobs: Sequence[JobInfo]) -> list[JobInfo]:
    """Return ``jobs`` without those whose parent process is a job of the same name and launch."""
    keys = {(info.name, info.identity.get("launch"), info.identity.get("pid")) for info in jobs}
    return [
        info
        for info in jobs
        if not info.identity.get("launch")
        or (info.name, info.identity.get("launch"), info.identity.get("ppid")) not in keys
    ]


def _listed(jobs: Iterable[JobInfo], shown: Sequence[JobInfo]) -> str:
    """Return short ids, names, times and states of the last of ``shown``, the latest first."""
    ids = short_ids([info.hex for info in jobs])
    texts = [
        f"{ids[info.hex]} {info.name} of {_time(info.started_ns)} ({info.state})".replace("  ", " ")
        for info in shown[: -_LISTED_MAX - 1 : -1]
    ]
    return ", ".join(texts) + (", …" if len(shown) > _LISTED_MAX else "")


def _time(ns: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(ns / 1e9))
