"""Advice as text."""

import pytest
from tfprof.collector.advice.report import Advice, Checker, Report
from tfprof.collector.render.advice_text import lines

TEXT = "70 % of the time in 2 traced steps is spent waiting for input: 700 µs a step, 1.5 GB in use, 3 steps."


def advice(text: str = TEXT, line: str = "train.py:12 (main)", todo: str = "prepare batches ahead") -> list[Advice]:
    """Return what one checker says."""
    checker = Checker("InputChecker", "input", "Input", lambda _: [])
    silent = Checker("MemoryChecker", "memory", "Memory", lambda _: [])
    return [Advice(silent, ()), Advice(checker, (Report(text, {}, todo, line),))]


def test_a_finding_is_its_sentences_the_line_and_what_to_do() -> None:
    assert list(lines(advice())) == [
        f"Input: {TEXT}",
        "  your line:  train.py:12 (main)",
        "  what to do: prepare batches ahead",
    ]


def test_what_is_not_known_has_no_line_of_its_own() -> None:
    assert list(lines(advice(line="", todo=""))) == [f"Input: {TEXT}"]


def test_findings_are_apart() -> None:
    assert list(lines([*advice(todo=""), *advice(line="", todo="")])) == [
        f"Input: {TEXT}",
        "  your line:  train.py:12 (main)",
        "",
        f"Input: {TEXT}",
    ]


@pytest.mark.parametrize("width", range(30, 121))
def test_lines_fit_and_no_number_is_parted_from_its_unit(width: int) -> None:
    told = list(lines(advice(), width))
    assert max(map(len, told)) <= width
    assert " ".join(" ".join(told).split()) == " ".join(" ".join(lines(advice())).split())
    assert not any(line.strip().startswith(("%", "µs", "GB")) for line in told)


def test_what_a_job_calls_things_moves_no_cursor() -> None:
    assert "\x1b" not in "".join(lines(advice(text="a\x1b[2Jb", line="\x1b.py:1")))


def test_tfprofs_own_form_has_every_checker_and_no_more_than_the_texts() -> None:
    assert list(lines(advice(), exact=True)) == ["", "MemoryChecker:", "", "InputChecker:", TEXT]
