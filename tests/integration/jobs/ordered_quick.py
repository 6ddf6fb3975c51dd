"""Runs of the fake TensorFlow until standard input ends: python ordered_quick.py loop|long PAUSE_S.

With `loop` the job pauses for PAUSE_S after each run. With `long` it pauses for PAUSE_S after run
200, and for 20 ms after each other run.
"""

import os
import sys
import threading
import time
from pathlib import Path

from tensorflow.python.client import native, session

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "fakes"))
from run_metadata import run_metadata

native.STEP_STATS = run_metadata([b"product:MatMul"])


def leave():
    sys.stdin.read()
    os._exit(0)


threading.Thread(target=leave, daemon=True).start()
fake_session, pause_s = session.BaseSession(), float(sys.argv[2])
number = 0
while True:
    fake_session.run(["y"], {"x": number})
    number += 1
    # With `long` the long pause follows run 200, when the store has the runs before it.
    time.sleep(pause_s if sys.argv[1] == "loop" or number == 200 else 0.02)
