"""Advice as text."""

import pytest
from tfprof.collector.advice.report import Advice, Checker, Report
from tfprof.collector.render.advice_text import lines
from tfprof.collector.tfviews.parity import Parity

TEXT = "70 % of the time in 2 traced steps is spent waiting for input: 700 µs a step, 1.5 GB in use, 3 steps."


def advice(text: str = TEXT, line: str = "train.py:12 (main)", remedy: str = "prepare batches ahead") -> list[Advice]:
    """Return advice: a checker without findings, and one with a finding."""
    checker = Checker("InputChecker", "input", "Input", lambda _: [])
    silent_checker = Checker("MemoryChecker", "memory", "Memory", lambda _: [])
    return [Advice(silent_checker, ()), Advice(checker, (Report(text, {}, remedy, line),))]


def test_a_finding_has_its_text_the_users_line_and_the_remedy() -> None:
    assert list(lines(advice())) == [
        f"Input: {TEXT}",
        "  your line:  train.py:12 (main)",
        "  what to do: prepare batches ahead",
    ]


def test_an_unknown_line_or_remedy_is_left_out() -> None:
    assert list(lines(advice(line="", remedy=""))) == [f"Input: {TEXT}"]


def test_an_empty_line_separates_findings() -> None:
    assert list(lines([*advice(remedy=""), *advice(line="", remedy="")])) == [
        f"Input: {TEXT}",
        "  your line:  train.py:12 (main)",
        "",
        f"Input: {TEXT}",
    ]


@pytest.mark.parametrize("width", range(30, 121))
def test_lines_fit_and_numbers_stay_with_their_units(width: int) -> None:
    wrapped_lines = list(lines(advice(), width))
    assert max(map(len, wrapped_lines)) <= width
    assert " ".join(" ".join(wrapped_lines).split()) == " ".join(" ".join(lines(advice())).split())
    assert not any(line.strip().startswith(("%", "µs", "GB")) for line in wrapped_lines)


def test_names_of_a_job_cannot_move_the_cursor() -> None:
    assert "\x1b" not in "".join(lines(advice(text="a\x1b[2Jb", line="\x1b.py:1")))


def test_with_exact_parity_every_checker_is_listed_with_texts_only() -> None:
    assert list(lines(advice(), parity=Parity(exact=True))) == ["", "MemoryChecker:", "", "InputChecker:", TEXT]
