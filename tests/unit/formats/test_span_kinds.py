"""Kinds of spans that a hello declares: what is accepted, and the collector's numbers."""

from typing import Any

import pytest
from tfprof.formats import layout, span_kinds


@pytest.fixture(autouse=True)
def known_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget afterwards what a test declares."""
    monkeypatch.setattr(span_kinds, "KINDS", dict(span_kinds.KINDS))
    monkeypatch.setattr(span_kinds, "STEPS", dict(span_kinds.STEPS))


@pytest.mark.parametrize(
    "kinds",
    [
        None,
        [],
        "kinds",
        {"1": None},
        {"1": ["forward", "step"]},
        {"1": ["forward", "step", True]},
        {"1": ["forward", "step", -1]},
        {"1": ["forward", "step", 10**9]},
        {"1": ["\x1b[31m", "step", 1]},
        {"1": ["all,batch", "step", 1]},
        {"1": ["f" * 33, "step", 1]},
        {"1": ["forward\n", "step", 1]},
        {"-1": ["forward", "step", 1]},
        {"²": ["forward", "step", 1]},
        {str(layout.KINDS_MAX): ["forward", "step", 1]},
    ],
)
def test_invalid_kinds_are_left_out(kinds: Any) -> None:
    assert span_kinds.declared(kinds) == {}
    assert span_kinds.declare(kinds) == {}


def test_kinds_in_the_notation_of_the_hello_are_read_as_they_are() -> None:
    kinds = {number: span_kinds.Kind(*row) for number, row in layout.KINDS.items()}
    assert all(getattr(layout, kind.name.upper()) == number for number, kind in kinds.items())
    assert span_kinds.declared(span_kinds.document(kinds)) == kinds
    assert span_kinds.declare(span_kinds.document(kinds)) == {}


def test_an_unknown_kind_gets_the_number_of_its_name_and_is_a_step_by_its_role() -> None:
    numbers = span_kinds.declare({"2": ["forward", "step", 2], "5": ["warm_up", "span", 0], "9": ["batch", "step", 1]})
    assert numbers == {2: span_kinds.number_of("forward"), 5: span_kinds.number_of("warm_up"), 9: layout.BATCH}
    assert min(numbers[2], numbers[5]) >= 256
    assert [span_kinds.name_of(numbers[number]) for number in (2, 5)] == ["forward", "warm_up"]
    assert [span_kinds.is_step(numbers[number]) for number in (2, 5)] == [True, False]
    assert span_kinds.others() == (numbers[5],)
    assert span_kinds.steps()[:4] == (*layout.STEP_KINDS[:3], numbers[2])


def test_the_first_declaration_of_a_name_counts() -> None:
    for weight in (3, 7):
        span_kinds.declare({"1": ["forward", "step", weight], "2": ["batch", "span", weight]})
    assert span_kinds.KINDS[span_kinds.number_of("forward")].weight == 3
    assert span_kinds.KINDS[layout.BATCH] == ("batch", "step", 10)


def test_the_number_of_known_kinds_is_limited() -> None:
    for number in range(2000):
        span_kinds.declare({"1": [f"kind_{number}", "step", 1]})
    assert len(span_kinds.KINDS) == span_kinds.KNOWN_MAX
    assert span_kinds.declare({"1": ["later", "step", 1]}) == {1: span_kinds.number_of("later")}
    assert not span_kinds.is_step(span_kinds.number_of("later"))
