"""Exports of a job of 1 M node executions: processor time and memory of each format.

usage: benchmarks/exports.py [--rows 1000000] [--processes 5]
Each process imports what the command imports, and writes each file once. The results are medians.
The memory is the peak of a process that writes all files, so it is an upper bound for each.
"""

import argparse
import resource
import statistics
import tempfile
import time
from pathlib import Path

import _limits
import _processes
import op_view_10m
from tfprof.collector.api import open_store
from tfprof.collector.store.reader import LocalStore
from tfprof.formats.exports import FORMATS

#: Names of the files, or the format of a folder, with limits of processor time for 1 M executions
#: (s).
LIMITS_S = {
    "a.perfetto-trace": 6.0,
    "a.json": 3.0,
    "a.json.gz": 5.0,
    "a.parquet": 1.0,
    "a.csv": 3.0,
    "tensorboard": 6.0,
}


def measure(store: str) -> dict[str, float]:
    """Return the processor time of each export (s / M executions), and the peak memory (MB)."""
    job, results = open_store(store).job("last"), {}
    rows = sum(LocalStore(store).job("last").table("traces", ["rows"])["rows"].to_pylist())
    with tempfile.TemporaryDirectory() as folder:
        for name in LIMITS_S:
            before = time.process_time()
            job.export(Path(folder) / name, file_format=name if name in FORMATS else None, all_steps=True)
            results[name] = (time.process_time() - before) * 1e6 / rows
    return results | {"mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000}


def main() -> None:
    """Write a job and export it in new processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    _, results = _processes.run_in_processes(__file__, parser, op_view_10m.write, measure)
    print(f"peak memory {max(result['mb'] for result in results):.0f} MB")
    _limits.report(
        (name, statistics.median(result[name] for result in results), "CPU-s / M executions", limit_s)
        for name, limit_s in LIMITS_S.items()
    )


if __name__ == "__main__":
    main()
