"""Jobs with valid channels that are corrupted at random after an agent has opened them.

    python forger.py FOLDER LAUNCH SEED COUNT SECONDS

As a program it forks children, each of which makes some of the COUNT channels and corrupts them for
SECONDS. Each child prints how many of its channels were opened.
"""

import contextlib
import ctypes
import json
import os
import random
import struct
import sys
import time

from fakes.channel_writer import ChannelWriter
from fakes.mutations import BODIES, EDGES, Mutator
from tfprof.formats import layout

#: Number of channels of one child. The agent accepts at most 16 of a process.
CHANNELS_PER_CHILD = 12
#: Maximum number of concurrent children.
CHILDREN_MAX = 2
TIMEOUT_S = 20.0
_WORD_OFFSETS = (
    *layout.JOB_WORDS.values(),
    *layout.AGENT_WORDS.values(),
    *range(layout.COUNTS_AT, layout.COUNTS_AT + 96, 8),
)
_POSITION_OFFSETS = tuple(layout.JOB_WORDS[name] for name in ("head", "records", "span_head", "span_open", "ring_size"))
_POSITION_OFFSETS += tuple(layout.AGENT_WORDS[name] for name in ("tail", "span_tail"))
_PUNCH_HOLE = 0x03


class ForgedChannel:
    """One channel and the ways to corrupt it."""

    def __init__(self, folder, launch, rng):
        self.rng = rng
        self.channel = ChannelWriter(launch, hello={"name": "forged.py", "framework": "tensorflow", "python": "3.11"})
        self.mutator = Mutator(rng.random(), self.channel.uid)
        self._put()
        self.channel.put_span(1)
        self.channel.announce(folder)

    @property
    def is_opened(self):
        """Whether an agent has opened the channel."""
        return bool(self.channel.word("agent_pid"))

    def corrupt(self):
        """Corrupt the channel in a random way."""
        self.rng.choice(self.CORRUPTIONS)(self)

    def _put(self):
        kind, body = self.rng.choice(BODIES)
        self.channel.put(body, kind, step=self.rng.choice([1, 2, *EDGES]))

    def _put_corrupted(self):
        kind, body = self.rng.choice(BODIES)
        self.channel.put(bytes(self.mutator.corrupted(body)), kind, step=self.rng.choice(EDGES))

    def _put_spans(self):
        for _ in range(self.rng.choice([1, 20, 200])):
            self.channel.put_span(self.rng.randrange(1 << 20))

    def _corrupt_position(self):
        at = self.rng.choice(_POSITION_OFFSETS)
        (value,) = struct.unpack_from("<Q", self.channel.map, at)
        self._write(at, (value + self.rng.choice([-64, -8, -1, 1, 7, 8, 60, 4096, 1 << 20, 1 << 30])) % (1 << 64))

    def _corrupt_word(self):
        self._write(self.rng.choice(_WORD_OFFSETS), self.rng.choice([*EDGES, self.rng.getrandbits(64)]))

    def _write(self, at, value):
        struct.pack_into("<Q", self.channel.map, at, value)

    def _corrupt_page(self):
        page = bytes(self.mutator.corrupted(self.channel.map[: layout.PAGE]))[: layout.PAGE]
        self.channel.map[: len(page)] = page

    def _corrupt_hello(self):
        values = {
            "name": "forged.py",
            "trace": "all",
            "python": "3.11",
            "framework_version": "2.0",
            "argv0": "x",
            "ppid": 5,
        }
        text = self.mutator.corrupted_document(json.dumps(values).encode())[: layout.HELLO_MAX]
        self.channel.map[layout.HELLO_AT : layout.HELLO_AT + len(text)] = text
        generation = self.channel.word("hello_generation") + 1
        size = self.rng.choice([len(text)] * 5 + list(EDGES))
        self.channel.set(hello_generation=min(generation, 2**64 - 1), hello_size=size)

    def _corrupt_span(self):
        slot = self.channel.word("span_head") + self.rng.randrange(-3, 3)
        at = layout.SPANS_AT + slot % layout.SPAN_COUNT * layout.SPAN_SIZE + 8 * self.rng.randrange(8)
        self._write(at, self.rng.choice([*EDGES, self.rng.getrandbits(64)]))
        head = self.channel.word("span_head") + self.rng.choice([0, 1, 1, 30])
        self.channel.set(span_head=min(head, 2**64 - 1))

    def _corrupt_record(self):
        at = (self.channel.word("tail") + 4 * self.rng.randrange(40)) % self.channel.ring
        data = struct.pack("<Q", self.rng.choice([*EDGES, self.rng.getrandbits(64)]))
        os.pwrite(self.channel.fd, data[: self.channel.ring - at], layout.RING_AT + at)

    def _resize_file(self):
        size = self.rng.choice([0, 1, layout.PAGE, layout.RING_AT, layout.RING_AT + self.channel.ring * 2])
        with contextlib.suppress(OSError):
            os.ftruncate(self.channel.fd, size)

    def _punch_hole(self):
        at = self.rng.choice([0, layout.HELLO_AT, layout.SPANS_AT, layout.RING_AT])
        ctypes.CDLL(None).fallocate(
            self.channel.fd, _PUNCH_HOLE, ctypes.c_long(at), ctypes.c_long(self.rng.choice([1, 4096, 1 << 20]))
        )

    CORRUPTIONS = (
        *[_put, _put_corrupted, _put_spans] * 3,
        *[_corrupt_position, _corrupt_word, _corrupt_hello, _corrupt_span, _corrupt_record] * 2,
        _corrupt_page,
        _resize_file,
        _punch_hole,
    )


def forge(folder, launch, seed, seconds):
    """Make the channels of one child, wait until all are opened, and corrupt them for ``seconds``.

    Return how many were opened.
    """
    rng = random.Random(seed)
    channels = [ForgedChannel(folder, launch, rng) for _ in range(CHANNELS_PER_CHILD)]
    deadline = time.monotonic() + TIMEOUT_S
    while not all(channel.is_opened for channel in channels) and time.monotonic() < deadline:
        time.sleep(0.02)
    opened_count = sum(channel.is_opened for channel in channels)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for channel in channels:
            # The writer itself fails on some corrupt words.
            with contextlib.suppress(struct.error, OverflowError, ValueError, OSError):
                for _ in range(rng.choice([0, 1, 1, 3])):
                    channel.corrupt()
        time.sleep(rng.choice([0.01, 0.05, 0.1]))
    return opened_count


def main():
    """Fork the children, at most CHILDREN_MAX at a time, and wait for all."""
    folder, launch, seed, count, seconds = (
        sys.argv[1],
        int(sys.argv[2], 16),
        *map(int, sys.argv[3:5]),
        float(sys.argv[5]),
    )
    running = 0
    for number in range(-(-count // CHANNELS_PER_CHILD)):
        if running == CHILDREN_MAX:
            os.wait()
            running -= 1
        if not os.fork():
            sys.stdout.write(f"{forge(folder, launch, seed * 10_000 + number, seconds)}\n")
            sys.stdout.flush()
            os._exit(0)
        running += 1
    while running:
        os.wait()
        running -= 1


if __name__ == "__main__":
    main()
