"""What befell a job, as text."""

from tfprof.collector.render.numbers import count
from tfprof.collector.render.table import clean
from tfprof.collector.views.events import Event


def line(event: Event) -> str:
    """Return ``event`` in the form of any message: what happened, how often, and the slug."""
    often = f", {count(event.count)} times" if event.count > 1 else ""
    return clean(f"{event.text}{often} [{event.slug}]")
