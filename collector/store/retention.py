"""Retention: removes the oldest ended jobs, by age and size, and samples of hosts without jobs."""

import contextlib
import shutil
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from ..errors import StoreError
from . import catalog, durable, lock
from .catalog import RUNNING
from .selectors import baseline_runs

_REMOVED_PREFIX = ".removed-"
#: Seconds without a write after which a running job of this host counts as ended.
_ABANDONED_S = 86_400
#: Unit of `st_blocks`.
_BLOCK_BYTES = 512
#: Samples of a host are kept from this time before the start of a job (ns).
_MARGIN_NS = 60 * 10**9


@dataclass(frozen=True)
class Limits:
    """Limits for ended jobs; None for no limit.

    ``max_age_s``: maximum age in seconds. ``max_bytes``: maximum total size in bytes, including
    running jobs and the samples of hosts. ``baselines``: names of jobs whose last runs are kept.
    """

    max_age_s: float | None = None
    max_bytes: int | None = None
    baselines: Collection[str] = ()


@dataclass(frozen=True)
class StoredJob:
    """A stored job: uid, size in bytes, and whether it is running.

    ``last_ns``: its end, or its last write if it has no end (ns, real time).
    """

    uid: int
    last_ns: int
    size: int
    is_running: bool


def expired_uids(
    jobs: Iterable[StoredJob], limits: Limits, now_ns: int, other_bytes: int = 0, kept: Collection[int] = ()
) -> list[int]:
    """Return the uids of the ended jobs beyond ``limits`` at ``now_ns``, oldest first.

    ``other_bytes``: bytes of the store besides jobs. ``kept``: uids of jobs that are kept.
    """
    jobs = sorted(jobs, key=lambda job: job.last_ns)
    excess = (
        other_bytes + sum(job.size for job in jobs) - (float("inf") if limits.max_bytes is None else limits.max_bytes)
    )
    uids = []
    for job in jobs:
        is_old = limits.max_age_s is not None and now_ns - job.last_ns > limits.max_age_s * 1e9
        if not job.is_running and job.uid not in kept and (is_old or excess > 0):
            uids.append(job.uid)
            excess -= job.size
    return uids


def remove_expired(store: Path, host: str, limits: Limits, now_ns: int, open_uids: Collection[int]) -> list[int]:
    """Remove expired jobs and return their uids.

    The collector of ``host`` calls this function; ``open_uids`` are the jobs that the collector has
    open. Running jobs of other hosts and damaged jobs stay. A running job of this host that is not
    in ``open_uids`` counts as ended after _ABANDONED_S without a write.
    """
    for folder in (catalog.jobs_folder(store), store / "hosts"):
        for leftover in folder.glob(f"{_REMOVED_PREFIX}*"):
            shutil.rmtree(leftover, ignore_errors=True)
    if limits.max_age_s is None and limits.max_bytes is None:
        return []
    jobs = [job for folder in catalog.folders(store) for job in _stored_job(folder, host, now_ns, open_uids)]
    other_bytes = sum(map(size_on_disk, catalog.host_folders(store)))
    uids = expired_uids(jobs, limits, now_ns, other_bytes, _baseline_uids(store, limits.baselines))
    for uid in uids:
        remove(store, uid)
    return uids


def _baseline_uids(store: Path, names: Collection[str]) -> set[int]:
    """Return the uids of the runs of the baselines ``names``; damaged jobs are none."""
    infos = []
    for folder in catalog.folders(store) if names else ():
        with contextlib.suppress(OSError, StoreError):
            infos.append(catalog.load(folder))
    return {info.uid for name in names for info in baseline_runs(infos, name)}


def remove(store: Path, uid: int) -> None:
    """Remove job ``uid``."""
    _remove(catalog.job_folder(store, uid))


def samples_needed_from(store: Path) -> dict[Path, int] | None:
    """Return the time (ns, real time) from which samples are needed, by the folder of their host.

    It is a minute before the start of the host's first stored job. None if a job cannot be read.
    """
    needed_from: dict[Path, int] = {}
    for folder in catalog.folders(store):
        try:
            info = catalog.load(folder)
        except FileNotFoundError:  # just removed
            continue
        except StoreError:
            return None
        if host := info.host:
            host_folder = catalog.host_folder(folder.parents[1], host)
            created = info.identity.get("created_real_ns")
            start = min(created, info.opened_ns) if type(created) is int and created > 0 else info.opened_ns
            needed_from[host_folder] = min(needed_from.get(host_folder, start), start - _MARGIN_NS)
    return needed_from


def remove_hosts(store: Path, needed_folders: Collection[Path]) -> None:
    """Remove the folders of hosts, except ``needed_folders`` and those of hosts with a collector.

    A running collector removes the samples of its host itself.
    """
    for folder in catalog.host_folders(store):
        if (
            folder not in needed_folders
            and lock.holder(folder.parents[1] / "collectors" / f"{folder.name}.lock") is None
        ):
            _remove(folder)


def _remove(folder: Path) -> None:
    """Remove ``folder``: it first disappears for readers, then its files are deleted."""
    hidden_folder = folder.with_name(_REMOVED_PREFIX + folder.name)
    shutil.rmtree(hidden_folder, ignore_errors=True)  # left by an interrupted removal
    with durable.store_errors(folder), contextlib.suppress(FileNotFoundError):  # another process removed it
        folder.replace(hidden_folder)
    shutil.rmtree(hidden_folder, ignore_errors=True)


def _stored_job(folder: Path, host: str, now_ns: int, open_uids: Collection[int]) -> list[StoredJob]:
    """Return the job in ``folder``; an empty list if it cannot be read."""
    try:
        info = catalog.load(folder)
        last_ns = max(path.lstat().st_mtime_ns for path in folder.iterdir())
    except (OSError, StoreError):
        return []
    is_abandoned = info.collector.get("host") == host and now_ns - last_ns > _ABANDONED_S * 1e9
    is_running = info.uid in open_uids or (info.state == RUNNING and not is_abandoned)
    return [StoredJob(info.uid, info.closed_ns or last_ns, size_on_disk(folder), is_running)]


def size_on_disk(folder: Path) -> int:
    """Return the bytes of the files in ``folder``, without holes and without what links lead to.

    0 if it cannot be read.
    """
    try:
        stats = [path.lstat() for path in folder.iterdir()]
    except OSError:
        return 0
    return sum(min(status.st_size, status.st_blocks * _BLOCK_BYTES) for status in stats)
