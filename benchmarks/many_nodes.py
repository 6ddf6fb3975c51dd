"""A collector that stores the jobs of many hosts: its processor time and memory, and the commands.

usage: benchmarks/many_nodes.py [--nodes 100] [--jobs 1000] [--seconds 60] [--blocks 8]
Each node has an encrypted connection to a real collector on loopback. In each second, each job
takes a step; of a hundred jobs, one traces it, a step of a model with `--blocks` blocks. The nodes
are simulated in one process. It is measured with half of the jobs first, then with all of them.
Limits: a core like the reference core of _core.py, and 512 MB, for the collector; 1 s of processor
time for `tfprof top --once`, 0.5 s for `tfprof jobs`; twice the jobs take at most 2.5 times the
processor time.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import psutil
import zmq
from _core import Core, cpu_s
from _jobs import private_folder
from _limits import report
from fakes import node_keys
from fakes.collector_process import CollectorProcess
from fakes.model_steps import execution_count, model_steps
from fakes.wire_agent import WireAgent, record, span
from many_jobs import peak_mb
from tfprof.formats import layout, wire
from tfprof.formats.wire import Head

COLLECTOR_MB, CORE_PERCENT, TOP_S, JOBS_S, GROWTH_MAX = 512, 100, 1.0, 0.5, 2.5
DISTINCT_STEPS = 20
TRACED_SHARE = 100
#: Interval between the counters of a job, as in a real agent.
COUNTERS_S = 2
WARM_UP_S = 5


class Usage(NamedTuple):
    """The collector's share of a core in percent, and its peak memory in MB."""

    percent: float
    megabytes: float


class Node:
    """A host with an encrypted connection to the collector, and its jobs."""

    def __init__(self, number: int, url: str, key: node_keys.NodeKey, folder: Path) -> None:
        self.number = number
        self.agent = WireAgent(folder, agent=f"a{number}", host=f"node{number}", url=url, key=key)
        self.agent.greet()
        self.uids: list[int] = []
        self._sent: dict[int, int] = {}
        self._traced: dict[int, int] = {}

    def open(self, uid: int) -> None:
        """Open a job."""
        self.agent.open(uid, name=f"job-{uid}", pid=1000 + uid, host=f"node{self.number}", framework="tensorflow")
        self.uids.append(uid)
        self._sent[uid] = self._traced[uid] = 0

    def tick(self, number: int, steps: list[bytes]) -> None:
        """Send what the agent of this host sends in second ``number``."""
        now_ns = time.time_ns()
        usage = {"cpu_user_s": 0.5 * number, "cpu_system_s": 0.0, "rss_bytes": 600 << 20, "processes": 1, "threads": 9}
        counters = json.dumps({"counts": {"run": number}, "times": {"run": 20_000_000 * number}}).encode()
        host = {"cpus": 64, "cpu_busy_s": 10.0 * number, "memory_used_bytes": 1 << 36, "memory_bytes": 1 << 38}
        self.agent.samples(number, now_ns, dict.fromkeys(self.uids, usage), host)
        for uid in self.uids:
            ordinal = self._sent[uid] = self._sent[uid] + 1
            is_traced = (uid + number) % TRACED_SHARE == 0
            flags = layout.FLAG_TRACED if is_traced else 0
            timed = span(ordinal, start_ns=time.monotonic_ns(), total_ns=20_000_000, flags=flags)
            self.agent.spans(uid, [timed], ordinal, now_ns - time.monotonic_ns())
            if number % COUNTERS_S == 0:
                self.agent.send(Head(wire.COUNTERS, uid, 0, number, number), counters)
            if is_traced:
                first = self._traced[uid] = self._traced[uid] + 1
                body = record(first, layout.RUN_METADATA, steps[first % len(steps)], step=ordinal)
                self.agent.send(Head(wire.RECORDS, uid, 0, first, first), body)

    def drop_answers(self) -> None:
        """Read the collector's answers."""
        while self.agent.receive(0):
            pass


def run(nodes: list[Node], first: int, seconds: int, steps: list[bytes], core: Core) -> int:
    """Send for ``seconds``, evenly spread; return the number of the next second."""
    start = time.monotonic()
    for number in range(seconds):
        for index, node in enumerate(nodes):
            time.sleep(max(0.0, start + number + index / len(nodes) - time.monotonic()))
            try:
                node.tick(first + number, steps)
            except zmq.Again:
                sys.exit("the collector takes the messages more slowly than they are sent")
            node.drop_answers()
        core.sample()
    return first + seconds


def command_s(store: Path, *arguments: str) -> float:
    """Return the processor time of a command in seconds."""
    before = os.times()
    command = [str(Path(sys.executable).with_name("tfprof")), *arguments, "--store", str(store)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def measure(folder: Path, node_count: int, job_count: int, seconds: int, blocks: int) -> None:
    """Measure with half of the jobs, then with all of them, and print the figures."""
    store = folder / "store"
    steps = model_steps(DISTINCT_STEPS, blocks)
    core = Core(steps[0])
    pair = node_keys.make_collector()
    url = f"tcp://127.0.0.1:{node_keys.free_port()}"
    keys = [node_keys.add(f"node{number}", pair) for number in range(node_count)]
    usages = []
    with CollectorProcess(store, "--listen", url).start() as collector:
        collector.await_status(lambda status: status["alive"])
        nodes = [Node(number, url, key, folder) for number, key in enumerate(keys)]
        process, number = psutil.Process(collector.process.pid), 1
        for half in (range(job_count // 2), range(job_count // 2, job_count)):
            for uid in half:
                nodes[uid % node_count].open(uid + 1)
            number = run(nodes, number, WARM_UP_S, steps, core)
            before_s, start = cpu_s(process), time.monotonic()
            number = run(nodes, number, seconds, steps, core)
            percent = 100 * (cpu_s(process) - before_s) / (time.monotonic() - start)
            usages.append(Usage(percent * core.speed, peak_mb(process)))
        times_s = [command_s(store, *command) for command in (("top", "--once"), ("jobs",))]
    print(f"{job_count:,} jobs on {node_count} nodes, a step a second each")
    print(f"one of {TRACED_SHARE} steps is traced, with {execution_count(steps[0]):,} node executions")
    print(core)
    half, whole = usages
    report(
        (
            ("collector, half of the jobs", half.percent, "% of a core", CORE_PERCENT),
            ("collector, all jobs", whole.percent, "% of a core", CORE_PERCENT),
            ("twice the jobs", whole.percent / half.percent, "times the processor time", GROWTH_MAX),
            ("collector, half of the jobs", half.megabytes, "MB at most", COLLECTOR_MB),
            ("collector, all jobs", whole.megabytes, "MB at most", COLLECTOR_MB),
            ("tfprof top --once", times_s[0], "s", TOP_S),
            ("tfprof jobs", times_s[1], "s", JOBS_S),
        )
    )


def main() -> None:
    """Measure with a private store, private keys and a private collector."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--blocks", type=int, default=8)
    args = parser.parse_args()
    with private_folder() as folder:
        measure(folder, args.nodes, args.jobs, args.seconds, args.blocks)


if __name__ == "__main__":
    main()
