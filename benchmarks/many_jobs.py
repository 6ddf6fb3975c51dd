"""Memory and processor time of agent and collector with fifty concurrent jobs.

usage: benchmarks/many_jobs.py [--jobs 50] [--seconds 65] [--blocks 8]
Each job is a process with a real channel. In each second it writes ten spans and one traced step
of a model with `--blocks` blocks, each of about 190 node executions. The agent and the collector
are real. With 8 blocks, each job seals one generation in the measured time, about as often as a
real job. All jobs seal within the same few seconds. Memory is the peak resident memory of a
process. Limits: collector 128 MB, agent 64 MB, together 15 % of a core like the reference core of
_core.py.
"""

import argparse
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from _core import Core, cpu_s
from _jobs import private_folder
from _limits import report
from fakes.channel_writer import ChannelWriter
from fakes.collector_process import CollectorProcess
from fakes.model_steps import execution_count, model_steps
from tfprof.agent import launches
from tfprof.collector.store.reader import LocalStore
from tfprof.commands import daemons
from tfprof.formats import layout, runtime_dir

COLLECTOR_MB, AGENT_MB, CORE_PERCENT = 128, 64, 15
DISTINCT_STEPS, SPANS_A_SECOND = 20, 10
#: Time until names are interned and all jobs are open.
WARM_UP_S = 5


def job(instance_dir: str, launch: int, steps: list[bytes], number: int, start_s: float) -> None:
    """Run one job until it is killed; the steps of different jobs begin at different moments.

    ``start_s``: the time on the monotonic clock from which all jobs count their steps.
    """
    writer = ChannelWriter(launch, hello={"name": f"job-{number}", "framework": "tensorflow"}, ring=4 * layout.RING_MIN)
    writer.announce(instance_dir)
    next_step, ordinal = number, 0
    due = start_s + (number % 50) / 50
    while True:
        for part in range(SPANS_A_SECOND):
            time.sleep(max(0.0, due - time.monotonic()))
            due += 1 / SPANS_A_SECOND
            ordinal += 1
            writer.put_span(ordinal)
            if part == 0:
                next_step += 1
                writer.put(steps[next_step % len(steps)], kind=layout.RUN_METADATA, step=ordinal)


def start_job(*about: Any) -> int:
    """Run `job` in a new process; return its pid."""
    pid = os.fork()
    if pid == 0:
        try:
            job(*about)
        finally:
            os._exit(1)
    return pid


class Running(NamedTuple):
    """The real collector and agent of running jobs, and when the jobs began (real time, s)."""

    instance_dir: str
    collector: CollectorProcess
    agent: subprocess.Popen[bytes]
    start_s: float


@contextmanager
def running_jobs(count: int, store: Path, steps: list[bytes]) -> Iterator[Running]:
    """Run ``count`` jobs, launched by this process; the context begins when all are open."""
    instance_dir, launch = runtime_dir.make_instance(str(store)), secrets.randbits(63)
    record = launches.Launch(launch, os.getpid(), time.time_ns(), str(store), socket.gethostname(), "user")
    launches.write(instance_dir, record)
    collector = CollectorProcess(store).start()
    collector.await_status(lambda status: status["alive"])  # otherwise the agent starts another one
    agent = subprocess.Popen([sys.executable, "-m", "tfprof.agent", "--store", str(store)])
    start_s, monotonic_s = time.time(), time.monotonic()
    pids: list[int] = []
    try:
        pids += (start_job(instance_dir, launch, steps, number, monotonic_s) for number in range(count))
        collector.await_status(lambda status: status["jobs"] == count, timeout_s=60)
        time.sleep(WARM_UP_S)
        yield Running(instance_dir, collector, agent, start_s)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        agent.terminate()
        agent.wait(30)
        code, errors = collector.stop()
        if code:
            print(errors, file=sys.stderr)


def watch(processes: dict[str, psutil.Process], seconds: float, core: Core) -> dict[str, tuple[float, float]]:
    """Return for each process its share of a core in percent, and its peak memory in MB."""
    start, cpu_before_s = time.monotonic(), {name: cpu_s(process) for name, process in processes.items()}
    while time.monotonic() < start + seconds:
        time.sleep(0.5)
        core.sample()
    elapsed_s = time.monotonic() - start
    return {
        name: (100 * (cpu_s(process) - cpu_before_s[name]) / elapsed_s, peak_mb(process))
        for name, process in processes.items()
    }


def peak_mb(process: psutil.Process) -> float:
    """Return the peak resident memory of ``process`` in MB, as reported by the kernel."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) * 1024 / 1e6


def measure(store: Path, jobs: int, seconds: float, blocks: int) -> None:
    steps = model_steps(DISTINCT_STEPS, blocks)
    core = Core(steps[0])
    with running_jobs(jobs, store, steps) as running:
        processes = {"collector": running.collector.process, "agent": running.agent}
        usage = watch({name: psutil.Process(process.pid) for name, process in processes.items()}, seconds, core)
        lag_s = running.collector.status()["lag_s"]
        agent_jobs = daemons.read_status(running.instance_dir, "agent")["jobs"]
        dropped = sum(job["dropped_records"] for job in agent_jobs.values())
    stored = sum(job.table("traces", ["trace"]).num_rows for job in LocalStore(store).jobs())
    print(f"{jobs} jobs, a step of {execution_count(steps[0]):,} node executions a second each, for {seconds:.0f} s")
    print(f"{stored:,} traced steps stored, {dropped} records dropped, lag {lag_s:.1f} s")
    for name, (share, _) in usage.items():
        print(f"{name:9} {share:5.1f} % of this core")
    print(core)
    together = sum(share for share, _ in usage.values()) * core.speed
    report(
        (
            ("collector, memory", usage["collector"][1], "MB", COLLECTOR_MB),
            ("agent, memory", usage["agent"][1], "MB", AGENT_MB),
            ("together, of the reference core", together, "%", CORE_PERCENT),
        )
    )


def main() -> None:
    """Measure with a private store and private daemons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=65)
    parser.add_argument("--blocks", type=int, default=8)
    args = parser.parse_args()
    with private_folder() as folder:
        measure(folder / "store", args.jobs, args.seconds, args.blocks)


if __name__ == "__main__":
    main()
