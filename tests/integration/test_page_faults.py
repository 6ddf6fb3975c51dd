"""A real process whose steps have more page faults after a trace than before.

The shim traces steps again until the additional page faults are gone, or reports them.
"""

import json

import pytest
from fakes.armed_job import JOBS
from fakes.channel_reader import ChannelReader, ordinals
from tfprof.formats import layout
from tfprof.shim.pacing.pacer import FIRST_TRACES, TRIES, WARM_UP
from tfprof.shim.pacing.page_faults import COMPARED_STEPS, SETTLING_STEPS

pytestmark = pytest.mark.tf
START, REPEAT_INTERVAL = WARM_UP + 1, FIRST_TRACES + SETTLING_STEPS + COMPARED_STEPS
FIRST_SERIES_END = WARM_UP + FIRST_TRACES
CASES = [
    ("tf2", "function", layout.FUNCTION),
    ("tf2", "session", layout.RUN),
    ("tf1", "session", layout.RUN),
]


def run(armed_forks, case, first, last):
    """Run the job, with additional page faults before the steps from ``first`` to ``last``.

    Return (ordinals of traced steps, refusals).
    """
    version, mode, kind = case
    job = armed_forks(version).start(JOBS / "page_faults.py", mode, first, last).until_ready()
    reader = ChannelReader.of_process(job.pid).take(ended=True)
    spans = [span for span in reader.of_kind(kind) if span.flags & layout.FLAG_TRACED]
    traced = ordinals(spans)
    refusals = [json.loads(record.data) for record in reader.records_of(layout.REFUSED)]
    assert reader.fault() == ""
    reader.close()
    job.go_on()
    assert job.finish().status == 0
    return traced, refusals


def series_ordinals(count):
    """Return the ordinals of the traced steps of ``count`` series."""
    return [START + REPEAT_INTERVAL * number + step for number in range(count) for step in range(FIRST_TRACES)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(case[:2]))
@pytest.mark.parametrize("repeats", [0, 1, 2])
def test_steps_are_traced_again_until_they_have_no_more_page_faults_than_before(armed_forks, case, repeats):
    last = FIRST_SERIES_END + REPEAT_INTERVAL * repeats
    assert run(armed_forks, case, FIRST_SERIES_END + 1, last) == (series_ordinals(1 + repeats), [])


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(case[:2]))
def test_page_faults_that_remain_are_reported_once(armed_forks, case):
    traced, refusals = run(armed_forks, case, FIRST_SERIES_END + 1, 80)
    assert traced == series_ordinals(1 + TRIES)
    assert [refusal["slug"] for refusal in refusals] == ["page-faults"]
    assert int(refusals[0]["text"].split()[3]) == pytest.approx(3000, rel=0.1)


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(case[:2]))
def test_steps_are_not_traced_again_if_their_page_faults_did_not_rise(armed_forks, case):
    assert run(armed_forks, case, 1, 80) == (series_ordinals(1), [])
