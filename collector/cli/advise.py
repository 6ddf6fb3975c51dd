"""`tfprof advise`: what could be faster."""

from typing import Any

import click
from tfprof.collector.cli.command import json_option, note, print_json, print_lines, store_option
from tfprof.collector.evidence import gather
from tfprof.collector.render.advice_text import lines
from tfprof.collector.render.why_text import untraced
from tfprof.collector.store.reader import Job, Store
from tfprof.collector.views.advice.report import Advice
from tfprof.collector.views.advice.table import advise as ask
from tfprof.collector.views.rules import COMPAT, Rules


def _document(job: Job, advice: list[Advice]) -> dict[str, Any]:
    return {
        "job": job.info.hex,
        "checkers": [
            {
                "name": checker.name,
                "slug": checker.slug,
                "reports": [
                    {"text": report.text, "numbers": report.numbers, "todo": report.todo or None} for report in reports
                ],
            }
            for checker, reports in advice
        ],
    }


@click.command()
@click.argument("job")
@click.option(
    "--compat",
    type=click.Choice(COMPAT),
    default=COMPAT[0],
    metavar="VERSION",
    help=f"Whose order of equals: TensorFlow {' or '.join(COMPAT)} ({COMPAT[0]}).",
)
@click.option(
    "--strict-tfprof", "strict", is_flag=True, help="What tfprof's own checkers say, also where they err, and no more."
)
@json_option
@store_option
def advise(job: str, store: str, compat: str, strict: bool, as_json: bool) -> None:
    """What could be faster in JOB: findings, the numbers behind them, and what to do.

    Looks at ops, steps, input, copies, placement, memory and graphs, and says nothing where it knows nothing.
    """
    chosen = Store(store).job(job)
    found = gather(chosen, Rules(compat, strict))
    advice = ask(found)
    if as_json:
        print_json(_document(chosen, advice))
    else:
        print_lines(lines(advice, strict=strict))
    if not found.has_steps:
        note(untraced(chosen))
    elif not any(reports for _, reports in advice):
        note("nothing to say: no checker found what it looks for")
