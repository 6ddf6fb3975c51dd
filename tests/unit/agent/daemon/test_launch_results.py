"""The result of an ended launch waits for a scan for its remaining channels."""

import time
from pathlib import Path

from tfprof.agent import launches
from tfprof.agent.daemon.launch_results import LaunchResults
from tfprof.agent.launches import Launch
from tfprof.formats import runtime_dir


def test_the_end_of_a_launch_requires_one_scan(tmp_path: Path) -> None:
    (tmp_path / runtime_dir.LAUNCHES).mkdir()
    launch = Launch(7, 1, time.time_ns(), "/store", "host", "user")
    launches.write(str(tmp_path), launch)
    results = LaunchResults(str(tmp_path))
    assert not results.refresh(4)
    assert not results.wants_scan(4)
    launches.write(str(tmp_path), launch._replace(ended_ns=time.time_ns()))
    assert results.refresh(4)
    assert results.wants_scan(4)
    assert not results.wants_scan(5)
