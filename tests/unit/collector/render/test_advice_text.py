"""Advice as text."""

import pytest
from tfprof.collector.advice.report import Advice, Checker, Report
from tfprof.collector.render.advice_text import lines
from tfprof.collector.tfviews.parity import Parity

TEXT = "70 % of the time in 2 traced steps is spent waiting for input: 700 µs a step, 1.5 GB in use, 3 steps."


def checker(slug: str, title: str) -> Checker:
    """Return a checker whose verdict is its slug."""
    return Checker(f"{title}Checker", slug, title, lambda _: [], lambda _: "", f"the verdict of {slug}")


def advice(text: str = TEXT, line: str = "train.py:12 (main)", remedy: str = "prepare batches ahead") -> list[Advice]:
    """Return advice: a checker without data, one without findings, and one with a finding."""
    return [
        Advice(checker("copies", "Copies"), (), "no GPU"),
        Advice(checker("memory", "Memory"), ()),
        Advice(checker("input", "Input"), (Report(text, {}, remedy, line, 0.7),)),
    ]


def test_the_verdict_comes_first_and_checks_without_a_finding_come_last() -> None:
    assert list(lines(advice())) == [
        "Verdict: the verdict of input, up to 70 % of the time.",
        "",
        f"Input: {TEXT}",
        "  your line:  train.py:12 (main)",
        "  what to do: prepare batches ahead",
        "",
        "Checked, and fine: Memory.",
        "No data (no GPU): Copies.",
    ]


def test_an_unknown_line_or_remedy_is_left_out() -> None:
    assert list(lines(advice(line="", remedy="")))[:4] == [
        "Verdict: no cause of lost time was found.",
        "",
        f"Input: {TEXT}",
        "",
    ]


@pytest.mark.parametrize("width", range(40, 121))
def test_lines_fit_and_numbers_stay_with_their_units(width: int) -> None:
    wrapped_lines = list(lines(advice(), width))
    assert max(map(len, wrapped_lines)) <= width
    assert " ".join(" ".join(wrapped_lines).split()) == " ".join(" ".join(lines(advice())).split())
    assert not any(line.strip().startswith(("%", "µs", "GB")) for line in wrapped_lines)


def test_with_exact_parity_every_checker_is_listed_with_texts_only() -> None:
    assert list(lines(advice(), parity=Parity(exact=True))) == [
        *("", "CopiesChecker:", "", "MemoryChecker:", "", "InputChecker:", TEXT)
    ]
