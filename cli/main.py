"""The `tfprof` command: a table of commands that are imported when they are called for."""

import contextlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any, Final

import click

from ..collector.loader import load
from ..commands import settings_files, streams
from ..commands.isolated import occupy_standard
from ..formats.errors import TfprofError, UsageError
from ..formats.settings import SETTINGS
from ..formats.version import VERSION
from .interrupt import Interruptible, StoppedError
from .suggestion import suggestion

#: Name of each command, where it is, and what `tfprof --help` says of it.
COMMANDS: Final = {
    "jobs": ("tfprof.cli.jobs:jobs", "All jobs, running and ended."),
    "scope": ("tfprof.cli.views:scope", "What ops cost, in the tree of their names."),
    "graph": ("tfprof.cli.views:graph", "What ops cost, each below the one that uses it."),
    "op": ("tfprof.cli.views:op", "What each op type cost: time, memory, occurrence."),
    "code": ("tfprof.cli.views:code", "What each line of Python cost."),
    "advise": ("tfprof.cli.advise:advise", "What could be faster, and what to do."),
    "shell": ("tfprof.cli.shell:shell", "Ask about jobs, line by line."),
    "import": ("tfprof.cli.import_:import_", "Files of TensorFlow's own tfprof as a job."),
    "profile-proto": (
        "tfprof.cli.profile_proto:profile_proto",
        "A job as a file for TensorFlow's own tfprof.",
    ),
    "steps": ("tfprof.cli.steps:steps", "Step times; traced steps apart."),
    "spans": ("tfprof.cli.spans:spans", "Fits, epochs, batches, session runs."),
    "host": ("tfprof.cli.host:host", "CPU, memory and I/O of a job and of its host."),
    "status": ("tfprof.cli.status:status", "The agent and the collector: are they well?"),
    "config": ("tfprof.cli.config:config", "The settings in force, and where they come from."),
    "start": ("tfprof.cli.daemons:start", "Start agent and collector (tfprof-run does it when needed)."),
    "stop": ("tfprof.cli.daemons:stop", "Stop agent and collector."),
}


class ReaderGoneError(Exception):
    """Nobody reads what a command prints any more; click would end with 1 on the system's own error."""


class InternalError(TfprofError):
    """Something in a command that should not happen."""


@contextlib.contextmanager
def _past_click() -> Iterator[None]:
    """Bring past click what it would make something of."""
    try:
        yield
    except BrokenPipeError:
        raise ReaderGoneError from None
    except KeyboardInterrupt:
        raise StoppedError from None


class Commands(click.Group):
    """The group of the commands in the table: it imports the one that is called."""

    def make_context(self, *args: Any, **given: Any) -> click.Context:
        """Read what stands before the command."""
        with _past_click():
            return super().make_context(*args, **given)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that is called."""
        with _past_click():
            return super().invoke(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is called; UsageError with what may have been meant when there is none of that name."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            raise UsageError(f"no such command {args[0]!r}{suggestion(args[0], COMMANDS)} (tfprof --help)")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command called ``cmd_name``, None when there is none."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command = load(COMMANDS[cmd_name][0])
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing any."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(VERSION, prog_name="tfprof", message="%(prog)s %(version)s")
def tfprof() -> None:
    """Read what tfprof-run recorded of TensorFlow jobs.

    \b
    tfprof-run python train.py         profile a job
    tfprof jobs                        list all jobs
    tfprof op JOB                      what its ops cost

    JOB is the start of a job's id, its name, or `last`.
    """  # noqa: D301  # click's mark for lines that are not to be filled


def _fail(error: TfprofError) -> int:
    """Say what went wrong, with the traceback where that is asked for; return the exit status."""
    if SETTINGS["debug"].read():
        streams.say(traceback.format_exc().rstrip())
    streams.say(f"tfprof: {error}")
    return error.exit_code


def _wrong(error: click.ClickException) -> TfprofError:
    """Return what click says is wrong with a command line as an error of ours, with the command that helps."""
    message = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    return UsageError(message if context is None else f"{message} ({context.command_path} --help)")


def _unusable(error: OSError) -> TfprofError:
    """Return what the system refused as an error of ours: without a file's name it is of what was printed."""
    if error.filename is None:
        return streams.unwritten(error)
    return TfprofError(f"{os.fsdecode(error.filename)}: {error.strerror}", "io")


def _internal(error: Exception) -> TfprofError:
    """Return an error that nobody expected as one of ours."""
    return InternalError(f"{type(error).__name__}: {error}; TFPROF_DEBUG=1 shows where")


#: How each error becomes one of ours; the first kind that fits.
_OURS: Final[tuple[tuple[type[Exception], Callable[[Any], TfprofError]], ...]] = (
    (TfprofError, lambda error: error),
    (click.ClickException, _wrong),
    (OSError, _unusable),
    (Exception, _internal),
)


def _failed(error: Exception) -> int:
    """Tell of an error, whatever it is; return the exit status."""
    return _fail(next(ours(error) for kind, ours in _OURS if isinstance(error, kind)))


def _run(arguments: list[str], stretch: Interruptible) -> int:
    """Run one command to its end and return its exit status; every error ends here, as one line."""
    try:
        result = tfprof.main(arguments or ["--help"], prog_name="tfprof", standalone_mode=False)
        streams.flush_output()
    except ReaderGoneError:
        streams.let_go(sys.stdout)
        return 0
    except Exception as error:
        if stretch.came:
            raise StoppedError from error
        return _failed(error)
    return result if isinstance(result, int) else 0


def _settled(code: int) -> int:
    """Return ``code`` when standard output has taken what was printed; what it has not is told unless a failure was."""
    try:
        streams.flush_output()
    except TfprofError as error:
        return code or _fail(error)
    return code


def main(arguments: list[str] | None = None) -> None:
    """Run one command and exit with its status."""
    occupy_standard()
    streams.stand_in()
    try:
        settings_files.take()
        SETTINGS["debug"].read()
    except UsageError as error:
        streams.say(f"tfprof: {error}")
        sys.exit(error.exit_code)
    with Interruptible() as stretch:
        code = _settled(_run(sys.argv[1:] if arguments is None else arguments, stretch))
    sys.exit(code)


if __name__ == "__main__":
    main()
