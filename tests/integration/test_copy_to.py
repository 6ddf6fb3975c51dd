"""The setting `copy-to`: a collector copies its jobs into ClickHouse while they run.

The test of a copy needs the Debian package clickhouse-server; without it, it is skipped.

Tests collector/copier.py.
"""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from fakes import clickhouse_program
from fakes.collector_process import CollectorProcess, StepStream
from fakes.command import answer, output_of
from fakes.polling import until
from fakes.same_figures import assert_same_figures, assert_same_rows
from fakes.wire_agent import WireAgent
from tfprof.collector.copier import RETRY_S, Copier
from tfprof.collector.errors import StoreError
from tfprof.collector.store.opening import open_reader
from tfprof.collector.store.reader import LocalStore
from tfprof.formats import wire
from tfprof.web.server import live

UID = 0xC0


@pytest.fixture
def collector(private_store: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CollectorProcess]:
    with CollectorProcess(private_store, "--idle", "600") as process:
        yield process


@pytest.mark.skipif(not clickhouse_program.PROGRAM, reason="clickhouse-server is not installed")
def test_each_row_of_a_running_job_is_there_once_after_kills(
    collector: CollectorProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with clickhouse_program.running(tmp_path) as (port, _):
        url = f"clickhouse://127.0.0.1:{port}/jobs"
        output_of("store", "init", url)
        monkeypatch.setenv("TFPROF_COPY_TO", url)
        collector.start()
        stream = StepStream(collector.instance_dir, UID, 3_000)
        engine = open_reader(url)

        def copied_traces() -> int:
            return engine.jobs()[0].table("traces").num_rows if engine.jobs() else 0

        try:
            for steps in (500, 1_000, 1_500):
                stream.run(until=steps)
                before = copied_traces()
                until(lambda before=before: copied_traces() > before, "a copy of new steps", 30)
                assert engine.jobs()[0].info.state == "running"
                assert _shows_running(url)
                (copier,) = psutil.Process(collector.process.pid).children()
                if steps == 500:
                    copier.kill()
                    collector.await_status(lambda status: status["copy"]["error"], 15)
                    status, text, _ = answer("status", "--store", str(collector.store))
                    assert status == 1
                    assert "[copy-ended]" in text
                collector.kill()
                until(lambda copier=copier: not copier.is_running(), "the end of the copying process", 15)
                collector.start()
            stream.run()
        finally:
            stream.close()
        agent = WireAgent(collector.instance_dir)
        try:
            agent.greet()
            agent.open(UID, name="stream", pid=os.getpid())
            agent.finish(UID, status=0)
            agent.expect(wire.ACK, wire.CLOSE)
        finally:
            agent.close()
        until(lambda: engine.jobs()[0].info.state == "exited", "the copy of the job's end", 30)
        job, local = engine.jobs()[0], LocalStore(collector.store).jobs()[0]
        assert_same_rows(job, local)
        assert_same_figures(job, local)
        assert collector.await_status(lambda status: status["copy"]["copied_ns"])["copy"]["error"] is None
        assert "last copy" in output_of("status", "--store", collector.store)
        assert "tfprof_collector_copy_failing 0" in output_of("metrics", "--store", collector.store)


def _shows_running(url: str) -> bool:
    """Whether top, the metrics and the page show a running job."""
    jobs = json.loads(output_of("top", "--once", "--json", "--store", url))["jobs"]
    metrics = output_of("metrics", "--store", url)
    page = live._state(live._State("", "", None), url).message
    return (
        [job["uid"] for job in jobs] == [f"{UID:016x}"]
        and f'tfprof_job_running{{job_id="{UID:016x}",name="stream"}} 1' in metrics
        and "tfprof_daemon" not in metrics
        and f"{UID:016x}" in page
    )


def test_an_engine_that_is_away_costs_a_warning(collector: CollectorProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFPROF_COPY_TO", "clickhouse://127.0.0.1:1/jobs")
    collector.start()
    stream = StepStream(collector.instance_dir, UID, 300)
    try:
        stream.run()
    finally:
        stream.close()
    copy = collector.await_status(lambda status: status["copy"]["error"])["copy"]
    assert (copy["copied_ns"], copy["error"]["slug"]) == (None, "engine-away")
    status, text, _ = answer("status", "--store", str(collector.store))
    assert status == 1
    assert "not copied" in text
    assert "tfprof_collector_copy_failing 1" in output_of("metrics", "--store", collector.store)
    assert LocalStore(collector.store).jobs()[0].table("traces").num_rows == 300
    os.kill(collector.process.pid, signal.SIGTERM)
    code, errors = collector.wait_end()
    assert code == 0
    assert errors.count("engine-away") == 1


def test_a_process_that_cannot_start_is_tried_again_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError

    monkeypatch.setattr(subprocess, "Popen", refuse)
    copier = Copier(tmp_path, "clickhouse://127.0.0.1:1/jobs")
    for now in (1_000.0, 1_000.0 + RETRY_S):
        with pytest.raises(BlockingIOError):
            copier.tick(now)
        copier.tick(now + RETRY_S - 1)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("/data/jobs", "'/data/jobs' is not the URL of a store in ClickHouse"),
        ("clickhouse://ada:secret@head/jobs", "the URL of a store names neither user nor password"),
    ],
)
def test_a_target_that_is_no_engine_is_refused(
    text: str, reason: str, collector: CollectorProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFPROF_COPY_TO", text)
    code, errors = collector.start().wait_end()
    assert code == 2
    assert f"TFPROF_COPY_TO: {reason}" in errors
    assert "secret" not in errors
    with pytest.raises(StoreError):
        LocalStore(collector.store)
