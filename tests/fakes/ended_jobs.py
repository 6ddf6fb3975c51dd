"""A store with two ended jobs, and a third job that runs on this host if a test starts it."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fakes.made_store import IDENTITY, MS, SECOND, START_NS, rows, span, write_host, write_job
from tfprof.collector.store.writer import LocalStoreWriter
from tfprof.formats import layout

TRAIN, OTHER, LIVE = 0x7F3A << 48, 0x7F3B << 48, 0x1234 << 48
COUNTERS = {"traced": 0, "counts": {"batch": 40, "epoch": 2}, "times": {"batch": 40 * 20 * MS}, "step_ns": 100}


def tables() -> dict[str, Any]:
    """Return the tables of the first job."""
    spans = [span(layout.FIT, 1, 5_000, 20_000), span(layout.EVALUATE, 1, 26_000, 500)]
    spans += [span(layout.EPOCH, 1, 5_000, 19_990)]
    spans += [span(layout.BATCH, n, 5_000 + n * 400, 20, parent=1) for n in range(1, 41)]
    samples = [{"t_ns": START_NS + n * SECOND, "cpu_user_s": 2.0 * n, "rss_bytes": 10**9} for n in range(30)]
    events = [{"t_ns": START_NS, "slug": "gap", "text": "some are missing", "count": 3}]
    alerts = [{"found_ns": START_NS, "slug": "stall", "kind": layout.BATCH, "step": 40, "before": 5e8, "now": 2e10}]
    entries: dict[str, list[dict[str, Any]]] = {"spans": spans, "samples": samples, "events": events, "alerts": alerts}
    return {name: rows(name, values) for name, values in entries.items()}


def write(path: Path) -> Path:
    """Write the store with the two ended jobs and return its path."""
    write_job(path, TRAIN, tables(), counters=COUNTERS, end={**COUNTERS, "status": 1})
    write_job(path, OTHER, {}, identity={"name": "other.py"})
    write_host(path, [{"t_ns": START_NS + n * SECOND, "cpus": 8, "cpu_busy_s": 3.0 * n} for n in range(40)])
    return path


@contextlib.contextmanager
def running_job(store: Path) -> Iterator[LocalStoreWriter]:
    """Add a running job of this host to ``store``; yield the writer of the store."""
    writer = LocalStoreWriter(store, socket.gethostname())
    try:
        writer.job(LIVE).set_identity({**IDENTITY, "name": "live.py", "host": socket.gethostname()})
        yield writer
    finally:
        writer.close()
