"""The result of an ended launch becomes final only after a scan for remaining channels."""

import time
from pathlib import Path

from tfprof.agent import launches
from tfprof.agent.daemon.launch_results import LaunchResults
from tfprof.agent.launches import Launch, Result
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


def test_a_final_result_of_an_earlier_agent_is_kept_as_it_is(tmp_path: Path) -> None:
    (tmp_path / runtime_dir.LAUNCHES).mkdir()
    job = {"uid": "ff", "records": 1, "acked": 1, "dropped_traces": 0, "dropped_spans": 0}
    final = Result(7, True, 3, [{**job, "state": "exited"}], [])
    unfinished = Result(8, True, 3, [{**job, "state": "running"}], [])
    for result in (final, unfinished):
        ended = Launch(result.launch, 1, time.time_ns(), "/store", "host", "user", ended_ns=time.time_ns())
        launches.write(str(tmp_path), ended)
        launches.write_result(str(tmp_path), result)
    results = LaunchResults(str(tmp_path))
    results.refresh(0)
    results.write([], [], None, 5, lambda _: False)
    assert launches.read_result(str(tmp_path), 7) == final
    assert launches.read_result(str(tmp_path), 8) == unfinished._replace(progress=0, jobs=[])
    assert not results.wants_scan(0)


def test_a_spooled_job_is_awaited_until_it_is_delivered_or_nothing_is_stored(tmp_path: Path) -> None:
    (tmp_path / runtime_dir.LAUNCHES).mkdir()
    job = {"uid": "ff", "records": 2, "acked": 0, "dropped_traces": 0, "dropped_spans": 0, "state": "exited"}
    for launch in (7, 8):
        ended = Launch(launch, 1, time.time_ns(), "/store", "host", "user", ended_ns=time.time_ns())
        launches.write(str(tmp_path), ended)
        launches.write_result(str(tmp_path), Result(launch, False, 0, [{**job, "spooled": True}], []))

    def written(launch: int, stall: dict[str, str] | None = None) -> tuple[bool, int, bool]:
        results.write([], [], stall, 5, lambda _: False)
        result = launches.read_result(str(tmp_path), launch)
        assert result is not None
        return result.complete, result.jobs[0]["acked"], result.jobs[0]["spooled"]

    results = LaunchResults(str(tmp_path))
    results.refresh(0)
    assert written(7) == written(8) == (False, 0, True)
    results.note_delivered()
    assert written(7) == (True, 2, False)
    results = LaunchResults(str(tmp_path))
    launches.write_result(str(tmp_path), Result(8, False, 0, [{**job, "spooled": True}], []))
    results.refresh(0)
    assert written(8, {"slug": "collector-away", "text": "gone"}) == (True, 0, True)
