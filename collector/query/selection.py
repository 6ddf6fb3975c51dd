"""Which jobs of a store are asked about: by selectors, by host, by process."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from ..errors import NoSuchJobError, UsageError
from ..store import catalog
from ..store.reader import Job, Store


def host_of(job: Job) -> str:
    """Return the host that a job ran on, '' where not known."""
    return str(job.info.identity.get("host") or "")


def _listed(texts: Iterable[str], most: int = 8) -> str:
    known = sorted(set(texts))
    return " ".join(known[:most]) + (" …" if len(known) > most else "") if known else "none"


def _within(jobs: Sequence[Job], hosts: Sequence[str], pids: Sequence[int]) -> list[Job]:
    """Return the jobs of any of ``hosts`` and any of ``pids``; of all where none is named."""
    found = list(jobs)
    if hosts:
        found = [job for job in found if any(fnmatchcase(host_of(job).lower(), host.lower()) for host in hosts)]
        if not found:
            known = _listed(host_of(job) or "unknown" for job in jobs)
            raise NoSuchJobError(f"no job of host {' '.join(hosts)}: there are jobs of {known}")
    if pids:
        found = [job for job in found if job.info.identity.get("pid") in pids]
        if not found:
            raise NoSuchJobError(f"no job of pid {' '.join(map(str, pids))}: `tfprof jobs` lists them")
    return found


def check(selectors: Sequence[str], hosts: Sequence[str] = (), pids: Sequence[int] = ()) -> None:
    """Raise UsageError when nothing says which jobs are meant."""
    if not (selectors or hosts or pids):
        message = (
            "no JOB given: the start of a job's id, its name, or `last`; several of them; or all of a --host or --pid"
        )
        raise UsageError(f"{message} (`tfprof jobs` lists them)")


def choose(store: Store, selectors: Sequence[str], hosts: Sequence[str] = (), pids: Sequence[int] = ()) -> list[Job]:
    """Return the job that each of ``selectors`` means, each once, in their order; without any all those of ``hosts`` and ``pids``.

    A selector is looked for among the jobs of ``hosts`` (names, `*` and `?` stand for any) and ``pids`` only. Raises
    NoSuchJobError when one means no job or several, UsageError when nothing at all is given.
    """
    check(selectors, hosts, pids)
    if not hosts and not pids:
        jobs = [store.job(selector) for selector in selectors]
    else:
        jobs = _within(store.jobs(), hosts, pids)
        by_uid = {job.info.uid: job for job in jobs}
        if selectors:
            infos = [job.info for job in jobs]
            jobs = [by_uid[catalog.select(infos, selector).uid] for selector in selectors]
    return list({job.info.uid: job for job in jobs}.values())
