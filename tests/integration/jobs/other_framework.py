"""A job of a framework that tfprof does not know: its kinds have numbers that TensorFlow uses, too.

It runs 30 steps `forward` of 10 ms in a span `warm_up`, and 10 steps `train_step` of 30 ms. The
first of these is traced: the RunMetadata in the file argv[1].
"""

import sys
import time
from pathlib import Path
from types import ModuleType

from _tfprof.formats import layout
from _tfprof.shim import core
from _tfprof.shim.clock import mono


def _module(name, **attributes):
    module = sys.modules["_tfprof.shim.other." + name] = ModuleType(name)
    vars(module).update(attributes)
    return module


FORWARD, WARM_UP, TRAIN_STEP = 3, 5, 7
_module("names", LOOP=())
_module("loop", patch=lambda _module: None)
_module(
    "kinds",
    KINDS={FORWARD: ("forward", "step", 2), WARM_UP: ("warm_up", "span", 0), TRAIN_STEP: ("train_step", "step", 10)},
    COUNTED_NS=dict.fromkeys((FORWARD, WARM_UP, TRAIN_STEP), 1000),
)
row = _module(
    "patches",
    __package__="_tfprof.shim.other",
    NAME="other",
    VERSION=("other.about", "__version__"),
    NAMES="names",
    KINDS="kinds",
    RECORDER="loop",
    PATCHES={"other.training": ("loop", "patch", "LOOP")},
    PACKAGES={},
    MARKS=(),
)
core.state().frameworks = (row,)
core._patch(row, "other.training", ModuleType("training"))
forward, warm_up, train_step = (core.tracker(kind) for kind in (FORWARD, WARM_UP, TRAIN_STEP))


def _step(tracker, seconds):
    start, ordinal = mono(), tracker.next()
    tracker.level(ordinal, 0)
    time.sleep(seconds)
    tracker.put_timed(start, mono() - start, ordinal, 0)
    return start


for tracker in (forward, warm_up, train_step):
    tracker.open()
begin = mono()
for _ in range(30):
    _step(forward, 0.01)
warm_up.put(WARM_UP, begin, mono() - begin, warm_up.next(), 0)
first = _step(train_step, 0.03)
times = (first, time.time_ns(), mono() - first)
metadata = Path(sys.argv[1]).read_bytes()
assert core.state().channel.put(layout.RUN_METADATA, metadata, 1, *times, flags=TRAIN_STEP)
for _ in range(9):
    _step(train_step, 0.03)
