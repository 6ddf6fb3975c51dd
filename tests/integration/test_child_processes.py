"""Each process that a job forks or spawns is shown with all of its steps, or counted as lost."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from fakes.command import stored_jobs
from fakes.polling import until
from tfprof.collector.store.reader import LocalStore

pytestmark = pytest.mark.tf

JOB = str(Path(__file__).parent / "jobs" / "children.py")
TFPROF = str(Path(sys.executable).parent / "tfprof")
#: Steps of each child.
STEPS = 3
TRACE_ENVIRON = {"TFPROF_TRACE": "all", "TF_CPP_MIN_LOG_LEVEL": "3"}


def _states(store: Path) -> Counter[tuple[str, int, int, int]]:
    """Return the number of jobs by (state, steps, traced steps, lost records and spans)."""
    rows = stored_jobs()
    assert len(LocalStore(store).jobs()) == len(rows)
    return Counter((row["state"], row["steps"], row["traced"], row["lost"]) for row in rows)


@pytest.mark.parametrize("python", ["tf1_python", "tf2_python"])
@pytest.mark.parametrize(
    ("method", "end", "count"),
    [
        ("fork", "exit", 50),
        ("fork", "kill", 50),
        ("forkserver", "kill", 2),
        ("preloaded-forkserver", "kill", 20),
        ("spawn", "kill", 2),
    ],
)
def test_each_child_is_shown_with_its_steps_or_counted_as_lost(
    request: pytest.FixtureRequest, private_store: Path, python: str, method: str, end: str, count: int
) -> None:
    interpreter = request.getfixturevalue(python)
    command = [TFPROF + "-run", str(interpreter), JOB, method, end, str(count), str(STEPS)]
    completed = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **TRACE_ENVIRON}
    )
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout == f"{count} children\n"
    recorded, lost, without_steps = ("ended", STEPS, STEPS, 0), ("lost", 0, 0, 0), ("exited", 0, 0, 0)
    running = ("running", 0, 0, 0)
    states = until(
        lambda: (counts := _states(private_store))[recorded] + counts[lost] == count and not counts[running] and counts,
        "all children, and the end of a fork server",
    )
    assert states[without_steps] == 1
    # The fork server may have a channel, too.
    assert states.total() - count - 1 == states["ended", 0, 0, 0] <= method.endswith("forkserver")
    messages = [line for line in completed.stderr.splitlines() if line.endswith("[too-short]")]
    assert [line.split(" processes are")[0].split(" process is")[0] for line in messages] == (
        [] if not states[lost] else [f"tfprof: {'a' if states[lost] == 1 else states[lost]}"]
    )
