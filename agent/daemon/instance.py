"""The agent's work on the files of its instance: launches, their results, status, old files."""

import os
import time
from collections.abc import Callable
from typing import Any, Final

from ...formats.private_files import write_json
from .. import launches
from . import leftovers
from .finder import Finder
from .jobs import Jobs
from .launch_results import LaunchResults

#: Interval of the removal of old launch files and stale folders (seconds).
TIDY_S: Final = 600.0


class Instance:
    """The folder of an instance.

    `error`: the last failure to read or write the folder. `is_gone`: whether the folder is gone.
    """

    def __init__(self, folder: str, finder: Finder, results: LaunchResults) -> None:
        self.folder = folder
        self.error: str | None = None
        self.is_gone = False
        self._finder = finder
        self._results = results
        self._next_tidy_s = 0.0

    def attempt(self, action: Callable[[], None]) -> None:
        """Run ``action``, which reads or writes files of the instance; record an OSError."""
        try:
            action()
        except OSError as error:
            self.error = f"cannot read or write files in {self.folder}: {error.strerror}"
            self.is_gone = self.is_gone or not os.path.isdir(self.folder)

    def living_launches(self) -> set[int]:
        """Read new launches and ends of launches; return the launches whose launcher still runs."""
        self.attempt(self._read_launches)
        return self._results.living_launches

    def _read_launches(self) -> None:
        if self._results.refresh_if_changed(self._finder.scans):
            self._finder.make_scan_due()

    def write_results(self, jobs: Jobs, stall: dict[str, str] | None) -> None:
        """Write the results of ended launches; ``stall``: why nothing is stored, if known."""
        finder = self._finder
        self.attempt(lambda: self._results.write(jobs, finder.refusals, stall, finder.scans, finder.awaits))

    def write_status(self, status: dict[str, Any]) -> None:
        """Write the status file."""
        path = os.path.join(self.folder, "agent.json")
        self.attempt(lambda: write_json(path, {**status, "last_error": self.error}))

    def tidy_if_due(self, now: float, jobs: Jobs) -> None:
        """Remove what launches, exports and deleted stores have left, once in TIDY_S.

        The files about launches of ``jobs`` are kept. Nothing is removed while channels wait, whose
        launches are not known yet.
        """
        if now < self._next_tidy_s or self._finder.has_waiting_channels:
            return
        self._next_tidy_s = now + TIDY_S
        used_launches = self._results.living_launches | {job.launch for job in jobs}
        self.attempt(lambda: launches.remove_old_files(self.folder, time.time(), used_launches))
        leftovers.remove_exports()
        leftovers.remove_instances(self.folder)
