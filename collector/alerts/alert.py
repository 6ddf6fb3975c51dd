"""An alert: an anomaly of a running job (docs/alerts.md)."""

from typing import Final, NamedTuple

SLOWER: Final = "slower"
PAUSES: Final = "pauses"
SPIKE: Final = "spike"
STALL: Final = "stall"
MEMORY_GROWTH: Final = "memory-growth"
LOSSES: Final = "losses"
SLUGS: Final = (SLOWER, PAUSES, SPIKE, STALL, MEMORY_GROWTH, LOSSES)


class Alert(NamedTuple):
    """One anomaly; the fields have the order of the columns of `alerts`.

    ``found_ns`` is the time of detection, ``since_ns`` the time when the anomaly began (real time).
    ``kind``, ``key`` and ``step`` identify the first affected step. For a stall, they identify the
    last step before it. They are 0 if the alert concerns no step. ``before`` and ``now`` are the
    usual value and the value that raised the alert. Depending on the slug, they are the duration of
    a step (ns), the time from the start of a step to the next start (ns), the time without a step
    (ns), the memory (bytes), or the number of lost entries.
    """

    found_ns: int
    since_ns: int
    slug: str
    kind: int = 0
    key: int = 0
    step: int = 0
    before: float = 0.0
    now: float = 0.0
