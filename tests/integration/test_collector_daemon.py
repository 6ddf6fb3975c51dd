"""A real collector daemon and a stream of steps: kills, full disks, limits, successors.

Tests collector/ingest/given_up_files.py.
"""

import contextlib
import itertools
import os
import resource
import subprocess
import time
from pathlib import Path

import pytest
from fakes.collector_process import CollectorProcess, StepStream
from fakes.polling import until
from fakes.wire_agent import WireAgent, span
from tfprof.collector.store.reader import LocalStore
from tfprof.formats import given_up, runtime_dir, wire
from tfprof.formats.wire import Head

UID = 0x77


@pytest.fixture
def daemon(private_store):
    with CollectorProcess(private_store) as daemon:
        yield daemon


@contextlib.contextmanager
def streaming(daemon, count, **kwargs):
    stream = StepStream(daemon.instance_dir, UID, count, **kwargs)
    try:
        yield stream
    finally:
        stream.close()


def stored_traces(store):
    return sorted(LocalStore(store).job(f"{UID:016x}").table("traces")["trace"].to_pylist())


def test_a_job_is_stored_and_can_be_read_after_the_collector_has_ended(daemon):
    daemon.start()
    agent = WireAgent(daemon.instance_dir)
    try:
        welcome = agent.greet()
        assert welcome["store"] == str(daemon.store)
        agent.open(UID, name="stream", pid=12)
        agent.spans(UID, [span(1), span(2)])
        agent.expect(wire.ACK, wire.SPANS)
        with streaming(daemon, 10) as stream:
            stream.run()
        status = daemon.await_status(lambda status: status["jobs"] == 1 and status["rows"] == 10)
        agent.finish(UID, status=0)
        agent.expect(wire.ACK, wire.CLOSE)
    finally:
        agent.close()
    assert status["alive"]
    assert status["pid"] == daemon.process.pid
    assert status["decoder"] in {"walker", "python"}
    assert status["stalled"] is None
    assert status["rss_bytes"] > 1 << 20
    assert daemon.stop() == (0, "")
    assert not daemon.status()["alive"]
    job = LocalStore(daemon.store).job("stream")
    assert (job.info.state, job.info.end["status"]) == ("exited", 0)
    assert job.table("spans").num_rows == 2
    assert job.rollup()["traces"].to_pylist()
    assert stored_traces(daemon.store) == list(range(10))


def test_what_an_agent_has_given_up_is_counted_by_the_next_collector(daemon):
    end = {"state": "exited", "status": 0, "signal": None, "t_ns": 5, "records": 7, "span_head": 3}
    given_up.write(runtime_dir.make_instance(str(daemon.store)), UID, {"name": "stream"}, end)
    daemon.start()
    until(lambda: not list(given_up.pending(daemon.instance_dir)))
    until(lambda: LocalStore(daemon.store).job("stream").info.state == "exited")
    daemon.stop()
    assert LocalStore(daemon.store).job("stream").info.counters["never_stored"] == 10


def test_many_jobs_that_were_given_up_are_ended_one_by_one(daemon):
    """None of them is shown as running meanwhile, with a loss of 0."""
    end = {"state": "lost", "status": None, "signal": None, "t_ns": 5}
    instance_dir = runtime_dir.make_instance(str(daemon.store))
    for uid in range(1, 51):
        given_up.write(instance_dir, uid, {"name": f"job {uid}"}, end)
    daemon.start()
    most_running = 0
    while list(given_up.pending(instance_dir)):
        jobs = LocalStore(daemon.store).jobs() if (daemon.store / "store.json").exists() else []
        most_running = max(most_running, sum(job.info.state != "lost" for job in jobs))
    daemon.stop()
    assert most_running < 10
    assert [job.info.state for job in LocalStore(daemon.store).jobs()] == ["lost"] * 50


def make_odd_folder(folder):
    folder.mkdir(parents=True, mode=0o700)
    os.mkfifo(folder / "wal-000000.log")


def test_jobs_and_hosts_with_odd_files_hold_up_no_other_job(daemon):
    instance_dir = Path(runtime_dir.make_instance(str(daemon.store)))
    end = {"state": "exited", "status": 0, "signal": None, "t_ns": 5, "records": 7, "span_head": 3}
    for uid in (1, 2):
        # The collector removes the samples of hosts without jobs.
        given_up.write(str(instance_dir), uid, {"name": f"job{uid}", "host": "testhost"}, end)
    (instance_dir / "given-up/0.json").mkdir()
    for name in (f"jobs/{1:016x}", f"jobs/{3:016x}"):
        make_odd_folder(daemon.store / name)
    daemon.start()
    until(lambda: f"{2:016x}.json" not in os.listdir(instance_dir / "given-up"))
    make_odd_folder(daemon.store / "hosts/testhost")
    agent = WireAgent(str(instance_dir))
    try:
        agent.greet()
        agent.send(Head(wire.OPEN, 3), b'{"name": "job3"}')
        assert agent.expect(wire.STALL, wire.OPEN)[1]["slug"] == "store-damaged"
        agent.open(UID, name="stream")
        agent.samples(1, 5, {UID: {"processes": 2}}, {"cpus": 8})
        agent.expect(wire.ACK, wire.SAMPLES)
        status = daemon.await_status(lambda status: status["lost_samples"] == 1)
    finally:
        agent.close()
    code, errors = daemon.stop()
    assert (code, status["failures"]) == (0, 0)
    assert "hosts/testhost/wal-000000.log is damaged" in errors
    store = LocalStore(daemon.store)
    assert {job.info.name for job in store.jobs()} >= {"job2", "stream"}
    assert store.job("job2").info.state == "exited"
    assert store.job("stream").table("samples")["processes"].to_pylist() == [2]


def test_a_collector_killed_twenty_times_stores_every_acked_step_once(daemon):
    with streaming(daemon, count=6_000) as stream:
        for kill in range(20):
            daemon.start()
            stream.run(until=stream.acked + 1 + 40 * (kill % 3))
            acked = stream.acked
            daemon.kill()
            stored = stored_traces(daemon.store)
            assert stored == list(range(len(stored)))
            assert len(stored) >= acked
        daemon.start()
        stream.run(until=stream.acked + 100)
        count = stream.finish()
    daemon.stop()
    assert stored_traces(daemon.store) == list(range(count))
    assert LocalStore(daemon.store).job("last").table("events").num_rows == 0


def test_a_collector_stores_everything_that_has_arrived_before_sigterm_ends_it(daemon):
    daemon.start()
    with streaming(daemon, count=300) as stream:
        stream.run(until=30)
        assert daemon.stop() == (0, "")
        stored = stored_traces(daemon.store)
        assert len(stored) >= stream.acked
    assert LocalStore(daemon.store).job("last").info.state in {"running", "stale"}


@contextlib.contextmanager
def small_disk(folder):
    """Mount a file system of 1 MiB at ``folder``; yield whether the user is allowed to."""
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tfprof-test", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        yield False
        return
    try:
        yield True
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_stalls_the_stream_until_there_is_room_again(daemon):
    with small_disk(daemon.store) as mounted:
        if not mounted:
            pytest.skip("this user may not mount a file system; the next test uses a limit on file sizes instead")
        (daemon.store / "ballast").write_bytes(b"\0" * (900 << 10))
        daemon.start()
        with streaming(daemon, count=4_000) as stream:
            while not stream.stalls:
                stream.exchange()
            assert set(stream.stalls) == {"store-full"}
            status = daemon.await_status(lambda status: status["stalled"])
            assert status["stalled"]["slug"] == "store-full"
            full_at = stream.acked
            for _ in range(20):
                stream.exchange()
            (daemon.store / "ballast").unlink()
            stream.run(until=full_at + 200)
            count = stream.finish()
        daemon.await_status(lambda status: status["stalled"] is None)
        daemon.stop()
        assert stored_traces(daemon.store) == list(range(count))
        assert LocalStore(daemon.store).job("last").table("events").num_rows == 0


def test_a_store_that_cannot_be_written_stalls_the_stream_until_it_can(daemon):
    daemon.start()
    with streaming(daemon, count=2_000) as stream:
        stream.run(until=50)
        _, hard = resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (1, hard))
        while not stream.stalls:
            stream.exchange()
        assert set(stream.stalls) == {"store-unwritable"}
        stuck_at = stream.acked
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        stream.run(until=stuck_at + 100)
        count = stream.finish()
    daemon.stop()
    assert stored_traces(daemon.store) == list(range(count))


def test_a_collector_without_messages_of_an_agent_ends(private_store):
    with CollectorProcess(private_store, "--idle", "0.5") as daemon:
        assert daemon.start().wait_end() == (0, "")


def test_a_second_collector_of_a_store_is_refused(daemon, tmp_path, monkeypatch):
    daemon.start()
    daemon.await_status(lambda status: status["alive"])
    code, errors = CollectorProcess(daemon.store).start().wait_end()
    assert code == 1
    assert "[store-in-use]" in errors
    other_runtime_dir = tmp_path / "r2"
    other_runtime_dir.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(other_runtime_dir))
    code, errors = CollectorProcess(daemon.store).start().wait_end()
    assert code == 1
    assert f"process {daemon.process.pid} " in errors
    assert len(errors.splitlines()) == 1


def test_a_file_in_place_of_the_store_is_one_line_of_error_and_status_1(daemon):
    daemon.store.parent.mkdir(exist_ok=True)
    daemon.store.write_text("not a folder")
    code, errors = daemon.start().wait_end()
    assert code == 1
    assert errors.startswith("tfprof: ")
    assert len(errors.splitlines()) == 1


def test_the_next_collector_continues_the_names_and_numbers_of_a_job(daemon):
    with streaming(daemon, count=60) as stream:
        for upto in (20, 40, 60):
            daemon.start()
            stream.run(until=upto)
            daemon.stop()
    job = LocalStore(daemon.store).job("last")
    names = job.table("names").to_pylist()
    assert len({(row["kind"], row["id"]) for row in names}) == len(names)
    texts = {row["id"]: row["text"] for row in names if row["kind"] == 0}
    node_of_trace = {row["trace"]: texts[row["node"]] for row in job.table("ops").to_pylist()}
    assert node_of_trace == {trace: b"n%d" % ((trace + 1) % 7) for trace in range(60)}


def test_the_stream_continues_with_the_next_collector_after_a_kill(daemon):
    daemon.start()
    with streaming(daemon, count=20_000) as stream:
        stream.run(until=10)
        daemon.kill()
        for _ in itertools.repeat(None, 20):
            stream.exchange()
            time.sleep(0.01)  # the stream sends without a collector for a while
        acked = stream.acked
        daemon.start()
        stream.run(until=acked + 10)
