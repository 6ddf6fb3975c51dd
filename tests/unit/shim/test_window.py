"""Windows of a profiler session, with a profiler made by hand."""

import importlib
import json
import os

import pytest
from fakes import eager_tensorflow
from tfprof.shim import core, layout, profiler, window
from tfprof.shim.step import Step


@pytest.fixture
def fake(monkeypatch, armed):
    state, _, _ = eager_tensorflow.install(monkeypatch)
    window.patch(importlib.import_module(profiler.MODULE))
    for name, value in (("current", None), ("_told", set()), ("_served", False), ("_bytes", 0)):
        monkeypatch.setattr(window, name, value)
    yield state
    window.give_way()


def run(count, kind=layout.BATCH, before=lambda number: None):
    tracker = core.tracker(kind)
    for number in range(count):
        step = Step(tracker, tracker.next(), 0, True)
        before(number)
        step.end()
    return tracker


def windows(reader):
    return [(record.step, record.key, record.flags, record.data) for record in reader.records_of(layout.XSPACE)]


def test_the_steps_after_warm_up_are_one_window(fake, read):
    run(5)
    window.finish()
    assert windows(read()) == [(3, 3, layout.BATCH, b"xspace")]
    assert [(span.ordinal, span.count) for span in read().of_kind(layout.BATCH) if span.flags] == [(3, 3)]
    assert read().word("traced") == 3


def test_a_job_that_ends_within_a_window_still_yields_it(fake, read):
    run(4)
    window.give_way()
    assert windows(read()) == [(3, 2, layout.BATCH, b"xspace")]


def test_nothing_is_printed_and_nothing_is_left_behind(fake, read, capfd):
    before = set(os.listdir("/dev/shm"))
    run(6)
    window.finish()
    assert windows(read())
    assert capfd.readouterr() == ("", "")
    assert set(os.listdir("/dev/shm")) == before


def test_a_steps_policy_of_all_traces_every_step(fake, read, monkeypatch):
    monkeypatch.setenv("TFPROF_TRACE", "all")
    run(40)
    window.finish()
    covered = [number for first, count, _, _ in windows(read()) for number in range(first, first + count)]
    assert covered == list(range(1, 41))


def test_every_third_step_is_a_window_of_its_own(fake, read, monkeypatch):
    monkeypatch.setenv("TFPROF_TRACE", "every=3")
    run(9)
    window.finish()
    assert [(first, count) for first, count, _, _ in windows(read())] == [(3, 1), (6, 1), (9, 1)]


def test_off_is_off(fake, read, monkeypatch):
    monkeypatch.setenv("TFPROF_TRACE", "off")
    run(9)
    assert fake.log == []
    assert sum(span.count for span in read().of_kind(layout.BATCH)) == 9


def test_a_session_of_the_jobs_own_keeps_ours_out_and_that_is_told_once(fake, read):
    session = profiler.start_of(importlib.import_module(profiler.MODULE).ProfilerSession)
    fake.active = session
    run(8)
    (refused,) = read().records
    assert json.loads(refused.data)["slug"] == "profiler-busy"
    assert fake.active is session


def test_a_window_gives_way_to_a_session_of_the_jobs_own(fake, read):
    own = importlib.import_module(profiler.MODULE).ProfilerSession()

    def start(number):
        if number == 3:
            own.start("somewhere", {})

    run(6, before=start)
    assert fake.active is own
    assert fake.log[:3] == ["start", "export", "start"]
    assert windows(read())[0][:2] == (3, 1)


def test_a_profiler_server_ends_windows_for_good(fake, read):
    importlib.import_module(profiler.MODULE).start_server(6009)
    run(8)
    assert fake.log == [("server", 6009)]
    assert [json.loads(record.data)["slug"] for record in read().records] == ["profiler-server"]


def test_an_export_that_fails_costs_the_window_and_nothing_else(fake, read, monkeypatch):
    monkeypatch.setattr(profiler, "stop", lambda error: True)

    def broken():
        raise OSError("no room")

    fake.export = broken
    run(7)
    window.finish()
    assert windows(read()) == []
    assert sum(span.count for span in read().of_kind(layout.BATCH)) == 7


def test_bytes_that_find_no_room_are_counted_as_lost_traces(fake, read):
    fake.export = lambda: bytes(layout.RING_MAX >> 4)
    run(5)
    window.finish()
    assert windows(read()) == []
    assert read().word("dropped_traces") == 3


def test_a_window_of_one_kind_ends_where_steps_of_another_begin(fake, read):
    run(3)
    run(4, layout.TEST_BATCH)
    window.finish()
    found = [(first, count, kind) for first, count, kind, _ in windows(read())]
    assert found == [(3, 1, layout.BATCH), (3, 2, layout.TEST_BATCH)]


def test_a_forked_child_leaves_the_parents_window_alone(fake, read):
    run(3)
    pid = os.fork()
    if pid == 0:
        window.give_way()
        os._exit(0 if window.current is None and fake.log == ["start"] else 1)
    assert os.waitpid(pid, 0)[1] == 0
    window.finish()
    assert [(first, count) for first, count, _, _ in windows(read())] == [(3, 1)]
