"""Callbacks at the end of the interpreter."""

import subprocess
import sys

SCRIPT = """
import atexit
from tfprof.shim.process_events import at_end

class Never:
    def __call__(self):
        print("theirs")
    def __eq__(self, other):
        print("compared")
        return True
    __hash__ = None

atexit.register(Never())

def first():
    print("first")
    raise ValueError

def second():
    print("second")

for call in (first, second, first):
    at_end(call)
"""


def test_each_callback_runs_once_and_is_not_compared_with_the_jobs():
    ended = subprocess.run([sys.executable, "-c", SCRIPT], check=False, capture_output=True, text=True, timeout=60)
    assert (ended.stdout.split(), ended.stderr, ended.returncode) == (["first", "second", "theirs"], "", 0)
