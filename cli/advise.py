"""`tfprof advise`: what could be faster."""

from collections.abc import Sequence

import click

from ..collector.forms import advice_lines
from ..collector.query.advising import JobAdvice
from ..collector.query.advising import advise as ask
from ..collector.query.documents import advice_document
from ..collector.query.engine import About
from ..collector.query.explanations import untraced
from ..collector.query.selection import choose
from ..collector.store.reader import Store
from ..collector.tfviews.parity import COMPAT, Parity
from .command import json_option, note, print_json, print_lines, store_option, width
from .values import GIVEN


def tell(found: Sequence[JobAdvice], parity: Parity) -> None:
    """Print advice, and on standard error why there is none."""
    print_lines(advice_lines(found, parity, width()))
    notes(found)


def notes(found: Sequence[JobAdvice]) -> None:
    """Print on standard error why there is no advice."""
    for one in found:
        where = f"{one.job.info.hex[:4]}: " if len(found) > 1 else ""
        if not one.has_steps:
            note(where + untraced(one.job))
        elif not one.says_something:
            note(f"{where}nothing to say: no checker found what it looks for")


@click.command()
@click.argument("jobs", nargs=-1, type=GIVEN, metavar="JOB...")
@click.option(
    "--compat",
    type=click.Choice(COMPAT),
    default=COMPAT[0],
    metavar="VERSION",
    help=f"Whose order of equals: TensorFlow {' or '.join(COMPAT)} ({COMPAT[0]}).",
)
@click.option(
    "--exact-tf", "exact", is_flag=True, help="What tfprof's own checkers say, also where they err, and no more."
)
@json_option
@store_option
def advise(jobs: tuple[str, ...], store: str, compat: str, exact: bool, as_json: bool) -> None:
    """What could be faster in JOB: findings, the numbers behind them, and what to do.

    Looks at ops, steps, input, copies, placement, memory and graphs, and says nothing where it knows nothing.
    """
    about = About(tuple(choose(Store(store), jobs)), parity=Parity(compat, exact))
    found = ask(about)
    if as_json:
        print_json(advice_document(found))
        notes(found)
    else:
        tell(found, about.parity)
