"""Distributes test files among workers: all but two workers begin with files that mostly wait.

The other two workers keep the processors busy meanwhile. The files of a folder that share what
takes long to make run in one worker.
"""

from typing import Any

from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

#: Files of integration tests that use less than half a processor. Those that take longest come
#: first.
WAITING_FILES = tuple(
    f"tests/integration/{name}.py"
    for name in (
        "test_orders",
        "test_advice_jobs",
        "test_daemons_at_rest",
        "test_forged_channels",
        "test_agent_drain",
        "test_launcher",
        "test_runtime_folder",
        "test_isolated",
        "test_launcher_signals",
        "test_collector_daemon",
        "test_launcher_terminal",
        "test_watching_processes",
        "test_page_browser",
        "test_page_states",
    )
)
#: The folder whose files share the answers of TensorFlow.
SHARING_FOLDER = "tests/integration/oracle/"
#: What takes longest. It begins early, so that no worker is left alone with it at the end.
LONGEST = ("tests/matrix/test_matrix.py", SHARING_FOLDER)
#: Workers that begin with the other files. If there are only these, the waiting files come last.
BUSY_WORKERS = 2


class Scheduling(LoadFileScheduling):  # type: ignore[misc]
    """The scheduler of `--dist loadfile`, with workers for files that mostly wait."""

    def _split_scope(self, nodeid: str) -> str:
        return SHARING_FOLDER if nodeid.startswith(SHARING_FOLDER) else str(super()._split_scope(nodeid))

    def _assign_work_unit(self, node: Any) -> None:
        is_busy_worker = node in self.nodes[:BUSY_WORKERS]
        files = (*LONGEST, *self._busy_files()) if is_busy_worker else WAITING_FILES
        file = next((file for file in files if file in self.workqueue), None)
        if file is not None:
            self.workqueue.move_to_end(file, last=False)
        super()._assign_work_unit(node)

    def _busy_files(self) -> list[str]:
        return [file for file in self.workqueue if file not in WAITING_FILES]
