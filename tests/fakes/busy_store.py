"""Keeps jobs running in a store: appends steps and samples until standard input ends.

    python busy_store.py STORE JOBS [SECONDS]

First it writes steps and samples of the SECONDS before its start. From 30 seconds before its start
on, job 3 is slow and job 4 is idle. Job 5 runs no step.
"""

import os
import select
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fakes.made_store import SECOND, raise_error, rows
from tfprof.collector.store.writer import LocalJobWriter, LocalStoreWriter
from tfprof.formats import layout

#: Numbers of jobs.
SLOW_JOB, IDLE_JOB, STARTING_JOB = 3, 4, 5
#: Steps per second of each job, and the interval between appends.
RATE, TICK_S = 20, 2.0
HOST = socket.gethostname()


def steps_of(number: int, at_ns: int, seconds: float, *, is_recent: bool) -> Iterator[dict[str, int]]:
    """Yield the spans of one job for ``seconds`` from ``at_ns``.

    ``is_recent``: in this time, SLOW_JOB is slow and IDLE_JOB is idle.
    """
    if number == STARTING_JOB or (number == IDLE_JOB and is_recent):
        return
    rate = RATE // 4 if number == SLOW_JOB and is_recent else RATE
    for step in range(int(rate * seconds)):
        start = at_ns + int(step / rate * SECOND)
        duration = int(0.9 / rate * SECOND) + (step * 7919 + number) % 997 * 1000
        ordinal = start // (SECOND // 100)
        row = {"kind": layout.BATCH, "ordinal": ordinal, "count": 1, "start_ns": start, "thread": 1}
        yield row | {"total_ns": duration, "min_ns": duration, "max_ns": duration}


def samples_of(number: int, at_ns: int, seconds: float) -> Iterator[dict[str, float]]:
    """Yield one sample per second of one job for ``seconds`` from ``at_ns``."""
    for second in range(int(seconds)):
        now = at_ns + second * SECOND
        cpu_s = (now / SECOND - 1.7e9) * (0.1 + number / 20)
        yield {
            "t_ns": now,
            "processes": 1,
            "cpu_user_s": cpu_s,
            "rss_bytes": (number + 1) * 10**8,
            "read_bytes": now // 10**4,
        }


def append(job: LocalJobWriter, number: int, at_ns: int, seconds: float, *, is_recent: bool) -> None:
    """Append the spans, samples and counters of one job for ``seconds`` from ``at_ns``."""
    spans = list(steps_of(number, at_ns, seconds, is_recent=is_recent))
    job.append({"samples": rows("samples", samples_of(number, at_ns, seconds))})
    if spans:
        job.append({"spans": rows("spans", spans)})
        step_count = job.info.counters.get("counts", {}).get("batch", 0) + len(spans)
        step_ns = job.info.counters.get("times", {}).get("batch", 0) + sum(row["total_ns"] for row in spans)
        counters = {
            "counts": {"batch": step_count},
            "times": {"batch": step_ns},
            "step_ns": step_ns,
            "self_ns": step_ns // 200,
        }
        job.set_counters(counters)


def main(path: str, job_count: int, past_s: int) -> None:
    """Write the last ``past_s`` seconds of the jobs, then append until standard input ends."""
    store = LocalStoreWriter(path, HOST)
    now = time.time_ns()
    writers = []
    for number in range(job_count):
        job = store.job(0x1000_0000_0000_0000 + (number << 40))
        identity = {"name": f"train_{number % 7}.py", "user": "ada", "host": HOST, "pid": 4000 + number}
        identity |= {"framework": "tensorflow", "framework_version": "2.21.0"}
        job.set_identity({**identity, "created_real_ns": now - past_s * SECOND, "launch": f"{number // 2:016x}"})
        append(job, number, now - past_s * SECOND, past_s - 30, is_recent=False)
        append(job, number, now - 30 * SECOND, 30, is_recent=True)
        writers.append(job)
    host = store.host(HOST)
    store.tick(time.monotonic(), raise_error)
    print("ready", flush=True)
    last = now
    while not select.select([0], [], [], TICK_S)[0] or os.read(0, 1):
        now = time.time_ns()
        for number, job in enumerate(writers):
            append(job, number, last, (now - last) / SECOND, is_recent=True)
        sample = {"t_ns": now, "cpus": 8, "cpu_busy_s": now / SECOND * 3 % 10**6, "load_1m": 3.5}
        host.append({"host_samples": rows("host_samples", [sample | {"memory_total_bytes": 64 * 10**9}])})
        store.tick(time.monotonic(), raise_error)
        last = now
    for job in writers:
        job.close("exited", {"status": 0})
    store.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if sys.argv[3:] else 120)
