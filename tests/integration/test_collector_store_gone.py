"""The collector creates a removed or moved store again, and counts the lost records."""

import shutil
import time

import pytest
from fakes.collector_process import CollectorProcess, StepStream
from fakes.made_store import host_samples
from fakes.wire_agent import WireAgent
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.summaries.jobs import job_row
from tfprof.formats import wire

UID, NEXT_UID = 0x77, 0x78
LOSSES = pytest.mark.parametrize("loss", ["removed", "moved", "job removed", "jobs moved"])


@pytest.fixture
def daemon(private_store):
    with CollectorProcess(private_store) as daemon:
        yield daemon.start()


def take_away(store, loss):
    folders = {
        "removed": store,
        "moved": store,
        "job removed": store / f"jobs/{UID:016x}",
        "jobs moved": store / "jobs",
    }
    if "moved" in loss:
        folders[loss].rename(store.with_name("elsewhere"))
    else:
        shutil.rmtree(folders[loss])


@LOSSES
def test_steps_not_yet_acked_go_to_the_new_store_and_the_others_count_as_lost(daemon, loss):
    stream = StepStream(daemon.instance_dir, UID, 400)
    try:
        stream.run(until=100)
        take_away(daemon.store, loss)
        time.sleep(0.3)  # steps acked within a moment of the removal may still go to the old files
        acked = stream.acked
        stream.run()
    finally:
        stream.agent.finish(UID)
        stream.agent.expect(wire.ACK, wire.CLOSE)
        stream.close()
    job = LocalStore(daemon.store).job(f"{UID:016x}")
    (event,) = job.table("events").to_pylist()
    assert event["slug"] == "store-removed"
    assert acked <= event["count"] < 400
    assert job.table("traces").num_rows == 400 - event["count"]
    assert job_row(job.info, "77", 0).lost == event["count"]
    next_stream = StepStream(daemon.instance_dir, NEXT_UID, 10)
    try:
        next_stream.run()
    finally:
        next_stream.close()
    assert LocalStore(daemon.store).job(f"{NEXT_UID:016x}").table("traces").num_rows == 10
    assert daemon.status()["failures"] == 0
    code, errors = daemon.stop()
    assert code == 0
    assert len(errors.splitlines()) <= 1


def test_a_store_removed_while_no_job_is_open_is_made_again_for_the_next_job(daemon):
    agent = WireAgent(daemon.instance_dir)
    try:
        agent.greet()
        shutil.rmtree(daemon.store)
        agent.open(UID, name="later.py")
        agent.samples(1, 5, {UID: {"processes": 1}}, host={"cpus": 2})
        agent.expect(wire.ACK, wire.SAMPLES)
        daemon.await_status(lambda status: (daemon.store / "store.json").exists())
        agent.samples(2, 6, {UID: {"processes": 1}}, host={"cpus": 2})
        agent.expect(wire.ACK, wire.SAMPLES)
    finally:
        agent.close()
    job = LocalStore(daemon.store).job(f"{UID:016x}")
    assert job.info.name == "later.py"
    assert job.table("samples").num_rows >= 1
    assert host_samples(daemon.store, "testhost").num_rows >= 1
