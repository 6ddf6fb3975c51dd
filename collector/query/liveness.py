"""Distinguishes jobs that may still be running from those that have ended."""

from pathlib import Path

from ..store.catalog import RUNNING, STALE, JobInfo
from ..summaries.jobs import integer_of


def may_run(info: JobInfo) -> bool:
    """Return whether a job may still be running.

    The collector of a stale job has ended. If the job's process is alive, its agent starts another
    collector.
    """
    return info.state == RUNNING or (info.state == STALE and _is_alive(info))


def _is_alive(info: JobInfo) -> bool:
    """Return whether the job's process is alive on this host.

    The start time distinguishes it from another process with the same pid.
    """
    try:
        stat = Path(f"/proc/{integer_of(info.identity, 'pid')}/stat").read_text()
        return int(stat.rpartition(")")[2].split()[19]) == info.identity.get("started")
    except (OSError, ValueError, IndexError):
        return False
