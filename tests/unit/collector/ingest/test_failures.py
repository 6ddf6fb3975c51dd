"""Internal errors of jobs are counted, and many of them are a quarantine."""

import pytest
from tfprof.collector.ingest.failures import FAILURES_MAX, Failures, QuarantinedError


def test_a_job_with_many_errors_is_quarantined_once_and_others_are_not() -> None:
    reports: list[int] = []
    failures = Failures(lambda uid, _error: reports.append(uid))
    failures.count_failure(2, ValueError("other"))
    for number in range(FAILURES_MAX):
        assert not failures.quarantine_if_due(1)
        failures.count_failure(1, f"Traceback:\nerror {number}")
    assert failures.quarantine_if_due(1)
    assert not failures.quarantine_if_due(1)
    assert failures.quarantined == {1: f"error {FAILURES_MAX - 1}"}
    assert reports == [2] + [1] * FAILURES_MAX
    failures.check(2)
    with pytest.raises(QuarantinedError, match=f"error {FAILURES_MAX - 1}"):
        failures.check(1)


def test_the_errors_of_an_ended_job_do_not_count_when_it_continues() -> None:
    failures = Failures(lambda _uid, _error: None)
    for _ in range(FAILURES_MAX - 1):
        failures.count_failure(1, ValueError("x"))
    failures.forget(1)
    failures.count_failure(1, ValueError("x"))
    assert not failures.quarantine_if_due(1)
