"""Runs a command, or two commands in turns, several times: `tfprof-run --repeat`."""

import os
import signal
import sys
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from ...commands import daemons, streams
from ...formats import runtime_dir
from ...formats.errors import TfprofError
from ..launches import SERIES_TAG
from . import report, supervise
from .supervise import Outcome

#: The sides of a series of two commands, in the order of their runs.
SIDES: Final = ("before", "after")
#: Fewest and most runs of a command.
RUNS_MIN: Final = 2
RUNS_MAX: Final = 1000
#: Time limit of the comparison (seconds). It reads each run.
_COMPARISON_TIMEOUT_S: Final = 120.0


class Repetition(NamedTuple):
    """A request to run the command ``runs`` times, in turns with ``alternate`` if that is set."""

    runs: int
    alternate: list[str] | None = None


class OneRun(Protocol):
    """One run of a series; ``interruption`` is the signal that asked for the end, 0 if none did."""

    interruption: int

    def supervise(self) -> Outcome:
        """Run the command to its end."""


class Series:
    """The runs of ``command`` that ``repetition`` asks for.

    ``make_run`` returns a run of a command; its second argument is the value of SERIES_TAG for the
    jobs. Nothing is printed with ``quiet``.
    """

    def __init__(
        self,
        repetition: Repetition,
        command: list[str],
        make_run: Callable[[list[str], str], OneRun],
        *,
        quiet: bool,
    ) -> None:
        self._id = os.urandom(3).hex()
        self._make_run = make_run
        self._quiet = quiet
        commands = [command] if repetition.alternate is None else [command, repetition.alternate]
        self._turns = [*enumerate(commands)] * repetition.runs
        self._has_sides = len(commands) > 1

    def run(self) -> Outcome:
        """Run all, and return the end of the last one; a run that fails ends the series.

        So does a signal that asks for the end, even if the job goes on to its end as usual: the
        outcome is then that signal.
        """
        for number, (side, command) in enumerate(self._turns, 1):
            interruption = supervise.wait_for_interrupt(0)
            if interruption:
                self._say(f"{_name(interruption)} ended the series before run {number} of {len(self._turns)}")
                return Outcome(None, interruption)
            self._say(f"run {number} of {len(self._turns)}" + (f", {SIDES[side]}" if self._has_sides else ""))
            run = self._make_run(command, f"{self._id}:{SIDES[side]}" if self._has_sides else self._id)
            outcome = run.supervise()
            if run.interruption:
                self._say(f"{_name(run.interruption)} ended the series in run {number} of {len(self._turns)}")
                return outcome if outcome.exit_code else Outcome(None, run.interruption)
            if outcome.exit_code:
                end = f"exit status {outcome.status}" if outcome.signal is None else _name(outcome.signal)
                self._say(f"run {number} of {len(self._turns)} failed ({end}), which ends the series")
                return outcome
        return outcome

    def compare(self, store: str) -> None:
        """Print how the sides differ, or how the runs of one side spread."""
        if self._quiet or sys.stderr is None:
            return
        name = f"{SERIES_TAG}:{self._id}"
        command = daemons.isolated_command(report.REPORT, [name, "--store", store])
        try:
            log = os.path.join(runtime_dir.make_instance(store), "report.log")
            ending = report.run_report(command, log, _COMPARISON_TIMEOUT_S)
            reason = "it took too long" if ending.is_late else f"see {log}" if ending.has_failed else None
        except (OSError, TfprofError) as error:  # the exit status must not depend on the comparison
            reason = str(getattr(error, "strerror", error))
        if reason is not None:
            streams.note(f"no comparison: {reason}; `tfprof diff {name}` makes it, too")

    def _say(self, text: str) -> None:
        if not self._quiet:
            streams.note(text)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
