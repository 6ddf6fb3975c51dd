"""What befell a job."""

from fakes.made_store import rows
from tfprof.collector.summaries.events import EventSummary, events


def test_events_are_put_together_by_slug_and_come_as_they_first_befell() -> None:
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


def test_a_job_that_nothing_befell_has_none() -> None:
    assert events(rows("events", [])) == ()
