"""Events of a job."""

import pytest
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
    result = events(table)
    assert result == (EventSummary("gap", "3 records", 5, 10, 30), EventSummary("outside-steps", "ops", 7, 20, 20))
    assert [event.is_harmless for event in result] == [False, True]


def test_a_job_without_events_has_none() -> None:
    assert events(rows("events", [])) == ()


@pytest.mark.parametrize(
    ("slug", "count", "line"),
    [
        ("refused", 1, "a text [refused]"),
        ("refused", 1200, "a text, 1,200 times [refused]"),
        ("gap", 1, "a text: 1 [gap]"),
        ("given-up", 20, "a text: 20 [given-up]"),
        ("store-removed", 1200, "a text: 1,200 [store-removed]"),
    ],
)
def test_the_line_of_an_event_says_how_often_it_occurred_or_how_many_entries_it_lost(
    slug: str, count: int, line: str
) -> None:
    assert EventSummary(slug, "a text", count, 0, 0).line == line


def test_events_about_different_parts_that_cannot_be_recorded_are_kept_apart() -> None:
    event = {"slug": "patch-missing", "count": 1}
    table = rows(
        "events",
        [{**event, "t_ns": 1, "text": "a"}, {**event, "t_ns": 2, "text": "b"}, {**event, "t_ns": 3, "text": "a"}],
    )
    result = events(table)
    assert [(each.text, each.count) for each in result] == [("a", 2), ("b", 1)]
    assert all(each.is_incompleteness and not each.is_harmless for each in result)
