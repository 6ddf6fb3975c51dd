"""The `tfprof` command: a table of commands, each imported on use."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from ..collector.loader import load
from ..collector.render import colors
from ..collector.suggestion import suggestion
from ..commands import settings_files, streams
from ..commands.isolated import reserve_standard_fds
from ..formats.errors import TfprofError, UsageError
from ..formats.settings import SETTINGS
from ..formats.version import VERSION
from .colored import has_colors
from .interrupt import Interruptible, StoppedError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

#: Commands by name: function, and line in `tfprof --help`.
COMMANDS: Final = {
    "ps": ("tfprof.cli.ps:ps", "Processes of this host that have TensorFlow loaded."),
    "doctor": ("tfprof.cli.doctor:doctor", "Whether a process or command can be profiled, and why not."),
    "attach": ("tfprof.cli.attach:attach", "Profile a running process."),
    "jobs": ("tfprof.cli.jobs:jobs", "All jobs, running and ended."),
    "web": ("tfprof.cli.web:web", "A page with all jobs, live, in a browser."),
    "report": ("tfprof.cli.page_report:report", "The page of a job, or of two, as one file."),
    "top": ("tfprof.cli.top:top", "Live view of all jobs, slow ones first."),
    "show": ("tfprof.cli.show:show", "Summary of one job on one screen."),
    "follow": ("tfprof.cli.follow:follow", "The steps of a job as lines, while it runs."),
    "breakdown": ("tfprof.cli.breakdown:breakdown", "Where the time of a step goes, from its start to the next."),
    "workers": ("tfprof.cli.workers:workers", "The workers of a distributed job, the one that is waited for first."),
    "memory": ("tfprof.cli.memory:memory", "What holds memory at the peak of a step, what grows, host memory."),
    "compiled": ("tfprof.cli.compiled:compiled", "The programs that XLA compiled, and the ops in them."),
    "scope": ("tfprof.cli.views:scope", "Cost of ops, in the tree of their names."),
    "graph": ("tfprof.cli.views:graph", "Cost of ops, each below the op that uses it."),
    "op": ("tfprof.cli.views:op", "Cost of each op type: time, memory, occurrence."),
    "code": ("tfprof.cli.views:code", "Cost of each line of Python."),
    "source": ("tfprof.cli.source:source", "Source lines as code, with the time of each."),
    "diff": ("tfprof.cli.diff:diff_", "What became slower or faster from one run to another."),
    "advise": ("tfprof.cli.advise:advise", "Advice on performance."),
    "analyze": ("tfprof.cli.analyze:analyze", "Operators with computation, memory and bandwidth."),
    "shell": ("tfprof.cli.shell:shell", "Views and advice at an interactive prompt."),
    "import": ("tfprof.cli.import_:import_", "Import a job from a file of tfprof or of the TF profiler."),
    "export": ("tfprof.cli.export:export", "Write jobs as files for Perfetto, pprof, notebooks and other programs."),
    "profile-proto": (
        "tfprof.cli.profile_proto:profile_proto",
        "Export a job as a file for the TF profiler.",
    ),
    "steps": ("tfprof.cli.steps:steps", "Step times, separately for traced and untraced steps."),
    "spans": ("tfprof.cli.spans:spans", "Fits, epochs, batches, session runs."),
    "curves": ("tfprof.cli.curves:curves", "Step times and resource use over the whole run of a job."),
    "host": ("tfprof.cli.host:host", "CPU, memory and I/O of a job and of its host."),
    "alerts": ("tfprof.cli.alerts:alerts", "Alerts: slower steps, longer pauses, spikes, stalls, memory, losses."),
    "trace": ("tfprof.cli.trace:trace", "Trace the next steps of running jobs."),
    "detach": ("tfprof.cli.trace:detach", "Detach from running jobs."),
    "tag": ("tfprof.cli.tag:tag", "Add tags to a job."),
    "rm": ("tfprof.cli.rm:rm", "Remove jobs that have ended."),
    "store": ("tfprof.cli.store:store", "Copy jobs between stores, also to and from ClickHouse."),
    "status": ("tfprof.cli.status:status", "Show the state of agent and collector."),
    "metrics": ("tfprof.cli.metrics:metrics", "The state of jobs and daemons for Prometheus."),
    "config": ("tfprof.cli.config:config", "Each setting with its value and source."),
    "serve": ("tfprof.cli.serve:serve", "The collector as a service that does not end when idle."),
    "keys": ("tfprof.cli.keys:keys", "Keys for hosts that send to this collector."),
    "start": ("tfprof.cli.daemons:start", "Start agent and collector (tfprof-run does it when needed)."),
    "stop": ("tfprof.cli.daemons:stop", "Stop agent and collector."),
    "completion": (
        "tfprof.cli.completion:completion",
        "Print the completion script for bash, zsh or fish.",
    ),
}


#: Commands that are meant by other words.
_MEANT: Final = {
    "advice": "advise",
    "bottleneck": "advise",
    "cluster": "compiled",
    "clusters": "compiled",
    "compare": "diff",
    "cpu": "host",
    "delete": "rm",
    "epochs": "spans",
    "errors": "alerts",
    "events": "alerts",
    "explain": "advise",
    "flame": "report",
    "flamegraph": "report",
    "functions": "code",
    "gpu": "host",
    "heap": "memory",
    "hlo": "compiled",
    "info": "show",
    "kill": "stop",
    "layers": "scope",
    "leak": "memory",
    "leaks": "memory",
    "lines": "code",
    "list": "jobs",
    "log": "follow",
    "logs": "follow",
    "ls": "jobs",
    "open": "show",
    "ops": "op",
    "parts": "breakdown",
    "perfetto": "export",
    "phases": "show",
    "profile": "tfprof-run",
    "ram": "memory",
    "record": "tfprof-run",
    "remove": "rm",
    "run": "tfprof-run",
    "save": "export",
    "set": "config",
    "settings": "config",
    "slow": "advise",
    "summary": "show",
    "tail": "follow",
    "time": "breakdown",
    "timeline": "export",
    "ui": "web",
    "untag": "tag",
    "version": "--version",
    "watch": "top",
    "why": "advise",
    "xla": "compiled",
}

#: Options that are meant by other words, if the command has them, and commands.
_MEANT_OPTIONS: Final = {
    "--columns": "--select",
    "--csv": "tfprof export JOB -o FILE.csv",
    "--depth": "--max-depth",
    "--fields": "--select",
    "--filter": "--show-name-regexes",
    "--head": "--top",
    "--layer": "--by layer",
    "--limit": "--top",
    "--line": "--by line",
    "--longest": "--top",
    "--min": "--min-micros",
    "--min-time": "--min-micros",
    "--order": "--order-by",
    "--output": "tfprof export JOB -o FILE",
    "--perfetto": "tfprof export JOB -o FILE.perfetto-trace",
    "--pid": "tfprof show PID",
    "--running": "--state running",
    "--scope": "--by scope",
    "--shape": "--by shape",
    "--since": "tfprof breakdown JOB --since TIME",
    "--slow": "--top",
    "--slowest": "--top",
    "--sort": "--order-by",
    "--sort-by": "--order-by",
    "--steps": "tfprof breakdown JOB --steps A-B",
    "--type": "tfprof op JOB TYPE",
    "-V": "--version",
    "-a": "--all",
    "-f": "--format",
    "-n": "--top",
    "-o": "tfprof export JOB -o FILE",
}

#: The environment variable of a completion request.
COMPLETION_VARIABLE: Final = "_TFPROF_COMPLETE"


class ReaderGoneError(Exception):
    """The reader of standard output is gone.

    Click passes this error on. Click would turn a BrokenPipeError into exit status 1.
    """


class InternalError(TfprofError):
    """An unexpected error in a command."""


@contextlib.contextmanager
def _hidden_from_click() -> Iterator[None]:
    """Convert errors that click would handle to errors that it passes on."""
    try:
        yield
    except BrokenPipeError:
        raise ReaderGoneError from None
    except KeyboardInterrupt:
        raise StoppedError from None


class Commands(click.Group):
    """The group of all commands in COMMANDS; it imports only the command that is called."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Parse the options before the command."""
        with _hidden_from_click():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that is called."""
        with _hidden_from_click():
            return super().invoke(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is called; `show` if a job is named instead.

        UsageError if there is no such command or job; it suggests a command.
        """
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            if not load("tfprof.cli.job_names:is_job")(args):
                raise UsageError(
                    f"no such command or job {args[0]!r}{suggestion(args[0], COMMANDS, _MEANT)} (tfprof --help)"
                )
            args = ["show", *args]
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command ``cmd_name``, None if there is none."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command = load(COMMANDS[cmd_name][0])
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Return the commands that begin with ``incomplete``, without importing any."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415  # for shells only

        items = [CompletionItem(name, help=text) for name, (_, text) in COMMANDS.items() if name.startswith(incomplete)]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing any."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(VERSION, prog_name="tfprof", message="%(prog)s %(version)s")
def tfprof() -> None:
    """Record and show profiles of TensorFlow jobs.

    \b
    tfprof-run python train.py         profile a job
    tfprof jobs                        list all jobs
    tfprof JOB                         summary of one job
    tfprof op JOB                      what its ops cost

    JOB is a name (its newest job; NAME~1 is the one before), the start of an id, a pid,
    or `last`.
    """  # noqa: D301  # click's mark for lines that are not rewrapped


def _print_error(error: TfprofError) -> int:
    """Print the error, with its traceback if debugging is on; return the exit status."""
    if SETTINGS["debug"].read():
        import traceback  # noqa: PLC0415  # slow to load, and errors are few

        streams.say(*traceback.format_exc().splitlines())
    streams.say(f"tfprof: {error}", level=streams.ERROR)
    return error.exit_code


def _from_click(error: click.ClickException) -> TfprofError:
    """Return click's error about a command line as a TfprofError, with a pointer to the help."""
    message = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    return UsageError(message if context is None else f"{message} ({context.command_path} --help)")


def _from_missing_argument(error: click.MissingParameter) -> TfprofError:
    """Return the error about an argument or option that is missing; it says what JOB can be."""
    if error.param is not None and error.param.human_readable_name == "JOB":
        return UsageError("no JOB given: a name, the start of an id, a pid, or `last` (`tfprof jobs` lists them)")
    return _from_click(error)


def _from_unknown_option(error: click.NoSuchOption) -> TfprofError:
    """Return the error about an option that the command lacks; it says what is meant, if known."""
    name, meant = error.option_name, _MEANT_OPTIONS.get(error.option_name)
    options = {name for parameter in error.ctx.command.params for name in parameter.opts} if error.ctx else set()
    if meant is None:
        hint = suggestion(name, sorted(options), prefix="--")
    else:
        hint = f": did you mean {meant}?" if meant.partition(" ")[0] in {*options, "tfprof"} else ""
    return _from_click(click.NoSuchOption(name, f"no such option {name}{hint}", ctx=error.ctx))


def _from_os_error(error: OSError) -> TfprofError:
    """Return an OSError as a TfprofError; without a file name it concerns standard output."""
    if error.filename is None:
        return streams.output_error(error)
    return TfprofError(f"{os.fsdecode(error.filename)}: {error.strerror}", "io")


def _from_unexpected(error: Exception) -> TfprofError:
    """Return an unexpected error as a TfprofError."""
    return InternalError(f"{type(error).__name__}: {error}; TFPROF_DEBUG=1 shows where")


#: Converters of errors to TfprofError, by class; the first match counts.
_CONVERTERS: Final[tuple[tuple[type[Exception], Callable[[Any], TfprofError]], ...]] = (
    (TfprofError, lambda error: error),
    (click.NoSuchOption, _from_unknown_option),
    (click.MissingParameter, _from_missing_argument),
    (click.ClickException, _from_click),
    (OSError, _from_os_error),
    (Exception, _from_unexpected),
)


def _print_any_error(error: Exception) -> int:
    """Print any error; return the exit status."""
    return _print_error(next(convert(error) for kind, convert in _CONVERTERS if isinstance(error, kind)))


def _run(arguments: list[str], interruptible: Interruptible) -> int:
    """Run one command and return its exit status; every error is printed as one line."""
    try:
        if arguments[:1] == ["help"]:
            arguments = arguments[1:2]
            arguments.append("--help")
        result = tfprof.main(arguments or ["--help"], prog_name="tfprof", standalone_mode=False)
        streams.flush_output()
    except ReaderGoneError:
        streams.redirect_to_null(sys.stdout)
        return 0
    except Exception as error:
        if interruptible.was_pressed:
            raise StoppedError from error
        return _print_any_error(error)
    return result if isinstance(result, int) else 0


def _flush(code: int) -> int:
    """Flush standard output; return ``code``, or the error's exit status if flushing fails.

    A failed flush is not reported if the command failed already.
    """
    try:
        streams.flush_output()
    except TfprofError as error:
        return code or _print_error(error)
    return code


def main(arguments: list[str] | None = None) -> None:
    """Run one command and exit with its status."""
    reserve_standard_fds()
    streams.replace_closed()
    try:
        settings_files.load_into_environment()
        SETTINGS["debug"].read()
    except UsageError as error:
        if COMPLETION_VARIABLE not in os.environ:  # a message would be written into the line that the user edits
            streams.say(f"tfprof: {error}")
        sys.exit(error.exit_code)
    if COMPLETION_VARIABLE in os.environ:
        sys.exit(load("tfprof.cli.completion:answer")(tfprof))
    colors.use(has_colors())
    with Interruptible() as interruptible:
        code = _flush(_run(sys.argv[1:] if arguments is None else arguments, interruptible))
    sys.exit(code)


if __name__ == "__main__":
    main()
