"""The choice of traced steps, in fake jobs.

Tests shim/pacing/durations.py, shim/pacing/selection.py.
"""

import random

import pytest
from tfprof.formats.policy import Policy
from tfprof.shim.pacing.durations import KEYS_MAX
from tfprof.shim.pacing.pacer import WARM_UP, TracePacer


class Job:
    """A fake job: it runs steps, and keeps the decisions of the pacer and the cost.

    A traced step takes longer by the share ``extra``, and the step after it by ``extra_after``.
    ``own_ns`` is the time of our own work for a trace.
    """

    def __init__(self, text, extra=0.3, own_ns=200_000, extra_after=0.0):
        self.elapsed = self.spent = self.decisions = self.ordinal = 0
        self.extra, self.own_ns, self.extra_after = extra, own_ns, extra_after
        self.pacer = TracePacer(Policy.from_text(text), lambda: (self.elapsed, self.spent))
        self.traced = []

    def step(self, key=1, duration=1_000_000):
        self.ordinal += 1
        if self.ordinal < self.pacer.trigger and key in self.pacer.known_keys:
            self.elapsed += duration
            return False
        self.decisions += 1
        if self.traced[-1:] == [self.ordinal - 1]:
            duration = int(duration * (1 + self.extra_after))
        if self.pacer.should_trace(self.ordinal, key):
            duration = int(duration * (1 + self.extra))
            self.spent += self.pacer.note_traced(key, duration, self.own_ns) + self.own_ns
            self.traced.append(self.ordinal)
            is_traced = True
        else:
            self.spent += self.pacer.note_untraced(key, duration)
            is_traced = False
        self.elapsed += duration
        return is_traced

    def steps(self, count, key=1, duration=1_000_000):
        for _ in range(count):
            self.step(key, duration)
        return self


@pytest.mark.parametrize(
    ("text", "traced"),
    [
        ("off", []),
        ("all", list(range(1, 101))),
        ("every=25", [25, 50, 75, 100]),
        ("every=1", list(range(1, 101))),
        ("steps=10-13", [10, 11, 12, 13]),
        ("steps=1", [1]),
        ("steps=99-200", [99, 100]),
        ("steps=1-3,10,20-22", [1, 2, 3, 10, 20, 21, 22]),
        ("steps=97-98,2,3,3-4,500", [2, 3, 4, 97, 98]),
    ],
)
def test_a_fixed_policy_selects_exact_steps(text, traced):
    assert Job(text).steps(100).traced == traced


@pytest.mark.parametrize("text", ["all", "steps=3-30", "every=1"])
def test_steps_of_threads_that_call_late_are_traced(text):
    pacer = TracePacer(Policy.from_text(text), lambda: (0, 0))
    order = [5, 3, 4, 9, 6, 8, 7, 12, 11, 10]
    assert all(ordinal >= pacer.trigger and pacer.should_trace(ordinal, 1) for ordinal in order)


def test_the_pacer_is_rarely_called_for_steps_between_ranges():
    job = Job("steps=10,90").steps(100)
    assert job.traced == [10, 90]
    assert job.decisions < 25


def test_under_a_budget_the_first_step_after_warm_up_is_traced_and_the_next_within_the_budget():
    job = Job("budget=1%").steps(20)
    assert job.traced == [WARM_UP + 1]
    assert 100 * job.steps(140).spent < 1.1 * job.elapsed
    assert len(job.traced) > 1


def test_each_of_the_first_keys_gets_its_first_trace_and_so_do_the_others_together():
    job = Job("budget=1%")
    for key in range(20):
        job.steps(12, key=key)
    assert len(job.traced) == KEYS_MAX + 1


def test_keys_that_never_come_back_are_traced_like_one_key():
    job = Job("budget=1%")
    for key in range(20_000):
        job.step(key)
    assert 9 < len(job.traced) < 500
    assert job.traced[-1] > 15_000
    assert 100 * job.spent / job.elapsed < 1.1
    durations = job.pacer._durations
    assert len(durations._keys) + len(job.pacer.known_keys) + len(durations._seen_keys) < 5000


def test_a_key_that_comes_back_has_its_own_statistics():
    job = Job("budget=1%")
    for key in range(50):
        job.step(key)
    job.steps(40, key=49)
    assert 49 in job.pacer.known_keys


def test_a_session_run_that_occurs_once_is_not_traced():
    job = Job("budget=1%").steps(1, key=1).steps(1, key=2).steps(1, key=3)
    assert job.traced == []


@pytest.mark.parametrize("share", [0.2, 1, 5, 20])
@pytest.mark.parametrize("extra", [0.05, 0.4, 5])
def test_the_cost_stays_within_the_budget_and_uses_it(share, extra):
    job = Job(f"budget={share}%", extra=extra).steps(60_000)
    assert 0.4 * share <= 100 * job.spent / job.elapsed <= share * 1.02
    assert job.decisions <= 11 * len(job.traced) + 60


@pytest.mark.parametrize("text", ["budget=1%", "budget=20%", "every=9"])
def test_the_step_after_a_traced_one_is_part_of_the_cost(text):
    job, plain_job = Job(text, extra_after=0.5).steps(60_000), Job(text).steps(60_000)
    assert plain_job.spent / len(plain_job.traced) == pytest.approx(plain_job.own_ns + 300_000, rel=0.01)
    assert job.spent / len(job.traced) == pytest.approx(job.own_ns + 800_000, rel=0.01)


def test_steps_after_traced_ones_that_are_no_slower_cost_nothing():
    generator = random.Random(3)
    job = Job("every=6")
    for _ in range(40_000):
        job.step(duration=generator.randrange(900_000, 1_100_000))
    assert job.spent / len(job.traced) == pytest.approx(job.own_ns + 300_000, rel=0.05)


@pytest.mark.parametrize("text", ["budget=1%", "every=9"])
def test_the_usual_duration_of_steps_is_measured_repeatedly(text):
    job = Job(text).steps(200, duration=3_000_000).steps(2000)
    before, traces = job.spent, len(job.traced)
    job.steps(60_000)
    assert (job.spent - before) / (len(job.traced) - traces) == pytest.approx(job.own_ns + 300_000, rel=0.01)


def test_traces_are_spread_over_the_whole_job():
    job = Job("budget=1%").steps(60_000)
    halves = [len([n for n in job.traced if low < n <= low + 30_000]) for low in (0, 30_000)]
    assert max(halves) <= 1.5 * min(halves)


def test_a_slow_step_that_happens_to_be_traced_does_not_stop_tracing():
    job = Job("budget=1%")
    job.steps(2000)
    before = len(job.traced)
    while not job.step(duration=1_000_000):
        pass
    job.spent += job.pacer.note_traced(1, 30_000_000_000, 200_000)  # thirty seconds, as if a checkpoint was written
    job.steps(20_000)
    assert len(job.traced) > before + 20


def test_both_of_two_alternating_session_runs_are_traced():
    job = Job("budget=1%")
    traces_of_key: dict[int, int] = {}
    for number in range(40_000):
        key = number % 2
        traces_of_key[key] = traces_of_key.get(key, 0) + job.step(key=key)
    assert min(traces_of_key.values()) > 0.2 * max(traces_of_key.values())


def test_steps_of_any_length_and_order_are_no_error():
    generator = random.Random(5)
    job = Job("budget=2%")
    for _ in range(5000):
        job.step(key=generator.randrange(6), duration=int(generator.lognormvariate(13, 2)))
    assert job.spent < 0.06 * job.elapsed + 30 * job.own_ns


def test_new_keys_do_not_fill_memory():
    job = Job("off")
    for key in range(6000):
        job.step(key=key)
    assert len(job.pacer.known_keys) == 4096


@pytest.mark.parametrize(("text", "is_selected"), [("steps=3-20", True), ("off", False)])
def test_a_batch_that_found_no_data_gives_its_trace_to_the_next_one_of_its_number(text: str, is_selected: bool) -> None:
    job = Job(text).steps(4)
    for _ in range(2):
        assert job.pacer.should_trace(5, 1) is is_selected
    job.ordinal = 5
    job.steps(20)
    assert len(job.traced) == (17 if is_selected else 0)
