"""Events of a job: refusals, undecodable records, gaps."""

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from ..numbers import count

#: Slugs of events that are about a part of TensorFlow, or of the job, that cannot be recorded. Each
#: text names a different part.
_INCOMPLETE: Final = frozenset({"patch-missing", "no-ops"})
#: Slugs of harmless events.
_HARMLESS: Final = frozenset({"outside-steps", "order-given", "order-ended"})
#: Slugs of events whose count is a number of lost entries.
_LOSSES: Final = frozenset({"gap", "given-up", "store-removed"})


@dataclass(frozen=True, slots=True)
class EventSummary:
    """An event that occurred ``count`` times, or lost ``count`` entries, with its last text.

    ``slug``: see docs/errors.md. ``first_ns`` and ``last_ns`` are real time.
    """

    slug: str
    text: str
    count: int
    first_ns: int
    last_ns: int

    @property
    def is_harmless(self) -> bool:
        """Whether the event is harmless: it occurs in healthy jobs, too."""
        return self.slug in _HARMLESS

    @property
    def is_incompleteness(self) -> bool:
        """Whether the event says that a part of the job cannot be recorded."""
        return self.slug in _INCOMPLETE

    @property
    def line(self) -> str:
        """The event as one line of text: what happened, how often, and the slug."""
        repetition = f", {count(self.count)} times" if self.count > 1 else ""
        if self.slug in _LOSSES:
            repetition = f": {count(self.count)}"
        return f"{self.text}{repetition} [{self.slug}]"


def events(table: pa.Table) -> tuple[EventSummary, ...]:
    """Return the rows of EVENTS merged by slug, in order of first occurrence.

    Events of the slugs in _INCOMPLETE are merged only if they also have the same text.
    """
    merged_events: dict[tuple[str, str], EventSummary] = {}
    for row in sorted(table.to_pylist(), key=lambda row: row["t_ns"]):
        t_ns, slug, text = row["t_ns"], row["slug"], row["text"]
        key = (slug, text if slug in _INCOMPLETE else "")
        earlier = merged_events.get(key, EventSummary(slug, "", 0, t_ns, t_ns))
        merged_events[key] = EventSummary(slug, text, earlier.count + row["count"], earlier.first_ns, t_ns)
    return tuple(merged_events.values())
