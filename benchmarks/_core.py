"""How fast a core is while something else is measured, beside the one that the limits in CPU time were set on."""

import time

import psutil
from fakes.model_steps import nodes_of
from tfprof.collector.decoders.proto.run_metadata_pb2 import RunMetadata

#: What protobuf's own parser made of the bytes of a step there, in node executions a CPU-second.
REFERENCE = 3.2e6
PAUSE_S = 0.2
LOOKS = 3


def cpu_s(process: psutil.Process) -> float:
    """Return the CPU time that ``process`` used so far, in seconds."""
    times = process.cpu_times()
    return times.user + times.system


class Core:
    """Parses ``step`` with protobuf every now and then: no code of ours has a part in how long that takes."""

    def __init__(self, step: bytes) -> None:
        self._step, self._nodes = step, nodes_of(step)
        self._parsed, self._used_s, self._due = 0, 0.0, 0.0

    def look(self) -> None:
        """Take one more sample, unless the last one is hardly old."""
        if time.monotonic() < self._due:
            return
        RunMetadata.FromString(self._step)  # what is not in the caches is not what this is about
        before = time.thread_time()
        for _ in range(LOOKS):
            RunMetadata.FromString(self._step)
        self._used_s += time.thread_time() - before
        self._parsed += LOOKS * self._nodes
        self._due = time.monotonic() + PAUSE_S

    @property
    def speed(self) -> float:
        """The mean speed so far, 1 as the one that the limits were set on."""
        return self._parsed / self._used_s / REFERENCE

    def __str__(self) -> str:
        rate = self._parsed / self._used_s / 1e6
        return (
            f"core      protobuf parses {rate:.2f} M executions / CPU-s here,"
            f" {self.speed:.2f} of what the limits were set with"
        )
