"""`tfprof alerts`: alerts about jobs."""

from collections.abc import Sequence

import click

from ..collector.documents.alerts import alerts_document
from ..collector.numbers import date_and_time
from ..collector.query.alerts import alerts_of, all_alerts
from ..collector.query.job_selection import choose, ids_of
from ..collector.render.alerts_text import lines
from ..collector.store.opening import open_reader
from ..commands.streams import note, print_lines
from .command import json_option, print_json, store_option, width
from .job_names import complete_jobs
from .selection_options import since_option
from .values import NON_EMPTY, WHOLE


@click.command()
@click.argument("jobs", nargs=-1, type=NON_EMPTY, metavar="[JOB]...", shell_complete=complete_jobs)
@click.option("--last", type=WHOLE, metavar="N", help="Only the last N alerts.")
@since_option("alerts that were found")
@json_option
@store_option
def alerts(jobs: Sequence[str], store: str, as_json: bool, last: int | None, since_ns: int) -> None:
    """Show alerts about JOB (all jobs): slower steps, pauses, spikes, stalls, memory, losses.

    The collector raises alerts while jobs run. An alert shows the numbers that raised it. An
    alert about slower steps lists the ops that take longer than before.
    """
    reader = open_reader(store)
    found_alerts, errors = (alerts_of(choose(reader, jobs)), []) if jobs else all_alerts(reader)
    stored, found_alerts = found_alerts, [found for found in found_alerts if found.alert.found_ns >= since_ns]
    shown_alerts = found_alerts if last is None else found_alerts[len(found_alerts) - min(last, len(found_alerts)) :]
    if as_json:
        print_json(alerts_document(shown_alerts))
    else:
        ids = ids_of([job_alert.job for job_alert in shown_alerts])
        print_lines(lines(shown_alerts, ids, width()))
    if not found_alerts:
        note(f"no alerts since {date_and_time(since_ns)}; before: {len(stored):,}" if stored else "no alerts")
    for error in errors:
        note(str(error))
