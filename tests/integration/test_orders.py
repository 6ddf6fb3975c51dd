"""Real jobs obey orders at the next step, commands get answers in time, and orders end.

Tests agent/local_daemons.py, collector/documents/orders.py, cli/daemons.py, cli/trace.py.
"""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from fakes import exported_slices
from fakes.armed_job import FAKE_TENSORFLOW, JOBS
from fakes.polling import until
from tfprof.collector.store.reader import LocalJob, LocalStore
from tfprof.collector.summaries.jobs import cost
from tfprof.commands import daemons
from tfprof.formats import runtime_dir

BIN = Path(sys.executable).parent
LOOPS = [("tf1", "session"), ("tf1", "fit"), ("tf2", "session"), ("tf2", "function"), ("tf2", "fit")]
#: Seconds in which TensorFlow starts or a command answers, also on a loaded machine.
TIMEOUT_S = 120.0


class Host:
    """A private store, its jobs, and commands about it.

    ``interpreter`` returns the Python with TensorFlow 1.15 or 2.21, or for the fake TensorFlow.
    """

    def __init__(self, folder: Path, interpreter: Callable[[str], Path]) -> None:
        self.interpreter = interpreter
        self.store = folder / "store"
        self.env = {name: text for name, text in os.environ.items() if not name.startswith("TFPROF_")}
        self.env |= {"TFPROF_STORE": str(self.store), "XDG_RUNTIME_DIR": str(folder), "TF_CPP_MIN_LOG_LEVEL": "3"}
        self.instance_dir = Path(folder, "tfprof", Path(runtime_dir.instance_dir(str(self.store))).name)
        self.processes: list[subprocess.Popen[str]] = []

    def start(
        self, python: str, loop: str, *, name: str = "job", trace: str = "off", pause_s: float = 0.05
    ) -> LocalJob:
        """Start a job that loops; return it as soon as it has a step."""
        self.launch(python, loop, name=name, trace=trace, pause_s=pause_s)
        return self.job(name, lambda job: any(_step_counts(job).values()))

    def launch(
        self,
        python: str,
        loop: str,
        *options: str,
        name: str = "job",
        trace: str = "off",
        pause_s: float = 0.05,
    ) -> None:
        """Start a job that loops; ``options``: further ones of `tfprof-run`."""
        command = [
            BIN / "tfprof-run",
            *options,
            "--trace",
            trace,
            "--name",
            name,
            self.interpreter(python),
            "-W",
            "ignore",
        ]
        script = "ordered_quick.py" if python == "fake" else "ordered.py"
        process = subprocess.Popen(
            [*map(str, command), str(JOBS / script), loop, str(pause_s)],
            env=self.env | ({"PYTHONPATH": str(FAKE_TENSORFLOW)} if python == "fake" else {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.processes.append(process)

    def job(self, name: str, condition: Callable[[LocalJob], Any]) -> LocalJob:
        """Return the job called ``name`` as soon as it satisfies ``condition``."""

        def matching_job() -> LocalJob | None:
            if not (self.store / "store.json").exists():
                return None
            return next(
                (job for job in LocalStore(self.store).jobs() if job.info.name == name and condition(job)), None
            )

        job = until(matching_job, f"a job {name}", TIMEOUT_S)
        assert job is not None
        return job

    def order(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Run a command that gives an order; return its exit status and the answers by job."""
        completed = self.run(*arguments, "--json")
        answers = json.loads(completed.stdout)["jobs"]
        return completed.returncode, {answer["name"]: answer for answer in answers}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(BIN / "tfprof"), *arguments],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )

    def start_command(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command without waiting for it."""
        process = subprocess.Popen([str(BIN / "tfprof"), *arguments], env=self.env, stdout=subprocess.PIPE, text=True)
        self.processes.append(process)
        return process

    def pid_of(self, daemon: str) -> int:
        return daemons.running_pid(str(self.instance_dir), daemon)

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()
        self.run("stop")


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Host]:
    def interpreter(name: str) -> Path:
        return Path(sys.executable) if name == "fake" else request.getfixturevalue(f"{name}_python")

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    new_host = Host(tmp_path, interpreter)
    yield new_host
    new_host.close()


def _step_counts(job: LocalJob) -> dict[str, int]:
    counts = job.info.counters.get("counts", {})
    return {name: counts.get(name, 0) for name in ("train", "run", "batch", "function")}


def traced_steps(job: LocalJob, kind: str) -> list[int]:
    from tfprof.collector.summaries.kinds import KINDS_BY_NAME

    table = job.table("traces", ("kind", "step")).to_pylist()
    return sorted(row["step"] for row in table if row["kind"] == KINDS_BY_NAME[kind])


def events(job: LocalJob) -> list[str]:
    return [row["slug"] for row in job.table("events").to_pylist()]


@pytest.mark.tf
@pytest.mark.parametrize(("python", "loop"), LOOPS)
def test_exactly_the_next_steps_of_a_loop_are_traced(host: Host, python: str, loop: str) -> None:
    host.start(python, loop)
    status, answers = host.order("trace", "job", "--steps", "6", "-o", "ops", "--wait", "60s")
    answer = answers["job"]
    assert (status, answer["obeyed"], answer["traced"]) == (0, True, 6)
    ops = answer["ops"]
    assert ops["last_step"] - ops["first_step"] == 5
    assert ops["steps"] == 6
    kind = ops["kind"].partition(":")[0]  # without the name of the function
    assert (answer["kind"], answer["step"]) == (kind, ops["first_step"])
    assert any("MatMul" in op["op"] for op in ops["ops"])
    job = host.job("job", lambda job: {"order-given", "order-ended"} <= set(events(job)))
    assert traced_steps(job, kind) == list(range(ops["first_step"], ops["last_step"] + 1))
    text = next(row["text"] for row in job.table("events").to_pylist() if row["slug"] == "order-given")
    assert re.fullmatch(r"order \w{16} of \S+ on \S+ \(process \d+\), the next 6 steps: obeyed from .* on", text)


@pytest.mark.tf
@pytest.mark.parametrize(("python", "loop"), LOOPS)
def test_an_order_names_the_first_step_that_it_traces_and_ends_with_end(host: Host, python: str, loop: str) -> None:
    host.start(python, loop)
    status, answers = host.order("trace", "job", "--every", "7", "--wait", "60s")
    answer = answers["job"]
    assert (status, answer["step"] % 7) == (0, 0)
    job = host.job("job", lambda job: len(traced_steps(job, answer["kind"])) > 1)
    assert traced_steps(job, answer["kind"])[:2] == [answer["step"], answer["step"] + 7]
    assert host.order("trace", "job", "--all-steps", "--wait", "60s")[0] == 0
    status, answers = host.order("trace", "job", "--end", "--wait", "60s")
    assert (status, answers["job"]["kind"]) == (0, answer["kind"])
    end = answers["job"]["step"]
    job = host.job("job", lambda job: _step_counts(job)[answer["kind"]] > end + 30)
    host.processes[0].communicate()
    job = host.job("job", lambda job: job.info.state != "running")
    assert max(traced_steps(job, answer["kind"])) == end - 1


@pytest.mark.tf
def test_files_are_written_after_an_order_and_at_the_end_of_the_job(host: Host, tmp_path: Path) -> None:
    at_end = [f"{tmp_path}/{name}" for name in ("end.parquet", "end.pftrace", "profile/")]
    host.launch("tf2", "function", *(word for path in at_end for word in ("-o", path)))
    host.job("job", lambda job: _step_counts(job)["function"])
    ordered = [str(tmp_path / name) for name in ("ordered.parquet", "ordered.json.gz")]
    words = [word for path in ordered for word in ("-o", path)]
    status, answers = host.order("trace", "job", "--steps", "4", *words, "--wait", "60s")
    assert (status, answers["job"]["traced"]) == (0, 4)
    first = answers["job"]["step"]
    steps = set(range(first, first + 4))
    assert set(pq.read_table(ordered[0])["step"].to_pylist()) == steps
    slices = exported_slices.chrome(exported_slices.content(Path(ordered[1]))).slices
    assert {piece.step for piece in slices if piece.category == "op"} == steps
    assert any(piece.name == "MatMul" for piece in slices)
    assert not any(map(os.path.exists, at_end))

    host.processes[0].communicate(timeout=TIMEOUT_S)
    by_time = [("start_ns", "ascending"), ("node", "ascending")]
    assert pq.read_table(at_end[0]).sort_by(by_time) == pq.read_table(ordered[0]).sort_by(by_time)
    found = exported_slices.perfetto(Path(at_end[1]).read_bytes()).slices
    assert {piece.step for piece in found if piece.category == "op"} == steps
    assert len(os.listdir(tmp_path / "profile" / "step_stats")) == 4


@pytest.mark.tf
def test_an_order_for_the_ops_of_steps_without_ops_fails_and_says_so(host: Host) -> None:
    host.start("tf2", "empty")
    completed = host.run("trace", "job", "--steps", "2", "-o", "ops", "--wait", "60s")
    assert "ended after 2 traced steps" in completed.stdout
    assert completed.stderr.endswith("job: the traced steps have no ops\n")
    assert completed.returncode == 1
    status, answers = host.order("trace", "job", "--steps", "2", "-o", "ops", "--wait", "60s")
    assert (status, answers["job"]["traced"], answers["job"]["ops"]) == (1, 2, None)


def test_jobs_with_one_order_obey_at_about_the_same_time(host: Host) -> None:
    for number in range(6):
        host.launch("fake", "loop", name=f"many{number}", pause_s=0.2)
    other_job = host.start("fake", "loop", name="other")
    for number in range(6):
        host.job(f"many{number}", lambda job: any(_step_counts(job).values()))
    status, answers = host.order("trace", "--name", "many*", "--steps", "2", "-o", "ops", "--wait", "60s")
    assert (status, len(answers)) == (0, 6)
    assert {answer["traced"] for answer in answers.values()} == {2}
    first_starts_ns = []
    for name in answers:
        rows = host.job(name, lambda job: "order-ended" in events(job)).table("traces", ("start_ns",)).to_pylist()
        first_starts_ns.append(min(row["start_ns"] for row in rows))
    # A step takes 0.2 s. The limit of ten steps allows for a loaded machine.
    assert max(first_starts_ns) - min(first_starts_ns) < 2 * 10**9
    assert traced_steps(other_job, "run") == []


def test_the_trace_policy_of_the_job_continues_after_an_order(host: Host) -> None:
    host.start("fake", "loop", trace="every=20", pause_s=0.01)
    status, _ = host.order("trace", "job", "--every", "7", "--for", "500ms", "-o", "ops", "--wait", "60s")
    assert status == 0
    job = host.job("job", lambda job: "order-ended" in events(job))
    last_step = max(traced_steps(job, "run"))
    later_job = host.job(
        "job", lambda job: len([step for step in traced_steps(job, "run") if step > last_step + 20]) > 2
    )
    steps = [step for step in traced_steps(later_job, "run") if step > last_step + 20]
    assert {step % 20 for step in steps} == {0}


def test_a_stopped_job_is_reported_and_its_order_is_withdrawn(host: Host) -> None:
    job = host.start("fake", "loop")
    other_job = host.start("fake", "loop", name="other")
    pid = job.info.identity["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        status, answers = host.order("trace", "--all", "--steps", "2", "--wait", "60s")
    finally:
        os.kill(pid, signal.SIGCONT)
    assert status == 1
    assert (answers["job"]["obeyed"], answers["job"]["slug"]) == (False, "job-stopped")
    assert answers["other"]["obeyed"]
    before = max(_step_counts(host.job("job", lambda job: True)).values())
    job = host.job("job", lambda job: max(_step_counts(job).values()) > before + 20)
    assert traced_steps(job, "run") == []
    assert other_job.info.name == "other"


def test_a_job_that_begins_no_step_is_reported_in_time(host: Host) -> None:
    host.start("fake", "long", pause_s=3600)
    host.job("job", lambda job: sum(_step_counts(job).values()) >= 200)  # the last step before the pause
    start_s = time.monotonic()
    status, answers = host.order("trace", "job", "--steps", "2", "--wait", "1s")
    assert (status, answers["job"]["slug"]) == (1, "no-step-began")
    assert time.monotonic() - start_s < TIMEOUT_S / 2


def test_the_end_of_a_job_ends_its_order_and_later_orders_are_refused(host: Host) -> None:
    host.start("fake", "loop")
    command = host.start_command("trace", "job", "--every", "1000000", "--steps", "3", "-o", "ops", "--wait", "60s")
    line = command.stdout.readline() if command.stdout else ""
    assert "one step in 1000000, 3 steps, from run step" in line
    host.processes[0].communicate()
    output, _ = command.communicate(timeout=TIMEOUT_S)
    assert "ended after 0 traced steps" in output
    assert command.returncode == 1  # it was to print their ops
    status, answers = host.order("trace", "job", "--steps", "2")
    assert (status, answers["job"]["slug"]) == (1, "job-gone")


@pytest.mark.parametrize("daemon", ["agent", "collector"])
def test_an_order_outlives_the_daemon_that_carried_it(host: Host, daemon: str) -> None:
    host.start("fake", "loop")
    command = host.start_command("trace", "job", "--for", "4s", "--every", "3", "-o", "ops", "--wait", "60s", "--json")
    host.job("job", lambda job: "order-given" in events(job))
    pid = host.pid_of(daemon)
    os.kill(pid, signal.SIGKILL)
    document, _ = command.communicate(timeout=TIMEOUT_S)
    assert host.pid_of(daemon) != pid
    [answer] = json.loads(document)["jobs"]
    assert answer["obeyed"]
    assert answer["traced"] > 3
    job = host.job("job", lambda job: "order-ended" in events(job))
    assert [events(job).count(slug) for slug in ("order-given", "order-ended")] == [1, 1]
    steps = traced_steps(job, "run")
    assert answer["ops"]["first_step"] == answer["step"] == steps[0]
    assert {step % 3 for step in steps} == {0}
    assert all(second - first == 3 for first, second in itertools.pairwise(steps))


def test_the_order_of_a_killed_command_ends_by_itself(host: Host) -> None:
    host.start("fake", "loop")
    command = host.start_command("trace", "job", "--for", "2s", "-o", "ops")
    host.job("job", lambda job: "order-given" in events(job))
    command.kill()
    command.wait()
    job = host.job("job", lambda job: "order-ended" in events(job))
    assert traced_steps(job, "run")


def test_a_detached_job_continues_and_is_no_longer_measured(host: Host) -> None:
    job = host.start("fake", "loop", trace="all")
    status, answers = host.order("detach", "--pid", str(job.info.identity["pid"]), "--wait", "60s")
    assert (status, answers["job"]["obeyed"]) == (0, True)
    last_step = answers["job"]["step"]
    time.sleep(3)  # dozens of steps, none of which may be traced
    assert host.processes[0].poll() is None
    assert max(traced_steps(host.job("job", lambda job: traced_steps(job, "run")), "run")) <= last_step
    status, answers = host.order("trace", "job", "--steps", "2")
    assert (status, answers["job"]["obeyed"]) == (1, False)


def test_a_job_without_daemons_stops_tracing_and_an_order_starts_the_daemons_again(host: Host) -> None:
    host.start("fake", "loop", trace="all", pause_s=0.02)
    assert host.run("stop").returncode == 0
    stopped_ns = time.time_ns()
    time.sleep(40)  # the job stops tracing 30 s after the last sign of an agent
    status, answers = host.order("trace", "job", "--steps", "2", "--wait", "60s")
    assert (status, answers["job"]["obeyed"]) == (0, True)
    job = host.job("job", lambda job: "agent-lost" in events(job) or "order-given" in events(job))
    rows = host.job("job", lambda job: "order-given" in events(job)).table("traces", ("start_ns", "step")).to_pylist()
    starts_without_agent = [
        row["start_ns"] for row in rows if stopped_ns < row["start_ns"] and row["step"] < answers["job"]["step"]
    ]
    assert 25 * 10**9 < max(starts_without_agent) - stopped_ns < 33 * 10**9
    assert job.info.name == "job"


@pytest.mark.tf
def test_the_cost_is_compared_with_the_budget_of_an_order(host: Host) -> None:
    host.start("tf1", "session", trace="every=2")
    host.job("job", lambda job: (cost(job.info.counters) or 0) > 0)
    assert "the cost is above the budget: the requested steps" in host.run("show", "job").stdout
    status, _ = host.order("trace", "job", "--budget", "100%")
    assert status == 0
    host.job("job", lambda job: job.info.counters.get("order_budget") == 1_000_000)
    assert "above the budget" not in host.run("show", "job").stdout
