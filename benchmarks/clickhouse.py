"""A job in ClickHouse beside the same job in a folder: times of the copy and of questions.

usage: benchmarks/clickhouse.py [--rows 1000000] [--runs 5]
Servers are those of the tests: Debian's clickhouse-server 18.16 if it is installed, and chDB if
TFPROF_TEST_CHDB names an interpreter that has it. A question is asked in one process, of the server
and of the folder in turn; its time is the median of the runs. The ratio of the two counts, since
both ran on the same host at the same time. It has no limit.
"""

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import op_view_10m
from fakes import chdb_server, clickhouse_program
from fakes.round_trip import output_of
from tfprof.collector.query.job_selection import Selection
from tfprof.collector.query.profile import profile
from tfprof.collector.query.step_entries import read_entries
from tfprof.collector.store.opening import create, open_reader, open_target
from tfprof.collector.store.protocols import JobReader, StoreReader
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.store.writer import LocalStoreWriter
from tfprof.collector.tfviews.op import op_view
from tfprof.collector.tfviews.options import Options

CHDB = os.environ.get("TFPROF_TEST_CHDB", "")


def _op_view(store: StoreReader) -> object:
    return len(op_view(profile(Selection((store.job("last"),)), required_facts=()).nodes, Options()).entries)


def _one_step(store: StoreReader) -> object:
    return len(read_entries(store.job("last"), [5]))


def _many_steps(store: StoreReader) -> object:
    job = store.job("last")
    return sum(job.rollup(range(7, job.table("traces").num_rows * 3 // 4))["runs"].to_pylist())


def _command(name: str) -> Callable[[StoreReader], object]:
    """Return the question that ``tfprof name`` answers, without the start of the command."""

    def answer(store: StoreReader) -> object:
        return output_of(name, "last", "--json", "--store", store.address).replace(store.address, "")

    return answer


QUESTIONS: dict[str, Callable[[StoreReader], object]] = {
    "list of jobs": lambda store: len(store.jobs()),
    "op view": _op_view,
    "one step": _one_step,
    "most steps": _many_steps,
    **{f"tfprof {name}": _command(name) for name in ("op", "show", "advise")},
}


@contextlib.contextmanager
def _debian(folder: Path) -> Iterator[str]:
    with clickhouse_program.running(folder) as (port, _):
        yield f"clickhouse://127.0.0.1:{port}/jobs"


@contextlib.contextmanager
def _chdb(folder: Path) -> Iterator[str]:
    os.environ |= {"TFPROF_CLICKHOUSE_USER": chdb_server.USER, "TFPROF_CLICKHOUSE_PASSWORD": chdb_server.PASSWORD}
    command = [CHDB, chdb_server.__file__, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"clickhouse://127.0.0.1:{process.stdout.readline().strip()}/jobs"
        process.communicate()


def _seconds(action: Callable[[], object]) -> float:
    before = time.perf_counter()
    action()
    return time.perf_counter() - before


def _print(name: str, engine_s: float, local_s: float) -> None:
    ratio = engine_s / local_s
    print(f"{name:16} {1000 * engine_s:9.1f} ms, folder {1000 * local_s:9.1f} ms, ratio {ratio:6.2f}", flush=True)


def _copy(job: JobReader, address: str) -> float:
    return _seconds(lambda: open_target(address).add(job))


def measure(store: Path, url: str, runs: int) -> None:
    """Print the times of a server of ClickHouse, beside those of a folder."""
    create(url, 0, (), only_print=False)
    job = LocalStore(store).job("last")
    rows = sum(job.info.rows.values())
    with tempfile.TemporaryDirectory() as copy:
        engine_s, local_s = _copy(job, url), _copy(job, f"{copy}/store")
    print(f"copy: {rows / engine_s:,.0f} rows a second, into a folder {rows / local_s:,.0f}")
    _print("copy", engine_s, local_s)
    engine, local = open_reader(url), LocalStore(store)
    for name, question in QUESTIONS.items():
        assert question(engine) == question(local), name
        pairs = [(_seconds(lambda: question(engine)), _seconds(lambda: question(local))) for _ in range(runs)]  # noqa: B023
        _print(name, *map(statistics.median, zip(*pairs, strict=True)))
    _measure_running(store, url)


def _measure_running(store: Path, url: str) -> None:
    """Print the time of a round about a running job: what comes in ten seconds is copied."""
    writer = LocalStoreWriter(store, os.uname().nodename)
    running = writer.job(2)
    running.set_identity({"name": "running"})
    running.append(op_view_10m.graph())
    template, target, times = op_view_10m.appended_rows(), open_target(url), list[float]()
    for _ in range(6):
        running.append({"ops": template, "traces": op_view_10m.traces(0)})
        times.append(_seconds(lambda: target.add(LocalStore(store).job("running"))))
    writer.close()
    print(f"round of a running job, {template.num_rows:,} new ops: {1000 * statistics.median(times[1:]):.0f} ms")


def main() -> None:
    """Write a job, copy it to each server, and ask."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    servers = {"ClickHouse 18.16": _debian if clickhouse_program.PROGRAM else None, "chDB": _chdb if CHDB else None}
    for name, server in servers.items():
        if server is None:
            print(f"{name}: not installed")
            continue
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder) / "store"
            op_view_10m.write(store, args)
            writer = LocalStoreWriter(store, "benchmark")
            writer.job(op_view_10m.UID).close("exited")
            writer.close()
            with server(Path(folder)) as url:
                print(f"-- {name}")
                measure(store, url, args.runs)


if __name__ == "__main__":
    main()
