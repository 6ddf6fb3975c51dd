"""Callbacks at the end of the interpreter."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import atexit
from fakes.our_code import ours
from tfprof.shim.process_events import at_end

class JobCallback:
    def __call__(self):
        print("theirs")
    def __eq__(self, other):
        print("compared")
        return True
    __hash__ = None

atexit.register(JobCallback())

@ours
def first():
    print("first")
    raise ValueError

def second():
    print("second")

for call in (first, second, first):
    at_end(call)
"""


def test_each_callback_runs_once_and_is_not_compared_with_callbacks_of_the_job():
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    completed = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environ, check=False, capture_output=True, text=True, timeout=60
    )
    assert (completed.stdout.split(), completed.stderr, completed.returncode) == (["first", "second", "theirs"], "", 0)
