"""`tfprof attach`: profile running jobs."""

import os
import shlex
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import click
from click.core import ParameterSource

from ..agent.attach import targets
from ..agent.attach.attachment import ALL_METHODS, Attachment, AttachOptions
from ..agent.attach.helper import answer_by_subprocess, set_request_handler
from ..agent.attach.identities import RequestHandler, as_user, user_to_become
from ..agent.channels import ChannelReader
from ..agent.processes import Process, process
from ..collector.documents.attached import Attached, Unattached, attach_document
from ..collector.numbers import duration
from ..collector.query.explanations import untraced_reason
from ..collector.query.job_selection import ids_of
from ..collector.store.opening import open_reader
from ..collector.summaries.jobs import main_steps
from ..commands import settings_files
from ..commands.streams import note, print_lines
from ..formats.addresses import is_remote, remote_endpoint
from ..formats.errors import TfprofError, UsageError
from ..formats.ids import hex_id
from ..formats.policy import Policy
from ..formats.settings import SETTINGS
from .attach_host import attach_on
from .command import folder_option, json_option, print_json, store_lines, width
from .hosts import host_option
from .job_names import short_id
from .outputs import Outputs, output_option, write_outputs
from .process_ids import complete_pids
from .report import report
from .values import NAME, NON_EMPTY, WHOLE, WholeNumber
from .watching import StepReader

#: Number of steps that `-o` traces if `--steps` is not given.
STEPS: Final = 20
#: Poll intervals of the jobs, and of the agent (seconds).
POLL_S: Final = 0.2
AGENT_POLL_S: Final = 1.0
#: Poll interval of new processes (seconds).
PROCESS_POLL_S: Final = 2.0
#: Time limit for the daemons to list a new job in the store, on a loaded host (seconds).
LISTED_TIMEOUT_S: Final = 20.0
#: Time without a traced step after which the command says why (seconds).
UNTRACED_S: Final = 10.0


class ProcessSelection:
    """The processes that ``--all`` selects.

    `follows`: processes that start later, or load TensorFlow later, are selected, too.
    """

    def __init__(self, options: AttachOptions, pattern: str, *, follows: bool, has_step_count: bool) -> None:
        self._options = options
        self._pattern = pattern
        self._has_step_count = has_step_count
        self._known_processes: set[Process] = set()
        self._searched_s = float("-inf")
        self.follows = follows

    def update(self, attachments: list[Attachment]) -> None:
        """Attach to new processes and add each attachment to ``attachments``.

        The function searches for new processes at most once in PROCESS_POLL_S. If attaching fails,
        a note says why. Processes that refuse attaching are left out without a note.
        """
        if time.monotonic() < self._searched_s + PROCESS_POLL_S:
            return
        for target in targets.matching_targets(self._pattern, self._known_processes):
            self._known_processes.add(target.process)
            try:
                _attach_to(target.process, self._options, attachments, has_step_count=self._has_step_count)
            except TfprofError as error:
                if error.slug == "no-tensorflow":  # it may still be loading TensorFlow
                    self._known_processes.discard(target.process)
                else:
                    note(f"{target.process.pid}: {error}")
        self._known_processes = {known_process for known_process in self._known_processes if known_process.is_alive}
        self._searched_s = time.monotonic()


class UntracedJobs:
    """The attached jobs that have had no traced step for UNTRACED_S, with notes that say why.

    ``step_count`` is the number of steps to trace, None if the command does not wait for them.
    `given_up` are the jobs whose first ``step_count`` steps are over: no other step is selected.
    """

    def __init__(self, store: str, step_count: int | None) -> None:
        self._store = store
        self._step_count = step_count
        self._due_s: dict[Attachment, float] = {}
        self._noted: set[Attachment] = set()
        self.given_up: set[Attachment] = set()

    def update(self, attachments: Sequence[Attachment]) -> None:
        """Look for such jobs in ``attachments``; print at most one note of each kind for a job."""
        if self._step_count is None:
            return
        now_s = time.monotonic()
        for attachment in attachments:
            is_due = now_s > self._due_s.setdefault(attachment, now_s + UNTRACED_S)
            if is_due and attachment.is_alive and not attachment.channel.word("traced"):
                self._add(attachment, self._step_count)

    def _add(self, attachment: Attachment, step_count: int) -> None:
        _, steps = main_steps(attachment.channel.counters())
        if steps > step_count and attachment not in self.given_up:
            self.given_up.add(attachment)
            note(f"{_title(attachment)}: {self._why(attachment)}; its first {step_count} steps are over: detaching")
        elif attachment not in self._noted | self.given_up:
            note(f"{_title(attachment)}: {self._why(attachment)}; Ctrl-C detaches")
        self._noted.add(attachment)

    def _why(self, attachment: Attachment) -> str:
        try:
            jobs = [job for job in open_reader(self._store).jobs() if job.info.uid == attachment.channel.identity.uid]
        except TfprofError as error:
            return f"no traced steps yet: {error}"
        return untraced_reason(jobs[0]) if jobs else "no traced steps yet: nothing of the job is stored"


class _Pid(WholeNumber):
    """A process id."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the pid; BadParameter for a name says how to attach by name."""
        if isinstance(value, str) and not value.isdecimal():
            self.fail(f"{value!r} is a name, not a pid: tfprof ps lists pids, --all {value!r} attaches by name")
        return super().convert(value, param, ctx)


@click.command()
@click.argument("pids", metavar="[PID]...", nargs=-1, type=_Pid(), shell_complete=complete_pids)
@click.option("--all", "pattern", metavar="NAME", type=NON_EMPTY, help="All my processes called NAME (`*` for any).")
@click.option("--follow", is_flag=True, help="With --all: also processes that start later, until Ctrl-C.")
@click.option("--trace", metavar="POLICY", help="The steps to trace, as for tfprof-run (budget=1%).")
@click.option("--trace-level", "level", metavar="LEVEL", help="How much to record: auto, software or full.")
@click.option("--steps", metavar="N", type=WHOLE, help="Trace the next N steps, then detach.")
@output_option(f"trace {STEPS} steps, print the top ops, detach")
@click.option("--no-wait", is_flag=True, help="Attach and return; tfprof detach detaches.")
@click.option("--name", metavar="NAME", type=NAME, help="Name of the job (its script's name).")
@click.option("--method", type=click.Choice(ALL_METHODS), help="Use only this method, not the first that works.")
@click.option("--record-command", is_flag=True, help="Keep the command line with the results.")
@host_option
@json_option
@folder_option
def attach(
    pids: Sequence[int],
    store: str,
    host: str | None,
    pattern: str | None,
    trace: str | None,
    level: str | None,
    steps: int | None,
    outputs: Outputs,
    name: str | None,
    method: str | None,
    *,
    follow: bool,
    no_wait: bool,
    record_command: bool,
    as_json: bool,
) -> int:
    """Profile the running processes PID, without a restart and without a change to their code.

    Each step is shown on a line when it ends. Ctrl-C detaches and removes all patches.
    With --steps or -o the command detaches when the steps are traced. With --host the agent of HOST
    attaches there, and without --steps or -o the command then returns.
    """
    step_count = STEPS if outputs and steps is None else steps
    has_step_count = step_count is not None
    _check(click.get_current_context().params, step_count)
    if host is not None:
        given = {"name": name, "trace": trace, "trace-level": level, "steps": step_count, "method": method}
        words = {option: str(value) for option, value in given.items() if value is not None}
        return attach_on(store, host, pids[0], words, None if no_wait else step_count, outputs)
    options = AttachOptions(
        store=store,
        name=name,
        settings=_settings(trace if step_count is None else f"steps=1-{step_count}", level),
        methods=ALL_METHODS if method is None else (method,),
        records_command=record_command,
    )
    if as_json:
        return _attach_as_json(options, pids, has_step_count=has_step_count)
    if pattern is not None:
        selection = ProcessSelection(options, pattern, follows=follow, has_step_count=has_step_count)
        return _run(options, selection, step_count, outputs, no_wait=no_wait)
    user_id = user_to_become(list(pids))
    if user_id is not None:
        command = partial(_as_user, options, pids, step_count, outputs, no_wait)
        return as_user(user_id, pids[0], command, answer_by_subprocess)
    return _run(options, pids, step_count, outputs, no_wait=no_wait)


def _check(given: Mapping[str, Any], step_count: int | None) -> None:
    """Raise UsageError if options are missing or exclude each other; ``given``: all by name."""
    pids, store, no_wait = given["pids"], given["store"], given["no_wait"]
    has_pattern, has_host = given["pattern"] is not None, given["host"] is not None
    remote_output = f"-o reads the store, which is on {store}: use `tfprof` there, or give --store DIR"
    excludes_json = not no_wait or has_pattern or has_host
    problems = (
        (bool(pids) == has_pattern, "give a PID, or --all NAME; tfprof ps lists processes (tfprof attach --help)"),
        (given["follow"] and (not has_pattern or no_wait), "--follow needs --all, and excludes --no-wait"),
        (given["outputs"] and is_remote(store), remote_output),
        (step_count == 0, "--steps 0 traces nothing"),
        (step_count is not None and given["trace"] is not None, "--steps and --trace exclude each other"),
        (given["as_json"] and excludes_json, "--json needs --no-wait, and excludes --all and --host"),
        (
            has_host and (len(pids) != 1 or given["record_command"]),
            "--host takes one PID, and excludes --all and --record-command",
        ),
    )
    for is_present, text in problems:
        if is_present:
            raise UsageError(text)


def _attach_as_json(options: AttachOptions, pids: Sequence[int], *, has_step_count: bool) -> int:
    """Attach to processes of this user, print the result as JSON, and return the exit status."""
    if user_to_become(list(pids)) is not None:
        raise UsageError("--json attaches to processes of its own user only", "other-user")
    for signal_number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signal_number, signal.default_int_handler)
    attachments: list[Attachment] = []
    failed = []
    try:
        for pid in dict.fromkeys(pids):
            try:
                _attach_to(_process(pid), options, attachments, has_step_count=has_step_count)
            except TfprofError as error:
                failed.append(Unattached(pid, error.slug, str(error.args[0])))
        _await_listed(attachments, options.store)
        print_json(attach_document(list(map(_attached, attachments)), failed))
    except BaseException:  # nothing names the jobs then, to detach from them
        for attachment in attachments:
            _detach(attachment)
        raise
    finally:
        for attachment in attachments:
            attachment.end()
    return int(bool(failed))


def _attached(attachment: Attachment) -> Attached:
    name, uid = str(attachment.channel.hello().get("name") or ""), attachment.channel.identity.uid
    return Attached(attachment.process.pid, uid, name, attachment.method, attachment.stopped_ns)


def _process(pid: int) -> Process:
    """Return process ``pid``; UsageError if there is none."""
    found = process(pid)
    if found is None:
        raise UsageError(f"there is no process {pid}", "no-such-process")
    return found


def _as_user(
    options: AttachOptions,
    pids: Sequence[int],
    step_count: int | None,
    outputs: Outputs,
    no_wait: bool,
    handler: RequestHandler,
) -> int:
    """Run the command with another user's identity."""
    set_request_handler(handler)
    source = click.get_current_context().get_parameter_source("store")
    if source != ParameterSource.COMMANDLINE:
        options = options._replace(store=settings_files.store())
    return _run(options, pids, step_count, outputs, no_wait=no_wait)


def _run(
    options: AttachOptions,
    selection: Sequence[int] | ProcessSelection,
    step_count: int | None,
    outputs: Outputs,
    *,
    no_wait: bool,
) -> int:
    """Attach, show the steps, and detach; return the exit status.

    SIGTERM and SIGHUP end the command as Ctrl-C does. The first of these signals detaches. The next
    one ends the command at once.
    """
    for signal_number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signal_number, signal.default_int_handler)
    attachments: list[Attachment] = []
    exit_status = 0
    try:
        try:
            exit_status = _attach(options, selection, attachments, has_step_count=step_count is not None)
            followed_selection = selection if isinstance(selection, ProcessSelection) and selection.follows else None
            if no_wait or not (attachments or followed_selection):
                _print_attached(attachments, options.store)
                return exit_status
            untraced = UntracedJobs(options.store, step_count)
            _watch(attachments, step_count, followed_selection, untraced, quiet=bool(outputs))
            exit_status = exit_status or int(bool(untraced.given_up))
        except KeyboardInterrupt:
            if any(attachment.is_ours for attachment in attachments):
                note("detaching")
        except BaseException:
            for attachment in attachments:
                _detach(attachment)
            raise
        return _finish(attachments, outputs, options.store) or exit_status
    except KeyboardInterrupt:
        _leave(attachments, options.store)
        raise
    finally:
        for attachment in attachments:
            attachment.end()


def _await_listed(attachments: Sequence[Attachment], store: str) -> None:
    """Wait until the store lists the jobs, since `tfprof detach` looks for them there."""
    deadline = time.monotonic() + LISTED_TIMEOUT_S
    while attachments and not is_remote(store) and time.monotonic() < deadline:
        with suppress(TfprofError):  # the store may not exist yet
            uids = {job.info.uid for job in open_reader(store).jobs()}
            if all(one.channel.identity.uid in uids for one in attachments if one.is_alive):
                return
        time.sleep(POLL_S)


def _print_attached(attachments: Sequence[Attachment], store: str) -> None:
    _await_listed(attachments, store)
    for attachment in attachments:
        note(f"{_title(attachment)}: attached; detach it with  {_detach_command(attachment, store)}")


def _detach_command(attachment: Attachment, store: str) -> str:
    """Return the command that detaches from a job, to be run on the host of its collector."""
    command = f"tfprof detach {short_id(hex_id(attachment.channel.identity.uid), store)}"
    if is_remote(store):
        return f"ssh {remote_endpoint(store).host} {command}"
    return f"{command} --store {shlex.quote(store)}" if store_lines(store) else command


def _settings(trace: str | None, level: str | None) -> dict[str, str]:
    """Return the settings of the jobs by variable.

    PolicyError if the trace policy is invalid, UsageError if a settings file is.
    """
    from_files = settings_files.load_into_environment()
    job_variables = {row.variable for row in SETTINGS.values() if "shim" in row.users}
    job_settings = {name: text for name, text in {**from_files, **os.environ}.items() if name in job_variables}
    for option, text in (("trace", trace), ("trace-level", level)):
        if text is not None:
            job_settings[SETTINGS[option].variable] = text
    Policy.from_text(SETTINGS["trace"].read(job_settings), SETTINGS["trace-level"].read(job_settings))
    return job_settings


def _attach(
    options: AttachOptions,
    selection: Sequence[int] | ProcessSelection,
    attachments: list[Attachment],
    *,
    has_step_count: bool,
) -> int:
    """Attach to each process; return 1 if that fails for a given pid, else 0.

    Each attachment is added to ``attachments`` at once, so that an interrupt loses none.
    ``has_step_count``: a number of steps to trace was given. A job that is already profiled is then
    refused: `tfprof trace` traces its next steps.
    """
    if isinstance(selection, ProcessSelection):
        selection.update(attachments)
        if not attachments and not selection.follows:
            raise UsageError("no process of yours with that name can be attached to: tfprof ps", "no-such-process")
        return 0
    exit_status = 0
    for pid in dict.fromkeys(selection):
        try:
            _attach_to(_process(pid), options, attachments, has_step_count=has_step_count)
        except TfprofError as error:
            note(f"{pid}: {error}")
            exit_status = 1
    return exit_status


def _attach_to(
    target_process: Process, options: AttachOptions, attachments: list[Attachment], *, has_step_count: bool
) -> None:
    """Attach to one process and print the method; TfprofError if that fails."""
    attachments.append(Attachment(options, target_process))
    attachment = attachments[-1]
    if has_step_count and not attachment.is_ours:
        attachments.pop().end()
        raise UsageError("it is already profiled: tfprof trace traces its next steps", "already-profiled")
    note(f"{_title(attachment)}: attached by {_how(attachment.method, attachment.stopped_ns)}")


def _how(method: str, stopped_ns: int) -> str:
    """Return the method of an injection, and the longest stop of the main thread, if any."""
    return f"{method}, longest stop {duration(stopped_ns)}" if stopped_ns else method


def _title(attachment: Attachment) -> str:
    hello = attachment.channel.hello()
    return f"{attachment.process.pid} {hello.get('name') or ''}".strip()


def _watch(
    attachments: list[Attachment],
    step_count: int | None,
    followed_selection: ProcessSelection | None,
    untraced: UntracedJobs,
    *,
    quiet: bool,
) -> None:
    """Show steps until ``step_count`` are traced in each job, or until all jobs have ended.

    This function detaches from each job as soon as its steps are traced, or cannot be traced any
    more. With ``followed_selection``, it runs until Ctrl-C and adds each new attachment to
    ``attachments``. It then closes the channel of each job that has ended or is detached, since the
    number of jobs has no limit.
    """
    readers = {attachment: StepReader(attachment.channel) for attachment in attachments}
    is_single = followed_selection is None and len(attachments) == 1
    agent_checked_s = 0.0
    detached: set[Attachment] = set()

    def show() -> None:
        for attachment, reader in readers.items():
            lines = list(reader.lines())
            if not quiet:
                print_lines(_prefixed(attachment, lines, is_single=is_single))

    def is_unfinished(attachment: Attachment) -> bool:
        return attachment not in untraced.given_up and _is_unfinished(attachment, step_count)

    while followed_selection is not None or any(map(is_unfinished, attachments)):
        if followed_selection is not None:
            followed_selection.update(attachments)
        readers |= {
            attachment: StepReader(attachment.channel)
            for attachment in attachments
            if attachment.is_open and attachment not in readers
        }
        finished = [
            attachment for attachment in readers if attachment not in detached and not is_unfinished(attachment)
        ]
        show()
        for attachment in finished:
            detached.add(attachment)
            if _detach(attachment) == 0 and followed_selection is not None:
                attachment.end()
                del readers[attachment]
        if attachments and time.monotonic() > agent_checked_s + AGENT_POLL_S:
            attachments[0].ensure_agent(again=agent_checked_s > 0)
            agent_checked_s = time.monotonic()
            untraced.update(attachments)
        time.sleep(POLL_S)
    show()


def _is_unfinished(attachment: Attachment, step_count: int | None) -> bool:
    return attachment.is_alive and (step_count is None or not _are_traced(attachment.channel, step_count))


def _are_traced(channel: ChannelReader, step_count: int) -> bool:
    """Return whether the first ``step_count`` steps are traced.

    A trace may cover several batches. There may then be fewer than ``step_count`` traces, so the
    number of steps decides.
    """
    traced = channel.word("traced")
    if not 0 < traced < step_count:
        return traced >= step_count
    _, steps = main_steps(channel.counters())
    return steps > step_count


def _prefixed(attachment: Attachment, lines: Sequence[str], *, is_single: bool) -> Iterator[str]:
    return (line if is_single else f"{attachment.process.pid}  {line}" for line in lines)


def _finish(attachments: Sequence[Attachment], outputs: Outputs, store: str) -> int:
    """Detach from the jobs, wait until their data is stored, and print the result.

    Return the exit status: 1 if a job cannot be detached or some data is not stored, else 0. Jobs
    that were profiled before the command stay as they are.
    """
    exit_status = 0
    attachments = [attachment for attachment in attachments if attachment.is_ours]
    for attachment in attachments:
        exit_status = _detach(attachment) or exit_status
        attachment.close_launch()
    for attachment in attachments:
        launch = hex_id(attachment.launch)
        result = attachment.wait_stored()
        problem = None
        if result is None or not result.complete:
            problem = f"some data is not stored yet: {_reason(result)}"
            exit_status = 1
        if outputs.views:
            _print_report(store, launch, problem)
        elif problem is not None:
            note(problem)
        else:
            job = short_id(hex_id(attachment.channel.identity.uid), store)
            if is_remote(store):
                host = remote_endpoint(store).host
                note(f"detached; more with  ssh {host} tfprof op {job}")
                continue
            note(" ".join([f"detached; more with  tfprof op {job} · tfprof steps {job}", *store_lines(store)]))
    if outputs.paths and attachments:
        exit_status = _write_files(attachments, outputs.paths, store) or exit_status
    return exit_status


def _write_files(attachments: Sequence[Attachment], paths: Sequence[str], store: str) -> int:
    """Write the jobs; return 1 if a file could not be written, else 0."""
    reader = open_reader(store)
    uids = {attachment.channel.identity.uid for attachment in attachments}
    jobs = [job for job in reader.jobs() if job.info.uid in uids]
    if not jobs:
        note("no file: nothing of the jobs is stored")
        return 1
    ids = ids_of(jobs)
    exit_status = 0
    for text, is_written in write_outputs(jobs, [ids[job.info.hex] for job in jobs], paths):
        note(text)
        exit_status = exit_status if is_written else 1
    return exit_status


def _leave(attachments: Sequence[Attachment], store: str) -> None:
    """Order the jobs that are still attached to detach at their next step; print what remains."""
    for attachment in attachments:
        if attachment.is_ours and attachment.is_alive:
            attachment.order_detach()
            command = _detach_command(attachment, store)
            note(f"{_title(attachment)}: not detached yet: detaches at its next step, or by  {command}")
        elif attachment.is_ours:
            note(f"{_title(attachment)}: detached; the agent still stores its data")


def _print_report(store: str, launch: str, problem: str | None) -> None:
    """Print the report on a launch; if there is none because of ``problem``, print the problem."""
    try:
        print_lines(report(open_reader(store), launch, problem, width() or 120))
    except TfprofError:
        if problem is None:
            raise
        note(f"no profile: {problem}")


def _detach(attachment: Attachment) -> int:
    """Detach from a job that this command attached to; return 1 if that fails, else 0."""
    if not attachment.is_ours or not attachment.is_alive:
        return 0
    title = _title(attachment)
    try:
        attachment.detach()
    except TfprofError as error:
        note(f"{title}: {error}")
        return 1
    return 0


def _reason(result: Any) -> str:
    return result.stall["text"] if result is not None and result.stall else "the agent is still sending it"
