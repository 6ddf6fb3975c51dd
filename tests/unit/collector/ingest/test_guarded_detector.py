"""An internal error of the detector ends the watch of one job only."""

import pytest
from tfprof.collector.alerts.job_watch import JobWatch
from tfprof.collector.ingest.guarded_detector import GuardedDetector

NS = 10**9
NOW = 1_700_000_000 * NS


def test_a_job_whose_evaluation_fails_does_not_silence_the_alerts_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[tuple[int, str]] = []
    detector = GuardedDetector(lambda uid, error: failures.append((uid, str(error))))
    for uid, name in ((1, "broken"), (2, "healthy")):
        detector.open(uid, "host", name)
    original = JobWatch.alerts

    def alerts(job: JobWatch, now_ns: int) -> object:
        if job.training == "broken":
            raise ValueError("a defect")
        return original(job, now_ns)

    monkeypatch.setattr(JobWatch, "alerts", alerts)
    for number in range(2):
        detector.add_counters(2, {"dropped_records": 5 * number}, NOW)
    new_alerts = detector.alerts(NOW)
    assert [(uid, alert.slug) for uid, alert in new_alerts] == [(2, "losses")]
    assert failures == [(1, "a defect")]
    detector.alerts(NOW + 2 * NS)
    assert failures == [(1, "a defect")]
