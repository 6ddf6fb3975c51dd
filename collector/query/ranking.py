"""The op types of a job's traced steps, ranked by their time."""

from collections.abc import Sequence
from typing import NamedTuple

from ..store.protocols import JobReader
from ..summaries.shares import Times
from ..summaries.top import TopOp, top_ops
from .facts import STACKS
from .node_times import node_times
from .profile import Profile, profile


class Ranking(NamedTuple):
    """A profile with sums over its steps, and its op types, the longest time first.

    ``times``: those of `node_times`.
    """

    profile: Profile
    ops: list[TopOp]
    times: Times


def rank_ops(
    job: JobReader,
    steps: tuple[int, int] | None = None,
    kinds: Sequence[int] | None = None,
    device: str | None = None,
) -> Ranking | None:
    """Return the op types of the selected traced steps, None if there are none.

    ``steps``, ``kinds`` and ``device`` select as in `profile`. Raises UsageError as `profile` does.
    """
    job_profile = profile(job, steps=steps, kinds=kinds, device=device, averaged=False, required_facts=(STACKS,))
    if job_profile is None or not job_profile.trace_count:
        return None
    times = node_times(job_profile).by_node
    return Ranking(job_profile, top_ops(job_profile.nodes, times, job_profile.trace_count), times)
