"""The order and the end of the runs of a series; the runs themselves are invented."""

import errno
import signal
from pathlib import Path
from typing import NoReturn

import pytest
from tfprof.agent.launcher import report
from tfprof.agent.launcher.series import Repetition, Series
from tfprof.agent.launcher.supervise import Outcome

SUCCESS = Outcome(0, None)


class InventedRun:
    """A run that ends with ``outcome``; ``interruption`` asked for the end meanwhile."""

    def __init__(self, outcome: Outcome, interruption: int = 0) -> None:
        self.interruption = interruption
        self._outcome = outcome

    def supervise(self) -> Outcome:
        return self._outcome


def made(runs: list[InventedRun], alternate: list[str] | None = None) -> tuple[Outcome, list[tuple[str, str]]]:
    """Run a series of two runs a command, which end as ``runs`` do; return its end and calls."""
    calls: list[tuple[str, str]] = []

    def make_run(command: list[str], tag: str) -> InventedRun:
        calls.append((command[0], tag))
        return runs[len(calls) - 1]

    return Series(Repetition(2, alternate), ["a"], make_run, quiet=False).run(), calls


def test_two_commands_run_in_turns_and_their_tags_are_the_sides(capsys: pytest.CaptureFixture[str]) -> None:
    outcome, calls = made([InventedRun(SUCCESS)] * 4, ["b"])
    name = calls[0][1].partition(":")[0]
    assert outcome == SUCCESS
    assert calls == [("a", f"{name}:before"), ("b", f"{name}:after")] * 2
    assert capsys.readouterr().err.splitlines()[2] == "tfprof: run 3 of 4, before"


def test_one_command_has_one_side() -> None:
    _, calls = made([InventedRun(SUCCESS)] * 2)
    assert [command for command, _ in calls] == ["a", "a"]
    assert len({tag for _, tag in calls if ":" not in tag}) == 1


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (Outcome(3, None), "tfprof: run 2 of 4 failed (exit status 3), which ends the series"),
        (Outcome(None, signal.SIGKILL), "tfprof: run 2 of 4 failed (SIGKILL), which ends the series"),
    ],
)
def test_a_run_that_fails_ends_the_series_as_it_ended(
    outcome: Outcome, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    result, calls = made([InventedRun(SUCCESS), InventedRun(outcome)], ["b"])
    assert (result, len(calls)) == (outcome, 2)
    assert capsys.readouterr().err.splitlines()[-1] == text


@pytest.mark.parametrize(
    ("outcome", "result"), [(SUCCESS, Outcome(None, signal.SIGINT)), (Outcome(5, None), Outcome(5, None))]
)
def test_an_interrupted_run_ends_the_series_even_if_it_succeeds(
    outcome: Outcome, result: Outcome, capsys: pytest.CaptureFixture[str]
) -> None:
    assert made([InventedRun(outcome, signal.SIGINT)])[0] == result
    assert capsys.readouterr().err.splitlines()[-1] == "tfprof: SIGINT ended the series in run 1 of 2"


def test_a_comparison_that_cannot_be_started_is_a_note(
    private_store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_arguments: object) -> NoReturn:
        raise OSError(errno.EAGAIN, "no process")

    monkeypatch.setattr(report, "run_report", fail)
    Series(Repetition(2), ["a"], lambda *_arguments: InventedRun(SUCCESS), quiet=False).compare(str(private_store))
    assert "no comparison: no process; `tfprof diff repeat:" in capsys.readouterr().err
