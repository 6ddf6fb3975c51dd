"""The end of a launch: waits until its data is stored, then runs the report."""

import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from ...commands import daemons, streams
from ...formats import private_files
from ...formats.addresses import is_remote, remote_endpoint
from ...formats.ids import hex_id
from ...formats.runtime_dir import endpoint_elsewhere
from .. import launches
from ..launches import DumpRequest, Launch, Result
from . import supervise
from .channel_holder import ChannelHolder

REPORT: Final = "tfprof.cli.report"
#: Time limit for storing the data (seconds).
STORED_TIMEOUT_S: Final = 15.0
#: Waiting ends early after this time without progress (seconds).
NO_PROGRESS_S: Final = 5.0
#: Time limit for an agent that starts slowly to open the channels, which are lost when this process
#: ends (seconds).
KEEP_S: Final = 60.0
#: It ends after this time without progress if the reason is known (seconds).
STALLED_S: Final = 1.0
POLL_S: Final = 0.02
#: A command that ended sooner and has no channel did not load TensorFlow (seconds).
TOO_SHORT_S: Final = 2.0
#: Time limits of the report without and with files to write (seconds). Writing large jobs may take
#: minutes.
_RUN_TIMEOUT_S: Final = 20.0
_DUMP_TIMEOUT_S: Final = 600.0
#: Environment variables of the terminal that the report gets.
_TERMINAL_VARIABLES: Final = ("TERM", "COLUMNS", "NO_COLOR")

RECORDS_NOT_READ: Final[Mapping[str, str]] = {
    "slug": "agent",
    "text": "the agent has not read the records; it may be of another release: `tfprof stop` ends it",
}
NO_TENSORFLOW: Final[Mapping[str, str]] = {
    "slug": "no-tensorflow",
    "text": "nothing in this command loaded TensorFlow",
}
TOO_SHORT: Final[Mapping[str, str]] = {
    "slug": "too-short",
    "text": "the process ended before the agent could read its records",
}
NOT_OPENED: Final[Mapping[str, str]] = {
    "slug": "agent",
    "text": f"no agent has opened the shared memory of the job within {KEEP_S:.0f} s: its data is lost, and counted"
    " when an agent runs",
}
REPORT_FAILED: Final[Mapping[str, str]] = {"slug": "report", "text": "it could not be made"}
REPORT_TOO_SLOW: Final = "it took too long; `tfprof show` shows the job"
FILES_TOO_SLOW: Final = "it took too long; `tfprof export JOB -o FILE` writes files, too"


def _open_log(path: str) -> int:
    """Return a descriptor of the emptied log at ``path``, or of /dev/null when that fails."""
    try:
        return private_files.open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)


def _start_report(command: list[str], environment: dict[str, str], log: str) -> int:
    """Start the report and return its pid; its errors go to ``log``. OSError when that fails."""
    log_fd = _open_log(log)
    try:
        return os.posix_spawn(
            sys.executable,
            command,
            environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, 2, 1),
                (os.POSIX_SPAWN_DUP2, log_fd, 2),
            ],
            setsigmask=[],
        )
    finally:
        os.close(log_fd)


def print_no_profile(reason: Mapping[str, Any]) -> None:
    """Print the reason why there is no profile."""
    streams.note(f"no profile: {reason['text']} [{reason['slug']}]")


def _missing_amounts(result: Result) -> str:
    """Return a text with the amounts of data that are not in the store."""
    waiting_records = sum(max(0, job["records"] - job["acked"]) for job in result.jobs)
    counts = {
        "records not stored": waiting_records,
        "traced steps lost": sum(job["dropped_traces"] for job in result.jobs),
        "spans lost": sum(job["dropped_spans"] for job in result.jobs),
    }
    return ", ".join(f"{number:,} {label}" for label, number in counts.items())


def _unrecorded_reason(result: Result) -> dict[str, str] | None:
    """Return why processes of the launch have no job, and their number; None if each has one."""
    recorded_pids = {job.get("pid") for job in result.jobs}
    refusals = [refusal for refusal in result.refused if not result.jobs or refusal.get("pid") not in recorded_pids]
    if not refusals:
        return None
    first_refusal = refusals[0]
    number = sum(refusal.get("times", 1) for refusal in refusals)
    if number == 1 and not result.jobs:
        return {"slug": first_refusal["slug"], "text": first_refusal["text"]}
    subject = "a process is" if number == 1 else f"{number:,} processes are"
    hint = (
        " (other reasons: tfprof status)"
        if {refusal["slug"] for refusal in refusals} != {first_refusal["slug"]}
        else ""
    )
    return {"slug": first_refusal["slug"], "text": f"{subject} not recorded: {first_refusal['text']}{hint}"}


def _has_progress(previous: Result | None, current: Result | None) -> bool:
    """Return whether ``current``, which differs from ``previous``, shows progress since then.

    If ``current`` has a reason why nothing is stored, only stored data counts as progress.
    """
    return (
        current is None
        or current.stall is None
        or current.progress != (previous.progress if previous is not None else 0)
    )


class Ending(NamedTuple):
    """How a report ended; ``interruption``: the signal that ended it early, 0 without one."""

    has_failed: bool = False
    is_late: bool = False
    interruption: int = 0


def run_report(command: list[str], log: str, timeout_s: float) -> Ending:
    """Run a report, whose output goes to standard error and whose errors go to ``log``.

    OSError if it cannot be started.
    """
    terminal = {name: os.environ[name] for name in _TERMINAL_VARIABLES if name in os.environ}
    pid = _start_report(command, {**daemons.daemon_environment(os.environ), **terminal}, log)
    deadline = time.monotonic() + timeout_s
    while True:
        ended_pid, status = os.waitpid(pid, os.WNOHANG)
        if ended_pid:
            is_interrupted = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGINT
            return Ending(has_failed=bool(status) and not is_interrupted)
        is_late = time.monotonic() > deadline
        interruption = 0 if is_late else supervise.wait_for_interrupt(POLL_S / 4)
        if is_late or interruption:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return Ending(is_late=is_late, interruption=interruption)


class Files(NamedTuple):
    """The files to write at the end: profiles of steps, and the jobs in other formats."""

    dump_request: DumpRequest | None = None
    outputs: Sequence[str] = ()


class EndReport:
    """The work after the end of a job; ``holder`` has the channels of ``launch``.

    With ``quiet`` only problems with ``files`` are printed, with ``brief`` a line per job.
    """

    def __init__(
        self,
        instance_dir: str,
        launch: Launch,
        holder: ChannelHolder,
        files: Files | None = None,
        quiet: bool = False,
        brief: bool = False,
    ) -> None:
        self._instance_dir = instance_dir
        self._files = files or Files()
        self._quiet = quiet
        self._brief = brief
        self._launch = launch
        self._channel_holder = holder
        self._result: Result | None = None
        #: The signal that asked for the end meanwhile, 0 if there was none.
        self.interruption = 0

    def report(self, duration_s: float) -> None:
        """Wait until the data is stored, then print the report or the reason why there is none."""
        if (
            not self._channel_holder.launch_announcements
            and not self._channel_holder.unmatched_announcements
            and duration_s < TOO_SHORT_S
        ):
            print_no_profile(NO_TENSORFLOW)
            return
        self._wait()
        self._leave()
        if self.interruption:
            return
        problem = self._problem()
        if is_remote(self._launch.store):
            self._tell_where(problem)
            return
        jobs = [] if self._result is None else self._result.jobs
        if self._unlisted_uids or any(job["acked"] or job["state"] != "running" for job in jobs):
            self._run_report(problem)
        else:
            print_no_profile(problem or self._no_job_reason())
        if not self._quiet and endpoint_elsewhere(self._launch.store) is not None:
            self._tell_what_is_kept()

    def _tell_where(self, problem: dict[str, str] | None) -> None:
        """Print where the data is: the collector of another host, or still here."""
        if self._quiet:
            return
        jobs = [] if self._result is None else self._result.jobs
        endpoint = remote_endpoint(self._launch.store)
        uids = [] if problem else self._unlisted_uids
        uids += [job["uid"] for job in jobs if not job.get("spooled") and (job["acked"] or job["state"] != "running")]
        for uid in uids:
            streams.note(f"stored on {endpoint.place}: ssh {endpoint.host} tfprof show {uid}")
        if not (jobs or uids):
            print_no_profile(problem or self._no_job_reason())
        elif problem is not None:
            streams.note(f"{problem['text']} [{problem['slug']}]")
            self._tell_what_is_kept()
        if self._writes_files:
            streams.note(f"no files: the store is on {endpoint.host}; `tfprof export JOB -o FILE` there writes them")

    def _tell_what_is_kept(self) -> None:
        """Say that the agent keeps data, if there is data that is not stored."""
        jobs = [] if self._result is None else self._result.jobs
        if any(job.get("spooled") or job["state"] == "running" or job["acked"] < job["records"] for job in jobs):
            streams.note("the agent of this host keeps what is not stored, and sends it when that ends")

    @property
    def _unlisted_uids(self) -> list[str]:
        """The stored jobs (hex) that the result lacks, because an earlier agent has stored them."""
        listed_uids = set() if self._result is None else {job["uid"] for job in self._result.jobs}
        return sorted(self._channel_holder.stored_uids - listed_uids)

    def _no_job_reason(self) -> Mapping[str, str]:
        """Return the reason why the agent's result has no process of this launch."""
        if self._channel_holder.launch_announcements:
            return RECORDS_NOT_READ
        return TOO_SHORT if self._channel_holder.unmatched_announcements else NO_TENSORFLOW

    def hand_over(self) -> None:
        """Wait until the agent holds the channels: this process closes them when it ends."""
        self._wait(until_stored=False)
        self._leave()

    def _awaits_agent(self) -> bool:
        """Return whether an agent that may still come up has to open channels."""
        return not self._channel_holder.agent_has_all_channels and self._channel_holder.agent_failure is None

    def _leave(self) -> None:
        """Write down what is known about the channels whose data is not stored."""
        jobs = [] if self._result is None else self._result.jobs
        self._channel_holder.leave({job["uid"] for job in jobs if job["state"] != "running"})

    def _wait(self, *, until_stored: bool = True) -> None:
        """Wait for the agent to open the channels, and to store their data with ``until_stored``.

        An agent is started if none runs.
        """
        opened_s = progress_s = time.monotonic()
        keep_until_s = opened_s + KEEP_S
        while True:
            now = time.monotonic()
            if self._awaits_agent():
                deadline, opened_s, progress_s = keep_until_s, now, now
            elif until_stored:
                idle_s = STALLED_S if self._stall() else NO_PROGRESS_S
                deadline = min(opened_s + STORED_TIMEOUT_S, progress_s + idle_s)
            else:
                return
            if now > deadline:
                return
            self._channel_holder.update()
            self._channel_holder.ensure_agent()
            result = launches.read_result(self._instance_dir, self._launch.launch)
            if result != self._result:
                progress_s = now if _has_progress(self._result, result) else progress_s
                self._result = result
            if result is not None and result.complete:
                return
            self.interruption = supervise.wait_for_interrupt(POLL_S)
            if self.interruption:
                return

    def _stall(self) -> dict[str, str] | None:
        """Return the reason why there is no progress, None when it is unknown."""
        return self._channel_holder.agent_failure if self._result is None else self._result.stall

    def _problem(self) -> dict[str, str] | None:
        """Return the reason why data or jobs are missing, None when nothing is missing."""
        result = self._result
        if result is None:
            return self._channel_holder.refusal or self._stall() or self._no_answer()
        if result.complete and not any(job.get("spooled") for job in result.jobs):
            return _unrecorded_reason(result)
        reason = self._stall() or {
            "slug": "not-stored",
            "text": "some data was not stored in time; it may be stored later",
        }
        return {**reason, "text": f"{reason['text']} ({_missing_amounts(result)})"}

    def _no_answer(self) -> dict[str, str]:
        """Return the reason for which an agent without a known failure has written no result."""
        return dict(NOT_OPENED) if self._awaits_agent() else {"slug": "agent", "text": "the agent does not answer"}

    def _run_report(self, problem: dict[str, str] | None) -> None:
        """Run the report with standard error as its output."""
        command = daemons.isolated_command(REPORT, [hex_id(self._launch.launch), "--store", self._launch.store])
        if problem is not None:
            command += ["--problem", streams.clean(f"{problem['text']} [{problem['slug']}]")]
        if self._files.dump_request is not None:
            steps, folder = self._files.dump_request
            command += ["--dump-steps", ",".join(map(str, steps)), "--dump-dir", folder]
        for path in self._files.outputs:
            command += ["--output", path]
        if self._quiet:
            command.append("--quiet")
        if self._brief:
            command.append("--brief")
        timeout_s = _DUMP_TIMEOUT_S if self._writes_files else _RUN_TIMEOUT_S
        log = os.path.join(self._instance_dir, "report.log")
        ending = run_report(command, log, timeout_s)
        self.interruption = ending.interruption
        if not (ending.has_failed or ending.is_late):
            return
        if problem is not None:
            streams.note(f"{problem['text']} [{problem['slug']}]")
        if ending.has_failed or self._writes_files or not self._quiet:
            too_slow = FILES_TOO_SLOW if self._writes_files else REPORT_TOO_SLOW
            reason = too_slow if ending.is_late else f"{REPORT_FAILED['text']}, see {log}"
            streams.note(f"no report: {reason} [report]")

    @property
    def _writes_files(self) -> bool:
        return self._files.dump_request is not None or bool(self._files.outputs)
