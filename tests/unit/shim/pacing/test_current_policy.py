"""Orders in a job: they apply from the next step on, end, and need an agent."""

from types import SimpleNamespace
from typing import Any

import pytest
from tfprof.formats import layout
from tfprof.formats.layout import WORD
from tfprof.formats.policy import Policy
from tfprof.shim import guard
from tfprof.shim.pacing import selection as selection_module
from tfprof.shim.pacing import tracker as tracker_module
from tfprof.shim.pacing.costs import Costs
from tfprof.shim.pacing.current_policy import POLICY, CurrentPolicy
from tfprof.shim.pacing.tracker import Tracker

SECOND = 10**9
STEP = 10 * 10**6


def _page() -> Any:
    """Return a block of memory, as words, in place of a control page."""
    return memoryview(bytearray(layout.PAGE)).cast("Q")


class Job:
    """A job with a fake clock and a fake agent.

    It runs steps of several kinds under the policy ``trace``.
    """

    def __init__(self, trace: str) -> None:
        self.now = 1000 * SECOND
        self.words = _page()
        self.reports: list[tuple[str, str]] = []
        self.detach_count = 0
        self.is_agent_beating = True
        self.trackers: dict[int, Tracker] = {}
        self.traced: list[tuple[int, int]] = []
        self.decisions = 0
        policy = CurrentPolicy(self.words, Policy.from_text(trace), self._report, self._detach, self.now, layout.KINDS)
        channel: Any = SimpleNamespace(
            words=self.words, costs=Costs(self.words, layout.KINDS), ring_problem=None, report=self._report
        )
        self._opened: Any = (channel, lambda *_: None, policy)

    def _report(self, slug: str, text: str) -> None:
        self.reports.append((slug, text))

    def _detach(self) -> None:
        self.detach_count += 1
        for tracker in self.trackers.values():
            tracker.stop()

    def word(self, name: str) -> int:
        value: int = self.words[WORD[name]]
        return value

    def order(self, trace: str, count: int = 0, for_ns: int = 0, **words: int) -> int:
        """Write an order as the agent does; return its generation."""
        policy = Policy.from_text(trace)
        names = ("mode", "level", "first", "last", "every", "budget")
        values = {f"policy_{name}": value for name, value in zip(names, policy.words(), strict=True)}
        values |= {
            "policy_count": count,
            "policy_end_ns": self.now + for_ns if for_ns else 0,
            "detach": 0,
            "order_end": 0,
        }
        ranges = policy.ranges if policy.mode == layout.MODE_STEPS else ()
        for at, step in enumerate(step for step_range in ranges for step in step_range):
            self.words[layout.RANGES_AT // 8 + at] = step
        for name, value in {**values, "policy_ranges": len(ranges), **words}.items():
            self.words[WORD[name]] = value
        self.words[POLICY] += 1
        return self.word("policy")

    def step(self, kind: int = layout.TRAIN, duration: int = STEP) -> None:
        tracker = self.trackers.get(kind)
        if tracker is None:
            tracker = self.trackers[kind] = Tracker(kind, lambda: self._opened)
        if self.is_agent_beating:
            self.words[WORD["agent_beat_ns"]] = self.now - self.now % (2 * SECOND)
        ordinal = tracker.next()
        self.words[layout.COUNTS_AT // 8 + kind] = ordinal
        is_plain = ordinal < tracker.trigger and tracker.words[POLICY] == tracker.generation and 1 in tracker.known_keys
        level = None
        if not is_plain:
            self.decisions += 1
            level = tracker.level(ordinal, 1)
        self.now += duration
        self.words[layout.TIMES_AT // 8 + kind] += duration
        if level is not None:
            self.traced.append((kind, ordinal))
            tracker.note_traced(1, duration, 1000)
        elif not is_plain:
            tracker.note_untraced(1, duration)

    def steps(self, count: int, duration: int = STEP) -> list[int]:
        """Run ``count`` training steps; return those that were traced."""
        before = len(self.traced)
        for _ in range(count):
            self.step(layout.TRAIN, duration)
        return [ordinal for _, ordinal in self.traced[before:]]


@pytest.fixture
def make_job(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that creates a job under a policy."""
    monkeypatch.setattr(guard, "lets_errors_out", True)

    def create(trace: str) -> Job:
        job = Job(trace)
        for module in (selection_module, tracker_module):
            monkeypatch.setattr(module, "mono", lambda: job.now)
        return job

    return create


def test_the_next_steps_are_traced_and_then_the_earlier_policy_is_in_force(make_job: Any) -> None:
    job = make_job("off")
    assert job.steps(100) == []
    generation = job.order("all", count=10)
    assert job.steps(100) == list(range(101, 111))
    assert (job.word("order_step"), job.word("order_kind"), job.word("order_traced")) == (101, layout.TRAIN, 10)
    assert (job.word("policy_seen"), job.word("order_over")) == (generation, generation)
    assert job.steps(500) == []


def test_an_order_from_before_the_first_step_starts_with_that_step(make_job: Any) -> None:
    job = make_job("off")
    job.order("all", count=2)
    tracker = job.trackers[layout.TRAIN] = Tracker(layout.TRAIN, lambda: job._opened)
    tracker.open()
    assert tracker.channel is not None
    assert (job.steps(10), job.word("order_step"), job.word("order_traced")) == ([1, 2], 1, 2)


def test_steps_that_the_earlier_policy_traces_after_an_order_are_not_counted_as_ordered(make_job: Any) -> None:
    job = make_job("all")
    job.order("all", count=5)
    assert len(job.steps(20)) == 20
    assert job.word("order_traced") == 5


def test_after_the_end_of_an_order_the_tracker_is_not_called_for_untraced_steps(make_job: Any) -> None:
    job = make_job("off")
    job.steps(100)
    job.order("all", count=3)
    job.steps(100)
    before = job.decisions
    job.steps(1000)
    assert job.decisions == before


def test_the_cost_of_ordered_traces_is_counted_even_without_earlier_traces(make_job: Any) -> None:
    job = make_job("off")
    job.steps(20)
    job.order("all", count=3)
    job.steps(3, duration=3 * STEP)
    job.steps(20)
    assert job.word("extra_ns") == pytest.approx(3 * 2 * STEP)


def test_after_an_order_a_budget_continues(make_job: Any) -> None:
    job = make_job("budget=1%")
    first = job.steps(200)
    assert first[0] == 3
    job.order("every=2", count=4)
    assert job.steps(8) == [202, 204, 206, 208]
    assert job.steps(10) == []


def test_an_order_with_a_duration_ends_after_it(make_job: Any) -> None:
    job = make_job("off")
    job.steps(10)
    generation = job.order("all", for_ns=SECOND)
    assert job.steps(300) == list(range(11, 111))
    assert job.word("order_over") == generation


@pytest.mark.parametrize("duration", [20_000, 300_000, STEP, SECOND // 2])
def test_an_order_without_traced_steps_ends_too(make_job: Any, duration: int) -> None:
    job = make_job("all")
    job.steps(10, duration)
    start_ns = job.now
    job.order("off", for_ns=10 * SECOND)
    while not job.steps(1, duration):
        assert job.now < start_ns + 12 * SECOND
    assert job.now - start_ns >= 10 * SECOND
    assert job.decisions < 10 + 5 + 10 * SECOND // duration // 64 + 200


def test_an_order_without_an_end_lasts_until_the_next(make_job: Any) -> None:
    job = make_job("off")
    job.steps(10)
    job.order("every=50")
    assert job.steps(200) == [50, 100, 150, 200]
    job.order("all", count=2)
    assert job.steps(20) == [211, 212]
    assert job.steps(60) == [250]
    job.order("off")
    assert job.steps(300) == []


@pytest.mark.parametrize("trace", ["all", "every=2", "budget=50%"])
def test_the_end_of_an_order_without_an_end_restores_the_policy_of_the_jobs_start(make_job: Any, trace: str) -> None:
    job = make_job("every=10")
    job.steps(10)
    job.order("every=3")
    job.order(trace)
    assert job.steps(30)
    generation = job.order("off", for_ns=-1, order_end=1)
    job.steps(1)
    assert job.word("order_over") == generation
    assert job.steps(30) == [50, 60, 70]


def test_the_end_of_an_order_with_an_end_restores_the_order_before_it(make_job: Any) -> None:
    job = make_job("off")
    job.order("every=10")
    job.steps(5)
    job.order("all", count=100)
    assert job.steps(10) == list(range(6, 16))
    job.order("off", for_ns=-1, order_end=1)
    assert job.steps(20) == [20, 30]


def test_an_order_that_is_withdrawn_leaves_the_order_without_an_end_in_force(make_job: Any) -> None:
    job = make_job("off")
    job.order("every=10")
    job.steps(5)
    job.order("off", for_ns=-1)
    assert job.steps(20) == [10, 20]


@pytest.mark.parametrize(
    ("trace", "first"),
    [
        *(("all", 101), ("every=50", 150), ("every=101", 101), ("steps=3-7,105-200", 105), ("steps=90-120", 101)),
        *(("off", 101), ("budget=1%", 101), ("steps=1-5", 101)),
    ],
)
def test_the_first_step_that_an_order_selects_is_known_at_once(make_job: Any, trace: str, first: int) -> None:
    job = make_job("off")
    job.steps(100)
    job.order(trace)
    job.steps(1)
    assert (job.word("order_kind"), job.word("order_step")) == (layout.TRAIN, first)


def test_the_first_step_of_an_order_is_named_as_it_is_recorded(make_job: Any) -> None:
    job = make_job("off")
    job.steps(100)
    job.order("every=50")
    batch = SimpleNamespace(tracker=SimpleNamespace(kind=layout.BATCH), ordinal=21)
    tracker = job.trackers[layout.TRAIN]
    tracker.level(tracker.next(), 1, batch=batch)
    assert (job.word("order_kind"), job.word("order_step")) == (layout.BATCH, 21 + 150 - 101)


def test_the_channel_has_the_budget_of_the_order_in_force(make_job: Any) -> None:
    job = make_job("budget=1%")
    budgets = []
    for trace, count in (("budget=0.5%", 0), ("all", 3), ("off", 0), ("budget=0.2%", 0)):
        job.order(trace, count)
        job.step()
        budgets.append(job.word("order_budget"))
        job.steps(1_000)
        budgets.append(job.word("order_budget"))
    # An order with a count ends after its traces. Then the last order without an end is in force
    # again.
    assert budgets == [5_000, 5_000, 0, 5_000, 0, 0, 2_000, 2_000]


def test_after_an_order_with_an_end_the_jobs_own_budget_is_in_force(make_job: Any) -> None:
    job = make_job("budget=1%")
    job.order("budget=5%", for_ns=SECOND)
    job.step()
    assert job.word("order_budget") == 50_000
    job.steps(2 * SECOND // STEP)
    assert job.word("order_budget") == 0


def test_several_ranges_reach_a_running_job(make_job: Any) -> None:
    job = make_job("off")
    job.steps(10)
    generation = job.order("steps=20-21,30,40-42")
    assert job.steps(50) == [20, 21, 30, 40, 41, 42]
    assert job.word("order_over") == generation


def test_an_order_with_past_ranges_ends_at_once(make_job: Any) -> None:
    job = make_job("off")
    job.steps(100)
    generation = job.order("steps=20-21,30")
    assert job.steps(2) == []
    assert (job.word("policy_seen"), job.word("order_over")) == (generation, generation)


def test_each_kind_gets_its_traces_and_the_main_kind_ends_the_order(make_job: Any) -> None:
    job = make_job("off")
    for _ in range(10):
        job.step(layout.TRAIN)
        job.step(layout.RUN, STEP // 100)
    job.order("all", count=5)
    for _ in range(4):
        for _ in range(3):
            job.step(layout.RUN, STEP // 100)
        job.step(layout.TRAIN)
    assert [ordinal for kind, ordinal in job.traced if kind == layout.RUN] == [11, 12, 13, 14, 15]
    assert not job.word("order_over")
    job.step(layout.TRAIN)
    assert [ordinal for kind, ordinal in job.traced if kind == layout.TRAIN] == [11, 12, 13, 14, 15]
    assert job.word("order_over") == job.word("policy_seen") == 1
    for _ in range(100):
        job.step(layout.RUN, STEP // 100)
    assert len(job.traced) == 10


def test_steps_that_consist_of_others_do_not_delay_the_end_of_an_order(make_job: Any) -> None:
    job = make_job("off")
    job.order("all", count=5)
    for _ in range(10):
        job.step(layout.TRAIN)
        job.words[layout.TIMES_AT // 8 + layout.BATCH] += 3 * STEP
    assert job.word("order_over") == 1
    assert len(job.traced) == 5


def test_an_order_that_is_being_written_is_not_applied(make_job: Any) -> None:
    job = make_job("off")
    job.steps(10)
    job.order("all", count=2, policy_writing=1)
    assert job.steps(5) == []
    assert job.word("policy_seen") == 0
    job.words[WORD["policy_writing"]] = 0
    assert job.steps(5) == [16, 17]


def test_an_invalid_policy_is_refused_and_changes_nothing(make_job: Any) -> None:
    job = make_job("every=5")
    job.steps(4)
    generation = job.order("all", policy_mode=99)
    assert job.steps(6) == [5, 10]
    assert (job.word("policy_seen"), job.word("policy_refused")) == (0, generation)
    assert [slug for slug, _ in job.reports] == ["trace-policy"]
    job.order("all", count=1)
    assert job.steps(1) == [11]


def test_an_order_to_detach_disarms_once(make_job: Any) -> None:
    job = make_job("all")
    job.steps(3)
    generation = job.order("off", detach=1)
    assert job.steps(10) == []
    assert job.detach_count == 1
    assert (job.word("policy_seen"), job.word("order_step")) == (generation, 4)


# -- without an agent ----------------------------------------------------------------------------


@pytest.mark.parametrize("trace", ["all", "every=3", "budget=5%"])
def test_steps_are_traced_for_half_a_minute_without_an_agent(make_job: Any, trace: str) -> None:
    job = make_job(trace)
    job.is_agent_beating = False
    assert job.steps(2900)
    assert job.steps(300)[-1:] <= [3000]
    assert job.steps(2000) == []
    assert job.word("agent_lost") == 1
    assert job.words[layout.COUNTS_AT // 8 + layout.TRAIN] == 5200


def test_the_return_of_a_lost_agent_changes_nothing_until_an_order(make_job: Any) -> None:
    job = make_job("all")
    job.steps(100)
    job.is_agent_beating = False
    job.steps(4000)
    job.is_agent_beating = True
    assert job.steps(1000) == []
    job.order("all", count=2)
    assert job.steps(2) == [5101, 5102]
    assert job.word("agent_lost") == 0
    assert job.steps(10) == list(range(5103, 5113))


def test_a_job_that_was_stopped_together_with_its_agent_continues(make_job: Any) -> None:
    job = make_job("all")
    job.steps(100)
    job.now += 100 * SECOND
    job.is_agent_beating = False
    assert job.steps(200) == []
    job.is_agent_beating = True
    assert len(job.steps(100)) == 100
    assert job.word("agent_lost") == 0


@pytest.mark.parametrize(("trace", "is_bounded"), [("all", True), ("every=2", False)])
def test_an_order_ends_with_its_agent(make_job: Any, trace: str, is_bounded: bool) -> None:
    job = make_job("off")
    generation = job.order(trace, for_ns=3600 * SECOND if is_bounded else 0)
    job.steps(10)
    job.is_agent_beating = False
    job.steps(4000)
    assert (job.word("agent_lost"), job.word("order_over")) == (1, generation)
    assert job.steps(1000) == []


def test_an_agent_with_another_clock_is_not_lost(make_job: Any) -> None:
    job = make_job("all")
    job.is_agent_beating = False
    for number in range(8000):
        if number % 200 == 0:
            job.words[WORD["agent_beat_ns"]] = 1 + number
        job.step()
    assert len(job.traced) > 6000
    assert job.word("agent_lost") == 0
