"""Events of a job."""

from fakes.made_store import rows
from tfprof.collector.summaries.events import EventSummary, events


def test_events_are_merged_by_slug_in_order_of_first_occurrence() -> None:
    table = rows(
        "events",
        [
            {"t_ns": 30, "slug": "gap", "text": "3 records", "count": 3},
            {"t_ns": 20, "slug": "outside-steps", "text": "ops", "count": 7},
            {"t_ns": 10, "slug": "gap", "text": "2 records", "count": 2},
        ],
    )
    found = events(table)
    assert found == (EventSummary("gap", "3 records", 5, 10, 30), EventSummary("outside-steps", "ops", 7, 20, 20))
    assert [event.usual for event in found] == [False, True]


def test_a_job_without_events_has_none() -> None:
    assert events(rows("events", [])) == ()
