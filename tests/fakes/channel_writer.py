"""Writes a channel (docs/channel.md) in place of the shim, without its code.

    python channel_writer.py FOLDER LAUNCH COUNT INTERVAL_S

As a program it prints the uid, puts COUNT numbered records, prints ``done``, and waits for a line.
"""

import fcntl
import json
import mmap
import os
import struct
import sys
import time
from pathlib import Path

from tfprof.formats import layout
from tfprof.formats.version import CHANNEL_VERSION


def _allocate(fd, size):
    os.posix_fallocate(fd, 0, size)


class ChannelWriter:
    """One channel; `put` and `put_span` return False if a ring is full.

    A ``sparse`` channel has no memory reserved.
    """

    def __init__(
        self,
        launch=0,
        uid=None,
        ring=layout.RING_MIN,
        version=CHANNEL_VERSION,
        hello=None,
        sealed=True,
        sparse=False,
    ):
        self.uid = uid if uid is not None else int.from_bytes(os.urandom(8), "little") or 1
        self.launch = launch
        self.ring = ring
        self.fd = os.memfd_create(layout.MEMFD_NAME, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        (os.ftruncate if sparse else _allocate)(self.fd, layout.RING_AT)
        if sealed:
            fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        self.map = mmap.mmap(self.fd, layout.RING_AT)
        self.set(
            uid=self.uid,
            pid=os.getpid(),
            launch=launch,
            created_real_ns=time.time_ns(),
            created_mono_ns=time.monotonic_ns(),
        )
        self.hello(
            hello or {"name": "fake.py", "framework": "tensorflow", "framework_version": "9.9", "python": "3.11"}
        )
        struct.pack_into("<8sII", self.map, 0, layout.MAGIC, version, layout.PAGE)

    def close(self):
        self.map.close()
        os.close(self.fd)

    def word(self, name):
        at = {**layout.JOB_WORDS, **layout.AGENT_WORDS}[name]
        return struct.unpack_from("<Q", self.map, at)[0]

    def set(self, **words):
        for name, value in words.items():
            at = {**layout.JOB_WORDS, **layout.AGENT_WORDS}[name]
            struct.pack_into("<Q", self.map, at, value)

    def hello(self, values):
        text = json.dumps(values).encode()
        self.set(hello_size=0)
        self.map[layout.HELLO_AT : layout.HELLO_AT + len(text)] = text
        self.set(hello_generation=self.word("hello_generation") + 1, hello_size=len(text))

    def announce(self, folder, text="channel"):
        name = f"{os.getpid()}-{self.uid:016x}"
        Path(folder, "announce", name).write_text(f"{text}\n{self.launch:016x}\n")

    def put(self, data, kind=layout.REFUSED, step=0):
        if not self.word("ring_size"):
            os.posix_fallocate(self.fd, 0, layout.RING_AT + self.ring)
            fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW)
            self.set(ring_size=self.ring)
        size = layout.RECORD.size + len(data)
        head = self.word("head")
        if head + size - self.word("tail") > self.ring:
            self.set(dropped_records=self.word("dropped_records") + 1, dropped_bytes=self.word("dropped_bytes") + size)
            return False
        seq = self.word("records") + 1
        header = layout.RECORD.pack(size, kind, 0, seq, step, time.monotonic_ns(), time.time_ns(), 0, 0, 0)
        record, at = header + data, head % self.ring
        os.pwrite(self.fd, record[: self.ring - at], layout.RING_AT + at)
        os.pwrite(self.fd, record[self.ring - at :], layout.RING_AT)
        self.set(records=seq)
        self.set(head=head + size)
        return True

    def put_span(self, ordinal, kind=layout.RUN, key=0, total=1000):
        head = self.word("span_head")
        if head - self.word("span_tail") >= layout.SPAN_COUNT:
            self.set(dropped_spans=self.word("dropped_spans") + 1)
            return False
        at = layout.SPANS_AT + head % layout.SPAN_COUNT * layout.SPAN_SIZE
        layout.SPAN.pack_into(self.map, at, time.monotonic_ns(), total, ordinal, 1, kind, 0, key, 0, total, total, 0)
        count_at = layout.COUNTS_AT + 8 * kind
        struct.pack_into("<Q", self.map, count_at, struct.unpack_from("<Q", self.map, count_at)[0] + 1)
        self.set(span_head=head + 1)
        return True


def main():
    folder, launch, count, interval = sys.argv[1], int(sys.argv[2], 16), int(sys.argv[3]), float(sys.argv[4])
    writer = ChannelWriter(launch)
    writer.announce(folder)
    print(f"{writer.uid:016x}", flush=True)
    for number in range(1, count + 1):
        while not writer.put(json.dumps({"slug": "fake", "text": str(number)}).encode()):
            time.sleep(0.01)
        writer.put_span(number)
        time.sleep(interval)
    print("done", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
