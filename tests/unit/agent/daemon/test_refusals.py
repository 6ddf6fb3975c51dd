"""Refusals: one entry per process and reason, and the count of all."""

from tfprof.agent.daemon import refusals
from tfprof.agent.daemon.refusals import Refusal, Refusals


def test_a_reason_is_listed_once_with_its_newest_text_and_count() -> None:
    counted = Refusals()
    counted.add(7, 12, "bad-channel", "first")
    counted.add(7, 13, "bad-channel", "of another process")
    counted.add(7, 12, "bad-channel", "second")
    assert list(counted) == [
        Refusal(7, 13, "bad-channel", "of another process", 1),
        Refusal(7, 12, "bad-channel", "second", 2),
    ]
    assert counted.total == 3


def test_all_refusals_are_counted_and_the_newest_kept(monkeypatch) -> None:
    monkeypatch.setattr(refusals, "REASONS_MAX", 3)
    counted = Refusals()
    for pid in range(10):
        counted.add(0, pid, "bad-channel", "no")
    assert [one.pid for one in counted] == [7, 8, 9]
    assert counted.total == 10
