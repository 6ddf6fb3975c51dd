"""Ctrl-C ends a command silently, also at the end of the block in which it is handled."""

import signal
import subprocess
import sys

#: Ctrl-C came during an import, and is repeated while the block ends.
AT_THE_END = """
import os, signal
from tfprof.cli import interrupt

real, times = signal.setitimer, []

def setitimer(which, seconds):
    times.append(seconds)
    if len(times) == 1:
        os.kill(os.getpid(), signal.SIGALRM)
    return real(which, seconds)

interrupt.signal.setitimer = setitimer
with interrupt.Interruptible():
    pass
"""


def test_ctrl_c_at_the_end_of_the_block_is_silent() -> None:
    process = subprocess.run([sys.executable, "-c", AT_THE_END], capture_output=True, timeout=60, check=False)
    assert (process.returncode, process.stderr) == (-signal.SIGINT, b"")
