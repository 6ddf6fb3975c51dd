"""A job in the agent: its identity, its messages, and its end."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.channel_writer import ChannelWriter
from tfprof.agent import launches, processes
from tfprof.agent.channels import ChannelReader
from tfprof.agent.daemon import job as module
from tfprof.agent.daemon.finder import FoundChannel
from tfprof.agent.daemon.job import COUNTERS_S, HELLO_S, LAUNCHER_WAIT_S, Job
from tfprof.agent.launches import Launch
from tfprof.agent.processes import ProcessTree
from tfprof.formats import runtime_dir, wire

LAUNCH = Launch(7, 1, time.time_ns(), "/store", "host", "user", name="nightly", command=["train", "x"], tags={"a": "b"})
ROOM = 1 << 30


class Bench:
    """A job whose channel this process writes, and the messages about it."""

    def __init__(self, instance_dir: Path, launch: Launch = LAUNCH, owner: Any = ...) -> None:
        self.instance_dir = str(instance_dir)
        self.writer = ChannelWriter(7)
        channel = ChannelReader(os.dup(self.writer.fd))
        found_channel = FoundChannel(channel, (0, 1), processes.process(os.getpid()) if owner is ... else owner)
        self.job = Job(found_channel, launch, "node7")
        self.now = 100.0
        self.sent: list[tuple[wire.Head, bytes]] = []

    def close(self) -> None:
        self.job.channel.close()
        self.writer.close()

    def turn(self, seconds: float = 0.0) -> None:
        """Advance the clock, then queue, send and ack all messages."""
        self.now += seconds
        if self.job.is_running:
            self.job.queue_changes(self.now)
        sent_before = len(self.sent)
        self.job.send_due(self.now, self._send, ROOM, ROOM)
        for head, _ in self.sent[sent_before:]:
            self.job.outbox.note_acked(head.type, head.last)

    def _send(self, head: wire.Head, body: bytes) -> bool:
        self.sent.append((head, body))
        return True

    def bodies(self, kind: int) -> list[dict[str, Any]]:
        return [json.loads(body) for head, body in self.sent if head.type == kind]

    def end(self, wait_s: float = 0.0) -> dict[str, Any] | None:
        """End the process; return the CLOSE that is queued ``wait_s`` later, None for none."""
        self.job.note_gone(self.now)
        self.turn()
        self.now += wait_s
        self.job.close_if_over(self.instance_dir, self.now)
        self.turn()
        return next(iter(self.bodies(wire.CLOSE)), None)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    (tmp_path / runtime_dir.LAUNCHES).mkdir()
    new_bench = Bench(tmp_path)
    yield new_bench
    new_bench.close()


def test_the_open_has_fields_of_the_hello_and_of_the_launcher(bench: Bench) -> None:
    bench.turn()
    (sent,) = bench.bodies(wire.OPEN)
    assert (sent["name"], sent["command"], sent["framework"]) == ("nightly", ["train", "x"], "tensorflow")
    assert (sent["uid"], sent["pid"], sent["host"]) == (f"{bench.writer.uid:016x}", os.getpid(), "node7")
    assert sent["launch"] == f"{7:016x}"
    assert sent["tags"]["a"] == "b"
    assert bench.writer.word("agent_pid") == os.getpid()


def test_without_a_name_of_the_launcher_a_job_has_its_own_name_and_no_command(tmp_path: Path) -> None:
    bench = Bench(tmp_path, LAUNCH._replace(name=None, command=None))
    bench.turn()
    (sent,) = bench.bodies(wire.OPEN)
    assert sent["name"] == "fake.py"
    assert "command" not in sent
    bench.close()


def test_a_process_that_was_gone_before_it_was_found_has_the_pid_of_its_namespace(tmp_path: Path) -> None:
    bench = Bench(tmp_path, owner=None)
    bench.turn()
    (sent,) = bench.bodies(wire.OPEN)
    assert (sent["pid"], sent["started"]) == (os.getpid(), None)
    assert bench.job.sample(ProcessTree({}, {}), frozenset()) == {}
    bench.close()


def test_a_new_hello_is_sent_once_a_second_at_most(bench: Bench) -> None:
    bench.turn()
    for number in range(3):
        bench.writer.hello({"name": f"{number}.py", "framework": "tensorflow"})
        bench.turn(0.01)
    assert len(bench.bodies(wire.OPEN)) == 1
    bench.turn(HELLO_S)
    assert len(bench.bodies(wire.OPEN)) == 2
    bench.turn(HELLO_S)
    assert len(bench.bodies(wire.OPEN)) == 2
    bench.writer.hello({"name": "last.py", "framework": "tensorflow"})
    bench.job.note_gone(bench.now)
    bench.turn(0.01)
    assert len(bench.bodies(wire.OPEN)) == 3, "the last hello is sent at the end, too"


def test_counters_are_sent_when_they_have_changed_and_the_job_gets_a_heartbeat(bench: Bench) -> None:
    bench.turn()
    sent_before = len(bench.bodies(wire.COUNTERS))
    beat = bench.writer.word("agent_beat_ns")
    assert beat
    bench.turn(COUNTERS_S)
    assert len(bench.bodies(wire.COUNTERS)) == sent_before
    assert bench.writer.word("agent_beat_ns") > beat
    bench.writer.put_span(1)
    bench.turn(COUNTERS_S / 4)
    assert len(bench.bodies(wire.COUNTERS)) == sent_before
    bench.turn(COUNTERS_S)
    assert len(bench.bodies(wire.COUNTERS)) == sent_before + 1


def test_a_job_is_closed_once_all_its_data_is_acked(bench: Bench) -> None:
    bench.writer.put(b"one")
    bench.turn()
    bench.writer.put(b"two")
    bench.job.note_gone(bench.now)
    bench.job.close_if_over(bench.instance_dir, bench.now + 60)
    assert not bench.bodies(wire.CLOSE)
    bench.turn()
    bench.job.close_if_over(bench.instance_dir, bench.now + 60)
    bench.job.close_if_over(bench.instance_dir, bench.now + 60)
    bench.turn()
    (sent,) = bench.bodies(wire.CLOSE)
    assert (sent["state"], sent["status"], sent["signal"], sent["records"]) == ("ended", None, None, 2)
    assert bench.job.summary()["acked"] == 2
    assert bench.job.summary()["lag_bytes"] == 0


def test_a_running_job_is_not_closed(bench: Bench) -> None:
    bench.turn()
    bench.job.close_if_over(bench.instance_dir, bench.now + 60)
    bench.turn()
    assert bench.job.is_running
    assert not bench.bodies(wire.CLOSE)


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        ({"status": 3, "ended_ns": 77}, {"state": "exited", "status": 3, "signal": None, "t_ns": 77}),
        ({"status": 0, "ended_ns": 77}, {"state": "exited", "status": 0, "signal": None, "t_ns": 77}),
        ({"signal": 9, "ended_ns": 77}, {"state": "killed", "status": None, "signal": 9, "t_ns": 77}),
    ],
    ids=str,
)
def test_the_end_is_as_the_launcher_reports_it(
    bench: Bench, reported: dict[str, Any], expected: dict[str, Any]
) -> None:
    launches.write(bench.instance_dir, LAUNCH._replace(job_pid=os.getpid(), **reported))
    end = bench.end()
    assert end is not None
    assert {name: end[name] for name in expected} == expected


@pytest.mark.parametrize("launcher", ["has another child", "became the job"])
def test_without_a_report_of_the_launcher_only_the_time_of_the_end_is_known(bench: Bench, launcher: str) -> None:
    pid = os.getpid()
    changes: dict[str, Any] = {"job_pid": pid + 1} if launcher == "has another child" else {"job_pid": pid, "pid": pid}
    launches.write(bench.instance_dir, LAUNCH._replace(**changes))
    end = bench.end()
    assert end is not None
    assert (end["state"], end["status"], end["signal"]) == ("ended", None, None)
    assert end["t_ns"] <= time.time_ns()


def test_the_launcher_has_some_time_to_report(bench: Bench) -> None:
    launches.write(bench.instance_dir, LAUNCH._replace(job_pid=os.getpid()))
    assert bench.end(LAUNCHER_WAIT_S - 0.1) is None
    assert bench.job.has_just_ended(bench.now)
    bench.now += 0.2
    assert not bench.job.has_just_ended(bench.now)
    bench.job.close_if_over(bench.instance_dir, bench.now)
    bench.turn()
    assert [sent["state"] for sent in bench.bodies(wire.CLOSE)] == ["ended"]


def test_a_damaged_channel_is_lost_and_not_read_again(bench: Bench) -> None:
    bench.writer.put(b"one")
    bench.turn()
    bench.writer.set(head=1 << 60)
    bench.turn()
    assert bench.job.error
    assert not bench.job.is_transferring
    end = bench.end()
    assert end is not None
    assert end["state"] == "lost"
    assert bench.job.summary()["error"] == bench.job.error


def test_a_channel_that_is_damaged_at_the_end_is_lost_too(bench: Bench) -> None:
    bench.turn()
    bench.job.note_gone(bench.now)
    bench.writer.set(head=1 << 60)
    assert bench.job.is_transferring, "the next turn finds the error"
    assert bench.job.has_more_to_do
    bench.job.close_if_over(bench.instance_dir, bench.now)
    bench.turn()
    assert [sent["state"] for sent in bench.bodies(wire.CLOSE)] == ["lost"]


def test_a_job_is_active_for_some_time_after_its_end(bench: Bench) -> None:
    bench.turn()
    bench.now = time.monotonic() + 10_000.0
    assert not bench.job.is_active(bench.now)
    bench.job.note_gone(bench.now)
    assert bench.job.is_active(bench.now)
    assert bench.job.is_active(bench.now + module.ACTIVE_S - 0.1)
    assert not bench.job.is_active(bench.now + module.ACTIVE_S + 0.1)


def test_after_its_end_a_job_has_its_last_sample(bench: Bench) -> None:
    tree = processes.process_tree(processes.all_pids())
    bench.job.sample(tree, frozenset({os.getpid()}))
    last = bench.job.sample(tree, frozenset({os.getpid()}))
    assert last["processes"] >= 1
    bench.job.note_gone(bench.now)
    assert bench.job.sample(ProcessTree({}, {}), frozenset()) == last
