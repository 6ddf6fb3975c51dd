"""Distributes test files among workers: the last worker begins with files that mostly wait.

The other workers keep the processors busy meanwhile.
"""

from typing import Any

from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

#: Files of integration tests that use less than half a processor.
WAITING_FILES = frozenset(
    f"tests/integration/{name}.py"
    for name in (
        "test_advice_jobs",
        "test_agent_drain",
        "test_collector_daemon",
        "test_daemons_at_rest",
        "test_forged_channels",
        "test_isolated",
        "test_launcher",
        "test_launcher_signals",
        "test_launcher_terminal",
        "test_orders",
        "test_runtime_folder",
        "test_watching_processes",
    )
)
#: The file that takes longest. It begins early, so that no worker is left alone with it at the end.
LONGEST = "tests/matrix/test_matrix.py"
WORKERS_MIN = 3  # with fewer workers, the files that mostly wait come last


class Scheduling(LoadFileScheduling):  # type: ignore[misc]
    """The scheduler of `--dist loadfile`, with a worker for files that mostly wait."""

    def _assign_work_unit(self, node: Any) -> None:
        takes_waiting_files = node is self.nodes[-1] and len(self.nodes) >= WORKERS_MIN
        files = (file for file in self.workqueue if (file in WAITING_FILES) == takes_waiting_files)
        file = LONGEST if LONGEST in self.workqueue and not takes_waiting_files else next(files, None)
        if file is not None:
            self.workqueue.move_to_end(file, last=False)
        super()._assign_work_unit(node)
