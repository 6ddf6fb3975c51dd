"""Spans: written, merged when short, dropped without room."""

import gc
import inspect
import itertools
import signal
import sys
import threading
import time

import pytest
from fakes.channel_reader import ChannelReader
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tfprof.formats import layout
from tfprof.shim.channel.spans import SHORT, SpanWriter


@pytest.fixture
def put(channel):
    return SpanWriter(channel, {layout.RUN}).put


def test_a_long_step_is_one_entry(put, reader):
    put(layout.BATCH, 5, SHORT, 1, 3, layout.FLAG_TRACED, 4)
    put(layout.BATCH, 6, SHORT + 1, 2, 3, layout.FLAG_TRACED, 4, 3)
    thread = threading.get_native_id()
    low = (SHORT + 1) // 3
    assert reader.take().spans == [
        (5, SHORT, 1, 1, layout.BATCH, layout.FLAG_TRACED, 3, thread, SHORT, SHORT, 4),
        (6, SHORT + 1, 2, 3, layout.BATCH, layout.FLAG_TRACED, 3, thread, low, low, 4),
    ]


def test_short_steps_are_merged_until_they_fill_a_millisecond(put, reader):
    for ordinal in range(1, 10):
        put(layout.RUN, ordinal * 10, SHORT // 4 + ordinal, ordinal)
    assert [(span.ordinal, span.count) for span in reader.take().spans] == [(1, 4), (5, 4)]
    first = reader.spans[0]
    assert (first.start, first.total, first.low, first.high) == (10, SHORT + 10, SHORT // 4 + 1, SHORT // 4 + 4)
    assert reader.take(ended=True).spans[-1].count == 1
    assert reader.count(layout.RUN) == 9


@pytest.mark.parametrize(
    "other_step",
    [
        (layout.BATCH, 0, 5, 2),
        (layout.RUN, 0, 5, 3),
        (layout.RUN, 0, 5, 2, 1),
        (layout.RUN, 0, 5, 2, 0, 1),
        (layout.RUN, 0, 5, 2, 0, 0, 1),
    ],
    ids=["kind", "ordinal", "key", "flags", "parent"],
)
def test_steps_that_differ_are_not_merged(put, reader, other_step):
    put(layout.RUN, 0, 5, 1)
    put(*other_step)
    assert [span.count for span in reader.take(ended=True).spans] == [1, 1]


def test_steps_are_not_merged_with_those_of_a_second_before(put, reader):
    for number in range(6):
        put(layout.RUN, number * 400_000_000, 5, number + 1)
    assert [span.count for span in reader.take(ended=True).spans] == [3, 3]


def test_steps_of_different_threads_are_not_merged(put, reader):
    put(layout.RUN, 0, 5, 1)
    thread = threading.Thread(target=put, args=(layout.RUN, 0, 5, 2))
    thread.start()
    thread.join()
    assert len({span.thread for span in reader.take(ended=True).spans}) == 2


def test_without_room_spans_are_dropped_and_counted(put, reader):
    for ordinal in range(1, layout.SPAN_COUNT + 11):
        put(layout.RUN, 0, SHORT, ordinal)
    assert reader.word("dropped_spans") == 10
    assert reader.count(layout.RUN) == layout.SPAN_COUNT + 10
    assert reader.take().spans[-1].ordinal == layout.SPAN_COUNT
    put(layout.RUN, 0, SHORT, 5000)
    assert reader.take().spans[-1].ordinal == 5000


def test_only_spans_of_budgeted_kinds_add_to_the_time_in_steps(put, reader):
    put(layout.RUN, 0, SHORT, 1)
    put(layout.FIT, 0, 9 * SHORT, 1)
    assert reader.word("step_ns") == SHORT


def test_an_error_in_a_put_is_contained(put, reader):
    put(layout.RUN, -1, 5, 1)
    assert reader.word("faults") == 1
    assert "struct.error" in reader.fault()
    put(layout.RUN, 0, 5, 2)
    assert reader.take(ended=True).spans[-1].ordinal == 2


def test_puts_of_many_threads_all_add_up(put, reader):
    puts_each, thread_count = 3000, 4
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    ordinals = itertools.count(1)

    def put_many(key):
        for ordinal in itertools.islice(ordinals, puts_each):
            put(layout.RUN, 0, SHORT if ordinal % 3 else 7, ordinal, key)

    try:
        threads = [threading.Thread(target=put_many, args=(key,)) for key in range(thread_count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert reader.count(layout.RUN) == thread_count * puts_each
    stored = sum(span.count for span in reader.take(ended=True).spans)
    assert stored + reader.word("dropped_spans") == thread_count * puts_each
    assert reader.word("span_head") >= layout.SPAN_COUNT - 1
    assert reader.word("faults") == 0


class AlarmError(Exception):
    """Raised by a signal handler during a put."""


@pytest.fixture
def no_collection():
    """Turn garbage collection off: Python drops exceptions in the gc callbacks of test tools."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection")
def test_an_exception_of_a_signal_handler_during_a_put_loses_no_later_span(put, reader):
    lines, first_line = inspect.getsourcelines(put)
    try_line = first_line + next(at for at, line in enumerate(lines) if "try:" in line)
    alarms_outside = 0  # alarms before a put had begun

    def handler(_number, frame):
        nonlocal alarms_outside
        alarms_outside += frame.f_code.co_filename == __file__ or (
            frame.f_code is put.__code__ and frame.f_lineno <= try_line
        )
        raise AlarmError

    previous_handler = signal.signal(signal.SIGALRM, handler)
    puts, alarms, end = 0, 0, time.monotonic() + 1.5
    last_put = threading.Thread(target=lambda: put(layout.FIT, 0, SHORT, 1))
    while time.monotonic() < end:
        try:
            signal.setitimer(signal.ITIMER_REAL, 2e-5 + (puts % 7) * 1e-6)
            for _ in range(50):
                puts += 1
                put(layout.RUN, 0, 7 if puts % 3 else SHORT, puts)
            signal.setitimer(signal.ITIMER_REAL, 0)
        except AlarmError:
            alarms += 1
        reader.take()
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, previous_handler)
    put(layout.RUN, 0, SHORT, puts + 1)
    last_put.start()
    last_put.join(timeout=30)
    assert reader.count(layout.FIT) == 1
    run_spans = reader.take(ended=True).of_kind(layout.RUN)
    assert run_spans[-1].ordinal == puts + 1
    assert alarms > 50
    stored = sum(span.count for span in run_spans)
    assert puts + 1 - 2 * alarms <= stored <= puts + 1
    assert stored + reader.word("dropped_spans") >= puts + 1 - alarms_outside


def test_a_put_in_a_signal_handler_during_a_put_is_counted(put, reader):
    handler_puts = [0]

    def handler(_number, _frame):
        handler_puts[0] += 1
        put(layout.FIT, 0, SHORT, handler_puts[0])

    previous_handler = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
    puts, end = 0, time.monotonic() + 1
    try:
        while time.monotonic() < end:
            puts += 1
            put(layout.RUN, 0, SHORT, puts)
            if not puts % 100:
                reader.set_word("span_tail", reader.word("span_head"))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous_handler)
    assert handler_puts[0] > 100
    assert reader.count(layout.RUN) == puts
    assert reader.count(layout.FIT) == handler_puts[0]
    assert reader.word("dropped_spans") + reader.word("span_head") >= handler_puts[0] + puts
    assert reader.word("faults") == 0


STEPS = st.lists(
    st.tuples(
        st.sampled_from([layout.RUN, layout.BATCH]), st.integers(0, 2 * SHORT), st.integers(0, 1), st.integers(0, 1)
    ),
    max_size=60,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(steps=STEPS)
def test_any_steps_add_up(channel, steps):
    reader = ChannelReader(channel._fd)
    put = SpanWriter(channel, {layout.RUN, layout.BATCH}).put
    ordinals: dict[int, int] = {}
    expected: dict[tuple[int, ...], list[int]] = {}
    for kind, duration, key, flags in steps:
        ordinals[kind] = ordinals.get(kind, 0) + 1
        put(kind, 0, duration, ordinals[kind], key, flags)
        total = expected.setdefault((kind, key, flags), [0, 0])
        total[0] += 1
        total[1] += duration
    actual: dict[tuple[int, ...], list[int]] = {}
    for span in reader.take(ended=True).spans:
        total = actual.setdefault((span.kind, span.key, span.flags), [0, 0])
        total[0] += span.count
        total[1] += span.total
        assert span.low * span.count <= span.total <= span.high * span.count
    reader.set_word("span_tail", reader.word("span_head"))
    reader.close()
    assert actual == expected
