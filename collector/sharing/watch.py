"""Notices that a user's collector hangs: its status file, due every two seconds, is old."""

from pathlib import Path
from typing import Final

from ...agent.daemon_start import COLLECTOR
from ...commands import daemons

#: Interval of checks (seconds), and number of checks without a new status after which a collector
#: hangs. Checks are counted, so that a pause of the whole host or service is not taken for that.
CHECK_S: Final = 10.0
CHECKS: Final = 12


class Watch:
    """The watch of the collector of the instance at ``instance_dir``."""

    def __init__(self, instance_dir: str) -> None:
        self._instance_dir = instance_dir
        self._beat = 0, 0
        self._checks = 0

    def hanging_pid(self) -> int:
        """Check the collector; return its pid if it hangs, else 0.

        A collector that still opens its store does not count: that may take minutes.
        """
        pid = daemons.running_pid(self._instance_dir, COLLECTOR)
        beat = pid, self._written_ns()
        self._checks = self._checks + 1 if beat == self._beat else 0
        self._beat = beat
        return pid if self._checks >= CHECKS and daemons.is_up(self._instance_dir, COLLECTOR, pid) else 0

    def _written_ns(self) -> int:
        try:
            return Path(self._instance_dir, f"{COLLECTOR}.json").stat().st_mtime_ns
        except OSError:
            return 0
