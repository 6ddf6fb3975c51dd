"""`tfprof shell`: an interactive shell with the commands and options of the TF profiler's shell."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

import click

from ..collector.api import invalid_argument
from ..collector.errors import NoSuchStepError, RefusedOutputError, TfprofError, UsageError
from ..collector.query.engine import VIEWS, QueryEngine
from ..collector.query.job_selection import Selection, ids_of
from ..collector.render.wrapper_text import table
from ..collector.summaries.kinds import parse_kinds
from ..collector.tfviews.options import TABLE, Options, from_texts, warnings
from ..collector.tfviews.parity import Parity
from ..collector.write_output import Terminal, write_output
from ..commands import streams
from ..commands.streams import note, print_lines
from ..formats.version import VERSION
from .command import width
from .selection_options import TfprofCommand, pop_selection, selection_from, selection_options, view_options
from .shell_history import LineHistory, history_file
from .shell_line import COMMANDS, STEP_KIND, ParsedLine, parse
from .shell_names import JobNames
from .views import print_answer

PROMPT: Final = "tfprof> "


class Shell:
    """The state of a shell: the session's options and the entered lines.

    `has_failed`: some line had an error.
    """

    def __init__(self, select: Callable[[], Selection], options: Options, history: LineHistory) -> None:
        self._select = select
        self._parity = select().parity
        self._engine = QueryEngine()
        self._history = history
        self.options = options
        self.kinds: tuple[int, ...] | None = None  # of steps, as set in this session
        self.has_failed = False

    def run(self, text: str) -> bool:
        """Execute one line; return False if it ends the shell."""
        if not text.strip():
            print_lines(table(self.options))
            return True
        self._history.add(text.strip())
        try:
            line = parse(text)
            if line.command in {"exit", "quit"}:
                return False
            self._execute(line)
        except TfprofError as error:
            self.has_failed = True
            text = f"tfprof: {error}" if self._parity.has_own_layout else _tf_message(error, self._parity)
            streams.say(*text.split("\n"))
        sys.stdout.flush()
        return True

    def _execute(self, line: ParsedLine) -> None:
        if line.command == "help":
            print_lines(_help(*line.words[:1]))
        elif line.command == "advise":
            self._advise()
        elif line.command == "history":
            print_lines(f"{number:5}  {text}" for number, text in enumerate(self._history.texts, 1))
        else:
            texts = dict(line.texts)
            kind = texts.pop(STEP_KIND.name, None)
            kinds = self.kinds if kind is None else parse_kinds(kind)
            options = from_texts(texts, self.options, self._parity)
            for text in warnings(options):
                note(text)
            if line.command == "set":
                self.options, self.kinds = options, kinds
            elif line.command in VIEWS:
                self._show(line.command, options, kinds)

    def _advise(self) -> None:
        from ..collector.query.advising import advise  # noqa: PLC0415  # large, and few sessions need it
        from .advise import print_advice  # noqa: PLC0415

        selection = self._select()
        print_advice(advise(selection), selection.parity)

    def _show(self, view: str, options: Options, kinds: tuple[int, ...] | None) -> None:
        selection = self._select()
        selection = selection if kinds is None else replace(selection, kinds=kinds)
        print_answer(write_output(self._engine, selection, view, options, terminal=Terminal(width())))


def _tf_message(error: TfprofError, parity: Parity) -> str:
    """Return the TF profiler's message about ``error``."""
    if isinstance(error, (NoSuchStepError, RefusedOutputError)):
        return error.tf_message
    if isinstance(error, UsageError):
        return f"E: {invalid_argument(parity, getattr(error, 'tf_message', str(error.args[0])).rstrip())}"
    return f"tfprof: {error}"


def _help(view: str = "") -> Iterator[str]:
    if view not in VIEWS:
        yield (
            "COMMAND [-option value ...]   lists are separated by commas;"
            " an empty line shows the options of this session"
        )
        yield from (f"  {name:<8} {text}" for name, text in COMMANDS.items())
        yield ""
    for option in (*TABLE, STEP_KIND):
        yield f"  {f'-{option.name} {option.metavar}':<32} {option.help_for(view)}"


def _read_terminal(shell: Shell, history: LineHistory, names: JobNames) -> None:
    """Read lines from a terminal, with editing, completion and history."""
    from .shell_terminal import Prompt  # noqa: PLC0415  # loading it takes a tenth of a second

    prompt = Prompt(PROMPT, history, names)
    while (text := prompt.line()) is not None:
        try:
            if not shell.run(text):
                break
        except KeyboardInterrupt:
            print_lines([""])


def _read_pipe(shell: Shell) -> None:
    """Read lines from a pipe or file."""
    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(errors="surrogateescape")
    while (text := _next_line()) and shell.run(text):
        pass


def _next_line() -> str:
    """Return the next line of standard input, '' at its end."""
    try:
        return sys.stdin.readline()
    except OSError as error:
        raise TfprofError(f"standard input: {error.strerror}", "io") from None


@click.command(cls=TfprofCommand)
@selection_options
@view_options("")
def shell(compat: str, exact: bool, **values: Any) -> int:
    """Query JOBs at an interactive prompt.

    scope, graph, op, code and advise have the options of `tfprof op`; help lists all commands.

    On a terminal, lines can be edited, completed (Tab) and recalled. Otherwise the exit status is 1
    if any line had an error. Options given here, or by `set`, are the defaults of the session.
    """
    job_options = pop_selection(values)
    parity = Parity(compat, exact)
    options = from_texts(values, parity=parity)
    first_selection = selection_from(**job_options, parity=parity)
    uids = [job.info.hex for job in first_selection.jobs]

    def select() -> Selection:
        return replace(
            first_selection,
            jobs=selection_from(**{**job_options, "jobs": uids, "hosts": (), "pids": ()}, parity=parity).jobs,
        )

    if sys.stdin.isatty() and sys.stdout.isatty():
        ids = ids_of(first_selection.jobs)
        names = " ".join(f"{ids[job.info.hex]} {job.info.name}" for job in first_selection.jobs[:4])
        print_lines([f"tfprof {VERSION}: {names}{' …' if len(uids) > 4 else ''}; `help` lists the commands"])
        history = LineHistory(history_file())
        _read_terminal(Shell(select, options, history), history, JobNames(first_selection.jobs))
        return 0
    piped_shell = Shell(select, options, LineHistory())
    _read_pipe(piped_shell)
    return int(piped_shell.has_failed)
