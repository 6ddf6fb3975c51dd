"""`tfprof-run`: runs a command transparently and profiles the TensorFlow in it."""

import argparse
import errno
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from ...commands import settings_files, streams
from ...commands.environment import initial_environment
from ...commands.isolated import reserve_standard_fds
from ...formats import addresses, layout, runtime_dir, settings, values
from ...formats.errors import TfprofError, UsageError
from ...formats.policy import Policy
from ...formats.version import VERSION
from .. import launches, processes, python_command
from ..launches import DumpRequest, Launch
from ..python_command import PythonCommand
from . import supervise, witness
from .forwarding import Forwarding
from .job_environment import job_environment

if TYPE_CHECKING:
    from .channel_holder import ChannelHolder
    from .series import Repetition
    from .supervise import Outcome

PROG: Final = "tfprof-run"
#: Poll interval when only the witness is watched (seconds).
WITNESS_POLL_S: Final = 1.0

EXAMPLES: Final = """\
examples:
  tfprof-run python train.py --epochs 2         profile a script; a report follows its output
  tfprof-run --trace all python train.py        trace every step, without a budget
  tfprof-run --trace steps=100-120 ./train.sh   trace these steps of each process that the command starts
  tfprof-run --trace steps=10,20 --dump-steps 10,20 python train.py    write profile_10 and profile_20 at the end
  tfprof-run --repeat 5 --alternate "python new.py" python old.py    run both in turns, and compare them
  tfprof-run --name nightly --quiet make bench  name the job, print no report
"""


#: Options that are meant by other words.
_MEANT: Final = {
    "--all": "--trace all",
    "--budget": "--trace budget=2%",
    "--every": "--trace every=100",
    "--export": "-o FILE",
    "--off": "--trace off",
    "--out": "-o FILE",
    "--silent": "--quiet",
    "--steps": "--trace steps=100-120",
    "-n": "--name",
    "-q": "--quiet",
    "-s": "--store",
}
_UNKNOWN: Final = "unrecognized arguments: "


class _Parser(argparse.ArgumentParser):
    """An argument parser that reports errors in one line."""

    def error(self, message: str) -> NoReturn:
        words = message.removeprefix(_UNKNOWN).partition(" ")[0]
        option = words.partition("=")[0] if message.startswith(_UNKNOWN) else ""
        hint = f"; did you mean {_MEANT[option]}?" if option in _MEANT else ""
        raise UsageError(f"{message}{hint} ({PROG} --help)")


class RunOptions(NamedTuple):
    """A checked command line; ``changes`` are variables that are set for the job."""

    command: list[str]
    store: str
    name: str | None
    records_command: bool
    quiet: bool
    execute: bool
    changes: dict[str, str]
    dump_request: DumpRequest | None = None
    outputs: Sequence[str] = ()
    repetition: "Repetition | None" = None


def _parser() -> _Parser:
    parser = _Parser(
        prog=PROG,
        usage="tfprof-run [options] [--] COMMAND [ARGUMENT...]",
        description="Run COMMAND as if tfprof-run were not there, and profile the TensorFlow in it.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "--trace",
        metavar="POLICY",
        help="steps to trace: all, off, every=N, steps=A-B,C, or budget=P%% of the time (default: budget=1%%)",
    )
    add("--trace-level", metavar="LEVEL", help="how much to record: auto (default), software, or full")
    add("--store", metavar="DIR", help="folder for the results (default: $XDG_STATE_HOME/tfprof)")
    add("--name", metavar="NAME", help="name of the job (default: the name of its script)")
    add("--ring", metavar="BYTES", help="size of the record ring of each process, such as 64M (default: 16M)")
    add("--dump-steps", metavar="N,M", help="at the end, write profile_N for the TF profiler: the traced steps up to N")
    add("--dump-dir", metavar="DIR", help="folder for the files of --dump-steps (default: the working folder)")
    add(
        "-o",
        "--output",
        action="append",
        metavar="FILE",
        help="at the end, write FILE, such as run.json or run.perfetto-trace (tfprof export --list); repeatable",
    )
    add("--repeat", metavar="N", help="run COMMAND N times, and print how much the runs differ")
    add("--alternate", metavar="CMD", help="run CMD in turns with COMMAND, and compare: CMD is after, COMMAND before")
    add("--record-command", action="store_true", help="keep the command line with the results")
    add(
        "--no-report",
        "--quiet",
        dest="quiet",
        action="store_true",
        help="print no report; only problems with -o and --dump-steps",
    )
    add(
        "--exec",
        dest="execute",
        action="store_true",
        help="replace tfprof-run by the command, for supervisors that watch the pid; no report",
    )
    add("--version", action="version", version=f"tfprof {VERSION}")
    add("command", nargs=argparse.REMAINDER, metavar="COMMAND", help=argparse.SUPPRESS)
    return parser


def parse(argv: Sequence[str]) -> RunOptions:
    """Return the checked options in ``argv``; UsageError or PolicyError if they are invalid."""
    arguments = _parser().parse_args(list(argv))
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not command:
        raise UsageError(f"no command to run ({PROG} --help)")
    for name, text in vars(arguments).items():
        if text == "" or (name == "output" and "" in (text or ())):
            raise UsageError(f"--{name.replace('_', '-')} is empty")
    file_settings = settings_files.load_into_environment()
    job_variables = {row.variable for row in settings.SETTINGS.values() if "shim" in row.users}
    changes = {variable: text for variable, text in file_settings.items() if variable in job_variables}
    changes |= {
        settings.SETTINGS[name].variable: text
        for name, text in (("trace", arguments.trace), ("trace-level", arguments.trace_level), ("ring", arguments.ring))
        if text is not None
    }
    _check_settings({**os.environ, **changes})
    dump_request = _dump_request(arguments.dump_steps, arguments.dump_dir)
    if dump_request is not None and arguments.execute:
        raise UsageError(
            "--dump-steps needs tfprof-run at the end, and --exec replaces it: use `tfprof profile-proto` afterwards"
        )
    store = runtime_dir.default_store() if arguments.store is None else runtime_dir.store_path(arguments.store)
    _check_remote(store, arguments)
    if arguments.output and arguments.execute:
        raise UsageError("-o needs tfprof-run at the end, and --exec replaces it: use `tfprof export` afterwards")
    outputs = () if arguments.execute else _outputs(arguments.output)
    repetition = _repetition(arguments)
    return RunOptions(
        command=python_command.with_python(command),
        store=store,
        name=arguments.name if arguments.name is None else _name(arguments.name),
        records_command=arguments.record_command,
        quiet=arguments.quiet,
        execute=arguments.execute,
        changes=changes,
        dump_request=dump_request,
        outputs=outputs,
        repetition=repetition,
    )


def _check_remote(store: str, arguments: argparse.Namespace) -> None:
    """Raise UsageError if an option reads the store, and that is on another host."""
    if not addresses.is_remote(store):
        return
    for option, value in (
        ("-o", arguments.output),
        ("--dump-steps", arguments.dump_steps),
        ("--repeat", arguments.repeat),
    ):
        if value is not None:
            raise UsageError(f"{option} reads the store, which is on {store}: use `tfprof` there, or give --store DIR")


def _repetition(arguments: argparse.Namespace) -> "Repetition | None":
    """Return the series that is requested, None without one."""
    if arguments.repeat is None:
        if arguments.alternate is not None:
            raise UsageError("--alternate needs --repeat N, the number of runs of each command")
        return None
    from .series import RUNS_MAX, RUNS_MIN, Repetition  # noqa: PLC0415 - few launches are series

    runs = values.whole_number(arguments.repeat)
    if runs is None or not RUNS_MIN <= runs <= RUNS_MAX:
        raise UsageError(f"--repeat {arguments.repeat!r}: give a whole number from {RUNS_MIN} to {RUNS_MAX:,}")
    if arguments.execute:
        raise UsageError("--repeat needs tfprof-run between the runs, and --exec replaces it")
    if arguments.output or arguments.dump_steps is not None:
        raise UsageError("--repeat makes several jobs, and -o and --dump-steps write files of one: use `tfprof export`")
    return Repetition(runs, None if arguments.alternate is None else _alternate(arguments.alternate))


def _alternate(text: str) -> list[str]:
    """Return the words of `--alternate`, whose command must exist: the first run may take hours."""
    import shlex  # noqa: PLC0415 - few launches are series

    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--alternate: {error} in {text!r}") from None
    if not words:
        raise UsageError("--alternate is empty")
    command = python_command.with_python(words)
    if not any(map(os.path.exists, python_command.paths(command[0], os.environ))):
        raise supervise.not_started_error(command[0], errno.ENOENT)
    return command


def _dump_request(steps: str | None, folder: str | None) -> DumpRequest | None:
    """Return the profiles to write at the end, None when none are requested."""
    if steps is None:
        if folder is not None:
            raise UsageError("--dump-dir needs --dump-steps")
        return None
    numbers = [number for part in steps.split(",") if (number := values.whole_number(part))]
    if len(numbers) != len(steps.split(",")):
        raise UsageError(f"{steps!r} is not a list of steps for --dump-steps: give numbers from 1, separated by commas")
    try:
        target = os.path.abspath(folder or ".")
    except OSError as error:
        raise UsageError(f"the working folder, which the profiles would go to, is gone: {error.strerror}") from None
    if os.path.exists(target) and not os.path.isdir(target):
        raise UsageError(f"--dump-dir {target} is not a folder")
    return DumpRequest(sorted(set(numbers)), target)


def _outputs(paths: Sequence[str] | None) -> list[str]:
    """Return the files to write at the end: those of ``-o``, else those of the setting.

    UsageError if one of ``-o`` cannot be written, for example because it exists. Files of the
    setting are for every job: those that cannot be written are named, and the job runs.
    """
    from_setting = paths is None
    texts = settings.SETTINGS["output"].read().split(",") if paths is None else paths
    outputs = [_absolute(text) for text in texts if text]
    if outputs:
        from ...commands.new_outputs import problems  # noqa: PLC0415 - few launches write files

        for problem in problems(outputs):
            if not from_setting:
                raise UsageError(f"-o: {problem.args[0]}", problem.slug)
            streams.note(f"the setting output: {problem}")
    return outputs


def _absolute(path: str) -> str:
    """Return the absolute path; a separator at the end, which means a folder, stays."""
    if path == "-":
        raise UsageError("-o -: standard output is the job's; name a file")
    try:
        return os.path.abspath(path) + os.sep * path.endswith(os.sep)
    except OSError as error:
        raise UsageError(f"the working folder, which the files would go to, is gone: {error.strerror}") from None


def _name(text: str) -> str:
    try:
        return values.job_name(text)
    except ValueError as error:
        raise UsageError(f"--name: {error}") from None


def _check_settings(environ: dict[str, str]) -> None:
    """Raise UsageError or PolicyError where a setting of the job is invalid."""
    job_settings = {row.name: row.read(environ) for row in settings.SETTINGS.values() if "shim" in row.users}
    Policy.from_text(job_settings["trace"], job_settings["trace-level"])
    if not layout.RING_MIN <= job_settings["ring"] <= layout.RING_MAX:
        variable = settings.SETTINGS["ring"].variable
        raise UsageError(f"{environ[variable]!r} is not a size from 1M to 1G for --ring")


class Run:
    """One launch; the command runs even when the preparation fails.

    ``repeat``: the run is one of a series, and its jobs have this tag.
    """

    def __init__(
        self, options: RunOptions, inherited_signals: supervise.InheritedSignals, repeat: str | None = None
    ) -> None:
        self._options = options
        self._repeat = repeat
        #: The signal that asked for the end, 0 if there was none.
        self.interruption = 0
        self._inherited_signals = inherited_signals
        self._environ = initial_environment()
        self._python = _python_of(options.command, self._environ)
        self._problem: dict[str, str] | None = None
        self._launch: Launch | None = None
        self._instance_dir = ""
        try:
            self._prepare()
        except TfprofError as error:
            self._problem = {"slug": error.slug, "text": error.args[0]}
        except OSError as error:
            self._problem = {
                "slug": "runtime-dir",
                "text": f"cannot write {error.filename or 'the runtime folder'}: {error.strerror}",
            }

    def _prepare(self) -> None:
        """Write the launch file, and prepare the environment that arms the job."""
        options = self._options
        instance_dir = runtime_dir.make_instance(options.store)
        command = options.command if options.records_command else None
        launch = launches.new(options.store, options.name, command, os.getpid())
        if self._repeat is not None:
            launch = launch._replace(tags={**(launch.tags or {}), launches.SERIES_TAG: self._repeat})
        launches.write(instance_dir, launch)
        self._instance_dir, self._launch = instance_dir, launch
        if not self._python.keeps_path:
            run = launches.run_of(instance_dir, launch)
            self._environ = job_environment(self._environ, run, options.changes)

    def execute(self) -> NoReturn:
        """Replace this process by the command."""
        self._update_launch(job_pid=os.getpid())
        self._explain_option()
        holder = self._channel_holder()
        if holder is not None:
            holder.ensure_agent()
        if self._problem is not None:
            self._explain(self._problem)
        try:
            supervise.execute(self._options.command, self._environ, self._inherited_signals)
        except OSError as error:
            failure = supervise.not_started_error(self._options.command[0], error.errno or 0)
            self._update_launch(ended_ns=time.time_ns(), status=failure.exit_code)
            raise failure from None

    def supervise(self) -> "Outcome":
        """Run the command to its end, print the report, and return how the command ended."""
        start_s = time.monotonic()
        running_witness = witness.begin(self._record_killed_job)
        try:
            outcome, holder = self._run_to_end(running_witness)
        finally:
            running_witness.dismiss()
        if holder is not None:
            holder.update()
        if self._python.isolating_option is None or (holder is not None and holder.launch_announcements):
            self._report(holder, time.monotonic() - start_s)
        if holder is not None:
            holder.close()
        return outcome

    def _run_to_end(
        self, running_witness: witness.Witness | witness.NoWitness
    ) -> "tuple[Outcome, ChannelHolder | None]":
        """Start the command and supervise it to its end."""
        try:
            pid = supervise.start(
                self._options.command, self._environ, self._inherited_signals, running_witness.announce_job
            )
        except supervise.NotStartedError as error:
            self._update_launch(ended_ns=time.time_ns(), status=error.exit_code)
            raise
        self._update_launch(job_pid=pid)
        self._explain_option()
        holder = self._channel_holder()
        forwarding = Forwarding(
            running_witness.signals,
            lambda sender: sender == running_witness.pid or processes.is_descendant(sender, pid),
        )

        def watch() -> float:
            running_witness.replace_if_ended(pid)
            return WITNESS_POLL_S if holder is None else holder.update()

        wake_fd = -1 if holder is None else holder.announcements.fd
        outcome = supervise.wait(pid, watch, forwarding, running_witness.stopping, wake_fd)
        self.interruption = forwarding.end_request
        self._update_launch(ended_ns=time.time_ns(), status=outcome.status, signal=outcome.signal)
        return outcome, holder

    def _record_killed_job(self, pid: int, channel_fds: list[int]) -> None:
        """Record the end of the job, and the last state of its channels.

        The witness calls this after the launcher was killed.
        """
        self._update_launch(job_pid=pid, ended_ns=time.time_ns(), signal=int(signal.SIGKILL))
        if self._launch is not None and channel_fds:
            from .channel_holder import leave_orphaned  # noqa: PLC0415 - few launchers are killed

            leave_orphaned(self._instance_dir, self._launch.launch, channel_fds)

    def _channel_holder(self) -> "ChannelHolder | None":
        """Return the holder of the channels, None where the launch is not profiled."""
        if self._launch is None:
            return None
        from .channel_holder import ChannelHolder  # noqa: PLC0415 - imported late, so that the job starts earlier

        return ChannelHolder(self._instance_dir, self._launch)

    def _update_launch(self, **changes: Any) -> None:
        """Update the launch file."""
        if self._launch is None:
            return
        self._launch = self._launch._replace(**changes)
        try:
            launches.write(self._instance_dir, self._launch)
        except OSError as error:
            self._problem = {"slug": "runtime-dir", "text": f"cannot write {self._instance_dir}: {error.strerror}"}

    @property
    def _has_output(self) -> bool:
        """Whether there is something to print and a stream for it, or a profile to write."""
        has_files = self._options.dump_request is not None or bool(self._options.outputs)
        return has_files or not (self._options.quiet or sys.stderr is None)

    def _explain(self, reason: dict[str, str]) -> None:
        if self._has_output:
            from . import report  # noqa: PLC0415 - not before it is needed

            report.print_no_profile(reason)

    def _explain_option(self) -> None:
        """Say which option of the command's Python keeps the shim out, if one does."""
        if self._python.isolating_option is not None:
            text = f"python {self._python.isolating_option} does not load the shim"
            self._explain({"slug": "not-armed", "text": text})

    def _report(self, holder: "ChannelHolder | None", duration_s: float) -> None:
        if self._problem is not None or holder is None or self._launch is None:
            self._explain(self._problem or {"slug": "runtime-dir", "text": "there is no runtime folder"})
        else:
            from . import report  # noqa: PLC0415 - not before it is needed

            end_report = report.EndReport(
                self._instance_dir,
                self._launch,
                holder,
                report.Files(self._options.dump_request, self._options.outputs),
                self._options.quiet,
                brief=self._repeat is not None,
            )
            try:
                if self._has_output:
                    end_report.report(duration_s)
                else:
                    end_report.hand_over()
            except OSError as error:  # the exit status must not depend on the report
                self._explain({**report.REPORT_FAILED, "text": f"the report failed: {error.strerror}"})
            self.interruption = self.interruption or end_report.interruption


def _python_of(command: Sequence[str], environ: Mapping[str, str]) -> PythonCommand:
    """Return the options of the Python that runs ``command``; none if no Python runs it."""
    path = next((path for path in python_command.paths(command[0], environ) if os.path.isfile(path)), "")
    interpreter = python_command.interpreter_of(path)
    parsed_command = python_command.parse(command if interpreter == [path] else interpreter or [])
    return parsed_command or PythonCommand()


def _parse_or_exit(argv: Sequence[str]) -> RunOptions:
    """Return the options in ``argv``; after --help or --version, flush the output and exit."""
    try:
        return parse(argv)
    except SystemExit:
        streams.flush_output()
        raise


def _run_series(
    options: RunOptions, repetition: "Repetition", inherited_signals: supervise.InheritedSignals
) -> "Outcome":
    """Run a series, print how its runs compare, and return the end of the last one."""
    from .series import Series  # noqa: PLC0415 - few launches are series

    series = Series(
        repetition,
        options.command,
        lambda command, tag: Run(options._replace(command=command), inherited_signals, tag),
        quiet=options.quiet,
    )
    outcome = series.run()
    series.compare(options.store)
    return outcome


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``argv`` (by default the command line); end as the job ended.

    Return the job's exit code, or that of an error: 126 or 127 if the command cannot be started, 2
    for bad usage. If a signal killed the job, the same signal kills this process.
    """
    reserve_standard_fds()
    streams.replace_closed()
    try:
        options = _parse_or_exit(sys.argv[1:] if argv is None else argv)
        signals = supervise.block_signals()
        if options.repetition is not None:
            outcome = _run_series(options, options.repetition, signals)
        else:
            run = Run(options, signals)
            if options.execute:
                run.execute()
            outcome = run.supervise()
    except TfprofError as error:
        streams.say(f"{PROG}: {error}")
        return error.exit_code
    return supervise.end_like(outcome)


if __name__ == "__main__":
    sys.exit(main())
