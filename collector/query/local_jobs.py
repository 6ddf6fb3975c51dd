"""The running jobs of a host, and what cannot be recorded of them."""

import os

from ..errors import TfprofError
from ..store.catalog import RUNNING
from ..store.protocols import JobReader, StoreReader
from ..summaries.events import EventSummary, events


def local_jobs(store: StoreReader, host: str = "") -> dict[int, JobReader]:
    """Return the running jobs of ``host`` in ``store`` by pid; an empty ``host`` is this one."""
    host = host or os.uname().nodename
    jobs = [job for job in store.jobs() if job.info.state == RUNNING and job.info.identity.get("host") == host]
    return {int(job.info.identity.get("pid") or 0): job for job in jobs}


def incompleteness(job: JobReader) -> list[EventSummary]:
    """Return the events that say what cannot be recorded of a job; none if it cannot be read."""
    try:
        return [event for event in events(job.table("events")) if event.is_incompleteness]
    except TfprofError:
        return []
