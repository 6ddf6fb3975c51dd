"""A tracker that several threads use at once, and that signal handlers use during its calls."""

import random
import sys
import threading
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from tfprof.formats import layout
from tfprof.formats.layout import WORD
from tfprof.formats.policy import Policy
from tfprof.shim import guard
from tfprof.shim.clock import mono
from tfprof.shim.pacing import selection as selection_module
from tfprof.shim.pacing import tracker as tracker_module
from tfprof.shim.pacing.costs import Costs
from tfprof.shim.pacing.current_policy import CurrentPolicy
from tfprof.shim.pacing.tracker import Tracker


@pytest.fixture
def tracker(monkeypatch):
    """A tracker under a budget, whose errors are raised."""
    monkeypatch.setattr(guard, "lets_errors_out", True)
    words = memoryview(bytearray(layout.PAGE)).cast("Q")
    words[WORD["step_ns"]] = words[layout.TIMES_AT // 8 + layout.RUN] = 10**9
    channel: Any = SimpleNamespace(
        words=words, costs=Costs(words, layout.KINDS), ring_problem=None, report=lambda *_: True
    )
    policy = CurrentPolicy(words, Policy.from_text("budget=5%"), lambda *_: True, lambda: None, mono(), layout.KINDS)
    opened: Any = (channel, lambda *_: None, policy)
    return Tracker(layout.RUN, lambda: opened)


class TimedJob:
    """A job with a fake clock. Its steps use a tracker as the wrappers do.

    ``traced`` has the ordinals of the traced steps.
    """

    def __init__(self, tracker, monkeypatch):
        self.tracker = tracker
        self.now = mono()
        self.traced = []
        for module in (selection_module, tracker_module):
            monkeypatch.setattr(module, "mono", lambda: self.now)

    def step(self, duration):
        tracker = self.tracker
        if tracker.take_untimed():
            self._spend(duration)
            return
        ordinal = tracker.next()
        if ordinal < tracker.trigger and 1 in tracker.known_keys:
            self._spend(duration)
            tracker.put_timed(self.now - duration, duration, ordinal, 1)
        elif tracker.level(ordinal, 1) is None:
            self._spend(duration)
            tracker.note_untraced(1, duration)
        else:
            self._spend(duration)
            tracker.note_traced(1, duration, 50_000_000)
            self.traced.append(ordinal)

    def _spend(self, duration):
        self.now += duration
        for time_at in (WORD["step_ns"], layout.TIMES_AT // 8 + layout.RUN):
            self.tracker.words[time_at] += duration


@pytest.fixture
def fast_switching():
    """Let threads switch as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("fast_switching")
def test_many_threads_use_a_tracker_at_once(tracker):
    errors = []

    def work(seed):
        generator = random.Random(seed)
        try:
            for number in range(4000):
                key = generator.randrange(6) + number // 400 * 7
                if tracker.level(tracker.next(), key) is None:
                    tracker.note_untraced(key, 1_000_000)
                else:
                    tracker.note_traced(key, 1_000_000, 1000)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_a_step_of_a_signal_handler_within_the_pacer_is_not_traced(tracker):
    levels = []

    def totals():
        levels.append(tracker.level(tracker.next(), 1))
        tracker.note_untraced(1, 1_000_000)
        return 0, 1

    tracker.level(tracker.next(), 1)
    tracker.selection.pacer._totals = totals
    for _ in range(20):
        tracker.level(tracker.next(), 1)
        tracker.note_untraced(1, 1_000_000)
    assert levels
    assert set(levels) == {None}


def test_steps_that_become_much_longer_are_soon_traced(tracker, monkeypatch):
    job = TimedJob(tracker, monkeypatch)
    for _ in range(100_000):
        job.step(50_000)
    assert 3 < len(job.traced) < 10  # the budget allows a trace every 20,000 steps
    for _ in range(200):
        job.step(100_000_000)
    long_steps = [ordinal for ordinal in job.traced if ordinal > 100_000]
    assert len(long_steps) > 10
    assert max(later - earlier for earlier, later in pairwise([100_000, *long_steps])) < 30
