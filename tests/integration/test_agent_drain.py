"""A real agent reads the channels of real processes; a fake collector fails on demand.

Every record arrives, or is counted as dropped or lost.

Tests agent/__main__.py, agent/daemon/answers.py, agent/daemon/instance.py, agent/daemon/sender.py.
"""

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes import channel_writer, many_channels
from fakes.channel_writer import ChannelWriter
from fakes.collector import FakeCollector
from fakes.polling import until
from tfprof.agent import launches, processes
from tfprof.agent.daemon.finder import CHANNELS_PER_PROCESS_MAX, OPENED_PER_CALL_MAX
from tfprof.agent.launches import Launch, LeftChannel
from tfprof.commands.daemons import read_status
from tfprof.formats import given_up, layout, runtime_dir, wire
from tfprof.formats.version import CHANNEL_VERSION
from tfprof.formats.wire import Head

#: Random, since the agents of other tests search all processes for the channels of their launch.
LAUNCH = secrets.randbits(63)
#: The head of a message of an unknown wire version.
UNKNOWN_HEAD = b"TFPW" + (99).to_bytes(2, "little") + bytes(34)


class Bench:
    """A fake collector, an agent that a test can kill, and jobs."""

    def __init__(self, store: Path) -> None:
        self.instance_dir = runtime_dir.make_instance(str(store))
        self.store = store
        self.launch = Launch(LAUNCH, os.getpid(), time.time_ns(), str(store), "host", "user")
        launches.write(self.instance_dir, self.launch)
        self.collector = FakeCollector(self.instance_dir)
        self.agent: subprocess.Popen[bytes] | None = None
        self.jobs: list[subprocess.Popen[str]] = []

    def start_agent(self) -> None:
        self.agent = subprocess.Popen([sys.executable, "-m", "tfprof.agent", "--store", str(self.store)])

    def kill_agent(self) -> None:
        self.agent.kill()
        self.agent.wait()

    def job(self, count: int, interval_s: float = 0.0, launch: int = LAUNCH) -> tuple[subprocess.Popen[str], int]:
        command = [
            sys.executable,
            channel_writer.__file__,
            self.instance_dir,
            f"{launch:x}",
            str(count),
            str(interval_s),
        ]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.jobs.append(process)
        return process, int(process.stdout.readline(), 16)

    def write_start(self, process: subprocess.Popen[str]) -> None:
        """Write the pid of the job into the launch file, as the launcher does."""
        launches.write(self.instance_dir, self.launch._replace(job_pid=process.pid))

    def write_end(self, process: subprocess.Popen[str], status: int | None, number: int | None) -> None:
        """Write the end of the job into the launch file, as the launcher does."""
        changes = {"job_pid": process.pid, "ended_ns": time.time_ns(), "status": status, "signal": number}
        launches.write(self.instance_dir, self.launch._replace(**changes))

    def end_long_ago(self) -> None:
        """End the launch, longer ago than its files are kept."""
        launches.write(self.instance_dir, self.launch._replace(ended_ns=time.time_ns()))
        old = time.time() - launches.RETENTION_S - 10
        for path in Path(self.instance_dir, runtime_dir.LAUNCHES).iterdir():
            os.utime(path, (old, old))

    def status(self) -> dict:
        return read_status(self.instance_dir, "agent") or {}

    def has_unfinished_result(self) -> bool:
        """Return whether the launch has a result of the agent, but not all its data is stored."""
        result = launches.read_result(self.instance_dir, LAUNCH)
        return result is not None and not result.complete

    def close(self) -> None:
        for process in self.jobs:
            process.kill()
            process.communicate()
        try:
            if self.agent is not None:
                self.agent.terminate()
                assert self.agent.wait(20) in (0, -signal.SIGKILL)
        finally:
            self.collector.close()  # this process serves as the collector: `tfprof stop` would end it


@pytest.fixture
def bench(private_store: Path) -> Iterator[Bench]:
    new_bench = Bench(private_store)
    yield new_bench
    new_bench.close()


def numbers(records: dict[int, bytes]) -> list[int]:
    return [int(json.loads(records[seq])["text"]) for seq in sorted(records)]


def test_every_record_arrives_once_and_then_the_end_of_the_job(bench: Bench) -> None:
    bench.start_agent()
    job, uid = bench.job(300, 0.001)
    assert job.stdout.readline() == "done\n"
    until(lambda: bench.collector.bodies_of_type(wire.OPEN))  # the agent has found the channel
    job.kill()
    job.wait()
    bench.write_end(job, None, 9)
    until(bench.collector.close_bodies)
    assert numbers(bench.collector.records[uid]) == list(range(1, 301))
    assert sorted(bench.collector.spans[uid].values()) == list(range(1, 301))
    end = bench.collector.close_bodies()[uid]
    assert (end["state"], end["signal"], end["status"], end["records"]) == ("killed", 9, None, 300)
    assert end["t_ns"] == launches.read(bench.instance_dir, LAUNCH).ended_ns
    (identity,) = bench.collector.bodies_of_type(wire.OPEN)
    assert (identity["pid"], identity["name"], identity["framework"]) == (job.pid, "fake.py", "tensorflow")
    assert identity["launch"] == f"{LAUNCH:016x}"
    assert "command" not in identity
    samples = [
        message["jobs"] for message in bench.collector.bodies_of_type(wire.SAMPLES) if f"{uid:016x}" in message["jobs"]
    ]
    assert len(samples) >= 2
    kinds = [head.type for head, _ in bench.collector.messages if head.uid == uid]
    assert kinds[0] == wire.OPEN
    assert kinds[-1] == wire.CLOSE
    until(lambda: _complete(bench))
    (result,) = launches.read_result(bench.instance_dir, LAUNCH).jobs
    assert (result["state"], result["records"], result["acked"]) == ("killed", 300, 300)
    until(lambda: not list(Path(bench.instance_dir, "announce").iterdir()))


def _complete(bench: Bench) -> bool:
    result = launches.read_result(bench.instance_dir, LAUNCH)
    return result is not None and result.complete


def test_an_agent_killed_twenty_times_loses_nothing(bench: Bench) -> None:
    job, uid = bench.job(2000, 0.008)  # about as long as twenty agents take to start
    bench.write_start(job)

    def write_end_of_job() -> None:
        job.communicate()
        bench.write_end(job, 0, None)

    launcher = threading.Thread(target=write_end_of_job)
    launcher.start()
    for round_ in range(20):
        bench.start_agent()
        count = len(bench.collector.records.get(uid, ()))
        until(
            lambda count=count: len(bench.collector.records.get(uid, ())) > count or job.poll() is not None, f"{round_}"
        )
        bench.kill_agent()
    bench.start_agent()
    until(lambda: len(bench.collector.records[uid]) == 2000)
    launcher.join()
    until(bench.collector.close_bodies)
    assert numbers(bench.collector.records[uid]) == list(range(1, 2001))
    assert sorted(bench.collector.spans[uid].values()) == list(range(1, 2001))
    end = bench.collector.close_bodies()[uid]
    assert (end["state"], end["dropped_records"]) == ("exited", 0)


def test_a_full_ring_drops_and_counts_records_until_it_has_room_again(bench: Bench) -> None:
    bench.collector.answer = lambda _head, _body: []
    writer = _writer_process(bench, "while w.put(b'x' * 50000): pass\nprint('full', flush=True)\ninput()\nw.put(b'y')")
    assert writer.stdout.readline() == "full\n"
    bench.start_agent()
    until(lambda: any(head.type == wire.RECORDS for head, _ in bench.collector.messages))
    bench.collector.answer = bench.collector.ack
    until(lambda: bench.collector.records)
    (uid,) = bench.collector.records
    until(lambda: len(bench.collector.records[uid]) == 20)
    writer.communicate("go\n")
    until(bench.collector.close_bodies)
    assert bench.collector.records[uid][21] == b"y"
    assert bench.collector.close_bodies()[uid]["dropped_records"] == 1
    assert bench.collector.close_bodies()[uid]["state"] == "ended"


def _tests_environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(channel_writer.__file__).parent.parent)}


def _writer_process(bench: Bench, script: str) -> subprocess.Popen[str]:
    prologue = (
        "from fakes.channel_writer import ChannelWriter\n"
        f"w = ChannelWriter({LAUNCH}); w.announce({bench.instance_dir!r})\n"
    )
    command = [sys.executable, "-c", prologue + script]
    process = subprocess.Popen(command, stdin=-1, stdout=-1, text=True, env=_tests_environment())
    bench.jobs.append(process)
    return process


def test_a_restarted_collector_gets_the_jobs_and_the_records_not_yet_acked(bench: Bench) -> None:
    bench.start_agent()
    job, uid = bench.job(400, 0.01)
    until(lambda: any(job_status["acked"] for job_status in bench.status().get("jobs", {}).values()), "an ack")
    bench.collector.pause()
    before = len(bench.collector.messages)
    stored = set(bench.collector.records[uid])
    bench.collector.records[uid].clear()
    bench.collector.start()
    job.stdout.readline()
    until(lambda: 400 in bench.collector.records[uid])
    assert set(bench.collector.records[uid]) | stored == set(range(1, 401))
    assert len(bench.collector.records[uid]) < 400
    opens = [head for head, _ in bench.collector.messages[before:] if head.type == wire.OPEN]
    assert {head.uid for head in opens} == {uid}


def let_the_collector_stall(bench: Bench) -> None:
    """Let the collector of ``bench`` store nothing: its disk is full."""
    body = json.dumps({"slug": "store-full", "text": "no space left"}).encode()
    bench.collector.answer = lambda head, _body: [(Head(wire.STALL, head.uid, head.type, head.first, head.last), body)]


def test_the_agent_reports_a_stall_and_waits_until_it_ends(bench: Bench) -> None:
    let_the_collector_stall(bench)
    bench.start_agent()
    job, uid = bench.job(10)
    until(lambda: bench.status().get("stall"))
    assert bench.status()["stall"]["slug"] == "store-full"
    job.communicate()
    bench.write_end(job, 3, None)
    until(lambda: (result := launches.read_result(bench.instance_dir, LAUNCH)) and result.stall)
    assert not launches.read_result(bench.instance_dir, LAUNCH).complete
    bench.collector.answer = bench.collector.ack
    until(lambda: _complete(bench))
    assert numbers(bench.collector.records[uid]) == list(range(1, 11))
    assert bench.collector.close_bodies()[uid]["status"] == 3


def test_the_agent_opens_a_job_again_after_reopen(bench: Bench) -> None:
    reopened = []

    def answer(head: Head, body: bytes) -> list[tuple[Head, bytes]]:
        if head.type == wire.RECORDS and not reopened:
            reopened.append(head.uid)
            return [(Head(wire.REOPEN, head.uid), b"")]
        return bench.collector.ack(head, body)

    bench.collector.answer = answer
    bench.start_agent()
    _, uid = bench.job(5)
    until(lambda: len(bench.collector.records.get(uid, ())) == 5)
    assert len(bench.collector.bodies_of_type(wire.OPEN)) >= 2


def test_a_collector_that_refuses_the_version_gets_only_greetings_until_it_welcomes_the_agent(bench: Bench) -> None:
    refusal = {"slug": "unknown-version", "text": "wire version 1 is not supported (this build speaks 2)"}
    refusal_body = json.dumps(refusal).encode()
    bench.collector.greet = lambda _head, _body: [(Head(wire.REFUSE, 0, wire.GREETING), refusal_body)]
    bench.start_agent()
    _, uid = bench.job(5)
    until(lambda: bench.status().get("stall"))
    assert bench.status()["stall"] == refusal
    until(lambda: len(bench.collector.messages) >= 2)
    assert {head.type for head, _ in bench.collector.messages} == {wire.GREETING}
    bench.collector.greet = bench.collector.welcome
    until(lambda: len(bench.collector.records.get(uid, ())) == 5)
    until(lambda: bench.status()["stall"] is None)


def test_the_agent_survives_an_answer_of_another_version(bench: Bench) -> None:
    bench.start_agent()
    _, uid = bench.job(5)
    answered = []

    def answer(head: Head, body: bytes) -> list[tuple[Head | bytes, bytes]]:
        if not answered:
            answered.append(head)
            return [(UNKNOWN_HEAD, b"{}")]
        return bench.collector.ack(head, body)

    bench.collector.answer = answer
    until(lambda: len(bench.collector.records.get(uid, ())) == 5)
    assert answered


def test_the_agent_greets_less_often_after_each_refusal(bench: Bench) -> None:
    refusal = json.dumps({"slug": "unknown-version", "text": "no"}).encode()
    bench.collector.answer = lambda _head, _body: [(Head(wire.REFUSE), refusal)]
    bench.start_agent()
    bench.job(5)
    greetings = lambda: [head for head, _ in bench.collector.messages if head.type == wire.GREETING]  # noqa: E731
    until(lambda: len(greetings()) >= 3)
    assert len(bench.collector.messages) < 50


def test_the_agent_drops_a_refused_job_and_drains_the_others(bench: Bench) -> None:
    answer_body = json.dumps({"slug": "bad-format", "text": "no such job"}).encode()
    refused: list[int] = []

    def answer(head: Head, body: bytes) -> list[tuple[Head, bytes]]:
        if head.type == wire.OPEN and not refused:
            refused.append(head.uid)
        if head.uid in refused:
            kind = wire.REFUSE if head.type == wire.OPEN else wire.REOPEN
            return [(Head(kind, head.uid, head.type, head.first, head.last), answer_body)]
        return bench.collector.ack(head, body)

    bench.collector.answer = answer
    bench.start_agent()
    first, _ = bench.job(5)
    until(lambda: bench.status().get("refusals"))
    (refusal,) = bench.status()["refusals"]
    assert (refusal["pid"], refusal["slug"], refusal["text"]) == (first.pid, "bad-format", "no such job")
    _, uid = bench.job(5)
    until(lambda: len(bench.collector.records.get(uid, ())) == 5)
    assert len([head for head, _ in bench.collector.messages if head.uid in refused]) < 10


def test_a_channel_of_another_version_is_refused_and_the_others_are_drained(bench: Bench) -> None:
    environ = {**os.environ, "TFPROF_RUN": f"{LAUNCH:016x}@{bench.instance_dir}"}
    tests = Path(channel_writer.__file__).parent.parent
    script = (
        f"import sys; sys.path.insert(0, {str(tests)!r})\n"
        f"from fakes.channel_writer import ChannelWriter; w = ChannelWriter({LAUNCH}, version=77)\n"
        f"w.announce({bench.instance_dir!r}); print('up', flush=True); input()"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdin=-1, stdout=-1, text=True, env=environ)
    bench.jobs.append(process)
    process.stdout.readline()
    bench.start_agent()
    _, uid = bench.job(5)
    until(lambda: len(bench.collector.records.get(uid, ())) == 5)
    until(lambda: bench.status().get("refusals"))
    (refusal,) = bench.status()["refusals"]
    assert refusal["slug"] == "unknown-version"
    assert refusal["pid"] == process.pid
    assert "77" in refusal["text"]
    assert f"(this build speaks {CHANNEL_VERSION})" in refusal["text"]


def test_a_job_whose_channel_becomes_corrupt_ends_as_lost(bench: Bench) -> None:
    bench.start_agent()
    job = _writer_process(bench, "w.put(b'x'); print('up', flush=True); input(); w.set(head=1 << 60); input()")
    job.stdout.readline()
    until(lambda: bench.collector.records)
    job.stdin.write("\n")
    job.stdin.flush()
    until(lambda: bench.collector.bodies_of_type(wire.EVENT))
    assert bench.collector.bodies_of_type(wire.EVENT)[0]["slug"] == "bad-channel"
    job.communicate("\n")
    until(bench.collector.close_bodies)
    (end,) = bench.collector.close_bodies().values()
    assert end["state"] == "lost"


def test_channels_of_other_stores_are_left_alone(bench: Bench) -> None:
    bench.start_agent()
    _, other_uid = bench.job(5, launch=0x1234)
    _, uid = bench.job(5)
    until(lambda: uid in bench.collector.records)
    _, later_uid = bench.job(5)
    until(lambda: later_uid in bench.collector.records)  # the agent has scanned again by then
    assert {head.uid for head, _ in bench.collector.messages} == {0, uid, later_uid}
    assert other_uid not in {uid, later_uid}


def test_a_process_that_becomes_another_program_has_ended(bench: Bench) -> None:
    bench.start_agent()
    job = _writer_process(bench, "import os; w.put(b'x'); input(); os.execv('/bin/sleep', ['sleep', '100'])")
    until(lambda: bench.collector.records)
    job.stdin.write("\n")
    job.stdin.flush()
    until(bench.collector.close_bodies)
    assert job.poll() is None
    (end,) = bench.collector.close_bodies().values()
    assert (end["state"], end["records"]) == ("ended", 1)


def test_a_forked_child_that_holds_the_channel_does_not_keep_the_job_alive(bench: Bench) -> None:
    bench.start_agent()
    child = "if os.fork() == 0:\n    os.read(0, 9)\n    os._exit(0)\n"
    job = _writer_process(bench, f"import os\nw.put(b'x'); os.read(0, 1)\n{child}os._exit(4)")
    until(lambda: bench.collector.records)
    inode = next(iter(processes.channels_of(job.pid)))
    job.stdin.write("\n")
    job.stdin.flush()
    until(bench.collector.close_bodies)
    assert inode in processes.scan(os.geteuid())


def test_a_job_that_died_before_the_agent_started_is_drained_from_another_holder_of_its_channel(bench: Bench) -> None:
    job, uid = bench.job(7)
    job.stdout.readline()
    fd = os.open(next(iter(processes.channels_of(job.pid).values())), os.O_RDONLY)
    job.kill()
    job.wait()
    bench.write_end(job, None, 9)
    bench.start_agent()
    until(bench.collector.close_bodies)
    os.close(fd)
    assert numbers(bench.collector.records[uid]) == list(range(1, 8))
    assert bench.collector.close_bodies()[uid]["state"] == "killed"


def test_an_idle_agent_ends(bench: Bench, monkeypatch) -> None:
    monkeypatch.setenv("TFPROF_AGENT_IDLE", "0.3")
    launches.write(bench.instance_dir, bench.launch._replace(ended_ns=1, status=0))
    bench.start_agent()
    assert bench.agent.wait(20) == 0
    assert not bench.status()["alive"]


def test_a_second_agent_of_a_store_ends_at_once(bench: Bench) -> None:
    bench.start_agent()
    until(lambda: bench.status().get("collector"), "a welcome")
    first = bench.status()["pid"]
    second = subprocess.run(
        [sys.executable, "-m", "tfprof.agent", "--store", str(bench.store)], timeout=20, check=False
    )
    assert second.returncode == 1
    assert bench.status()["pid"] == first


def test_a_changed_hello_page_is_sent_again(bench: Bench) -> None:
    bench.start_agent()
    job = _writer_process(bench, "w.put(b'x'); input(); w.hello({'name': 'later.py'}); input()")
    until(lambda: bench.collector.records)
    job.stdin.write("\n")
    job.stdin.flush()
    until(lambda: bench.collector.bodies_of_type(wire.OPEN)[-1]["name"] == "later.py")
    generations = [head.last for head, _ in bench.collector.messages if head.type == wire.OPEN]
    assert generations == sorted(generations)
    assert generations[-1] > generations[0]


def test_the_channel_written_by_hand_has_the_documented_layout() -> None:
    writer = ChannelWriter(launch=3, uid=9)
    assert os.pread(writer.fd, 8, 0) == layout.MAGIC
    assert os.pread(writer.fd, 8, layout.JOB_WORDS["uid"]) == (9).to_bytes(8, "little")
    writer.close()


def test_each_process_that_ends_at_once_is_recorded_or_counted_as_lost(bench: Bench) -> None:
    bench.start_agent()
    until(lambda: bench.status().get("collector"), "a welcome")
    script = f"""
import os, signal
for _ in range(49):
    pid = os.fork()
    if not pid:
        ChannelWriter({LAUNCH}).announce({bench.instance_dir!r})
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
"""
    job = _writer_process(bench, script)
    job.communicate()
    bench.write_end(job, 0, None)
    until(lambda: _complete(bench))
    result = launches.read_result(bench.instance_dir, LAUNCH)
    assert result is not None
    lost = [entry for _, entry in given_up.pending(bench.instance_dir) if entry is not None]
    assert len(result.jobs) + len(lost) == 50
    assert len(lost) == sum(refusal["times"] for refusal in result.refused) > 0
    until(lambda: bench.status()["refused"] == len(lost), "the number of refusals in the status")
    assert {entry["end"]["state"] for entry in lost} == {"lost"}
    assert (
        {entry["event"]["slug"] for entry in lost} == {refusal["slug"] for refusal in result.refused} == {"too-short"}
    )
    assert {entry["identity"]["launch"] for entry in lost} == {f"{LAUNCH:016x}"}
    assert not {entry["uid"] for entry in lost} & {int(job_result["uid"], 16) for job_result in result.jobs}


def test_an_agent_that_gives_up_leaves_what_it_knows_to_the_next_collector(bench: Bench) -> None:
    let_the_collector_stall(bench)
    bench.start_agent()
    job, uid = bench.job(5)
    until(lambda: bench.status().get("stall"))
    job.kill()
    job.wait()
    bench.write_end(job, None, 9)
    until(bench.has_unfinished_result)
    bench.agent.terminate()
    assert bench.agent.wait(20) == 0
    ((_, entry),) = given_up.pending(bench.instance_dir)
    assert entry is not None
    end = entry["end"]
    assert (entry["uid"], entry["identity"]["name"]) == (uid, "fake.py")
    assert (end["state"], end["signal"], end["records"], end["span_head"]) == ("killed", 9, 5, 5)
    assert "1 ended jobs given up, 5 records not stored" in bench.status()["last_error"]


def test_a_new_agent_finds_jobs_whose_launcher_has_ended_a_day_ago(bench: Bench) -> None:
    """`tfprof attach --no-wait` ends its launch at once."""
    count = 5  # processes with more channels than an agent opens in its first turn
    assert count * CHANNELS_PER_PROCESS_MAX > 2 * OPENED_PER_CALL_MAX
    command = [sys.executable, many_channels.__file__, bench.instance_dir, f"{LAUNCH:x}", str(CHANNELS_PER_PROCESS_MAX)]
    for _ in range(count):
        process = subprocess.Popen(command, stdin=-1, stdout=-1, text=True, env=_tests_environment())
        bench.jobs.append(process)
        assert process.stdout.readline() == "done\n"
    bench.end_long_ago()
    for _ in range(2):
        bench.start_agent()
        until(
            lambda: (
                bench.status().get("pid") == bench.agent.pid
                and len(bench.status().get("jobs", ())) == count * CHANNELS_PER_PROCESS_MAX
            ),
            "the jobs",
            20,
        )
        bench.kill_agent()


def test_a_process_that_was_lost_a_day_ago_is_counted_by_the_next_agent(bench: Bench) -> None:
    job, uid = bench.job(1)
    job.communicate()
    counters = {"records": 1, "head": 100, "tail": 0}
    launches.write_left(bench.instance_dir, LAUNCH, LeftChannel(uid, {"name": "fake.py"}, counters))
    bench.end_long_ago()
    bench.start_agent()
    ((_, entry),) = until(lambda: list(given_up.pending(bench.instance_dir)), "the lost process", 20)
    assert entry is not None
    assert (entry["uid"], entry["identity"]["name"], entry["end"]["records"]) == (uid, "fake.py", 1)


def test_a_loss_that_an_agent_cannot_write_down_is_counted_by_a_later_one(bench: Bench) -> None:
    stall_body = json.dumps({"slug": "store-full", "text": "no space"}).encode()
    bench.collector.answer = lambda head, _body: [
        (Head(wire.STALL, head.uid, head.type, head.first, head.last), stall_body)
    ]
    bench.start_agent()
    job, uid = bench.job(5)
    obstacle = Path(bench.instance_dir, runtime_dir.GIVEN_UP, f"{uid:016x}.json")
    obstacle.mkdir()  # the file about the job cannot be written, as on a full disk
    until(lambda: bench.status().get("stall"))
    job.communicate()
    launches.write_left(bench.instance_dir, LAUNCH, LeftChannel(uid, {"name": "fake.py"}, {"records": 5}))
    bench.write_end(job, 0, None)
    until(bench.has_unfinished_result)
    for _ in range(2):  # it gives the job up, and the next one finds that it is lost
        bench.agent.terminate()
        assert bench.agent.wait(20) == 0
        assert "cannot read or write files" in bench.status()["last_error"]
        bench.start_agent()
        until(lambda: bench.status()["pid"] == bench.agent.pid and bench.status()["refused"], "the lost process")
    bench.agent.terminate()
    assert bench.agent.wait(20) == 0
    obstacle.rmdir()
    bench.start_agent()
    ((_, entry),) = until(lambda: list(given_up.pending(bench.instance_dir)), "the loss")
    assert entry is not None
    assert (entry["uid"], entry["end"]["records"], entry["end"]["state"]) == (uid, 5, "exited")
