"""A real collector gets corrupt messages: it survives, and serves another job without delay.

TFPROF_MUTATIONS is the number of messages, TFPROF_MUTATIONS_SEED the seed.
"""

import json
import os

import pytest
from fakes.collector_process import CollectorProcess
from fakes.mutations import Mutator
from fakes.run_metadata import run_metadata
from fakes.valid_store import check_tables
from fakes.waits import Waits
from fakes.wire_agent import WireAgent
from tfprof.collector.store.reader import LocalStore
from tfprof.formats import layout, wire

COUNT = int(os.environ.get("TFPROF_MUTATIONS", "600"))
SEED = int(os.environ.get("TFPROF_MUTATIONS_SEED", "1"))
HEALTHY, EVIL = 0x600D, 0xBAD0000
#: Number of messages of each corrupt job. With more of them its store is large and the test slow.
MESSAGES_EACH = 100
MEMORY_MAX = 256 << 20
#: The longest time that one job may delay the messages of another (seconds).
DELAY_MAX_S = 0.5


@pytest.fixture
def daemon(private_store):
    with CollectorProcess(private_store) as daemon:
        yield daemon.start()


class Healthy:
    """A job that sends valid messages, one at a time."""

    def __init__(self, daemon):
        self.agent = WireAgent(daemon.instance_dir, agent="healthy")
        self.agent.greet()
        self.agent.open(HEALTHY, name="healthy.py")
        self.sent = 0
        self.waits = Waits(daemon.process.pid)

    def step(self):
        self.sent += 1
        body = run_metadata([b"n%d:Add" % (self.sent % 5)])
        with self.waits.measure():
            self.agent.records(HEALTHY, [(layout.RUN_METADATA, body)], self.sent)
            head, _ = self.agent.expect(wire.ACK, wire.RECORDS, timeout_s=30)
        assert head.last == self.sent


def rss_bytes(daemon):
    with open(f"/proc/{daemon.process.pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_no_message_ends_the_collector_or_delays_another_job(daemon):
    healthy = Healthy(daemon)
    evil = WireAgent(daemon.instance_dir, agent="evil")
    evil.greet()
    rss_max = 0
    for number in range(COUNT):
        if number % MESSAGES_EACH == 0:
            uid = EVIL + number // MESSAGES_EACH
            mutator = Mutator(SEED * 1_000 + number, uid)
            evil.open(uid, name="evil.py")
        message = mutator.message()
        # An agent repeats a message until it is acked. The collector accepts a message after a gap
        # only when it comes the second time, so each message is sent twice.
        for _ in range(2):
            evil.send_raw(*message)
        if number % 10 == 0:
            healthy.step()
            rss_max = max(rss_max, rss_bytes(daemon))
        while evil.receive(0) is not None:
            pass
    evil.close()
    status = daemon.await_status(lambda status: status["rows"] >= healthy.sent)
    healthy.agent.close()
    code, errors = daemon.stop()
    slowest = {"slowest_s": healthy.waits.slowest_s, "slowest_wall_s": healthy.waits.slowest_wall_s}
    print(json.dumps({**slowest, "rss_max_bytes": rss_max, **status}))
    assert (code, errors) == (0, "")
    assert status["failures"] == 0
    assert status["pid"] == daemon.process.pid
    assert healthy.waits.slowest_s < DELAY_MAX_S
    assert rss_max < MEMORY_MAX
    store = LocalStore(daemon.store)
    job = store.job(f"{HEALTHY:016x}")
    names = {(row["kind"], row["id"]): row["text"] for row in job.table("names").to_pylist()}
    assert [names[0, row["node"]] for row in job.table("ops").to_pylist()] == [
        b"n%d" % (number % 5) for number in range(1, healthy.sent + 1)
    ]
    assert job.table("events").num_rows == 0
    check_tables(store)
