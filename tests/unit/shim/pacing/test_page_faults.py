"""Page faults of steps before and after traces."""

import mmap

import pytest
from tfprof.shim.pacing.page_faults import COMPARED_STEPS, SETTLING_STEPS, PageFaultMonitor, fault_count


class Steps:
    """Steps with given page faults; the monitor gets the start of each."""

    def __init__(self):
        self.total = self.ordinal = 0
        self.monitor = PageFaultMonitor(lambda: self.total)

    def run(self, *fault_counts, traced=False):
        for faults in fault_counts:
            self.ordinal += 1
            self.monitor.note_begin(self.ordinal)
            if traced:
                self.monitor.note_trace(self.ordinal)
            self.total += faults
        return self


@pytest.fixture
def steps():
    return Steps().run(90_000, 10, 12, 11).run(5000, traced=True)


def test_page_faults_of_this_process_are_counted():
    before = fault_count()
    with mmap.mmap(-1, 400 * mmap.PAGESIZE) as memory:
        for page in range(400):
            memory[page * mmap.PAGESIZE] = 1
    assert 400 <= fault_count() - before < 4000


def test_steps_after_a_trace_are_compared_with_those_before_it(steps):
    steps.run(3000, 3000)
    for _ in range(COMPARED_STEPS):
        assert steps.monitor.is_comparing
        assert steps.monitor.rise() is None
        steps.run(211)
    assert steps.run(0).monitor.rise() == 200


def test_unusual_steps_do_not_count(steps):
    """The first step, a traced step and the SETTLING_STEPS after it are unusual."""
    assert steps.run(*[7000] * SETTLING_STEPS, *[11] * COMPARED_STEPS, 0).monitor.rise() == 0


def test_a_single_step_with_many_page_faults_changes_nothing(steps):
    assert steps.run(0, 0, 11, 99_000, 11, 11, 0).monitor.rise() == 0


def test_a_further_trace_keeps_the_baseline(steps):
    steps.run(0, 0, *[500] * COMPARED_STEPS).run(9000, traced=True)
    assert steps.monitor.rise() is None
    assert steps.run(0, 0, *[300] * COMPARED_STEPS, 0).monitor.rise() == 289


def test_accepted_steps_are_the_new_baseline(steps):
    steps.run(0, 0, *[500] * COMPARED_STEPS, 500)
    steps.monitor.accept()
    assert not steps.monitor.is_comparing
    assert steps.run(500, 500).run(9000, traced=True).run(0, 0, *[510] * COMPARED_STEPS, 0).monitor.rise() == 10


def test_unreported_steps_share_the_faults_of_their_interval(steps):
    steps.run(0, 0, 11)
    for _ in range(COMPARED_STEPS):
        steps.run(2000)
        steps.ordinal += 9  # nine unreported steps
    assert steps.run(0).monitor.rise() == 200 - 11


def test_steps_reported_out_of_order_do_no_harm(steps):
    for ordinal in (9, 7, 8, 8, 12, 13, 14, 15, 16):
        steps.total += 11
        steps.monitor.note_begin(ordinal)
    assert abs(steps.monitor.rise()) <= 11


def test_without_earlier_steps_nothing_is_compared():
    steps = Steps().run(90_000).run(5000, traced=True).run(*[5000] * 9)
    assert not steps.monitor.is_comparing
