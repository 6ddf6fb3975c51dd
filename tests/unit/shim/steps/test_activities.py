"""Activities: nesting, sums of short ones, names, and what remains after a detach.

Tests formats/activities.py.
"""

import gc
import os
import threading
import weakref
from typing import Any

import pytest
from fakes.open_channel import open_channel
from tfprof.formats import activities as categories
from tfprof.formats import layout
from tfprof.formats.activities import (
    CALLBACK,
    CATEGORIES,
    CHECKPOINT,
    GC,
    INPUT,
    NAMES_MAX,
    PYTHON_FUNCTION,
    SUMMARY,
    THREAD,
    TRACING,
    category_of,
    key_of,
    label_of,
)
from tfprof.shim import core
from tfprof.shim.steps import activities, observer
from tfprof.shim.steps.thread_state import local

MS = 10**6


class Clock:
    """A clock that stands still until it is set forward."""

    def __init__(self):
        self.now = 10**12

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch, armed):
    new_clock = Clock()
    monkeypatch.setattr(activities, "mono", new_clock)
    monkeypatch.setattr(activities, "keys", {})
    return new_clock


def run(clock, category, name, *durations):
    """Run activities of these durations (ns) in turn."""
    for duration in durations:
        activity = activities.begin(category, name)
        clock.now += duration
        del activity


@pytest.fixture
def spans(read):
    """A function that returns the spans of activities: (key, parent, count, total), in order."""
    read()  # opens the channel, which a detach closes

    def take():
        return [(span.key, span.parent, span.count, span.total) for span in read().of_kind(layout.ACTIVITY)]

    return take


def test_long_activities_have_spans_and_short_ones_share_them(clock, spans):
    key = key_of(INPUT, "next")
    run(clock, INPUT, "next", 2 * MS, *[MS // 4] * 7, 3 * MS)
    assert spans() == [(key, 0, 1, 2 * MS), (key, 0, 4, MS), (key, 0, 1, 3 * MS)]
    core.disarm()
    assert spans()[3:] == [(key, 0, 3, 3 * MS // 4)]


def test_an_activity_knows_the_one_that_encloses_it(clock, spans):
    outer, inner = key_of(CALLBACK, "ModelCheckpoint"), key_of(CHECKPOINT, "Model.save")
    callback = activities.begin(CALLBACK, "ModelCheckpoint")
    assert activities.begin(CALLBACK, "ModelCheckpoint") is None  # a method that calls that of its base class
    run(clock, CHECKPOINT, "Model.save", 5 * MS)
    clock.now += MS
    del callback
    run(clock, CHECKPOINT, "Model.save", 5 * MS)
    assert spans() == [(inner, outer, 1, 5 * MS), (outer, 0, 1, 6 * MS), (inner, 0, 1, 5 * MS)]


def test_a_thread_has_its_own_nesting(clock, spans):
    callback = activities.begin(CALLBACK, "ModelCheckpoint")
    thread = threading.Thread(target=run, args=(clock, PYTHON_FUNCTION, "load", 5 * MS))
    thread.start()
    thread.join()
    del callback
    assert spans() == [
        (key_of(PYTHON_FUNCTION, "load"), 0, 1, 5 * MS),
        (key_of(CALLBACK, "ModelCheckpoint"), 0, 1, 5 * MS),
    ]


def test_only_collections_are_recorded_while_a_function_is_traced(clock, spans):
    tracing = activities.begin(TRACING, "train")
    run(clock, INPUT, "next", 5 * MS)
    activities._collected("start", {"generation": 2})
    clock.now += 2 * MS
    activities._collected("stop", {"generation": 2})
    del tracing
    assert [key for key, *_ in spans()] == [key_of(GC, "generation 2"), key_of(TRACING, "train")]


def test_calls_of_callbacks_that_do_nothing_are_left_out(clock, spans):
    run(clock, CALLBACK, "History", *[1000] * 100000)
    core.disarm()
    assert spans() == []


def test_many_names_are_few_and_all_time_is_kept(clock, spans, read):
    for number in range(10 * NAMES_MAX):
        run(clock, CALLBACK, f"Callback{number}", 2 * MS)
    rows = spans()
    assert sum(total for *_, total in rows) == 20 * NAMES_MAX * MS
    keys = {key for key, *_ in rows}
    assert len(keys) == NAMES_MAX + 1
    names = {int(key): name for key, name in read().hello()["functions"].items()}
    assert label_of(key_of(CALLBACK, "others"), {}) == "others"
    assert names[key_of(CALLBACK, "Callback0")] == "Callback0"
    assert category_of(key_of(CALLBACK, "Callback0")) == "callback"
    assert label_of(key_of(CALLBACK, "x"), {}).startswith("#")


def test_names_of_threads_leave_room_for_those_of_other_activities(clock, spans, read):
    activities.get_recorder()
    for number in range(2 * NAMES_MAX):
        activities.get_key(THREAD, f"{number} load (train.py:12) Thread-{number}")
    run(clock, CHECKPOINT, "Saver.save", 2 * MS)
    assert [key for key, *_ in spans()] == [key_of(CHECKPOINT, "Saver.save")]


@pytest.mark.parametrize("name", ["\x1b[31m", "a\nb\0", "x" * 10000, "\udc80", ""])
def test_hostile_names_are_published(clock, spans, read, name):
    run(clock, CHECKPOINT, name, 2 * MS)
    [(key, *_)] = spans()
    assert key == key_of(CHECKPOINT, name)
    assert read().hello()["functions"][str(key)] == name[:64]


def test_with_an_unread_ring_activities_are_added_up_and_no_step_is_lost(clock, spans, read):
    run(clock, SUMMARY, "flush", *[2 * MS] * 3 * layout.SPAN_COUNT)
    channel = open_channel()
    assert channel.words[layout.WORD["span_head"]] == layout.SPAN_COUNT // 2
    assert channel.words[layout.WORD["dropped_spans"]] == 0
    core.disarm()
    assert sum(total for *_, total in spans()) == 6 * layout.SPAN_COUNT * MS


def test_a_span_says_whether_it_ran_within_a_step(clock, read):
    class Call:
        """A measured call."""

    call = Call()
    local.thread_state.outermost_call = lambda: call
    run(clock, INPUT, "next", 2 * MS)
    local.thread_state.outermost_call = lambda: None
    run(clock, INPUT, "next", 2 * MS)
    assert [span.flags for span in read().of_kind(layout.ACTIVITY)] == [layout.FLAG_IN_STEP, 0]


def test_collections_are_recorded_until_the_detach(armed, read, spans):
    before = list(gc.callbacks)
    activities.observe_collections()
    activities.observe_collections()
    assert len(gc.callbacks) == len(before) + 1
    gc.collect()
    core.disarm()
    assert gc.callbacks == before
    assert key_of(GC, "generation 2") in {key for key, *_ in spans()}
    gc.collect()


def test_an_exception_in_an_observed_function_is_the_jobs_and_ends_the_activity(clock, spans):
    class Saver:
        def save(self):
            clock.now += 2 * MS
            raise LookupError("the job's own")

    observer.observe(Saver, "save", lambda: activities.begin(CHECKPOINT, "Saver.save"), 0, observes_end=True)
    with pytest.raises(LookupError, match="the job's own"):
        Saver().save()
    assert spans() == [(key_of(CHECKPOINT, "Saver.save"), 0, 1, 2 * MS)]
    assert local.thread_state.activity == 0


def test_an_activity_that_ends_after_the_detach_is_dropped(clock):
    activity = activities.begin(CHECKPOINT, "Saver.save")
    core.disarm()
    del activity
    assert local.thread_state.activity == 0
    assert activities.begin(CHECKPOINT, "Saver.save") is None


def test_a_forked_child_begins_anew(clock, spans):
    run(clock, INPUT, "next", MS // 2)
    pid = os.fork()
    if not pid:
        os._exit(int(activities.current is not None))
    assert os.waitpid(pid, 0)[1] == 0
    core.disarm()
    assert spans() == [(key_of(INPUT, "next"), 0, 1, MS // 2)]


def test_every_category_has_a_number_that_fits_the_key():
    assert sorted(CATEGORIES) == list(range(1, len(CATEGORIES) + 1))
    assert all(getattr(categories, name.upper()) == number for number, name in CATEGORIES.items())
    assert all(category_of(key_of(number, "x")) == name for number, name in CATEGORIES.items())
    assert max(key_of(number, "x") for number in CATEGORIES) < 1 << 32


def test_other_threads_of_the_job_are_announced_with_their_outermost_function(clock, spans, read, tmp_path):
    script = tmp_path / "counting.py"
    script.write_text("def count(wait):\n    inner(wait)\n\n\ndef inner(wait):\n    wait()\n")
    functions: dict[str, Any] = {}
    exec(compile(script.read_text(), str(script), "exec"), functions)
    go_on = threading.Event()
    thread = threading.Thread(target=functions["count"], args=(go_on.wait,), name="counter")
    thread.start()
    try:
        activities.announce_threads()
        activities.announce_threads()
    finally:
        go_on.set()
        thread.join()
    names = [name for key, name in read().hello()["functions"].items() if category_of(int(key)) == "thread"]
    assert names == [f"{thread.native_id} count (counting.py:1) counter"]
    assert spans() == []


@pytest.mark.parametrize("get_ident", [threading.get_ident, lambda: 1], ids=["threads", "greenlets"])
def test_announcing_threads_keeps_nothing_of_the_frames_of_the_job(clock, read, monkeypatch, get_ident):
    read()
    monkeypatch.setattr(activities, "get_ident", get_ident)

    def step():
        held = threading.local()
        activities.announce_threads()
        return weakref.ref(held)

    gc.disable()
    try:
        assert step()() is None
    finally:
        gc.enable()
