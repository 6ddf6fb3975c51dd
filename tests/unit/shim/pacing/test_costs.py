"""Each step kind has its own cost; the other kinds leave half of the traces to the main kind."""

from functools import partial

import pytest
from tfprof.formats import layout
from tfprof.formats.policy import Policy
from tfprof.formats.step_kinds import main_kind
from tfprof.shim.pacing.costs import OTHER_TRACES, Costs
from tfprof.shim.pacing.pacer import TracePacer

STEP, SELF = (layout.JOB_WORDS[name] // 8 for name in ("step_ns", "self_ns"))
TIMES = layout.TIMES_AT // 8
BUDGET = 10_000  # 1 %


class Job:
    """Steps of several kinds, each with a pacer.

    ``durations`` maps the name of a kind to (duration of a step, extra time of a traced step).
    """

    def __init__(self, **durations):
        self.words = [0] * 1024
        self.costs = Costs(self.words, layout.KINDS)
        self.durations = {getattr(layout, name.upper()): times for name, times in durations.items()}
        policy = Policy.from_text("budget=1%")
        self.pacers = {
            kind: TracePacer(
                policy,
                partial(self.costs.totals, kind, BUDGET),
                should_yield=partial(self.costs.should_yield, kind),
            )
            for kind in self.durations
        }
        self.ordinals = dict.fromkeys(self.durations, 0)

    def run(self, name, count):
        kind = getattr(layout, name.upper())
        pacer, cost, (duration, extra) = self.pacers[kind], self.costs.of_kind(kind), self.durations[kind]
        for _ in range(count):
            self.ordinals[kind] += 1
            step_ns, spent = duration, 0
            if self.ordinals[kind] >= pacer.trigger or 1 not in pacer.known_keys:
                cost.traceable = True
                if pacer.should_trace(self.ordinals[kind], 1):
                    cost.traced += 1
                    step_ns += extra
                    spent = pacer.note_traced(1, step_ns, extra // 10) + extra // 10
                else:
                    spent = pacer.note_untraced(1, step_ns)
            cost.spent += spent
            self.words[SELF] += spent
            self.words[TIMES + kind] += step_ns
            self.words[STEP] += step_ns

    def trace_count(self, name):
        return self.costs.of_kind(getattr(layout, name.upper())).traced

    @property
    def cost(self):
        return self.words[SELF] / self.words[STEP]


def test_training_keeps_half_of_the_traces_despite_many_short_steps_of_another_kind():
    job = Job(batch=(1_000_000, 3_000_000), test_batch=(300_000, 600_000))
    for _ in range(20):
        job.run("batch", 500)
        job.run("test_batch", 1000)
    assert job.trace_count("batch") >= job.trace_count("test_batch") > OTHER_TRACES
    assert job.trace_count("batch") > 20
    assert job.cost <= 0.0115


def test_the_main_kind_gets_its_traces_even_if_another_kind_came_first():
    job = Job(init=(5_000_000, 50_000_000), train=(1_000_000, 1_000_000))
    job.run("init", 6)
    job.run("train", 20_000)
    assert job.trace_count("init") <= OTHER_TRACES
    assert job.trace_count("train") > 50
    assert job.cost <= 0.0115


def test_each_of_many_kinds_gets_a_trace():
    names = ("batch", "test_batch", "predict_batch", "function", "run")
    job = Job(**dict.fromkeys(names, (1000000, 1000000)))
    for name in names:
        job.run(name, 30)
    assert all(job.trace_count(name) for name in names)
    assert job.trace_count("batch") == 1


@pytest.mark.parametrize(
    ("times", "kind"),
    [
        ({layout.BATCH: 5, layout.TEST_BATCH: 9}, layout.BATCH),
        ({layout.BATCH: 5, layout.TEST_BATCH: 51}, layout.TEST_BATCH),
        ({layout.TRAIN: 1, layout.INIT: 900, layout.CHECKPOINT: 900, layout.RUN: 9}, layout.TRAIN),
        ({layout.FUNCTION: 3, layout.RUN: 2}, layout.FUNCTION),
        ({layout.INIT: 3, layout.CHECKPOINT: 4}, layout.CHECKPOINT),
        ({layout.INIT: 3, layout.FIT: 4}, layout.INIT),
        ({layout.FIT: 4}, None),
        ({}, None),
    ],
)
def test_the_main_kind_has_the_most_time_and_training_counts_more(times, kind):
    assert main_kind(times, layout.KINDS) == kind
