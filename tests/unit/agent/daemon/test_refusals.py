"""Refusals: one entry per process and reason, and the count of all."""

from tfprof.agent.daemon import refusals
from tfprof.agent.daemon.refusals import Refusal, Refusals


def test_a_reason_is_listed_once_for_each_process_with_its_newest_text_and_count() -> None:
    collection = Refusals()
    collection.add(7, 12, "bad-channel", "first")
    collection.add(7, 13, "bad-channel", "of another process")
    collection.add(7, 12, "bad-channel", "second")
    assert list(collection) == [
        Refusal(7, 13, "bad-channel", "of another process", 1),
        Refusal(7, 12, "bad-channel", "second", 2),
    ]
    assert collection.total == 3


def test_all_refusals_are_counted_and_the_newest_kept(monkeypatch) -> None:
    monkeypatch.setattr(refusals, "ENTRIES_MAX", 3)
    collection = Refusals()
    for pid in range(10):
        collection.add(0, pid, "bad-channel", "no")
    assert [refusal.pid for refusal in collection] == [7, 8, 9]
    assert collection.total == 10
