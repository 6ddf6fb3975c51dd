"""Steps that are only counted: exact counts, unbiased times, failures, orders, threads, forks.

Tests shim/pacing/ordinals.py.
"""

import ctypes
import os
import random
import sys
import threading
import time
import types
from types import SimpleNamespace

import pytest
from fakes.channel_reader import ordinals as ordinals_of
from tfprof.formats import layout
from tfprof.formats.policy import Policy
from tfprof.shim import core, guard
from tfprof.shim.channel.spans import SpanWriter
from tfprof.shim.pacing import ordinals, selection, tracker
from tfprof.shim.pacing.current_policy import CurrentPolicy
from tfprof.shim.pacing.sampling import FIRST_TIMED, INTERVAL_MAX, Sampling
from tfprof.shim.pacing.tracker import Tracker
from tfprof.shim.steps import step
from tfprof.shim.tensorflow import measured_call, session
from tfprof.shim.tensorflow.runs import RunSignature, RunSignatures

SHORT = 20_000
NO_TRACE = f"steps={10**9}-{10**9}"


class Clock:
    """A fake clock, which steps and pauses advance."""

    def __init__(self):
        self.now = 10**12

    def __call__(self):
        return self.now


@pytest.fixture(autouse=True)
def _patching(monkeypatch):
    """Replace attributes without a state of the shim."""
    assert ordinals.native is not None
    monkeypatch.setattr(core, "replace", lambda owner, name, make: setattr(owner, name, make(getattr(owner, name))))


@pytest.fixture
def fake_clock(monkeypatch):
    """A fake clock for sessions and trackers; errors of the shim are raised."""
    new_clock = Clock()
    monkeypatch.setattr(measured_call, "mono", new_clock)
    monkeypatch.setattr(selection, "mono", new_clock)
    monkeypatch.setattr(tracker, "mono", new_clock)
    monkeypatch.setattr(guard, "lets_errors_out", True)
    return new_clock


class SameKindRuns(RunSignatures):
    """Signatures of runs that are all of one kind."""

    def __init__(self, tracker):
        self.unknown_signature = RunSignature(None, [], 0, tracker)

    def find(self, session, fetches, targets):
        """Return the signature of a run and store it in the session."""
        session._tfprof_run = RunSignature(list(fetches), list(targets), len(fetches), self.unknown_signature.tracker)
        return session._tfprof_run


def measured_session(method, run_tracker):
    """Return a session with ``method`` as `_call_tf_sessionrun`, patched by the shim."""
    run = session.measured_run(method, SameKindRuns(run_tracker), SimpleNamespace(TF_GetBuffer=bytes))
    return type("Session", (), {"_call_tf_sessionrun": run})()


class Job:
    """A session whose runs take given times."""

    def __init__(self, channel, fake_clock, policy=NO_TRACE):
        put = SpanWriter(channel, {layout.RUN}).put
        self.fake_clock = fake_clock
        current_policy = CurrentPolicy(
            channel.words, Policy.from_text(policy), channel.report, lambda: None, fake_clock.now, layout.KINDS
        )
        self.tracker = Tracker(layout.RUN, lambda: (channel, put, current_policy))

        def _call_tf_sessionrun(_session, _options, feeds, _fetches, _targets, _metadata):
            error = None
            for outcome in feeds:
                if isinstance(outcome, int):
                    fake_clock.now += outcome
                else:
                    error = outcome
            if error is not None:
                raise error

        self.session = measured_session(_call_tf_sessionrun, self.tracker)

    def run(self, *outcomes, fetch_count=1, options=None):
        """Run a step for each outcome: the duration of the step, or the error that it raises."""
        for outcome in outcomes:
            self.session._call_tf_sessionrun(options, [outcome], [0] * fetch_count, [], None)


@pytest.fixture
def job(channel, fake_clock):
    return Job(channel, fake_clock)


def test_all_long_steps_are_timed(job, reader):
    job.run(*[1_000_000] * 200)
    assert {span.count for span in reader.take(ended=True).spans} == {1}
    assert reader.count(layout.RUN) == 200


def test_short_steps_are_counted_exactly_and_few_are_timed(job, reader):
    for number in range(1, 5001):
        job.run(SHORT)
        assert reader.count(layout.RUN) == number
    sampled_spans = [span for span in reader.take(ended=True).spans if span.flags & layout.FLAG_SAMPLED]
    represented_steps = sum(span.count for span in reader.spans)
    assert 5000 - 2 * INTERVAL_MAX < represented_steps <= 5000
    assert 5000 / INTERVAL_MAX / 2 < len(sampled_spans) < 5000 / 10
    assert max(span.count for span in sampled_spans) <= 2 * INTERVAL_MAX
    assert all(span.total == span.count * SHORT for span in sampled_spans)
    assert reader.word("step_ns") == sum(span.total for span in reader.spans)


def test_an_entry_is_published_within_seconds_even_if_steps_are_rare(job, reader, fake_clock):
    published, published_ns = 0, fake_clock.now
    for number in range(3000):
        job.run(SHORT)
        if reader.word("span_head") > published:
            published, published_ns = reader.word("span_head"), fake_clock.now
        assert fake_clock.now - published_ns < 2.5e9
        fake_clock.now += 100_000_000 if number < 1500 else 700_000_000
    assert published < 1500


def test_steps_before_a_selected_one_have_entries(channel, fake_clock, reader):
    Job(channel, fake_clock, "steps=3000-3003").run(*[SHORT] * 2999)
    assert ordinals_of(reader.take().spans) == list(range(1, 3000))


def test_entries_of_sampled_and_other_steps_follow_each_other(job, reader, monkeypatch, fake_clock):
    """Steps of a new key may be traced, and are put in another way than the others."""
    monkeypatch.setattr(step, "mono", fake_clock)
    job.run(*[SHORT] * 2000)
    for number in range(2000):
        job.run(SHORT, fetch_count=2 + number // 300)
    for number in range(2000):
        begun_step = step.begin(job.tracker, number // 300)
        fake_clock.now += SHORT
        begun_step.end()
    numbers = ordinals_of(reader.take(ended=True).spans)
    assert numbers == list(range(1, 1 + len(numbers)))
    assert len(numbers) > 5000


def test_long_steps_that_are_always_timed_do_not_stand_for_short_ones(job, reader, monkeypatch, fake_clock):
    monkeypatch.setattr(step, "mono", fake_clock)
    for _ in range(5):
        job.run(*[SHORT] * 1000)
        job.run(10**9, options=b"")
        begun_step = step.Step(job.tracker, job.tracker.next(), 0, False, is_sampled=False)
        fake_clock.now += 10**9
        begun_step.end()
    spans = reader.take(ended=True).spans
    assert sum(span.total for span in spans) == pytest.approx(10 * 10**9 + 5000 * SHORT, rel=0.01)


def test_without_the_c_part_all_short_steps_are_timed_and_share_entries(channel, fake_clock, reader, monkeypatch):
    monkeypatch.setattr(tracker, "Ordinals", ordinals.TimedOrdinals)
    job = Job(channel, fake_clock)
    for number in range(1, 5001):
        job.run(SHORT)
        assert reader.count(layout.RUN) == number
    with pytest.raises(ValueError, match="the job's"):
        job.run(ValueError("the job's"))
    taken_spans = reader.take(ended=True).spans
    assert sum(span.count for span in taken_spans) == 5001
    assert sum(span.total for span in taken_spans) == 5000 * SHORT
    assert len(taken_spans) < 5000 / 40
    assert not [span for span in taken_spans if span.flags & layout.FLAG_SAMPLED]


def test_times_of_alternating_steps_are_estimated_without_bias(job, reader):
    generator = random.Random(5)
    step_ns = {1: 0, 2: 0}
    for number in range(60_000):
        fetch_count = 1 + (number % 10 == 0)
        duration = generator.randrange(10_000, 30_000) * (3 if fetch_count == 2 else 1)
        step_ns[fetch_count] += duration
        job.run(duration, fetch_count=fetch_count)
        if not number % 1000:
            reader.take()
    estimated_ns = {1: 0, 2: 0}
    for span in reader.take(ended=True).spans:
        estimated_ns[span.key & 15] += span.total
    assert estimated_ns[1] == pytest.approx(step_ns[1], rel=0.15)
    assert estimated_ns[2] == pytest.approx(step_ns[2], rel=0.35)
    assert sum(estimated_ns.values()) == pytest.approx(sum(step_ns.values()), rel=0.15)


def test_steps_that_become_long_are_all_timed_soon(job, reader):
    job.run(*[SHORT] * 3000)
    job.run(*[50_000_000] * (2 * INTERVAL_MAX + 20))
    taken_spans = reader.take(ended=True).spans
    assert [span.count for span in taken_spans[-20:]] == [1] * 20


def test_steps_that_become_short_are_sampled_again(job, reader):
    job.run(*[50_000_000] * 50)
    job.run(*[SHORT] * 3000)
    assert reader.take(ended=True).spans[-1].count > 5


def test_a_counted_step_that_fails_is_recorded_as_failed(job, reader):
    job.run(*[SHORT] * 3000)
    failures = 0
    for _ in range(50):
        with pytest.raises(ValueError, match="the job's") as caught:
            job.run(ValueError("the job's"))
        file_names, trace = [], caught.value.__traceback__
        while trace is not None:
            file_names.append(trace.tb_frame.f_code.co_filename)
            trace = trace.tb_next
        assert session.__file__ not in file_names
        failures += 1
    job.run(*[SHORT] * 500)
    taken_spans = reader.take(ended=True).spans
    assert sum(span.count for span in taken_spans if span.flags & layout.FLAG_FAILED) == failures
    assert reader.count(layout.RUN) == 3550
    assert 3550 - 2 * INTERVAL_MAX < sum(span.count for span in taken_spans) <= 3550


def test_a_selected_step_is_never_only_counted(channel, fake_clock, reader):
    job = Job(channel, fake_clock, "steps=2000-2003")
    for number in range(1, 2000):
        job.run(SHORT)
        assert reader.count(layout.RUN) == number
    assert job.tracker.take_untimed() == 0
    ordinal = job.tracker.next()
    assert (ordinal, job.tracker.level(ordinal, 1 << 20 | 1 << 10)) == (2000, layout.LEVEL_AUTO)


def test_an_order_is_noticed_at_the_next_step(job, reader):
    job.run(*[SHORT] * 3000)
    for generation in range(1, 20):
        reader.set_word("policy_mode", layout.MODE_OFF)
        reader.set_word("policy", generation)
        job.run(SHORT)
        assert reader.word("policy_seen") == generation
        job.run(*[SHORT] * 100)
    assert len(reader.take().spans) < 600
    job.run(*[2_000_000] * (2 * INTERVAL_MAX + 20))
    steps = reader.count(layout.RUN)
    assert steps == 3000 + 19 * 101 + 2 * INTERVAL_MAX + 20
    assert sum(span.count for span in reader.take(ended=True).spans) == steps


def test_ordinals_of_threads_are_exact(channel, reader, monkeypatch):
    monkeypatch.setattr(guard, "lets_errors_out", True)
    job = Job(channel, Clock())
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    steps_each, thread_count = 4000, 4
    try:
        threads = [threading.Thread(target=lambda: job.run(*[0] * steps_each)) for _ in range(thread_count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert job.tracker.next() == thread_count * steps_each + 1
    job.run(0)
    assert abs(reader.count(layout.RUN) - thread_count * steps_each) <= thread_count + 1
    assert sum(span.count for span in reader.take(ended=True).spans) <= thread_count * steps_each + thread_count


@pytest.mark.parametrize("has_c_part", [True, False])
def test_a_forked_child_counts_from_one(channel, fake_clock, reader, monkeypatch, has_c_part):
    if not has_c_part:
        monkeypatch.setattr(tracker, "Ordinals", ordinals.TimedOrdinals)
    job = Job(channel, fake_clock)
    job.run(*[SHORT] * 3000)
    pid = os.fork()
    if not pid:
        job.tracker.forget()
        os._exit(0 if job.tracker.take_untimed() == 0 and job.tracker.next() == 1 else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert reader.count(layout.RUN) == 3000


def test_a_job_that_ends_at_once_has_counted_every_step(channel, reader):
    pid = os.fork()
    if not pid:
        job = Job(channel, Clock())
        job.run(*[SHORT] * 777)
        os._exit(9)
    os.waitpid(pid, 0)
    assert reader.count(layout.RUN) == 777


def test_a_stopped_tracker_counts_nowhere(job, reader):
    job.run(*[SHORT] * 100)
    job.tracker.stop()
    job.run(*[SHORT] * 100)
    assert reader.count(layout.RUN) == 100


def test_the_cost_of_timing_is_part_of_the_cost_of_the_shim(channel, reader):
    put = SpanWriter(channel, {layout.RUN}).put
    policy = CurrentPolicy(
        channel.words, Policy.from_text(NO_TRACE), channel.report, lambda: None, time.monotonic_ns(), layout.KINDS
    )
    run_tracker = Tracker(layout.RUN, lambda: (channel, put, policy))
    run_tracker.level(run_tracker.next(), 0)
    before = reader.word("self_ns")
    run_tracker.put_timed(time.monotonic_ns() - 1000, 1000, 1, 0)
    assert reader.word("self_ns") > before


@pytest.mark.parametrize("budget", [100, 10_000])
def test_timing_takes_its_share_of_the_budget_at_most(budget):
    sampling, ordinal, timed_count = Sampling(200), 0, 0
    while ordinal < 200_000:
        ordinal += 1 + sampling.skip(ordinal, 500_000, budget)
        timed_count += 1
    cost = timed_count * sampling._timing_ns / (200_000 * 500_000)
    assert cost <= budget / 1e6 / 3.5 or timed_count <= FIRST_TIMED + 200_000 / INTERVAL_MAX * 1.1


def test_counting_and_timing_of_long_steps_stay_within_the_budget():
    sampling, step_ns, ordinal, cost = Sampling(9000), 1_200_000, 0, 0
    while ordinal < 200_000:
        skipped = sampling.skip(ordinal, step_ns, 10_000)
        cost += sampling.cost(50_000, skipped)
        ordinal += 1 + skipped
    assert 0.008 < cost / (ordinal * step_ns) < 0.01


def test_few_steps_of_a_short_job_have_no_entry():
    sampling, ordinal = Sampling(700), 1
    while ordinal < 20_000:
        skipped = sampling.skip(ordinal, SHORT, 10_000)
        assert skipped <= ordinal / 10
        ordinal += 1 + skipped


@pytest.mark.parametrize("counted_ns", [200, 11_000])
def test_the_cost_contains_that_of_counting(counted_ns):
    assert Sampling(counted_ns).cost(1500, 10) == 1500 + 10 * counted_ns


def test_the_cost_of_a_counted_step_is_bounded():
    word = ctypes.c_uint64()

    def new_method():
        def _call_tf_sessionrun(_self, _options, _feeds, _fetches, _targets, _metadata):
            return None

        return _call_tf_sessionrun

    run_tracker = Tracker(layout.RUN, lambda: None)
    run_tracker.ordinals.word = ctypes.addressof(word)
    run_tracker.ordinals.timed_at = 10**9
    target = object()
    bare_run = types.MethodType(new_method(), object())
    counted_run = measured_session(new_method(), run_tracker)._call_tf_sessionrun

    def ns_per_call(function):
        start = time.perf_counter_ns()
        for _ in range(2000):
            function(None, [], [target], [], None)
        return (time.perf_counter_ns() - start) / 2000

    bare_ns = min(ns_per_call(bare_run) for _ in range(20))
    counted_ns = min(ns_per_call(counted_run) for _ in range(20))
    assert word.value == 40_000
    assert counted_ns < 20 * bare_ns + 100
