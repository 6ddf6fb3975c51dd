"""`tfprof attach`: profile running jobs."""

import os
import signal
import time
from collections.abc import Iterator, Sequence
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
from ..collector.numbers import duration
from ..collector.query.explanations import untraced
from ..collector.store.reader import open_reader
from ..collector.summaries.jobs import main_steps, short_ids
from ..commands import settings_files
from ..commands.streams import note
from ..formats.errors import TfprofError, UsageError
from ..formats.ids import hex_id
from ..formats.policy import Policy
from ..formats.settings import SETTINGS
from .command import print_lines, store_option, width
from .report import report
from .values import NAME, NON_EMPTY, WHOLE
from .watching import StepReader

#: Values of `-o`, and the number of traced steps if `--steps` is not given.
OUTPUTS: Final = ("ops",)
STEPS: Final = 20
#: Poll intervals of the jobs, and of the agent (seconds).
POLL_S: Final = 0.2
AGENT_POLL_S: Final = 1.0
#: Poll interval of new processes (seconds).
PROCESS_POLL_S: Final = 2.0
#: Time without a traced step after which the command says why (seconds).
UNTRACED_S: Final = 10.0


class ProcessSelection:
    """The processes that ``--all`` selects.

    `follows`: they include processes that start or load TensorFlow later.
    """

    def __init__(self, options: AttachOptions, pattern: str, *, follows: bool, counted: bool) -> None:
        self._options = options
        self._pattern = pattern
        self._counted = counted
        self._known: set[Process] = set()
        self._looked_s = float("-inf")
        self.follows = follows

    def update(self, attached: list[Attachment]) -> None:
        """Attach to new processes and add the attachments to ``attached``.

        New processes are looked for at most once in PROCESS_POLL_S. If one cannot be attached to, a
        note says why.
        """
        if time.monotonic() < self._looked_s + PROCESS_POLL_S:
            return
        for found in targets.matching(self._pattern, self._known):
            self._known.add(found.process)
            try:
                _attach_to(found.process, self._options, attached, counted=self._counted)
            except TfprofError as error:
                if error.slug == "no-tensorflow":  # it may still be loading TensorFlow
                    self._known.discard(found.process)
                else:
                    note(f"{found.process.pid}: {error}")
        self._known = {one for one in self._known if one.is_alive}
        self._looked_s = time.monotonic()


class UntracedNotes:
    """Notes that say why no step of a job is traced, at most one for each job.

    Without ``waits`` there are none: the command does not wait for traced steps.
    """

    def __init__(self, store: str, *, waits: bool) -> None:
        self._store = store
        self._waits = waits
        self._due_s: dict[Attachment, float] = {}

    def update(self, attached: Sequence[Attachment]) -> None:
        """Print a note about each job that has had no traced step for UNTRACED_S."""
        now_s = time.monotonic()
        for one in attached if self._waits else ():
            is_due = now_s > self._due_s.setdefault(one, now_s + UNTRACED_S)
            if is_due and one.is_alive and not one.channel.word("traced"):
                self._due_s[one] = float("inf")
                note(f"{_title(one)}: {self._why(one)}; Ctrl-C detaches")

    def _why(self, one: Attachment) -> str:
        try:
            found = [job for job in open_reader(self._store).jobs() if job.info.uid == one.channel.identity.uid]
        except TfprofError as error:
            return f"no traced steps yet: {error}"
        return untraced(found[0]) if found else "no traced steps yet: nothing of the job is stored"


@click.command()
@click.argument("pids", metavar="[PID]...", nargs=-1, type=WHOLE)
@click.option("--all", "pattern", metavar="NAME", type=NON_EMPTY, help="All my processes called NAME (`*` for any).")
@click.option("--follow", is_flag=True, help="With --all: also processes that start later, until Ctrl-C.")
@click.option("--trace", metavar="POLICY", help="The steps to trace, as for tfprof-run (budget=1%).")
@click.option("--trace-level", "level", metavar="LEVEL", help="How much to record: auto, software or full.")
@click.option("--steps", metavar="N", type=WHOLE, help="Trace the next N steps, then detach.")
@click.option("-o", "--output", type=click.Choice(OUTPUTS), help=f"Trace {STEPS} steps, print the top ops, detach.")
@click.option("--no-wait", is_flag=True, help="Attach and return; tfprof detach detaches.")
@click.option("--name", metavar="NAME", type=NAME, help="Name of the job (its script's name).")
@click.option("--method", type=click.Choice(ALL_METHODS), help="Use only this method, not the first that works.")
@click.option("--record-command", is_flag=True, help="Keep the command line with the results.")
@store_option
def attach(
    pids: Sequence[int],
    store: str,
    pattern: str | None,
    trace: str | None,
    level: str | None,
    steps: int | None,
    output: str | None,
    name: str | None,
    method: str | None,
    *,
    follow: bool,
    no_wait: bool,
    record_command: bool,
) -> int:
    """Profile the running processes PID, without a restart and without a change to their code.

    Each step is shown in a line when it ends. Ctrl-C detaches and removes all patches.
    With --steps or -o the command detaches when the steps are traced.
    """
    if bool(pids) == (pattern is not None):
        raise UsageError("give a PID, or --all NAME; tfprof ps lists processes (tfprof attach --help)")
    if follow and (pattern is None or no_wait):
        raise UsageError("--follow needs --all, and excludes --no-wait")
    count = STEPS if output is not None and steps is None else steps
    if count == 0:
        raise UsageError("--steps 0 traces nothing")
    if count is not None and trace is not None:
        raise UsageError("--steps and --trace exclude each other")
    options = AttachOptions(
        store=store,
        name=name,
        settings=_settings(trace if count is None else f"steps=1-{count}", level),
        methods=ALL_METHODS if method is None else (method,),
        records_command=record_command,
    )
    if pattern is not None:
        return _run(
            options,
            ProcessSelection(options, pattern, follows=follow, counted=count is not None),
            count,
            output,
            no_wait=no_wait,
        )
    user_id = user_to_become(list(pids))
    if user_id is not None:
        return as_user(user_id, pids[0], partial(_as_user, options, pids, count, output, no_wait), answer_by_subprocess)
    return _run(options, pids, count, output, no_wait=no_wait)


def _as_user(
    options: AttachOptions,
    pids: Sequence[int],
    count: int | None,
    output: str | None,
    no_wait: bool,
    answer: RequestHandler,
) -> int:
    """Run the command with another user's identity."""
    set_request_handler(answer)
    given = click.get_current_context().get_parameter_source("store")
    if given != ParameterSource.COMMANDLINE:
        options = options._replace(store=settings_files.store())
    return _run(options, pids, count, output, no_wait=no_wait)


def _run(
    options: AttachOptions,
    wanted: Sequence[int] | ProcessSelection,
    count: int | None,
    output: str | None,
    *,
    no_wait: bool,
) -> int:
    """Attach, show the steps, and detach; return the exit status.

    SIGTERM and SIGHUP end the command as Ctrl-C does.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    attached: list[Attachment] = []
    failed = 0
    try:
        try:
            failed = _attach(options, wanted, attached, counted=count is not None)
            followed = wanted if isinstance(wanted, ProcessSelection) and wanted.follows else None
            if no_wait or not (attached or followed):
                for one in attached:
                    note(f"{_title(one)}: attached; detach it with  tfprof detach {_id(one, options.store)}")
                return failed
            notes = UntracedNotes(options.store, waits=count is not None)
            _watch(attached, count, followed, notes, quiet=output is not None)
        except KeyboardInterrupt:
            if any(one.is_ours for one in attached):
                note("detaching")
        except BaseException:
            for one in attached:
                _detach(one)
            raise
        return _finish(attached, output, options.store) or failed
    finally:
        for one in attached:
            one.end()


def _settings(trace: str | None, level: str | None) -> dict[str, str]:
    """Return the settings of the jobs by variable; PolicyError or UsageError if one is invalid."""
    given = settings_files.load_into_environment()
    of_job = {row.variable for row in SETTINGS.values() if "shim" in row.users}
    found = {name: text for name, text in {**given, **os.environ}.items() if name in of_job}
    for option, text in (("trace", trace), ("trace-level", level)):
        if text is not None:
            found[SETTINGS[option].variable] = text
    Policy.from_text(SETTINGS["trace"].read(found), SETTINGS["trace-level"].read(found))
    return found


def _attach(
    options: AttachOptions, wanted: Sequence[int] | ProcessSelection, attached: list[Attachment], *, counted: bool
) -> int:
    """Attach to each process; return 1 if one with a given pid failed, else 0.

    The attachments are added to ``attached`` one by one, so that an interrupt loses none.
    ``counted``: a number of steps to trace was given. A job that is already profiled is then
    refused: `tfprof trace` traces its next steps.
    """
    if isinstance(wanted, ProcessSelection):
        wanted.update(attached)
        if not attached and not wanted.follows:
            raise UsageError("no process of yours with that name can be attached to: tfprof ps", "no-such-process")
        return 0
    failed = 0
    for pid in dict.fromkeys(wanted):
        found = process(pid)
        try:
            if found is None:
                raise UsageError(f"there is no process {pid}", "no-such-process")
            _attach_to(found, options, attached, counted=counted)
        except TfprofError as error:
            note(f"{pid}: {error}")
            failed = 1
    return failed


def _attach_to(found: Process, options: AttachOptions, attached: list[Attachment], *, counted: bool) -> None:
    """Attach to one process and print the method; TfprofError if that fails."""
    attached.append(Attachment(options, found))
    one = attached[-1]
    if counted and not one.is_ours:
        attached.pop().end()
        raise UsageError("it is already profiled: tfprof trace traces its next steps", "already-profiled")
    stopped = f", stopped for {duration(one.stopped_ns)}" if one.stopped_ns else ""
    note(f"{_title(one)}: attached by {one.method}{stopped}")


def _title(one: Attachment) -> str:
    hello = one.channel.hello()
    return f"{one.process.pid} {hello.get('name') or ''}".strip()


def _id(one: Attachment, store: str) -> str:
    """Return the start of the job's id, as `tfprof jobs` shows it."""
    uid = hex_id(one.channel.identity.uid)
    known: list[str] = []
    with suppress(TfprofError):  # the store may not exist yet
        known = [job.info.hex for job in open_reader(store).jobs()]
    return short_ids(list({*known, uid}))[uid]


def _watch(
    attached: list[Attachment],
    count: int | None,
    followed: ProcessSelection | None,
    notes: UntracedNotes,
    *,
    quiet: bool,
) -> None:
    """Show steps until ``count`` are traced in each job, or until all jobs have ended.

    With ``followed`` only Ctrl-C ends it. New attachments are then added to ``attached``, and the
    channel of a job is closed when the job ends, since there may be any number of jobs.
    """
    readers = {one: StepReader(one.channel) for one in attached}
    alone = followed is None and len(attached) == 1
    looked_s = 0.0
    detached: set[Attachment] = set()

    def show() -> None:
        for one, reader in readers.items():
            lines = list(reader.lines())
            if not quiet:
                print_lines(_prefixed(one, lines, alone=alone))

    while followed is not None or any(_is_unfinished(one, count) for one in attached):
        if followed is not None:
            followed.update(attached)
        readers |= {one: StepReader(one.channel) for one in attached if one.is_open and one not in readers}
        over = [one for one in readers if one not in detached and not _is_unfinished(one, count)]
        show()
        for one in over:
            detached.add(one)
            if not _detach(one) and followed is not None:
                one.end()
                del readers[one]
        if attached and time.monotonic() > looked_s + AGENT_POLL_S:
            looked_s = time.monotonic()
            attached[0].ensure_agent()
            notes.update(attached)
        time.sleep(POLL_S)
    show()


def _is_unfinished(one: Attachment, count: int | None) -> bool:
    return one.is_alive and (count is None or not _are_traced(one.channel, count))


def _are_traced(channel: ChannelReader, count: int) -> bool:
    """Return whether the first ``count`` steps are traced.

    A trace may cover several batches. There may then be fewer than ``count`` traces, so the number
    of steps decides.
    """
    traced = channel.word("traced")
    if not 0 < traced < count:
        return traced >= count
    _, steps = main_steps(channel.counters())
    return steps > count


def _prefixed(one: Attachment, lines: Sequence[str], *, alone: bool) -> Iterator[str]:
    return (line if alone else f"{one.process.pid}  {line}" for line in lines)


def _finish(attached: Sequence[Attachment], output: str | None, store: str) -> int:
    """Detach from the jobs, wait until their data is stored, and print the result.

    Return the exit status: 1 if a job cannot be detached or some data is not stored, else 0. Jobs
    that were profiled before the command stay as they are.
    """
    failed = 0
    attached = [one for one in attached if one.is_ours]
    for one in attached:
        failed = _detach(one) or failed
        one.close_launch()
    for one in attached:
        launch = hex_id(one.launch)
        result = one.wait_stored()
        problem = None
        if result is None or not result.complete:
            problem = f"some data is not stored yet: {_reason(result)}"
            failed = 1
        if output is not None:
            _print_report(store, launch, problem)
        elif problem is not None:
            note(problem)
        else:
            job = _id(one, store)
            note(f"detached; more with  tfprof op {job} · tfprof steps {job}")
    return failed


def _print_report(store: str, launch: str, problem: str | None) -> None:
    """Print the report on a job, or only ``problem`` if it is the reason why there is no store."""
    try:
        print_lines(report(open_reader(store), launch, problem, width() or 120))
    except TfprofError:
        if problem is None:
            raise
        note(f"no profile: {problem}")


def _detach(one: Attachment) -> int:
    """Detach from a job that this command attached to; return 1 if that fails, else 0."""
    if not one.is_ours or not one.is_alive:
        return 0
    title = _title(one)
    try:
        one.detach()
    except TfprofError as error:
        note(f"{title}: {error}")
        return 1
    return 0


def _reason(result: Any) -> str:
    return result.stall["text"] if result is not None and result.stall else "the agent is still sending it"
