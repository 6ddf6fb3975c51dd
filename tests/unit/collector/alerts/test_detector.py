"""Alerts about simulated jobs: steady jobs raise none, and each anomaly raises one.

Tests collector/alerts/alert.py, collector/alerts/growth.py, collector/alerts/job_watch.py,
collector/alerts/load.py, collector/alerts/step_series.py.
"""

import random
from itertools import pairwise

import pytest
from tfprof.collector.alerts.alert import LOSSES, MEMORY_GROWTH, PAUSES, SLOWER, SPIKE, STALL, Alert
from tfprof.collector.alerts.detector import Detector
from tfprof.collector.records import Span
from tfprof.formats import layout

NS = 1_000_000_000
START = 1_700_000_000 * NS
MS = 1_000_000
MIB = 1 << 20


def span(start_ns, total_ns, ordinal, steps=1, kind=layout.BATCH, key=0):
    return Span(start_ns, total_ns, ordinal, steps, kind, 0, key, 1, total_ns, total_ns, 0)


class Host:
    """Simulates jobs with given step times on one host, second by second."""

    def __init__(self, jobs=1, cpus=8, busy=1.0, seed=1, name="job{}"):
        self.detector = Detector()
        self.random = random.Random(seed)
        self.now = START
        self.cpus = cpus
        self.busy = busy
        self.busy_s = 0.0
        self.jobs = range(1, jobs + 1)
        self.rss = dict.fromkeys(self.jobs, 500.0 * MIB)
        self.leak = dict.fromkeys(self.jobs, 0.0)
        self.cpu_s = dict.fromkeys(self.jobs, 0.0)
        self.cores = dict.fromkeys(self.jobs, 1.0)
        self.steps = dict.fromkeys(self.jobs, 0)
        self.step_ns = dict.fromkeys(self.jobs, 20e6)
        self.pause_ns = dict.fromkeys(self.jobs, 0)
        self.next_step_ns = dict.fromkeys(self.jobs, START)
        self.noise = 0.1
        self.alerts: list[tuple[int, Alert]] = []
        for uid in self.jobs:
            self.detector.open(uid, "host", name.format(uid))

    def run(self, seconds, steps=True):
        for _ in range(seconds):
            for uid in self.jobs:
                if steps:
                    self.detector.add_spans(uid, self._steps_in_second(uid), 0, self.now + NS)
                self.rss[uid] += self.leak[uid]
                self.cpu_s[uid] += self.cores[uid]
                values = {"cpu_user_s": self.cpu_s[uid], "cpu_system_s": 0.0, "rss_bytes": int(self.rss[uid])}
                self.detector.add_sample(uid, self.now + NS, values)
            self.busy_s += self.busy
            self.detector.add_host_sample("host", self.now + NS, {"cpus": self.cpus, "cpu_busy_s": self.busy_s})
            self.now += NS
            self.evaluate()
        return self

    def evaluate(self):
        for uid in self.detector.due_jobs(self.now):
            self.alerts += [(uid, alert) for alert in self.detector.alerts(uid, self.now)]

    def _steps_in_second(self, uid):
        at, entries = max(self.now, self.next_step_ns[uid]), []
        while at < self.now + NS:
            duration_ns = int(self.step_ns[uid] * self.random.lognormvariate(0, self.noise))
            self.steps[uid] += 1
            entries.append(span(at, duration_ns, self.steps[uid]))
            at += duration_ns + int(self.pause_ns[uid])
        self.next_step_ns[uid] = at
        return entries

    @property
    def slugs(self):
        return [alert.slug for _, alert in self.alerts]


def test_a_steady_job_raises_no_alert():
    assert Host().run(600).slugs == []


def test_steady_jobs_on_a_noisy_host_raise_no_alert():
    host = Host(jobs=5, cpus=2, busy=2.0, seed=2)
    host.noise = 0.6
    for _ in range(60):  # the load changes for all jobs
        factor = host.random.choice([1.0, 1.0, 1.3, 2.0])
        host.step_ns = {uid: 20e6 * factor * host.random.uniform(0.9, 1.1) for uid in host.jobs}
        host.run(10)
    assert host.slugs == []


@pytest.mark.parametrize("factor", [1.3, 2.0, 10.0])
def test_a_job_that_slows_down_raises_one_alert_within_10_s(factor):
    host = Host().run(60)
    step = host.steps[1] + 1
    host.step_ns[1] *= factor
    host.run(10)
    [(uid, alert)] = host.alerts
    assert (uid, alert.slug, alert.kind) == (1, SLOWER, layout.BATCH)
    assert abs(alert.step - step) <= 50
    assert alert.before == pytest.approx(20e6, rel=0.1)
    assert alert.now == pytest.approx(20e6 * factor, rel=0.15)
    assert host.run(300).slugs == [SLOWER]


def test_a_job_of_many_kinds_of_runs_is_watched_in_those_with_the_most_step_time():
    host = Host()
    for key in range(1, 41):  # a run loads each variable
        host.detector.add_spans(1, [span(START, NS // 10, key, kind=layout.RUN, key=key)], 0, host.now + NS)
    host.run(60)
    host.step_ns[1] *= 2
    assert host.run(10).slugs == [SLOWER]


def test_alternating_kinds_of_runs_are_watched_after_many_others():
    host = Host()
    loads = [span(START, NS // 10, key, kind=layout.RUN, key=key) for key in range(1, 41)]
    host.detector.add_spans(1, loads, 0, host.now + NS)
    for second in range(80):
        run_ns = 10**7 if second < 60 else 2 * 10**7
        for at in range(10):
            runs = [span(host.now + at * NS // 10, run_ns, 41 + second, kind=layout.RUN, key=key) for key in (51, 52)]
            host.detector.add_spans(1, runs, 0, host.now + NS)
        host.now += NS
        for found in host.detector.due_jobs(host.now):
            host.alerts += [(found, alert) for alert in host.detector.alerts(found, host.now)]
    assert host.slugs == [SLOWER]


def test_one_of_five_jobs_that_slows_down_on_a_saturated_host_raises_an_alert():
    host = Host(jobs=5, cpus=2, busy=2.0).run(60)
    host.step_ns[3] *= 2
    assert [(uid, alert.slug) for uid, alert in host.run(12).alerts] == [(3, SLOWER)]


def test_all_jobs_of_a_host_that_slow_down_together_raise_no_alert():
    host = Host(jobs=5, cpus=2, busy=2.0).run(60)
    host.step_ns = {uid: 40e6 + uid * 1e6 for uid in host.jobs}
    assert host.run(120).slugs == []


def test_jobs_that_slow_down_together_raise_no_alert_although_processors_are_free():
    host = Host(jobs=5)
    host.pause_ns, host.cores = dict.fromkeys(host.jobs, 20e6), dict.fromkeys(host.jobs, 0.4)
    host.run(60)
    # The mean step times grow by factors of 1.2 to 3.5. The fastest steps are as fast as before,
    # and the processor time per step does not change.
    host.noise = 1.0
    for uid, factor in zip(host.jobs, [2.6, 1.8, 3.5, 1.8, 1.2], strict=True):
        host.step_ns[uid] = 20e6 * factor / 1.65
        host.cores[uid] = 0.8 / (1 + factor)
    assert host.run(15).slugs == []
    host.noise, host.step_ns = 0.1, dict.fromkeys(host.jobs, 20e6)
    assert host.run(100).slugs == []


@pytest.mark.parametrize("busy", [1.0, 8.0])
def test_a_job_that_waits_longer_raises_an_alert_although_the_other_jobs_become_slower_too(busy):
    host = Host(jobs=5, busy=busy).run(60)
    host.step_ns = dict.fromkeys(host.jobs, 26e6)
    host.step_ns[3], host.cores[3] = 140e6, 1 / 7
    assert [(uid, alert.slug) for uid, alert in host.run(12).alerts] == [(3, SLOWER)]


def test_processes_of_one_training_that_slow_down_together_raise_alerts():
    host = Host(jobs=4, name="train.py").run(60)
    host.step_ns = dict.fromkeys(host.jobs, 40e6)
    assert host.run(10).slugs == [SLOWER] * 4


def test_the_job_that_slows_down_most_on_a_host_with_free_processors_raises_an_alert():
    host = Host(jobs=5).run(60)
    host.step_ns = dict.fromkeys(host.jobs, 24e6)
    host.step_ns[3] = 80e6
    assert [(uid, alert.slug) for uid, alert in host.run(12).alerts] == [(3, SLOWER)]


@pytest.mark.parametrize("busy", [1.0, 2.0])
def test_the_only_job_of_a_host_that_other_processes_load_raises_no_alert(busy):
    host = Host(cpus=2, busy=busy).run(60)
    host.busy, host.cores[1], host.step_ns[1] = 2.0, 0.5, 40e6
    assert host.run(120).slugs == []


def test_the_only_job_of_a_saturated_host_raises_an_alert_if_its_steps_need_more_processor_time():
    host = Host(cpus=2, busy=1.9)
    host.cores[1] = 1.8
    host.run(60)
    host.step_ns[1] *= 2
    assert host.run(12).slugs == [SLOWER]


def test_a_second_slow_down_raises_a_second_alert():
    host = Host().run(60)
    host.step_ns[1] *= 2
    host.run(60)
    host.step_ns[1] *= 2
    assert host.run(20).slugs == [SLOWER, SLOWER]


@pytest.mark.parametrize("pause_ns", [20e6, 3e9])
def test_longer_pauses_between_steps_raise_one_alert(pause_ns):
    host = Host()
    host.pause_ns[1] = 4e6
    host.run(60)
    step = host.steps[1]
    host.pause_ns[1] = pause_ns
    host.run(20)
    [(uid, alert)] = host.alerts
    assert (uid, alert.slug, alert.kind) == (1, PAUSES, layout.BATCH)
    assert abs(alert.step - step) <= 50
    assert alert.before == pytest.approx(24e6, rel=0.1)
    assert alert.now == pytest.approx(20e6 + pause_ns, rel=0.15)
    assert host.run(300).slugs == [PAUSES]


def test_pauses_that_grow_less_than_the_steps_raise_no_alert_of_their_own():
    host = Host()
    host.pause_ns[1] = 10e6
    host.run(60)
    host.step_ns[1], host.pause_ns[1] = 40e6, 20e6
    assert host.run(120).slugs == [SLOWER]


def test_longer_pauses_of_all_jobs_of_a_saturated_host_raise_no_alert():
    host = Host(jobs=5, cpus=2, busy=2.0)
    host.pause_ns = dict.fromkeys(host.jobs, 10e6)
    host.run(60)
    host.step_ns, host.pause_ns = dict.fromkeys(host.jobs, 24e6), dict.fromkeys(host.jobs, 25e6)
    assert host.run(120).slugs == []


def test_pauses_for_an_evaluation_raise_no_alert():
    host = Host().run(60)
    for _ in range(10):  # epochs of 8 s
        host.run(3, steps=False)
        host.run(5)
    assert host.slugs == []


def test_calls_in_turns_raise_no_alert_once_their_steps_are_sampled():
    """The second call follows the first at once; a pause of 0.4 s follows the second."""
    host = Host()
    starts = [START + at // 2 * NS // 2 + at % 2 * NS // 10 for at in range(1200)]
    timed = [*range(256), *range(256 + 10, 1200, 11)]
    for last, at in pairwise(timed):
        steps = at - last
        entry = span(starts[at] - (steps - 1) * MS, steps * MS, last + 1, steps, layout.RUN, at % 2)
        entry = entry._replace(flags=layout.FLAG_SAMPLED if steps > 1 else 0, min_ns=MS, max_ns=MS)
        host.detector.add_spans(1, [entry], 0, starts[at] + NS)
        if starts[at] >= host.now + NS:
            host.run((starts[at] - host.now) // NS, steps=False)
    assert host.slugs == []


def test_spikes_raise_one_alert_per_interval():
    host = Host().run(60)
    for _ in range(2):
        spike = span(host.now, 3 * NS, host.steps[1] + 1)
        host.detector.add_spans(1, [spike], 0, host.now + 3 * NS)
        host.now += 3 * NS
        host.run(5)
    [(_, alert)] = host.alerts
    assert (alert.slug, alert.now) == (SPIKE, 3 * NS)


def test_a_spike_of_sampled_steps_is_the_one_that_was_timed():
    host = Host().run(60)
    sampled = span(host.now - 18 * NS, 20 * NS, host.steps[1] + 1, steps=10)
    sampled = sampled._replace(flags=layout.FLAG_SAMPLED, min_ns=2 * NS, max_ns=2 * NS)
    host.detector.add_spans(1, [sampled], 0, host.now + 2 * NS)
    [(_, alert)] = host.run(1).alerts
    assert (alert.slug, alert.step - sampled.ordinal, alert.since_ns) == (SPIKE, 9, host.now - NS)


def test_a_job_without_steps_raises_one_stall_until_it_continues():
    host = Host().run(60).run(60, steps=False)
    [(_, alert)] = host.alerts
    assert (alert.slug, alert.step) == (STALL, host.steps[1])
    assert alert.now > 15e9
    assert host.run(30).run(110, steps=False).slugs == [STALL]
    assert host.run(20, steps=False).slugs == [STALL, STALL]


def test_a_job_may_stall_soon_after_it_became_slower():
    host = Host().run(60)
    host.step_ns[1] *= 2
    assert host.run(10).slugs == [SLOWER]
    assert host.run(30, steps=False).slugs == [SLOWER, STALL]


def test_regular_pauses_raise_one_stall_and_a_hang_raises_a_second_one():
    host = Host().run(60)
    for _ in range(5):
        host.run(40, steps=False).run(30)
    assert host.slugs == [STALL]
    assert host.run(90, steps=False).slugs == [STALL, STALL]


def test_a_long_wait_for_the_first_step_delays_no_stall():
    host = Host()
    setup = span(START, NS, 1)._replace(flags=layout.FLAG_SETUP)
    host.detector.add_spans(1, [setup], 0, host.now + NS)
    assert host.run(300, steps=False).run(60).slugs == []
    assert host.run(20, steps=False).slugs == [STALL]


@pytest.mark.parametrize("kind", [layout.FIT, layout.EVALUATE, layout.PREDICT])
def test_after_a_whole_call_of_keras_no_step_is_due(kind):
    host = Host().run(60)
    host.detector.add_spans(1, [span(START, host.now - START, 1, kind=kind)], 0, host.now + NS)
    assert host.run(60, steps=False).slugs == []
    host.run(10).run(20, steps=False)
    assert host.slugs == [STALL]


def test_a_job_may_stall_between_epochs():
    host = Host().run(60)
    host.detector.add_spans(1, [span(START, host.now - START, 1, kind=layout.EPOCH)], 0, host.now + NS)
    assert host.run(60, steps=False).slugs == [STALL]


@pytest.mark.parametrize("flags", [0, layout.FLAG_TRACED])
def test_a_stall_names_the_last_step_of_an_entry_with_several_steps(flags):
    host = Host().run(60)
    last = span(host.now, NS // 10, host.steps[1] + 1, steps=5)._replace(flags=flags)
    host.detector.add_spans(1, [last], 0, host.now + NS)
    host.run(60, steps=False)
    [(_, alert)] = host.alerts
    assert (alert.slug, alert.step) == (STALL, host.steps[1] + 5)


def test_a_job_whose_steps_are_only_counted_does_not_stall():
    host = Host().run(60)
    for number in range(60):
        host.run(1, steps=False)
        host.detector.add_counters(1, {"counts": {"batch": host.steps[1] + number, "epoch": 3}}, host.now)
    assert host.slugs == []
    for number in range(60):
        host.run(1, steps=False)
        host.detector.add_counters(1, {"counts": {"batch": host.steps[1] + 60, "epoch": number}}, host.now)
    assert host.slugs == [STALL]


def test_a_job_without_samples_raises_no_stall():
    host = Host().run(60)
    host.now += 600 * NS
    host.evaluate()
    assert host.slugs == []


def test_memory_that_grows_steadily_raises_an_alert():
    host = Host()
    host.leak[1] = 10.0 * MIB
    host.run(150)
    [(_, alert)] = host.alerts
    assert alert.slug == MEMORY_GROWTH
    assert alert.now > alert.before


def test_memory_that_stops_growing_raises_no_alert():
    host = Host()
    host.leak[1] = 100.0 * MIB
    host.run(25)
    host.leak[1] = 0.0
    assert host.run(300).slugs == []


@pytest.mark.parametrize("anomaly", ["slower", "stall", "memory", "losses"])
def test_alerts_go_on_after_the_clock_was_set_back(anomaly):
    host = Host().run(120)
    host.now -= 3600 * NS
    host.next_step_ns[1] -= 3600 * NS
    assert host.run(60).slugs == []
    if anomaly == "losses":
        for number in (0, 5):
            host.detector.add_counters(1, {"dropped_records": number}, host.now)
    host.step_ns[1] *= 3 if anomaly == "slower" else 1
    host.leak[1] = 20.0 * MIB if anomaly == "memory" else 0.0
    host.run(240, steps=anomaly != "stall")
    assert host.slugs == [{"slower": SLOWER, "stall": STALL, "memory": MEMORY_GROWTH, "losses": LOSSES}[anomaly]]


def test_losses_raise_an_alert():
    host = Host()
    host.detector.add_counters(1, {"dropped_records": 2, "dropped_traces": True}, START)
    host.detector.add_counters(1, {"dropped_records": 5}, START)
    [alert] = list(host.detector.alerts(1, START))
    assert (alert.slug, alert.before, alert.now) == (LOSSES, 2, 5)


def test_implausible_span_entries_are_ignored():
    host = Host()
    implausible = [
        span(2**64 - 1, 2**64 - 1, 1),
        span(START, 5, 1, steps=0),
        span(START, 5, 1, kind=999),
        *(span(START, 5, 1, kind=layout.FUNCTION, key=key) for key in range(1000)),
    ]
    host.detector.add_spans(1, implausible, 0, START + NS)
    host.detector.add_spans(99, implausible, 0, START + NS)
    assert host.run(120).slugs == []


@pytest.mark.parametrize(("is_closed", "slugs"), [(False, [SLOWER]), (True, [])])
def test_a_closed_job_is_not_watched(is_closed, slugs):
    host = Host().run(120)
    if is_closed:
        host.detector.close(1)
        host.detector.close(1)
    host.step_ns[1] = 60e6
    assert host.run(120).slugs == slugs
