"""The choice of traced steps, in fake jobs."""

import random
from itertools import pairwise

import pytest
from tfprof.formats.policy import Policy
from tfprof.shim.pacing.pacer import FIRST_TRACES, KEYS_MAX, TRIES, WARM_UP, TracePacer
from tfprof.shim.pacing.page_faults import COMPARED_STEPS, SETTLING_STEPS


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


def test_under_a_budget_the_first_steps_after_warm_up_are_traced():
    assert Job("budget=1%").steps(20).traced == list(range(WARM_UP + 1, WARM_UP + FIRST_TRACES + 1))


def test_each_of_the_first_keys_gets_its_first_traces():
    job = Job("budget=1%")
    for key in range(20):
        job.steps(12, key=key)
    assert len(job.traced) == FIRST_TRACES * KEYS_MAX


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


def test_decisions_without_a_trace_are_at_least_wait_min_apart():
    job = Job("budget=1%")
    job.pacer.wait_min = 3_000
    job.steps(20_000)
    bursts = [ordinal for before, ordinal in pairwise(job.traced) if ordinal - before > 100]
    assert len(bursts) > 3
    assert all(3_000 <= second - first < 5_000 for first, second in pairwise(bursts))
    assert 0.005 < job.spent / job.elapsed <= 0.0105


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


class SlowedJob(Job):
    """A fake job whose steps take many page faults, and twice their time, after some traces.

    ``is_slowed_after(n)``: whether steps are slow after the n-th series of consecutive traces.
    ``slowed_faults`` are the page faults of such a step, ``usual_faults`` those of any other.
    """

    def __init__(self, text, is_slowed_after, slowed_faults=17_000, usual_faults=10, **options):
        self.faults = self.series_count = self.slowed_steps = 0
        super().__init__(text, **options)
        self.pacer = TracePacer(self.pacer.policy, lambda: (self.elapsed, self.spent), page_faults=lambda: self.faults)
        self.is_slowed_after = is_slowed_after
        self.slowed_faults, self.usual_faults = slowed_faults, usual_faults
        self.is_slowed = False

    def step(self, key=1, duration=1_000_000):
        is_slowed = self.is_slowed
        is_traced = super().step(key, duration * 2 if is_slowed else duration)
        self.faults += self.slowed_faults if is_slowed else self.usual_faults
        self.slowed_steps += is_slowed
        if is_traced:
            self.series_count += self.traced[-2:] != [self.ordinal - 1, self.ordinal]
            self.is_slowed = self.is_slowed_after(self.series_count)
        return is_traced


#: Number of steps from the start of a series of traces to the start of its repetition, which should
#: undo the page faults that the series caused.
REPEAT_INTERVAL = FIRST_TRACES + SETTLING_STEPS + COMPARED_STEPS


def series_starts(traced):
    """Return the first ordinal of each series of consecutive traces."""
    return [ordinal for ordinal in traced if ordinal - 1 not in traced]


@pytest.mark.parametrize("times", range(1, TRIES + 1))
def test_traces_are_repeated_until_steps_take_no_more_page_faults_than_before(times):
    job = SlowedJob("budget=1%", lambda series: series <= times).steps(WARM_UP + REPEAT_INTERVAL * (times + 2))
    assert series_starts(job.traced) == [WARM_UP + 1 + REPEAT_INTERVAL * number for number in range(times + 1)]
    assert len(job.traced) == FIRST_TRACES * (times + 1)
    assert job.slowed_steps == REPEAT_INTERVAL * times
    assert not job.pacer.lasting_faults


def test_the_extra_time_of_later_steps_is_part_of_the_cost_of_a_trace():
    job = SlowedJob("budget=1%", lambda series: series in (1, 5, 6, 30)).steps(60_000)
    assert job.spent == pytest.approx(len(job.traced) * 500_000 + job.slowed_steps * 1_000_000, rel=0.05)
    assert job.spent / job.elapsed < 0.0102


def test_the_cost_is_known_even_if_the_very_first_traces_slow_steps_down():
    job = SlowedJob("budget=1%", lambda series: series <= TRIES).steps(WARM_UP + REPEAT_INTERVAL * (TRIES + 1) + 10)
    extra_ns = FIRST_TRACES * 300_000 + FIRST_TRACES * TRIES * 1_600_000
    assert job.spent == extra_ns + len(job.traced) * job.own_ns + (SETTLING_STEPS + COMPARED_STEPS) * TRIES * 1_000_000


def test_page_faults_that_remain_after_further_traces_are_reported():
    job = SlowedJob("budget=1%", lambda series: series >= 5).steps(30_000)
    assert job.pacer.lasting_faults == 17_000 - 10
    before = len(job.traced)
    job.steps(60_000)
    assert len(job.traced) - before == pytest.approx(1500, rel=0.1)  # a trace costs 0.8 ms; the budget is 1 % of 120 s


@pytest.mark.parametrize(
    ("faults", "duration", "is_repeated"),
    [(200, 1_000_000, False), (3000, 1_000_000_000, False), (3000, 30_000_000, True)],
)
def test_only_page_faults_that_take_much_time_cause_further_traces(faults, duration, is_repeated):
    job = SlowedJob("budget=1%", lambda _: True, slowed_faults=faults)
    job.steps(60, duration=duration)
    assert len(series_starts(job.traced)) == 1 + is_repeated * TRIES


def test_a_job_with_many_page_faults_of_its_own_is_traced_as_usual():
    plain_job, job = Job("budget=1%"), SlowedJob("budget=1%", lambda _: False, usual_faults=17_000)
    assert job.steps(5000).traced == plain_job.steps(5000).traced


@pytest.mark.parametrize("text", ["every=50", "steps=10-12,40", "all", "off"])
def test_other_policies_trace_only_the_selected_steps(text):
    assert SlowedJob(text, lambda _: True).steps(200).traced == Job(text).steps(200).traced
