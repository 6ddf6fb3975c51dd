"""The `tfprof` command: a table of commands that are imported when they are called for."""

import os
import sys
import traceback
from typing import Any, Final

import click
from tfprof.collector.loader import load
from tfprof.shim.errors import TfprofError
from tfprof.shim.version import VERSION

#: Name of each command, where it is, and what `tfprof --help` says of it.
COMMANDS: Final = {
    "jobs": ("tfprof.collector.cli.jobs:jobs", "All jobs, running and ended."),
    "scope": ("tfprof.collector.cli.views:scope", "What ops cost, in the tree of their names."),
    "graph": ("tfprof.collector.cli.views:graph", "What ops cost, each below the one that uses it."),
    "op": ("tfprof.collector.cli.views:op", "What each op type cost: time, memory, occurrence."),
    "code": ("tfprof.collector.cli.views:code", "What each line of Python cost."),
    "advise": ("tfprof.collector.cli.advise:advise", "What could be faster, and what to do."),
    "shell": ("tfprof.collector.cli.shell:shell", "Ask about jobs, line by line."),
    "import": ("tfprof.collector.cli.import_:import_", "Files of TensorFlow's own tfprof as a job."),
    "profile-proto": (
        "tfprof.collector.cli.profile_proto:profile_proto",
        "A job as a file for TensorFlow's own tfprof.",
    ),
    "steps": ("tfprof.collector.cli.steps:steps", "Step times; traced steps apart."),
    "spans": ("tfprof.collector.cli.spans:spans", "Fits, epochs, batches, session runs."),
    "host": ("tfprof.collector.cli.host:host", "CPU, memory and I/O of a job and of its host."),
    "status": ("tfprof.collector.cli.status:status", "The agent and the collector: are they well?"),
    "start": ("tfprof.collector.cli.daemons:start", "Start agent and collector (tfprof-run does it when needed)."),
    "stop": ("tfprof.collector.cli.daemons:stop", "Stop agent and collector."),
}
#: What a shell reports for a program that Ctrl-C ended.
INTERRUPTED: Final = 130


class ReaderGoneError(Exception):
    """Nobody reads what a command prints any more; click would end with 1 on the system's own error."""


class Commands(click.Group):
    """The group of the commands in the table: it imports the one that is called."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that is called."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise ReaderGoneError from None

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
    tfprof op JOB -order_by micros     what its ops cost

    JOB is the start of a job's id, its name, or `last`.
    """  # noqa: D301  # click's mark for lines that are not to be filled


class OutputError(TfprofError):
    """What was asked for cannot be written to standard output, or a file cannot be read."""

    slug = "io"


def _fail(message: str, code: int) -> int:
    if os.environ.get("TFPROF_DEBUG") not in {None, "", "0"}:
        traceback.print_exc()
    print(f"tfprof: {message}", file=sys.stderr)
    return code


def _run(arguments: list[str]) -> int:
    try:
        result = tfprof.main(arguments or ["--help"], prog_name="tfprof", standalone_mode=False)
        sys.stdout.flush()
    except TfprofError as error:
        return _fail(" ".join(line.strip() for line in str(error).splitlines()), error.exit_code)
    except click.ClickException as error:
        return _fail(" ".join(error.format_message().split()) + " [usage]", 2)
    except click.Abort:
        return INTERRUPTED
    return result if isinstance(result, int) else 0


def _let_go_of_stdout() -> None:
    """Give the interpreter's last flush somewhere to go."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def main(arguments: list[str] | None = None) -> None:
    """Run one command and exit with its status; every error ends here, as one line."""
    try:
        code = _run(sys.argv[1:] if arguments is None else arguments)
    except (BrokenPipeError, ReaderGoneError):
        code = 0
        _let_go_of_stdout()
    except OSError as error:
        code = _fail(
            str(OutputError(f"{error.filename or 'standard output'}: {error.strerror}")), OutputError.exit_code
        )
        _let_go_of_stdout()
    except KeyboardInterrupt:
        code = INTERRUPTED
    sys.exit(code)


if __name__ == "__main__":
    main()
