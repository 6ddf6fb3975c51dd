"""Callbacks at the end of the interpreter."""

import subprocess
import sys

SCRIPT = """
import atexit
from tfprof.shim.process_events import at_end

class JobCallback:
    def __call__(self):
        print("theirs")
    def __eq__(self, other):
        print("compared")
        return True
    __hash__ = None

atexit.register(JobCallback())

def first():
    print("first")
    raise ValueError

def second():
    print("second")

for call in (first, second, first):
    at_end(call)
"""


def test_each_callback_runs_once_and_is_not_compared_with_callbacks_of_the_job():
    completed = subprocess.run([sys.executable, "-c", SCRIPT], check=False, capture_output=True, text=True, timeout=60)
    assert (completed.stdout.split(), completed.stderr, completed.returncode) == (["first", "second", "theirs"], "", 0)
