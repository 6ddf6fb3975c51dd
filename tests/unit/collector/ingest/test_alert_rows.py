"""Alerts can be stored whatever times and counts a job reports."""

import pytest
from tfprof.collector.alerts.alert import Alert
from tfprof.collector.decoders.columns import INT64_MAX
from tfprof.collector.ingest.parsing import UINT64_MAX, alert_rows


@pytest.mark.parametrize(
    ("since_ns", "step", "before", "now"),
    [(2**63, 2**64 - 1, 2**53 + 1, 2**64 - 1), (2**70, 2**64, 1.5, 2**65), (-(2**70), -1, 0, float("inf"))],
)
def test_times_and_steps_are_saturated(since_ns: int, step: int, before: float, now: float) -> None:
    (row,) = alert_rows([Alert(1, since_ns, "slower-steps", step=step, before=before, now=now)]).to_pylist()
    assert abs(row["since_ns"]) == INT64_MAX
    assert row["step"] == max(0, min(step, UINT64_MAX))
    assert (row["before"], row["now"]) == (float(before), float(now))
