"""What befell a job, as text."""

from ..summaries.events import Event
from .numbers import count
from .table import clean


def line(event: Event) -> str:
    """Return ``event`` in the form of any message: what happened, how often, and the slug."""
    often = f", {count(event.count)} times" if event.count > 1 else ""
    return clean(f"{event.text}{often} [{event.slug}]")
