"""Ends the jobs that agents have given up, which they name in files of the instance."""

import contextlib
import time
from pathlib import Path
from typing import Final

from ...formats import given_up
from ..errors import FormatError, StoreError
from ..selfstats import CollectorStats
from .ingest import Ingest

#: Interval of searches for files, and the time for ending jobs in one tick (seconds).
INTERVAL_S: Final = 2.0
SLICE_S: Final = 0.05


class GivenUpFiles:
    """The files of ``instance_dir``; each is removed once its job has ended.

    `is_unfinished`: whether the last call left files for the next one.
    """

    def __init__(self, instance_dir: str, ingest: Ingest, stats: CollectorStats) -> None:
        self.is_unfinished = True
        self._instance_dir = instance_dir
        self._ingest = ingest
        self._stats = stats
        self._next_s = float("-inf")

    def end_jobs(self, now: float) -> None:
        """End jobs for at most SLICE_S, if that is due; ``now``: monotonic clock in seconds."""
        if now < self._next_s:
            return
        self.is_unfinished = False
        self._next_s = now + INTERVAL_S
        deadline = time.monotonic() + SLICE_S
        for path, job in given_up.pending(self._instance_dir):
            if time.monotonic() > deadline:
                self.is_unfinished = True
                self._next_s = now  # the next tick continues
                return
            try:
                is_done = job is None or self._ingest.end_given_up_job(
                    job["uid"], job["identity"], job["end"], job.get("event")
                )
            except StoreError as error:  # the job is tried again later, and the next ones now
                self._stats.count_stall(error)
                is_done = False
            except FormatError as error:
                self._stats.count_failure(0, error)
                is_done = True
            if is_done:
                with contextlib.suppress(OSError):  # a folder of that name does not hold up the next jobs
                    Path(path).unlink()
