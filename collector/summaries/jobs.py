"""Makes one row from each job file: identity, progress, traced and lost steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ...formats import layout, span_kinds
from ..store.catalog import DAMAGED, LOST, LOST_COUNTERS, RUNNING, JobInfo, integer_of
from ..store.columns import pc
from ..store.selectors import short_ids
from .kinds import by_kind, kind_name, main_kind_of

#: Phases of a job besides `catalog.RUNNING`: the job runs and has no span yet, or it has ended.
STARTING: Final = "starting"
ENDED: Final = "ended"
_ACTIVITY: Final = layout.SPAN_NAMES[layout.ACTIVITY]


@dataclass(frozen=True, slots=True)
class JobRow:
    """Facts about a job from its job file alone; None if unknown.

    ``phase``: starting, running or ended; ``step_ns``: the mean time of a step of ``step_kind``.
    Times are in ns; ``started_ns`` and ``ended_ns`` are real time. ``lost``: number of lost records
    and span entries; None if it is unknown, since the channel could not be read to its end.
    ``odd_times``: number of executions in imported files with times that cannot be right. The job's
    own times do not cover them.
    """

    id: str
    uid: str
    name: str
    user: str
    host: str
    pid: int | None
    rank: int | None
    framework: str
    framework_version: str
    steps: int
    step_kind: str
    epochs: int
    traced: int
    lost: int | None
    cost: float | None
    steps_ns: int
    step_ns: float | None
    state: str
    phase: str
    status: int | None
    signal: int | None
    started_ns: int
    ended_ns: int | None
    duration_ns: int
    launch: str
    trace: str
    odd_times: int


def channel_words(info: JobInfo) -> dict[str, Any]:
    """Return the latest stored words of a job's channel."""
    return {**info.counters, **info.end}


def counts_of(info: JobInfo) -> dict[str, int]:
    """Return the number of spans of each kind in a job, including those that were not recorded.

    Activities are left out: while a program imports TensorFlow, its only spans are collections of
    garbage.
    """
    counts = channel_words(info).get("counts")
    if not isinstance(counts, Mapping):
        return {}
    kinds = span_kinds.declared(info.identity.get("kinds")) or span_kinds.UNDECLARED
    return {name: integer_of(counts, name) for name, _, _ in kinds.values() if name != _ACTIVITY}


def current_info(info: JobInfo, spans: pa.Table, traced: int = 0) -> JobInfo:
    """Return ``info`` with counters that include the job's stored steps.

    The counters in the job file of a running job are up to five seconds old. ``spans``: the columns
    ``kind``, ``ordinal``, ``count`` and ``total_ns`` of all its spans. ``traced``: number of its
    stored traces.
    """
    counters = info.counters
    counts, times = (
        {**stored} if isinstance(stored := counters.get(name), Mapping) else {} for name in ("counts", "times")
    )
    last_ordinals = pc.add(spans["ordinal"], pc.subtract(spans["count"], pa.scalar(1, pa.uint32())))
    kinds = pa.table({"kind": spans["kind"], "last": last_ordinals, "time": spans["total_ns"]}).group_by("kind")
    for kind_row in kinds.aggregate([("last", "max"), ("time", "sum")]).to_pylist():
        kind = kind_name(kind_row["kind"])
        counts[kind] = max(integer_of(counts, kind), kind_row["last_max"])
        times[kind] = max(integer_of(times, kind), kind_row["time_sum"])
    traced = max(integer_of(counters, "traced"), traced)
    return replace(info, counters={**counters, "counts": counts, "times": times, "traced": traced})


def functions_of(info: JobInfo) -> dict[int, str]:
    """Return the names of the functions that a job's steps call, by key."""
    functions = info.identity.get("functions")
    return (
        {int(key): str(name) for key, name in functions.items() if key.isdecimal()}
        if isinstance(functions, Mapping)
        else {}
    )


def main_steps(values: Mapping[str, Any]) -> tuple[str, int]:
    """Return a job's main kind of step, and the number of its successful steps of that kind.

    ``values``: the latest values in the job's channel (`channel_words`). Failed steps are left out.
    A session run fails at the end of the data, and users do not count that run as a step. Without
    steps, the result is ("", 0).
    """
    counts = by_kind(values.get("counts"))
    kind = main_kind_of(counts, by_kind(values.get("times")))
    failed = by_kind(values.get("failed"))
    return ("", 0) if kind is None else (kind_name(kind), max(0, counts[kind] - failed.get(kind, 0)))


def cost(values: Mapping[str, Any]) -> float | None:
    """Return the cost of profiling as a share of the time in steps, None without steps.

    The job measures both times; the time in steps excludes what tracing added to it.
    """
    spent, steps_ns = integer_of(values, "self_ns") + integer_of(values, "extra_ns"), _net_steps_ns(values)
    return spent / steps_ns if steps_ns > 0 else None


def _net_steps_ns(values: Mapping[str, Any]) -> int:
    """Return the time in steps without what tracing added to it."""
    return max(0, integer_of(values, "step_ns") - integer_of(values, "extra_ns"))


def phase_of(state: str, counts: Mapping[str, int]) -> str:
    """Return the phase of a job in ``state``; ``counts``: number of its spans of each kind."""
    if state != RUNNING:
        return ENDED
    return RUNNING if any(counts.values()) else STARTING


def _mean_ns(values: Mapping[str, Any], kind: str) -> float | None:
    """Return the mean time of a step of a kind, None without steps or times.

    Failed steps count, too.
    """
    counts, times = (values.get(name) for name in ("counts", "times"))
    if not isinstance(counts, Mapping) or not isinstance(times, Mapping):
        return None
    number, spent = integer_of(counts, kind), integer_of(times, kind)
    return spent / number if number > 0 and spent > 0 else None


def job_row(info: JobInfo, short_id: str, now_ns: int) -> JobRow:
    """Return the row of one job."""
    identity, values = info.identity, channel_words(info)
    counts = counts_of(info)
    kind, steps = main_steps(values)
    ended = None if info.state == RUNNING else integer_of(info.end, "t_ns") or info.closed_ns
    return JobRow(
        id=short_id,
        uid=info.hex,
        name=info.name,
        user=str(identity.get("user") or ""),
        host=info.host,
        pid=info.pid or None,
        rank=identity.get("rank"),
        framework=str(identity.get("framework") or ""),
        framework_version=str(identity.get("framework_version") or ""),
        steps=steps,
        step_kind=kind,
        epochs=integer_of(counts, "epoch"),
        traced=integer_of(values, "traced"),
        lost=None if info.state in (LOST, DAMAGED) else sum(integer_of(values, name) for name in LOST_COUNTERS),
        cost=cost(values),
        steps_ns=_net_steps_ns(values),
        step_ns=_mean_ns(values, kind),
        state=info.state,
        phase=phase_of(info.state, counts),
        status=info.end.get("status"),
        signal=info.end.get("signal"),
        started_ns=info.started_ns,
        ended_ns=ended,
        duration_ns=max(0, (ended or now_ns) - info.started_ns),
        launch=str(identity.get("launch") or ""),
        trace=str(identity.get("trace") or ""),
        odd_times=integer_of(values, "odd_times"),
    )


def unreadable_row(uid: str, short_id: str) -> JobRow:
    """Return the row of a job whose job file cannot be read; ``uid`` is in hexadecimal.

    Its start is 0, and all that is unknown is empty, 0 or None.
    """
    return job_row(JobInfo(int(uid, 16), DAMAGED, opened_ns=0), short_id, 0)


def job_rows(infos: Sequence[JobInfo], now_ns: int) -> list[JobRow]:
    """Return the rows of all jobs of a store, in their order."""
    ids = short_ids([info.hex for info in infos])
    return [job_row(info, ids[info.hex], now_ns) for info in infos]


class Usage(NamedTuple):
    """Resource use of a job's processes.

    ``cpu_cores``: mean number of busy cores. ``memory_bytes``: most memory of any sample. Each is
    None if unknown.
    """

    cpu_cores: float | None
    memory_bytes: int | None


UNKNOWN_USAGE: Final = Usage(None, None)


def usage(bounds: Mapping[str, Sequence[float]]) -> Usage:
    """Return the resource use over the whole time of a job's samples.

    ``bounds``: the least and the largest value of columns of SAMPLES; empty without a sample.
    """
    if not bounds:
        return UNKNOWN_USAGE
    start_ns, end_ns = bounds["t_ns"]
    busy_s = sum(bounds[name][1] - bounds[name][0] for name in ("cpu_user_s", "cpu_system_s"))
    memory = int(bounds["rss_bytes"][1])
    return Usage(busy_s * 1e9 / (end_ns - start_ns) if end_ns > start_ns else None, memory or None)
