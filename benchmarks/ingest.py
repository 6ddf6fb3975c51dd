"""Receive → decode → durable columns: executions per CPU-second of the collector, bytes on disk.

usage: benchmarks/ingest.py [--rows 4000000] [--decoder auto|walker|python]
Traced steps of a real graph of about 1,500 nodes are sent to a real collector over ZeroMQ, in
messages of a few MiB. Each step has different times.
Limits: 1 CPU-µs an execution with the C decoder, on a core like the reference core of _core.py; 13
bytes an execution.
"""

import argparse
import itertools
import time
from pathlib import Path

import psutil
from _core import Core, cpu_s
from _jobs import private_folder
from _limits import report
from fakes.collector_process import CollectorProcess
from fakes.model_steps import execution_count, model_steps
from fakes.wire_agent import WireAgent, record
from tfprof.formats import layout, wire
from tfprof.formats.wire import Head

CPU_US, BYTES = 1.0, 13.0
#: More steps than a segment contains, so that no segment contains a step twice.
DISTINCT_STEPS = 96
BATCH_BYTES, IN_FLIGHT = 4 << 20, 4
UID = 1


def send(agent: WireAgent, steps: list[bytes], count: int, core: Core) -> None:
    """Send ``count`` traced steps and await their acks; at most IN_FLIGHT messages are unacked."""
    acked = sequence = 0
    in_flight: list[int] = []
    source = itertools.cycle(steps)
    while acked < count:
        core.sample()
        while sequence < count and len(in_flight) < IN_FLIGHT:
            first, body = sequence + 1, bytearray()
            while sequence < count and len(body) < BATCH_BYTES:
                sequence += 1
                body += record(sequence, layout.RUN_METADATA, next(source), step=sequence, start_ns=time.time_ns())
            agent.send(Head(wire.RECORDS, UID, 0, first, sequence), bytes(body))
            in_flight.append(sequence)
        head, _ = agent.expect(wire.ACK, wire.RECORDS, timeout_s=60)
        acked = head.last
        in_flight = [last for last in in_flight if last > acked]


def measure(store: Path, rows: int, decoder: str) -> None:
    steps = model_steps(DISTINCT_STEPS)
    step_executions = execution_count(steps[0])
    count, core = max(1, rows // step_executions), Core(steps[0])
    collector = CollectorProcess(store, "--decoder", decoder).start()
    agent = WireAgent(collector.instance_dir)
    try:
        agent.greet(30)
        agent.open(UID, name="ingest")
        process = psutil.Process(collector.process.pid)
        cpu_before_s, begin = cpu_s(process), time.monotonic()
        send(agent, steps, count, core)
        agent.finish(UID)
        agent.expect(wire.ACK, wire.CLOSE, timeout_s=60)
        used_s, elapsed_s = cpu_s(process) - cpu_before_s, time.monotonic() - begin
        resident = process.memory_info().rss
        status = collector.await_status(lambda status: status["rows"] == count * step_executions)
    finally:
        agent.close()
        collector.stop()
    size = sum(path.stat().st_size for path in (store / "jobs").rglob("*") if path.is_file())
    print(f"{count * step_executions:,} node executions, {step_executions:,} a step,", end=" ")
    print(f"decoder {status['decoder']},", end=" ")
    print(f"{elapsed_s:.1f} s, {resident / 1e6:.0f} MB resident")
    rate, size_per_execution = count * step_executions / used_s, size / (count * step_executions)
    print(f"ingest    {rate / 1e6:5.2f} M executions / CPU-s of this core")
    print(core)
    report(
        (
            ("ingest, on the reference core", 1e6 * core.speed / rate, "CPU-µs an execution", CPU_US),
            ("stored", size_per_execution, "bytes an execution", BYTES),
        )
    )


def main() -> None:
    """Measure with a private store and private daemons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--decoder", default="auto")
    args = parser.parse_args()
    with private_folder() as folder:
        measure(folder / "store", args.rows, args.decoder)


if __name__ == "__main__":
    main()
