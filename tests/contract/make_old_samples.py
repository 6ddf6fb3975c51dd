"""Makes samples of the formats of tfprof 0.2.0: a channel of version 1 and two stores.

The script runs with the code of that release:

    python -S make_old_samples.py FOLDER_WITH_TFPROF_0_2_0 SITE_PACKAGES
"""

import gzip
import json
import os
import sys
import tarfile
import tempfile
from pathlib import Path

DATA = Path(__file__).parent / "data"


def channel():
    """Return a channel of the shim of 0.2.0: two spans, a refusal, a RunMetadata, two XSpaces."""
    from tfprof.shim import layout, ring

    writer = ring.Channel(0x20, 7, layout.RING_MIN)
    writer.hello(json.dumps({"name": "old.py", "framework": "tensorflow", "python": "3.11.7"}).encode())
    writer.refuse("no-frames", "text of 0.2.0")
    writer.put(layout.RUN_METADATA, b"metadata", 3, 1000, 2000, 500, 0, 77, layout.RUN)
    writer.put(layout.XSPACE, b"one step", 4, 3000, 4000, 600, 1, 1, layout.BATCH)
    writer.put(layout.XSPACE, b"three steps", 5, 5000, 6000, 700, 1, 3, layout.BATCH)
    view = writer.view
    for number in range(2):
        entry = layout.SPAN.pack(1000 * number, 500, number + 1, 1, layout.RUN, 0, 77, 9, 500, 500, 0)
        offset = layout.SPANS_AT + number * layout.SPAN_SIZE
        view[offset : offset + layout.SPAN_SIZE] = entry
    words = {"span_head": 2, "traced": 5, "step_ns": 1000, "dropped_spans": 1}
    for name, value in words.items():
        offset = layout.JOB_WORDS[name]
        view[offset : offset + 8] = value.to_bytes(8, "little")
    offset = layout.COUNTS_AT + 8 * layout.RUN
    view[offset : offset + 8] = (2).to_bytes(8, "little")
    return os.pread(writer._fd, os.fstat(writer._fd).st_size, 0)


def store(folder):
    """Write a store with an ended job, and a running one with its rows in the log."""
    from fakes import made_store
    from tfprof.shim import layout

    spans = made_store.rows("spans", [made_store.span(layout.RUN, number + 1, number, 1) for number in range(3)])
    made_store.write_job(folder, 0x21, {"spans": spans})
    made_store.write_job(folder, 0x22, {"spans": spans}, state=None)


def op_rows(first):
    """Return the rows of `ops` of four traces, numbered from ``first``, in order of arrival."""
    return [
        {"trace": trace, "node": node, "device": (trace + node * node) % 4, "start_ns": 1000 * node, "op_start_ns": 10}
        | {"op_end_ns": 700 * node + trace, "all_end_ns": 5 + node, "wait_ns": 70 + trace, "total_bytes": 64 * node}
        | {"peak_bytes": 80 * node, "live_bytes": -node, "output_bytes": 8 * trace, "temp_bytes": 3}
        for trace in range(first, first + 4)
        for node in range(10)
    ]


def traced_store(folder):
    """Write a store with an ended job of two sealed generations, and a running one with a log."""
    from fakes import made_store, stored
    from tfprof.collector.store.writer import StoreWriter

    writer = StoreWriter(folder, made_store.HOST)
    for uid, first_traces in ((0x23, (0, 4)), (0x24, (0,))):
        job = writer.job(uid)
        job.identity(made_store.IDENTITY)
        has_ended = len(first_traces) > 1
        for first in first_traces:
            names = {} if first else {"names": stored.device_names()}
            job.append({"ops": stored.table("ops", op_rows(first)), "traces": stored.traces(first, 4), **names})
            if has_ended:
                job.seal()
        if has_ended:
            job.close("exited", {})
    writer.close()


def main():
    """Write all samples."""
    release, packages = sys.argv[1:]
    sys.path[:0] = [release, str(Path(release) / "tfprof" / "tests")]
    sys.path.append(packages)
    (DATA / "channel_1.gz").write_bytes(gzip.compress(channel(), mtime=0))
    for name, write_store in (("store_0.2.0", store), ("traced_store_0.2.0", traced_store)):
        with tempfile.TemporaryDirectory() as folder:
            write_store(Path(folder, "store"))
            with tarfile.open(DATA / f"{name}.tar.gz", "w:gz") as archive:
                archive.add(Path(folder, "store"), "store")


if __name__ == "__main__":
    main()
