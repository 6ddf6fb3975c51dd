"""`tfprof advise`: advice on performance."""

from collections.abc import Sequence

import click

from ..collector.documents.advice import advice_document
from ..collector.forms import advice_lines
from ..collector.query import advising
from ..collector.query.advising import JobAdvice
from ..collector.query.explanations import untraced_reason
from ..collector.query.job_selection import Selection, choose, ids_of
from ..collector.store.opening import open_reader
from ..collector.tfviews.parity import COMPAT, Parity
from ..commands.streams import note, print_lines
from .command import jobs_argument, json_option, print_json, store_option, width


def print_advice(advice: Sequence[JobAdvice], parity: Parity) -> None:
    """Print advice; if no step was traced, print the reason on standard error."""
    print_lines(advice_lines(advice, parity, width()))
    note_missing_data(advice)


def note_missing_data(advice: Sequence[JobAdvice]) -> None:
    """If some advice is missing, print the reason on standard error."""
    ids = ids_of([job_advice.job for job_advice in advice])
    for job_advice in advice:
        prefix = f"{ids[job_advice.job.info.hex]}: " if len(advice) > 1 else ""
        if not job_advice.evidence.has_steps:
            note(prefix + untraced_reason(job_advice.job))
        if damage := job_advice.evidence.host_damage:
            note(prefix + damage)


@click.command()
@jobs_argument
@click.option(
    "--compat",
    type=click.Choice(COMPAT),
    default=COMPAT[0],
    metavar="VERSION",
    help=f"Sort equal entries like TensorFlow {', '.join(COMPAT[:-1])} or {COMPAT[-1]} ({COMPAT[0]}).",
)
@click.option(
    "--exact-tf",
    "exact",
    is_flag=True,
    help="Print exactly what the TF profiler's checkers print, even where they are wrong.",
)
@json_option
@store_option
def advise(jobs: tuple[str, ...], store: str, compat: str, exact: bool, as_json: bool) -> None:
    """Print advice on the performance of JOB: findings with their numbers, and remedies.

    Checks ops, steps, input, copies, placement, memory and graphs. The verdict comes first. The
    last lines list what was checked and is fine, and what has no data.
    """
    selection = Selection(tuple(choose(open_reader(store), jobs)), parity=Parity(compat, exact))
    advice = advising.advise(selection)
    if as_json:
        print_json(advice_document(advice))
        note_missing_data(advice)
    else:
        print_advice(advice, selection.parity)
