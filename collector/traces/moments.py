"""The events and alerts of a job."""

from typing import NamedTuple

import pyarrow as pa

from ..alerts.alert import Alert
from ..alerts.sentence import sentence
from ..store.columns import row_tuples
from ..store.protocols import JobReader
from ..summaries.jobs import functions_of


class Moment(NamedTuple):
    """An event or alert: when it was found (real ns), and what it says; ``times``: how often."""

    time_ns: int
    slug: str
    text: str
    times: int


def moments(job: JobReader, events: pa.Table, alerts: pa.Table) -> list[Moment]:
    """Return ``events`` and ``alerts`` of ``job`` (rows of these tables), in order of time."""
    functions = functions_of(job.info)
    found = map(Alert._make, row_tuples(alerts, *Alert._fields))
    return sorted(
        [
            *(Moment(*row) for row in row_tuples(events, "t_ns", "slug", "text", "count")),
            *(Moment(alert.found_ns, alert.slug, sentence(alert, functions), 1) for alert in found),
        ]
    )
