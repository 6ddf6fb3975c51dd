"""Marks of the job's code: nesting, threads, tasks, names, and how many entries they get."""

import asyncio
import threading
from collections import Counter

import pytest
from tfprof.formats import layout
from tfprof.formats.activities import CALLBACK, MARK, NAMES_MAX, PART, key_of
from tfprof.shim import core
from tfprof.shim.steps import activities
from tfprof.shim.tensorflow import marks

MS = 10**6


@pytest.fixture
def clock(monkeypatch, armed):
    class Clock:
        now = 10**12

        def __call__(self):
            return self.now

    new_clock = Clock()
    monkeypatch.setattr(activities, "mono", new_clock)
    monkeypatch.setattr(marks, "mono", new_clock)
    monkeypatch.setattr(activities, "keys", {})
    return new_clock


@pytest.fixture
def spans(read):
    """A function that returns the spans: (key, parent, count, total), in order."""
    activities.get_recorder()
    read()  # opens the channel, which a detach closes

    def take():
        return [(span.key, span.parent, span.count, span.total) for span in read().of_kind(layout.ACTIVITY)]

    return take


def mark(clock, name, duration=2 * MS):
    running = marks.begin_mark("mark", name, 0)
    clock.now += duration
    running.end()


def test_marks_and_activities_are_nested(clock, spans):
    outer = marks.begin_mark("mark", "outer", 0)
    callback = activities.begin(CALLBACK, "Logger")
    mark(clock, "inner")
    del callback
    outer.end()
    outer.end()
    logger = key_of(CALLBACK, "Logger")
    assert spans() == [
        (key_of(MARK, "inner"), logger, 1, 2 * MS),
        (logger, key_of(MARK, "outer"), 1, 2 * MS),
        (key_of(MARK, "outer"), 0, 1, 2 * MS),
    ]


def test_marks_that_overlap_do_not_stay_around_later_ones(clock, spans):
    first = marks.begin_mark("mark", "first", 0)
    second = marks.begin_mark("mark", "second", 0)
    clock.now += 2 * MS
    first.end()
    second.end()
    mark(clock, "third")
    assert [(key, parent) for key, parent, _, _ in spans()] == [
        (key_of(MARK, "first"), 0),
        (key_of(MARK, "second"), key_of(MARK, "first")),
        (key_of(MARK, "third"), 0),
    ]


def test_a_mark_may_begin_in_one_callback_and_end_in_another(clock, spans):
    callback = activities.begin(CALLBACK, "Begins")
    epoch = marks.begin_mark("mark", "epoch", 0)
    del callback
    mark(clock, "inner")
    callback = activities.begin(CALLBACK, "Ends")
    epoch.end()
    clock.now += 2 * MS
    del callback
    mark(clock, "after")
    parents = {key: parent for key, parent, _, _ in spans()}
    assert parents[key_of(MARK, "epoch")] == 0
    assert parents[key_of(MARK, "inner")] == key_of(MARK, "epoch")
    assert parents[key_of(MARK, "after")] == 0


def test_tasks_of_a_thread_have_their_own_nesting(clock, spans):
    async def task(name):
        outer = marks.begin_mark("mark", name, 0)
        await asyncio.sleep(0)
        inner = marks.begin_mark("mark", "in " + name, 0)
        await asyncio.sleep(0)
        clock.now += 2 * MS
        inner.end()
        outer.end()

    async def main():
        await asyncio.gather(task("a"), task("b"))

    whole = marks.begin_mark("part", "whole", 0)
    asyncio.run(main())
    whole.end()
    parents = {key: parent for key, parent, _, _ in spans()}
    for name in ("a", "b"):
        assert parents[key_of(MARK, "in " + name)] == key_of(MARK, name)
        assert parents[key_of(MARK, name)] == key_of(PART, "whole")


def test_no_mark_of_several_threads_is_lost(armed, read):
    def work():
        for _ in range(2000):
            outer = marks.begin_mark("mark", "outer", 0)
            marks.begin_mark("mark", "inner", 0).end()
            outer.end()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    read()
    core.disarm()
    counts: Counter[int] = Counter()
    for span in read().of_kind(layout.ACTIVITY):
        counts[span.key] += span.count
    assert counts == {key_of(MARK, "outer"): 16000, key_of(MARK, "inner"): 16000}


def test_names_are_limited(clock, spans, read):
    for number in range(100):
        mark(clock, f"read (size={number})")
        mark(clock, f"batch {number}")
    names = list(read().hello()["functions"].values())
    assert names[:2] == ["read (size=0)", "batch 0"]
    assert names[-2:] == ["read", "batch NN"]
    for letter in range(1, 100):
        mark(clock, "x" * letter)
    names = list(read().hello()["functions"].values())
    assert names[-1] == "others"
    assert len(names) == NAMES_MAX // 2 + 1


def test_many_long_marks_leave_the_ring_to_steps(clock, spans):
    for _ in range(5000):
        mark(clock, "work", 1 * MS)
    assert len(spans()) == layout.SPAN_COUNT // 4
    core.disarm()
    assert sum(count for _, _, count, _ in spans()) == 5000


class Name(str):
    """A name of the job's own class."""

    __slots__ = ("__weakref__",)


@pytest.mark.parametrize("message", ["load", Name("load"), 5, None])
def test_any_message_of_nvtx_is_a_mark_that_the_next_pop_ends(clock, spans, message):
    for _ in range(2):
        marks._push(message)
        clock.now += 2 * MS
        marks._pop()
    assert spans() == [(key_of(MARK, str(message)), 0, 1, 2 * MS)] * 2
