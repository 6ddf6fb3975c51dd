"""What an exporter of jobs is to write."""

from dataclasses import dataclass, field

from ..query.job_selection import Selection


@dataclass(frozen=True, slots=True)
class Request:
    """The jobs, steps, kinds and devices to write.

    ``all_steps``: all selected steps, even if they are too many for a timeline. ``table``: name of
    a table, None for the default. ``notes``: lines for the user, which the exporter adds.
    """

    selection: Selection
    all_steps: bool = False
    table: str | None = None
    notes: list[str] = field(default_factory=list)
