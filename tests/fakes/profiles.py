"""The nodes of jobs for tests."""

from collections.abc import Collection, Sequence
from typing import Any

from tfprof.collector.query import profile as module
from tfprof.collector.query.facts import ALL_FACTS
from tfprof.collector.query.job_selection import Selection
from tfprof.collector.store.protocols import JobReader


def profile(
    jobs: JobReader | Sequence[JobReader],
    step: int = -1,
    *,
    required_facts: Collection[str] = ALL_FACTS,
    averaged: bool = True,
    **selected: Any,
) -> module.Profile | None:
    """Return the nodes of ``jobs``; ``selected``: further fields of the Selection."""
    selection = Selection(tuple(jobs) if isinstance(jobs, Sequence) else (jobs,), **selected)
    return module.profile(selection, step, required_facts, averaged=averaged)
