"""Windows, the profiler sessions that record one step, with a fake profiler.

Tests shim/steps/step.py.
"""

import importlib
import json
import operator
import os
import signal
import sys
import threading
import time
import types
import weakref

import pytest
from fakes import eager_tensorflow
from fakes.open_channel import open_channel
from fakes.our_code import ours
from fakes.polling import until
from tfprof.formats import layout
from tfprof.shim import core, guard, libc, own_os
from tfprof.shim.steps import window
from tfprof.shim.steps.step import Step
from tfprof.shim.tensorflow import allocations, recording
from tfprof.shim.tensorflow.measured_call import chosen_level

#: A library of TensorFlow whose profiler is free.
FREE_PROFILER = types.SimpleNamespace(
    TFE_NewProfiler=object, TFE_ProfilerIsOk=lambda _profiler: True, TFE_DeleteProfiler=lambda _profiler: None
)


def _take(library):
    """Return the hold of the profiler session for a run, None if the run does not get it."""
    level, hold = chosen_level(layout.LEVEL_FULL, library)
    assert (level == layout.LEVEL_FULL) == (hold is not None)
    return hold


def threads():
    return set(os.listdir("/proc/self/task"))


@pytest.fixture
def fake_profiler(monkeypatch, armed):
    state, _, _ = eager_tensorflow.install(monkeypatch)
    recording.patch(importlib.import_module(recording.MODULE))
    initial: dict[str, object] = {
        "current": None,
        "_failed_windows": {},
        "_has_recorded": False,
        "_is_ending": False,
    }
    for name, value in initial.items():
        monkeypatch.setattr(window, name, value)
    monkeypatch.setattr(recording, "_is_server_started", False)
    yield state
    window.drop_current()


def run(count, kind=layout.BATCH, before=lambda number: None):
    tracker = core.tracker(kind)
    for number in range(count):
        step = Step(tracker, tracker.next(), 0, True)
        before(number)
        step.end()
    return tracker


def windows(reader):
    """Return ordinal, number of steps, kind and XSpace of each window."""
    head = layout.XSPACE_HEAD
    return [
        (record.step, head.unpack_from(record.data)[1], record.flags, record.data[head.size :])
        for record in reader.records_of(layout.XSPACE)
    ]


def slugs(reader):
    return [json.loads(record.data)["slug"] for record in reader.records_of(layout.REFUSED)]


def test_the_step_after_warm_up_is_a_window(fake_profiler, read):
    run(6)
    assert windows(read()) == [(3, 1, layout.BATCH, b"xspace")]
    assert [(span.ordinal, span.count) for span in read().of_kind(layout.BATCH) if span.flags] == [(3, 1)]
    assert read().word("traced") == 1


def test_nothing_records_between_steps(fake_profiler, read, monkeypatch):
    monkeypatch.setenv("TFPROF_TRACE", "all")
    tracker = core.tracker(layout.BATCH)
    for _ in range(3):
        step = Step(tracker, tracker.next(), 0, True)
        assert fake_profiler.active is not None
        step.end()
        assert fake_profiler.active is None


def test_nothing_is_printed_and_no_thread_or_file_remains(fake_profiler, read, capfd):
    threads_before = threads()
    run(6)
    assert windows(read())
    assert capfd.readouterr() == ("", "")
    own_folder = f"tfprof-{os.getpid()}-"  # other processes may have folders there now
    assert not [name for name in os.listdir("/dev/shm") if name.startswith(own_folder)]
    assert_no_new_thread(threads_before)


def assert_no_new_thread(threads_before):
    until(lambda: not threads() - threads_before, "the end of all new threads", timeout_s=5.0)


def test_a_policy_of_all_traces_every_step(fake_profiler, read, monkeypatch):
    monkeypatch.setenv("TFPROF_TRACE", "all")
    run(40)
    assert [ordinal for ordinal, _, _, _ in windows(read())] == list(range(1, 41))


def test_every_third_step_is_a_window(fake_profiler, read, monkeypatch):
    monkeypatch.setenv("TFPROF_TRACE", "every=3")
    run(9)
    assert [ordinal for ordinal, _, _, _ in windows(read())] == [3, 6, 9]


def test_the_policy_off_opens_no_window(fake_profiler, read, monkeypatch):
    monkeypatch.setenv("TFPROF_TRACE", "off")
    run(9)
    assert fake_profiler.log == []
    assert sum(span.count for span in read().of_kind(layout.BATCH)) == 9


def test_a_session_of_the_job_prevents_windows_and_is_reported_once(fake_profiler, read):
    session = object.__new__(importlib.import_module(recording.MODULE).ProfilerSession)
    fake_profiler.active = weakref.ref(session)
    run(8)
    assert slugs(read()) == ["profiler-busy"]
    assert fake_profiler.active() is session


def test_a_window_is_dropped_for_a_session_of_the_job_and_counted_as_lost(fake_profiler, read, monkeypatch):
    monkeypatch.setenv("TFPROF_TRACE", "steps=3-5")
    job_session = importlib.import_module(recording.MODULE).ProfilerSession()

    def start(number):
        if number == 3:
            job_session.start("somewhere", {})

    run(6, before=start)
    assert fake_profiler.active() is job_session
    assert fake_profiler.log[:4] == ["start", "export", "start", "drop"]
    assert [ordinal for ordinal, _, _, _ in windows(read())] == [3]
    assert read().word("dropped_traces") == 1
    assert read().word("traced") == 2


def test_a_profiler_server_ends_windows_for_good(fake_profiler, read):
    importlib.import_module(recording.MODULE).start_server(6009)
    run(8)
    assert fake_profiler.log == [("server", 6009)]
    assert slugs(read()) == ["profiler-server"]


def test_an_export_that_fails_loses_only_its_window(fake_profiler, read, monkeypatch):
    monkeypatch.setenv("TFPROF_TRACE", "steps=3-5")
    monkeypatch.setattr(guard, "lets_errors_out", False)

    @ours
    def fail():
        raise OSError("no room")

    fake_profiler.export = fail
    run(7)
    assert windows(read()) == []
    assert (read().word("dropped_traces"), read().word("faults")) == (3, 0)
    assert slugs(read()) == ["profiler-failed"]
    assert sum(span.count for span in read().of_kind(layout.BATCH)) == 7


def test_data_larger_than_the_ring_is_refused_unread_and_tracing_ends_after_some_tries(
    fake_profiler, read, monkeypatch
):
    monkeypatch.setenv("TFPROF_TRACE", "all")
    fake_profiler.export = lambda: bytes(open_channel().ring_bytes)
    run(5)
    assert windows(read()) == []
    assert read().word("dropped_traces") == 3
    assert slugs(read()) == ["window-too-large"]


def test_a_recording_is_stopped_if_its_step_lasts_too_long(fake_profiler, read, monkeypatch):
    monkeypatch.setenv("TFPROF_TRACE", "all")
    monkeypatch.setattr(window, "_FIRST_DURATION_MAX_S", 0.01)
    monkeypatch.setattr(window, "DURATION_MAX_S", 0.02)

    def stay(_number):
        until(lambda: fake_profiler.active is None, "the window's end", timeout_s=5.0)

    threads_before = threads()
    run(4, before=stay)
    assert fake_profiler.log == ["start", "drop"] * 3
    assert read().word("dropped_traces") == 3
    assert slugs(read()) == ["window-too-long"]
    assert_no_new_thread(threads_before)


def test_the_recording_ends_when_the_process_grows_too_much(fake_profiler, read, monkeypatch):
    monkeypatch.setenv("TFPROF_TRACE", "all")
    monkeypatch.setattr(
        window, "_FIRST_DURATION_MAX_S", window.DURATION_MAX_S
    )  # on a loaded machine the process grows slowly
    monkeypatch.setattr(window, "_GROWTH_MAX_KIB", 4 << 10)
    blocks = []

    def grow(_number):
        deadline = time.monotonic() + 5
        while fake_profiler.active is not None and time.monotonic() < deadline:
            blocks.append(b"x" * (1 << 20))
            time.sleep(0.001)

    threads_before = threads()
    run(4, before=grow)
    assert fake_profiler.log == ["start", "drop"] * 3
    assert read().word("dropped_traces") == 3
    assert slugs(read()) == ["window-too-large"]
    assert_no_new_thread(threads_before)


def test_a_long_first_step_that_grows_the_process_does_not_end_the_tracing(fake_profiler, read, monkeypatch):
    monkeypatch.setenv("TFPROF_TRACE", "all")
    monkeypatch.setattr(window, "_FIRST_DURATION_MAX_S", 0.2)
    peak_kib, grown = libc.peak_kib, [0]
    monkeypatch.setattr(libc, "peak_kib", lambda: peak_kib() + sum(grown))

    def compile_once(number):
        if number == 0:
            grown.append(64 << 10)
            until(lambda: fake_profiler.active is None, "the window's end", timeout_s=5.0)

    run(4, before=compile_once)
    assert [ordinal for ordinal, _, _, _ in windows(read())] == [2, 3, 4]
    assert slugs(read()) == ["window-too-long"]


def test_a_dropped_step_leaves_no_window_and_no_count(fake_profiler, read, monkeypatch):
    monkeypatch.setenv("TFPROF_TRACE", "all")
    tracker = core.tracker(layout.BATCH)
    window.drop(Step(tracker, tracker.next(), 0, True))
    assert fake_profiler.log == ["start", "drop"]
    assert read().word("dropped_traces") == read().word("traced") == 0
    run(1)
    assert len(windows(read())) == 1


def test_steps_of_another_thread_are_not_traced_during_a_window(fake_profiler, read, monkeypatch):
    monkeypatch.setenv("TFPROF_TRACE", "all")
    tracker = core.tracker(layout.BATCH)
    outer = Step(tracker, tracker.next(), 0, True)
    other = threading.Thread(target=lambda: Step(tracker, tracker.next(), 0, True).end())
    other.start()
    other.join()
    outer.end()
    assert [ordinal for ordinal, _, _, _ in windows(read())] == [1]


def test_no_python_code_of_the_shim_runs_while_tensorflow_reads_the_options():
    events = []
    option = recording._OPTIONS["host_tracer_level"]
    sys.setprofile(lambda _frame, event, _arg: events.append(event))
    values = operator.index(option), int(option)
    sys.setprofile(None)
    assert values == (3, 3)
    assert "call" not in events
    assert not hasattr(option, "__bool__")


def test_the_first_step_of_a_kind_counts_while_another_thread_has_a_window(fake_profiler, read, monkeypatch):
    monkeypatch.setenv("TFPROF_TRACE", "all")
    training, testing = core.tracker(layout.BATCH), core.tracker(layout.TEST_BATCH)
    step = Step(training, training.next(), 0, True)
    other = threading.Thread(target=lambda: Step(testing, testing.next(), 0, True).end())
    other.start()
    other.join()
    step.end()
    assert [span.ordinal for span in read().of_kind(layout.TEST_BATCH)] == [1]
    assert read().word("missed") == 1


def test_the_next_step_frees_a_window_whose_end_was_interrupted_by_an_exception(fake_profiler, read, monkeypatch):
    monkeypatch.setenv("TFPROF_TRACE", "all")
    tracker = core.tracker(layout.BATCH)
    Step(tracker, tracker.next(), 0, True)
    window.current.recording._stop_token.clear()
    run(2)
    assert [ordinal for ordinal, _, _, _ in windows(read())] == [2, 3]


def test_the_end_of_the_process_ends_the_window_of_another_thread(fake_profiler, read, monkeypatch):
    monkeypatch.setenv("TFPROF_TRACE", "all")
    tracker = core.tracker(layout.BATCH)
    step = Step(tracker, tracker.next(), 0, True)
    window._at_exit()
    assert fake_profiler.active is None
    step.end()
    run(2)
    assert fake_profiler.log == ["start", "drop"]
    assert read().word("dropped_traces") == 1


@pytest.mark.parametrize("dropped_by", ["process", "session"])
def test_a_window_that_another_thread_is_opening_is_dropped_by_that_thread(
    fake_profiler, read, monkeypatch, capfd, dropped_by
):
    monkeypatch.setenv("TFPROF_TRACE", "all")
    job_session = importlib.import_module(recording.MODULE).ProfilerSession()
    drop = window._at_exit if dropped_by == "process" else lambda: job_session.start("somewhere", {})
    tracker = core.tracker(layout.BATCH)
    starting = threading.Event()

    def stay():
        fake_profiler.on_start = lambda: None
        starting.set()
        until(lambda: window.current is None, "the drop")

    fake_profiler.on_start = stay
    other = threading.Thread(target=lambda: (starting.wait(10), drop()))
    other.start()
    step = Step(tracker, tracker.next(), 0, True)
    other.join()
    step.end()
    eager_tensorflow.log("the job's")
    starts_of_job = ["start"] if dropped_by == "session" else []
    assert fake_profiler.log == ["start", "drop", *starts_of_job]
    assert capfd.readouterr().err.splitlines() == [eager_tensorflow.STARTED_LINE] * len(starts_of_job) + ["the job's"]
    assert read().word("dropped_traces") == read().word("traced") == 0
    assert slugs(read()) == (["profiler-busy"] if dropped_by == "session" else [])


def test_no_window_opens_while_the_job_starts_its_own_session(fake_profiler, read, monkeypatch):
    monkeypatch.setenv("TFPROF_TRACE", "all")
    job_session = importlib.import_module(recording.MODULE).ProfilerSession()
    tracker = core.tracker(layout.BATCH)
    tracker.open()
    starting, go_on = threading.Event(), threading.Event()

    def stay():
        starting.set()
        go_on.wait(10)

    monkeypatch.setattr(window, "drop_current", stay)
    other = threading.Thread(target=job_session.start, args=("somewhere", {}))
    other.start()
    assert starting.wait(10)
    run(2)
    assert not _take(FREE_PROFILER)
    go_on.set()
    other.join()
    assert fake_profiler.log == ["start"]
    assert fake_profiler.active() is job_session
    fake_profiler.active = None
    run(1)
    assert [ordinal for ordinal, _, _, _ in windows(read())] == [3]


def test_a_session_of_the_job_waits_for_a_run_that_holds_the_profiler(fake_profiler, read):
    job_session = importlib.import_module(recording.MODULE).ProfilerSession()
    hold = _take(FREE_PROFILER)
    assert hold
    other = threading.Thread(target=job_session.start, args=("somewhere", {}))
    other.start()
    until(lambda: window.claims, "the claim")
    assert fake_profiler.log == []
    del hold
    other.join()
    assert fake_profiler.log == ["start"]
    assert not window.claims


def test_functions_of_the_job_are_not_kept_alive(fake_profiler, read, monkeypatch):
    monkeypatch.setenv("TFPROF_TRACE", "all")
    tracker = core.tracker(layout.BATCH)
    step = Step(tracker, tracker.next(), 0, True)

    class Function:
        pass

    function = Function()
    window.note_call({"self": function, "args": ()})
    reference = weakref.ref(function)
    del function
    assert reference() is None
    step.end()


def test_functions_that_are_called_after_the_end_of_a_recording_are_not_noted(fake_profiler, monkeypatch):
    monkeypatch.setenv("TFPROF_TRACE", "all")
    monkeypatch.setattr(window, "_FIRST_DURATION_MAX_S", 0.01)
    tracker = core.tracker(layout.BATCH)
    step = Step(tracker, tracker.next(), 0, True)
    until(lambda: fake_profiler.active is None, "the recording's end", timeout_s=5.0)
    window.note_call({"self": threading.Event(), "args": ()})
    assert window.current is not None
    assert window.current.recording._functions == {}
    step.end()


def test_a_forked_child_does_not_touch_the_parents_window(fake_profiler, read, monkeypatch):
    monkeypatch.setenv("TFPROF_TRACE", "all")
    tracker = core.tracker(layout.BATCH)
    step = Step(tracker, tracker.next(), 0, True)
    pid = os.fork()
    if pid == 0:
        step.end()
        window.drop_current()
        os._exit(0 if window.current is None and fake_profiler.log == ["start"] else 1)
    assert os.waitpid(pid, 0)[1] == 0
    step.end()
    assert [ordinal for ordinal, _, _, _ in windows(read())] == [1]


def test_a_window_that_reached_its_limit_and_is_then_dropped_for_the_job_is_counted_once(
    fake_profiler, read, monkeypatch
):
    monkeypatch.setenv("TFPROF_TRACE", "all")
    monkeypatch.setattr(window, "_FIRST_DURATION_MAX_S", 0.01)
    job_session = importlib.import_module(recording.MODULE).ProfilerSession()

    def start(_number):
        until(lambda: fake_profiler.active is None, "the window's end", timeout_s=5.0)
        job_session.start("somewhere", {})

    run(1, before=start)
    window._at_exit()
    assert read().word("dropped_traces") == read().word("traced") == 1
    assert slugs(read()) == []


def test_a_window_that_is_dropped_while_its_step_exports_it_is_not_lost(fake_profiler, read, monkeypatch):
    monkeypatch.setenv("TFPROF_TRACE", "all")
    others = []

    def export():
        others.append(threading.Thread(target=window.drop_current))
        others[0].start()
        until(lambda: window.current is None, "the drop")
        return b"xspace"

    fake_profiler.export = export
    run(1)
    others[0].join()
    assert [ordinal for ordinal, _, _, _ in windows(read())] == [1]
    assert read().word("dropped_traces") == 0


def test_a_session_that_takes_long_to_open_is_dropped_by_its_own_thread(fake_profiler, read, monkeypatch, capfd):
    monkeypatch.setenv("TFPROF_TRACE", "all")
    monkeypatch.setattr(recording, "_DROP_WAIT", 1)
    tracker = core.tracker(layout.BATCH)

    def stay():
        other = threading.Thread(target=window.drop_current)
        other.start()
        other.join()
        assert fake_profiler.active() is not None

    fake_profiler.on_start = stay
    step = Step(tracker, tracker.next(), 0, True)
    assert fake_profiler.log == ["start", "drop"]
    step.end()
    assert capfd.readouterr() == ("", "")
    assert read().word("dropped_traces") == read().word("traced") == 0


def test_a_released_session_is_no_longer_watched(fake_profiler, read, monkeypatch):
    monkeypatch.setenv("TFPROF_TRACE", "all")
    monkeypatch.setattr(window, "_FIRST_DURATION_MAX_S", 60.0)
    threads_before = threads()
    tracker = core.tracker(layout.BATCH)
    Step(tracker, tracker.next(), 0, True)
    window.current.close()
    assert fake_profiler.log == ["start", "drop"]
    assert_no_new_thread(threads_before)


def test_no_window_opens_while_a_run_uses_the_profiler(fake_profiler, read, monkeypatch):
    monkeypatch.setenv("TFPROF_TRACE", "all")
    hold = _take(FREE_PROFILER)
    assert hold
    run(2)
    assert fake_profiler.log == []
    assert slugs(read()) == ["profiler-busy"]
    del hold
    run(1)
    assert [ordinal for ordinal, _, _, _ in windows(read())] == [3]


def test_a_forked_child_forgets_the_claims_of_the_parents_threads(fake_profiler, read):
    claim = window.claim()
    assert _take(FREE_PROFILER) is None
    pid = os.fork()
    if pid == 0:
        os._exit(0 if _take(FREE_PROFILER) is not None else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert claim in window.claims


def test_a_record_that_an_exception_of_the_job_interrupts_is_lost_and_counted(fake_profiler, read, monkeypatch):
    monkeypatch.setenv("TFPROF_TRACE", "all")
    tracker = core.tracker(layout.BATCH)
    step = Step(tracker, tracker.next(), 0, True)

    def interrupt(*_args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(open_channel()), "_copy", interrupt)
        with pytest.raises(KeyboardInterrupt):
            step.end()
    assert read().word("dropped_traces") == read().word("dropped_records") == read().word("traced") == 1
    run(1)
    assert [ordinal for ordinal, _, _, _ in windows(read())] == [2]


@pytest.mark.parametrize("is_kept", [False, True])
def test_after_an_exception_while_a_session_starts_the_next_step_is_recorded(fake_profiler, read, monkeypatch, is_kept):
    monkeypatch.setenv("TFPROF_TRACE", "all")
    tracker, kept_errors = core.tracker(layout.BATCH), []

    def interrupt():
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(allocations, "enable", interrupt)
        try:
            Step(tracker, tracker.next(), 0, True)
        except KeyboardInterrupt as error:
            kept_errors = [error] * is_kept  # as with a traceback that the job keeps
    assert bool(kept_errors) is is_kept
    run(1)
    assert [ordinal for ordinal, _, _, _ in windows(read())] == [2]


def test_an_exception_of_the_job_passes_while_the_data_is_read(fake_profiler, read, monkeypatch):
    def handler(_number, _frame):
        raise TimeoutError("theirs")

    def scandir(path, original=os.scandir):
        monkeypatch.setattr(own_os.os, "scandir", original)
        signal.raise_signal(signal.SIGUSR1)
        return original(path)

    monkeypatch.setenv("TFPROF_TRACE", "all")
    monkeypatch.setattr(own_os.os, "scandir", scandir)
    previous_handler = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(TimeoutError, match="theirs"):
            run(1)
    finally:
        signal.signal(signal.SIGUSR1, previous_handler)
    assert window.current is None
    run(1)
    assert windows(read()) == [(2, 1, layout.BATCH, b"xspace")]
    assert read().word("faults") == 0
