"""The speed of a core during a benchmark, relative to the reference core.

The limits in CPU time were set on the reference core.
"""

import sys
import time
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))  # also for the scripts that import this

from fakes.model_steps import execution_count
from tfprof.collector.decoders.proto.run_metadata_pb2 import RunMetadata

#: Speed of protobuf's own parser on the reference core, in node executions a CPU-second.
REFERENCE_RATE = 3.2e6
#: Interval of samples in seconds, and number of parses in each sample.
PAUSE_S = 0.2
PARSES = 3


def cpu_s(process: psutil.Process) -> float:
    """Return the CPU time of ``process`` so far, in seconds."""
    times = process.cpu_times()
    return times.user + times.system


class Core:
    """The mean speed of the core, from samples that parse ``step`` with protobuf.

    No code of tfprof affects the time of a sample.
    """

    def __init__(self, step: bytes) -> None:
        self._step, self._step_executions = step, execution_count(step)
        self._parsed_executions, self._cpu_s, self._due_s = 0, 0.0, 0.0

    def sample(self) -> None:
        """Take a sample, unless the last one is younger than PAUSE_S."""
        if time.monotonic() < self._due_s:
            return
        RunMetadata.FromString(self._step)  # fills the caches
        before = time.thread_time()
        for _ in range(PARSES):
            RunMetadata.FromString(self._step)
        self._cpu_s += time.thread_time() - before
        self._parsed_executions += PARSES * self._step_executions
        self._due_s = time.monotonic() + PAUSE_S

    @property
    def speed(self) -> float:
        """The mean speed so far; 1 is the speed of the reference core."""
        return self._parsed_executions / self._cpu_s / REFERENCE_RATE

    def __str__(self) -> str:
        rate = self._parsed_executions / self._cpu_s / 1e6
        return (
            f"core      protobuf parses {rate:.2f} M executions / CPU-s on this core,"
            f" {self.speed:.2f} of the reference core"
        )
