"""Traced steps without ops: three in a row of one kind are reported once."""

import pytest
from tfprof.collector.ingest.empty_steps import EmptySteps, event_text
from tfprof.formats import layout


def reported(*steps: tuple[int, int, bool]) -> list[int]:
    """Return the positions of the steps, (kind, key, is empty), at which a kind is reported."""
    empty_steps = EmptySteps()
    return [at for at, (kind, key, is_empty) in enumerate(steps) if empty_steps.note(kind, key, is_empty=is_empty)]


@pytest.mark.parametrize(("length", "expected"), [(2, []), (3, [2]), (9, [2])])
def test_the_third_empty_step_in_a_row_is_reported_once(length: int, expected: list[int]) -> None:
    assert reported(*[(layout.TRAIN, 0, True)] * length) == expected


def test_a_step_with_ops_begins_a_new_row() -> None:
    empty, full = (layout.TRAIN, 0, True), (layout.TRAIN, 0, False)
    assert reported(empty, empty, full, empty, empty) == []
    assert reported(empty, empty, full, empty, empty, empty, full, empty, empty, empty) == [5]


def test_kinds_and_functions_are_counted_apart_and_sets_of_fetches_together() -> None:
    assert reported((layout.TRAIN, 0, True), (layout.RUN, 0, True), (layout.BATCH, 0, True)) == []
    assert reported(*[(layout.FUNCTION, key, True) for key in (1, 2, 3, 1, 2, 3, 3, 1)]) == [6, 7]
    assert reported(*[(layout.RUN, key, True) for key in (1, 2, 3)]) == [2]


def test_a_copy_counts_by_itself() -> None:
    empty_steps = EmptySteps()
    empty_steps.note(layout.RUN, 0, is_empty=True)
    copied = empty_steps.copy()
    assert [copied.note(layout.RUN, 0, is_empty=True) for _ in range(2)] == [False, True]
    assert not empty_steps.note(layout.RUN, 0, is_empty=True)


def test_the_text_names_the_kind_and_the_function() -> None:
    assert event_text(layout.TRAIN, None).startswith("3 traced train steps in a row have no op")
    assert event_text(layout.FUNCTION, "step").startswith("3 traced function:step steps in a row")
    assert event_text(200, None).startswith("3 traced 200 steps in a row")
