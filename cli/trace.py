"""`tfprof trace` and `tfprof detach`: orders to running jobs."""

import functools
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import click

from ..agent.identity import user_name
from ..collector.client import give
from ..collector.documents.orders import OrderDocument, order_document
from ..collector.errors import UsageError
from ..collector.query.order_targets import Agreement, agree, jobs_for_order, ops_of_order, workers_for_order
from ..collector.render import order_text
from ..collector.store.opening import open_reader
from ..collector.summaries.order_results import JobAnswers, OrderTarget
from ..commands.streams import note, print_lines
from ..formats import orders
from ..formats.errors import TfprofError
from ..formats.orders import Giver, Order, OrderAnswer
from ..formats.policy import Policy, PolicyError
from ..formats.values import InvalidValueError, duration, whole_number
from .command import check_folder, folder_option, json_option, names_option, pid_option, print_json, width
from .job_names import complete_jobs
from .outputs import Outputs, output_option, write_outputs
from .values import NON_EMPTY

#: Default time limit for a job to apply an order.
WAIT: Final = "10s"
_OPTIONS: Final = (
    click.argument("selectors", metavar="[JOB]...", nargs=-1, type=NON_EMPTY, shell_complete=complete_jobs),
    click.option("--all", "all_jobs", is_flag=True, help="All running jobs."),
    click.option(
        "--host", "hosts", multiple=True, metavar="HOST", type=NON_EMPTY, help="Only jobs of HOST (`*` for any)."
    ),
    names_option,
    pid_option,
    click.option(
        "--group", metavar="GROUP", type=NON_EMPTY, help="The workers of a distributed job: its name, or a JOB of it."
    ),
    click.option("--wait", default=WAIT, metavar="TIME", help=f"Time limit to apply the order ({WAIT}; 1h at most)."),
    json_option,
    folder_option,
)


class _CommonOptions(NamedTuple):
    """The options of all orders: the selection of jobs, a time limit, the format of the answers.

    `patience_s`: time limit for a job to apply the order, in seconds.
    """

    store: str
    selectors: Sequence[str]
    all_jobs: bool
    hosts: Sequence[str]
    names: Sequence[str]
    pids: Sequence[int]
    group: str | None
    patience_s: float
    as_json: bool

    def jobs(self) -> list[OrderTarget]:
        """Return the selected jobs.

        UsageError if neither options nor arguments select jobs, or if --all and a JOB are given, or
        --group and anything else. NoSuchJobError if no job matches.
        """
        if self.group is not None:
            if self.selectors or self.all_jobs or self.hosts or self.names or self.pids:
                raise UsageError("--group selects the jobs: give no JOB, --all, --host, --name or --pid")
            return workers_for_order(open_reader(self.store), self.group)
        return jobs_for_order(open_reader(self.store), self.selectors, self.all_jobs, self.hosts, self.names, self.pids)


def _order_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options of `_CommonOptions`, which ``command`` gets as its first argument."""

    @functools.wraps(command)
    def run(*, wait: str, **options: Any) -> int:
        common = {name: options.pop(name) for name in _CommonOptions._fields if name in options}
        return command(_CommonOptions(patience_s=_patience(wait), **common), **options)

    for option in reversed(_OPTIONS):
        run = option(run)
    return run


@click.command()
@click.option("--steps", "next_steps", metavar="N|A-B,…", help="The next N steps, or the steps A to B, ….")
@click.option("--for", "time", metavar="TIME", help="For this time: 5s, 500ms, 10m, 1h.")
@click.option("--every", metavar="N", help="Only one step in N.")
@click.option("--budget", metavar="P%", help="Steps within a cost of P percent.")
@click.option("--all-steps", is_flag=True, help="Every step, until the next order.")
@click.option("--off", is_flag=True, help="No steps.")
@click.option(
    "--end", is_flag=True, help="End the order in force; after one without an end, restore the policy of the start."
)
@click.option(
    "--trace-level", "level", default="auto", metavar="LEVEL", help="How much to record: auto, software or full."
)
@output_option("wait until the steps are stored, and print their ops")
@_order_options
def trace(common: _CommonOptions, outputs: Outputs, end: bool, **order_options: Any) -> int:
    """Trace steps of running JOBs: the next ten (--steps 10), or all for five seconds (--for 5s).

    An order with --steps or --for ends by itself, and the policy before it is restored. Any other
    order lasts until the next one, or until --end. Each job applies the order at its next step. The
    exit status is 0 if all jobs do.
    """
    order = _order(common.patience_s, end, **order_options)
    if outputs and not order.ends_by_itself:
        raise UsageError("-o needs an order that ends: --steps or --for")
    if common.group is None or not order.steps:
        return _give(common, common.jobs(), order, outputs)
    if order.trace != "all" or order.for_ns:
        raise UsageError("--group agrees on the next --steps N: it excludes --every, --budget and --for with them")
    return _give_to_workers(common, order, outputs)


@click.command()
@_order_options
def detach(common: _CommonOptions) -> int:
    """Detach from running JOBs, which are then no longer measured.

    Each job removes all patches at its next step. Recorded data is kept. The exit status is 0 if
    all jobs detach.
    """
    return _give(common, common.jobs(), Order(orders.DETACH, giver(), patience_s=common.patience_s), Outputs((), ()))


def giver() -> Giver:
    """Return the user, host and pid of this process."""
    return Giver(user_name(os.geteuid()), socket.gethostname(), os.getpid())


def trace_next(store: str, uid: str, count: int) -> Iterator[str]:
    """Order one job to trace its next ``count`` steps.

    Yield a line when the job applies the order, and one when the steps are traced and stored.
    """
    check_folder(store, "an order")
    order = Order(orders.TRACE, giver(), "all", "auto", count, 0, _patience(WAIT))
    for job, answer in give(store, jobs_for_order(open_reader(store), [uid]), order, to_the_end=True):
        yield from order_text.lines(job, order, answer, None, 100)


def order_job(store: str, uid: str, order: Order) -> OrderDocument:
    """Give ``order`` to one job; return the document about its first answer.

    NoSuchJobError if there is no such job; DaemonError if the daemons do not come up.
    """
    check_folder(store, "an order")
    jobs = jobs_for_order(open_reader(store), [uid])
    answers = give(store, jobs, order)
    return order_document(store, order, [JobAnswers(job, (answer,), None) for job, answer in answers])


def _order(
    patience_s: float,
    end: bool,
    next_steps: str | None,
    time: str | None,
    every: str | None,
    budget: str | None,
    all_steps: bool,
    off: bool,
    level: str,
) -> Order:
    """Return the order that the options give; UsageError if they give none, or several."""
    count = 0 if next_steps is None else whole_number(next_steps) or 0
    policies = {
        "--every": f"every={every}" if every is not None else "",
        "--budget": f"budget={budget}" if budget is not None else "",
        "--all-steps": "all" if all_steps else "",
        "--off": "off" if off else "",
        "--steps": f"steps={next_steps}" if next_steps is not None and not count else "",
    }
    given_policies = [name for name, text in policies.items() if text]
    if len(given_policies) > 1:
        raise UsageError(f"{' and '.join(given_policies)} exclude each other")
    if end and (given_policies or count or time):
        raise UsageError("--end excludes the other options of an order")
    if off and count:
        raise UsageError("--off and --steps exclude each other")
    if end:
        return Order(orders.END, giver(), patience_s=patience_s)
    if not (given_policies or count or time):
        raise UsageError("give an order: --steps, --for, --every, --budget, --all-steps, --off or --end")
    trace = policies[given_policies[0]] if given_policies else "all"
    _check_policy(next_steps, trace, level)
    for_ns = 0 if time is None else round(_seconds("--for", time) * 1e9)
    return Order(orders.TRACE, giver(), trace, level, count, for_ns, patience_s)


def _check_policy(steps: str | None, trace: str, level: str) -> None:
    try:
        Policy.from_text(trace)
    except PolicyError as error:
        if trace.startswith("steps="):
            raise UsageError(f"--steps {steps!r} is neither a number of steps nor a list such as 10-20,30") from None
        raise UsageError(error.args[0]) from None
    try:
        Policy.from_text(trace, level)
    except PolicyError as error:
        raise UsageError(error.args[0]) from None


def _patience(wait: str) -> float:
    return min(_seconds("--wait", wait), orders.PATIENCE_MAX_S)


def _seconds(option: str, text: str) -> float:
    try:
        return duration(text)
    except InvalidValueError as error:
        raise UsageError(f"{option}: {error}") from None


def _give_to_workers(common: _CommonOptions, order: Order, outputs: Outputs) -> int:
    """Order the workers of a group to trace the same steps, as many as ``order`` has.

    Return the exit status: 1 also if a worker was past the first of these steps.
    """
    jobs = common.jobs()
    agreement = agree(open_reader(common.store), jobs)
    if agreement is None:
        raise TfprofError("no worker has two timed steps yet, so none can be agreed on", "no-timed-step")
    for job in agreement.others:
        note(f"{job.id} {job.info.name} takes no steps, so it gets no order")
    last = agreement.first + order.steps - 1
    order = order._replace(trace=f"steps={agreement.first}-{last}", steps=0)
    return _give(common, agreement.workers, order, outputs, agreement)


def _give(
    common: _CommonOptions,
    jobs: Sequence[OrderTarget],
    order: Order,
    outputs: Outputs,
    agreement: Agreement | None = None,
) -> int:
    """Give ``order`` to ``jobs`` and print the answers; return the exit status."""
    given: dict[int, JobAnswers] = {}
    ended: list[tuple[OrderTarget, OrderAnswer]] = []
    failed = False
    for job, answer in give(common.store, jobs, order, to_the_end=bool(outputs)):
        has_ended = bool(outputs) and answer.state == orders.ENDED
        ended += [(job, answer)] if has_ended else []
        wants_ops = has_ended and bool(outputs.views)
        ops = ops_of_order(open_reader(common.store).job(job.info.hex), answer) if wants_ops else None
        failed = failed or answer.state in (orders.REFUSED, orders.UNANSWERED) or (wants_ops and ops is None)
        earlier = given.get(job.info.uid)
        given[job.info.uid] = JobAnswers(job, (*(earlier.answers if earlier else ()), answer), ops)
        if not common.as_json:
            print_lines(order_text.lines(job, order, answer, ops, width() or 100))
            if wants_ops and ops is None:
                note(order_text.no_ops_text(job, answer))
    if common.as_json:
        print_json(order_document(common.store, order, given.values()))
    if outputs.paths:
        failed = not _write_files(common.store, ended, outputs.paths) or failed
    if agreement is not None:
        failed = not _is_kept(agreement, list(given.values())) or failed
    return int(failed)


def _is_kept(agreement: Agreement, given: Sequence[JobAnswers]) -> bool:
    """Return whether no worker had passed the agreed step; name those that had."""
    passed = agreement.passed_by(given)
    if passed:
        ids = " and ".join(job.id for job in passed)
        error = TfprofError(f"{ids} had passed step {agreement.first}: give the order again", "step-passed")
        note(f"not all workers trace the same steps: {error}")
    return not passed


def _write_files(store: str, ended: Sequence[tuple[OrderTarget, OrderAnswer]], paths: Sequence[str]) -> bool:
    """Write the steps that the order traced; return whether every file was written."""
    if not ended:
        return False
    reader, since_ns = open_reader(store), min(answer.from_ns for _, answer in ended)
    jobs = [reader.job(job.info.hex) for job, _ in ended]
    written = []
    for text, is_written in write_outputs(jobs, [job.id for job, _ in ended], paths, since_ns):
        note(text)
        written.append(is_written)
    return all(written)
