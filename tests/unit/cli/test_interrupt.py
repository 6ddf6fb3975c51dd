"""Ctrl-C ends a command silently, also at the end of the block in which it is handled."""

import signal
import subprocess
import sys

#: A timer (SIGALRM) repeats a Ctrl-C that came during an import. Here SIGALRM arrives just as the
#: end of the block cancels the timer.
SCRIPT = """
import os, signal
from tfprof.cli import interrupt

real_setitimer, calls = signal.setitimer, []

def setitimer(which, seconds):
    calls.append(seconds)
    if len(calls) == 1:
        os.kill(os.getpid(), signal.SIGALRM)
    return real_setitimer(which, seconds)

interrupt.signal.setitimer = setitimer
with interrupt.Interruptible():
    pass
"""


def test_ctrl_c_at_the_end_of_the_block_is_silent() -> None:
    process = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, timeout=60, check=False)
    assert (process.returncode, process.stderr) == (-signal.SIGINT, b"")
