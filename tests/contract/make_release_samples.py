"""Makes samples of the formats of a release: a channel, and a store with two jobs.

    python make_release_samples.py TF1_PYTHON TF2_PYTHON

The script runs with the code of the release, once. Later versions read what it wrote.
"""

import gzip
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from contract.stored_sums import stored_sums
from tfprof.collector.store.reader import LocalStore
from tfprof.formats import layout
from tfprof.formats.version import CHANNEL_VERSION, VERSION
from tfprof.shim.channel import ring
from tfprof.shim.channel.spans import SpanWriter

DATA = Path(__file__).parent / "data"
JOBS = Path(__file__).parents[1] / "integration" / "jobs"


#: Kinds of spans of another framework. TensorFlow has other kinds with these numbers.
KINDS = {1: ("forward", "step", 2), 2: ("train_step", "step", 10), 5: ("warm_up", "span", 0)}


def channel(**hello: object) -> bytes:
    """Return a channel of the shim: three spans, a refusal, a RunMetadata and an XSpace."""
    writer = ring.Channel(0x30, 7, layout.RING_MIN)
    identity = {"name": "old.py", "framework": "tensorflow", "python": "3.11.7"}
    writer.write_hello(json.dumps({**identity, **hello}).encode())
    writer.report("no-frames", "text of a release")
    writer.put(layout.RUN_METADATA, b"metadata", 3, 1000, 2000, 500, 0, 77, layout.RUN)
    writer.put(layout.XSPACE, b"one step", 4, 3000, 4000, 600, 1, 1, layout.BATCH)
    put_span = SpanWriter(writer, {layout.RUN}).put
    for number in (1, 2):
        put_span(layout.RUN, 1000 * number, 500, number, key=9)
    put_span(layout.BATCH, 5000, 700, 1)
    return os.pread(writer._fd, os.fstat(writer._fd).st_size, 0)


def store(folder: Path, python: str, *script: str) -> None:
    """Run a job with ``python`` that stores in ``folder``."""
    command = [str(Path(sys.executable).with_name("tfprof-run")), "--store", str(folder), python, *script]
    subprocess.run(command, check=True, env={**os.environ, "TFPROF_TRACE": "steps=2-4"})


def main() -> None:
    """Write all samples."""
    tf1_python, tf2_python = sys.argv[1:]
    (DATA / f"channel_{CHANNEL_VERSION}.gz").write_bytes(gzip.compress(channel(), mtime=0))
    (DATA / f"channel_{CHANNEL_VERSION}_kinds.gz").write_bytes(gzip.compress(channel(kinds=KINDS), mtime=0))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "store")
        store(path, tf1_python, str(JOBS / "convnet.py"), "tensorflow.keras")
        store(path, tf2_python, str(JOBS / "keras_fit.py"))
        sums = [stored_sums(job) for job in LocalStore(str(path)).jobs()]
        (DATA / f"store_{VERSION}.json").write_text(json.dumps(sums, indent=1, sort_keys=True) + "\n")
        with tarfile.open(DATA / f"store_{VERSION}.tar.gz", "w:gz") as archive:
            archive.add(path, "store")


if __name__ == "__main__":
    main()
