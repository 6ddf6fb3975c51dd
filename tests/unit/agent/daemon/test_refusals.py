"""Refusals are counted one by one and told by reason."""

from tfprof.agent.daemon import refusals
from tfprof.agent.daemon.refusals import Refusal, Refusals


def test_the_same_reason_is_told_once_with_its_newest_text_and_how_often_it_came() -> None:
    told = Refusals()
    told.add(7, 12, "bad-channel", "first")
    told.add(7, 13, "bad-channel", "of another process")
    told.add(7, 12, "bad-channel", "second")
    assert list(told) == [
        Refusal(7, 13, "bad-channel", "of another process", 1),
        Refusal(7, 12, "bad-channel", "second", 2),
    ]
    assert len(told) == 3


def test_all_are_counted_and_the_newest_kept(monkeypatch) -> None:
    monkeypatch.setattr(refusals, "REASONS_MAX", 3)
    told = Refusals()
    for pid in range(10):
        told.add(0, pid, "bad-channel", "no")
    assert [one.pid for one in told] == [7, 8, 9]
    assert len(told) == 10
