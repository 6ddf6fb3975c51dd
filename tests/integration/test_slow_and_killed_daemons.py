"""Daemons start slowly or are killed at any moment: each step is stored, or counted as lost."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.compute as pc
import pytest
from fakes.channel_job import OPEN_CHANNEL
from fakes.daemon_pids import ready_pid
from fakes.polling import until
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.summaries.jobs import JobRow, job_rows
from tfprof.commands import daemons
from tfprof.formats import runtime_dir

RUN = [sys.executable, "-m", "tfprof.agent.launcher.run"]
TFPROF = [sys.executable, "-m", "tfprof.cli.main"]
#: Number of jobs whose daemons are killed at random moments.
TRIALS = int(os.environ.get("TFPROF_KILL_TRIALS", "4"))
SEED = int(os.environ.get("TFPROF_KILL_TRIALS_SEED", "1"))
#: One of these many steps makes a record.
RECORD_EVERY = 10

#: Runs steps for a time, prints their number, and stays for a further time.
JOB = f"""{OPEN_CHANNEL}
end, steps = time.monotonic() + float(sys.argv[1]), 0
while time.monotonic() < end:
    steps += 1
    if steps % {RECORD_EVERY} == 0:
        writer.put(b'{{"slug": "fake", "text": "step"}}')
    writer.put_span(steps)
    time.sleep(0.001)
print(steps, flush=True)
time.sleep(float(sys.argv[2]))
"""

pytestmark = pytest.mark.timeout(600)


class Host:
    """A store and its daemons."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self.instance_dir = runtime_dir.make_instance(str(store))

    @contextmanager
    def job(self, seconds: float, *options: str, stay_s: float = 0.0) -> Iterator[subprocess.Popen[str]]:
        command = [*RUN, *options, sys.executable, "-c", JOB, str(seconds), str(stay_s)]
        with subprocess.Popen(command, stdout=-1, stderr=-1, text=True) as launcher:
            yield launcher

    def send(self, name: str, number: signal.Signals) -> None:
        """Send a signal to a daemon, if it runs."""
        pid = daemons.running_pid(self.instance_dir, name)
        if pid:
            os.kill(pid, number)

    def stop_at_start(self, name: str) -> int:
        """Stop a daemon in the first milliseconds of its start; return its pid."""
        while not (pid := daemons.running_pid(self.instance_dir, name)):
            time.sleep(0.001)
        os.kill(pid, signal.SIGSTOP)
        assert not daemons.is_up(self.instance_dir, name, pid)
        return pid

    def stored_job(self) -> JobRow:
        """Return the row of the only job, once it has ended in the store; daemons are started."""
        subprocess.run([*TFPROF, "start"], capture_output=True, timeout=120, check=True)

        def ended_job() -> JobRow | None:
            rows = job_rows([job.info for job in LocalStore(self.store).jobs()], time.time_ns())
            return next((row for row in rows if row.state not in ("running", "stale")), None)

        row = until(ended_job, "the end of the job in the store")
        assert row is not None
        return row

    def stored_entries(self) -> int:
        """Return the number of spans and records of the only job that are in the store."""
        job = LocalStore(self.store).job("last")
        records = pc.sum(pc.equal(job.table("events")["slug"], "fake")).as_py() or 0
        return job.table("spans").num_rows + int(records)


@pytest.fixture
def host(private_store: Path) -> Host:
    return Host(private_store)


def assert_counted(host: Host, steps: int) -> None:
    """Assert that all steps are shown, and that what is not stored of them is counted as lost."""
    row = host.stored_job()
    assert (row.name, row.steps) == ("fake.py", steps)
    assert row.lost is not None
    assert host.stored_entries() + row.lost == steps + steps // RECORD_EVERY


@pytest.mark.parametrize("options", [(), ("--quiet",)])
def test_the_launcher_waits_for_an_agent_that_starts_slowly(host: Host, options: tuple[str, ...]) -> None:
    with host.job(0.5, *options) as launcher:
        agent = host.stop_at_start("agent")
        steps = int(launcher.stdout.readline())
        time.sleep(7)  # longer than a launcher waits without progress
        assert daemons.running_pid(host.instance_dir, "agent") == agent, "it started another agent"
        os.kill(agent, signal.SIGCONT)
        _, err = launcher.communicate(timeout=60)
    assert "0 lost" in err or options
    assert_counted(host, steps)
    row = host.stored_job()
    assert (row.state, row.lost) == ("exited", 0)
    assert "store-in-use" not in Path(host.instance_dir, "agent.log").read_text()


def test_what_no_agent_has_read_is_counted_by_a_later_one(host: Host) -> None:
    with host.job(0.5) as launcher:
        agent = host.stop_at_start("agent")
        steps = int(launcher.stdout.readline())
        time.sleep(0.5)
        launcher.send_signal(signal.SIGTERM)  # ends the wait
        launcher.communicate(timeout=60)
    os.kill(agent, signal.SIGKILL)
    assert_counted(host, steps)
    row = host.stored_job()
    assert (row.state, row.status, row.lost) == ("exited", 0, steps + steps // RECORD_EVERY)


def test_what_an_agent_that_is_killed_after_the_launch_has_not_sent_is_counted(host: Host) -> None:
    with host.job(3.0) as launcher:
        until(lambda: ready_pid(host.instance_dir, "collector"), "the collector")
        until(lambda: (host.store / "store.json").exists() and LocalStore(host.store).jobs(), "the job in the store")
        host.send("collector", signal.SIGSTOP)
        steps = int(launcher.stdout.readline())
        _, err = launcher.communicate(timeout=60)
    assert "not-stored" in err
    for name in ("agent", "collector"):
        host.send(name, signal.SIGKILL)
    assert_counted(host, steps)
    assert host.stored_job().state == "exited"


def test_steps_are_counted_if_job_launcher_and_agent_are_killed_together(host: Host) -> None:
    with host.job(0.5, stay_s=60.0) as launcher:
        agent = host.stop_at_start("agent")
        steps = int(launcher.stdout.readline())
        launcher.kill()
        launcher.communicate(timeout=60)  # the witness kills the job
    os.kill(agent, signal.SIGKILL)
    assert_counted(host, steps)
    row = host.stored_job()
    assert (row.state, row.signal, row.lost) == ("killed", signal.SIGKILL, steps + steps // RECORD_EVERY)


@pytest.mark.parametrize("trial", range(TRIALS))
def test_every_step_is_stored_or_counted_whenever_daemons_are_killed(host: Host, trial: int) -> None:
    random_numbers = random.Random(SEED * 1000 + trial)
    seconds = random_numbers.choice([0.3, 1.0, 2.0])
    names = random_numbers.choice([("agent",), ("collector",), ("agent", "collector")])
    times = sorted(random_numbers.uniform(0.0, seconds + 1.5) for _ in range(random_numbers.randint(1, 3)))
    with host.job(seconds) as launcher:
        start_s = time.monotonic()
        for kill_s in times:
            time.sleep(max(0.0, start_s + kill_s - time.monotonic()))
            for name in names:
                host.send(name, signal.SIGKILL)
        out, _ = launcher.communicate(timeout=120)
    assert_counted(host, int(out))
