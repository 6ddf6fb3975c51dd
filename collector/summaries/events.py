"""What befell a job besides its steps: refusals of its process, records that could not be read, gaps."""

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from ..numbers import count
from ..text import clean

#: Slugs of what is counted and no reason to worry.
_USUAL: Final = frozenset({"outside-steps"})


@dataclass(frozen=True, slots=True)
class Event:
    """What befell a job ``count`` times, as it was told last; ``slug`` is explained in docs/errors.md, times are real ns."""

    slug: str
    text: str
    count: int
    first_ns: int
    last_ns: int

    @property
    def usual(self) -> bool:
        """Whether it befalls jobs that nothing is wrong with."""
        return self.slug in _USUAL

    @property
    def line(self) -> str:
        """The event as one line of text: what happened, how often, and the slug."""
        often = f", {count(self.count)} times" if self.count > 1 else ""
        return clean(f"{self.text}{often} [{self.slug}]")


def events(table: pa.Table) -> tuple[Event, ...]:
    """Return the rows of EVENTS by slug, the one that came first at the front."""
    found: dict[str, Event] = {}
    for row in sorted(table.to_pylist(), key=lambda row: row["t_ns"]):
        at = row["t_ns"]
        before = found.get(row["slug"], Event(row["slug"], "", 0, at, at))
        found[row["slug"]] = Event(row["slug"], row["text"], before.count + row["count"], before.first_ns, at)
    return tuple(found.values())
