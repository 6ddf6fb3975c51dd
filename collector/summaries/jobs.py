"""One line a job: who it is, how far it came, what was traced and lost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...formats import layout
from ...formats.settings import SETTINGS
from ..numbers import duration
from ..store.catalog import RUNNING, JobInfo
from .kinds import leading, named, of_names

#: The fewest digits that a job goes by.
SHORTEST: Final = 4
#: Words of the channel that count what found no place, and what the collector counts of what never came or is stored no more.
_LOST: Final = ("dropped_records", "dropped_spans", "never_stored")
#: A cost is an estimate: so many times its budget it may seem to be.
_TOLERANCE: Final = 1.1
#: With less time in steps (ns) a job is short: what is traced in any case weighs.
SHORT_NS: Final = 60 * 10**9


@dataclass(frozen=True, slots=True)
class JobRow:
    """What is known of a job without reading its tables; times are real time in ns, None where not known."""

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
    lost: int
    cost: float | None
    steps_ns: int
    state: str
    status: int | None
    signal: int | None
    started_ns: int
    ended_ns: int | None
    duration_ns: int
    launch: str
    trace: str


def short_ids(uids: Sequence[str]) -> dict[str, str]:
    """Return for each uid the shortest start, of 4 digits or more, that no other has."""
    ordered = sorted(uids)
    found = {}
    for at, uid in enumerate(ordered):
        neighbours = ordered[max(0, at - 1) : at] + ordered[at + 1 : at + 2]
        common = max((_common(uid, other) for other in neighbours), default=0)
        found[uid] = uid[: max(SHORTEST, common + 1)]
    return found


def _common(one: str, other: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))


def _whole(values: Mapping[str, Any], name: str) -> int:
    value = values.get(name)
    return value if isinstance(value, int) else 0


def words(info: JobInfo) -> dict[str, Any]:
    """Return the last words of a job's channel that the store has."""
    return {**info.counters, **info.end}


def counts_of(info: JobInfo) -> dict[str, int]:
    """Return how many spans of each kind a job has had, those only counted too."""
    counts = words(info).get("counts")
    return {name: _whole(counts, name) for name in layout.SPAN_NAMES.values()} if isinstance(counts, Mapping) else {}


def functions_of(info: JobInfo) -> dict[int, str]:
    """Return what a job calls the functions that its steps are calls of, by their keys."""
    functions = info.identity.get("functions")
    return (
        {int(key): str(name) for key, name in functions.items() if key.isdecimal()}
        if isinstance(functions, Mapping)
        else {}
    )


def steps_of(values: Mapping[str, Any]) -> tuple[str, int]:
    """Return the kind of step that a job is about by its last words, and how many of it did not fail.

    A session's run that finds no more data fails, and is no step to those who count them.
    """
    counts = of_names(values.get("counts"))
    kind = leading(counts, of_names(values.get("times")))
    failed = of_names(values.get("failed"))
    return ("", 0) if kind is None else (named(kind), max(0, counts[kind] - failed.get(kind, 0)))


def cost(values: Mapping[str, Any]) -> float | None:
    """Return the part of the time in steps that profiling took, as measured by the job itself; None without steps."""
    spent, untouched = _whole(values, "self_ns") + _whole(values, "extra_ns"), _untouched_ns(values)
    return spent / untouched if untouched > 0 else None


def _untouched_ns(values: Mapping[str, Any]) -> int:
    """Return the time in steps without what tracing added to it."""
    return max(0, _whole(values, "step_ns") - _whole(values, "extra_ns"))


def over_budget(row: JobRow) -> str | None:
    """Return why profiling cost more than its budget; None where it did not."""
    if not row.traced or row.cost is None or row.cost <= _share(row.trace) * _TOLERANCE:
        return None
    if row.trace and not row.trace.startswith("budget"):
        return f"the steps are traced that were asked for (--trace {row.trace})"
    why = "the first steps of each kind are traced in any case"
    if row.steps_ns >= SHORT_NS:
        return why
    spent, steps = duration(row.cost * row.steps_ns), duration(row.steps_ns)
    return f"{why}, and the job is short: {spent} for {steps} of steps"


def _share(trace: str) -> float:
    """Return the part of the time that a policy allows, 0 where it names none; without a policy what the default allows."""
    word, _, value = (trace or str(SETTINGS["trace"].default)).partition("=")
    try:
        return float(value.removesuffix("%")) / 100 if word == "budget" else 0.0
    except ValueError:
        return 0.0


def job_row(info: JobInfo, short: str, now_ns: int) -> JobRow:
    """Fold the record of one job."""
    identity, values = info.identity, words(info)
    counts = counts_of(info)
    kind, steps = steps_of(values)
    started = _whole(identity, "created_real_ns") or info.opened_ns
    ended = None if info.state == RUNNING else _whole(info.end, "t_ns") or info.closed_ns
    return JobRow(
        id=short,
        uid=info.hex,
        name=info.name,
        user=str(identity.get("user") or ""),
        host=str(identity.get("host") or ""),
        pid=_whole(identity, "pid") or None,
        rank=identity.get("rank"),
        framework=str(identity.get("framework") or ""),
        framework_version=str(identity.get("framework_version") or ""),
        steps=steps,
        step_kind=kind,
        epochs=_whole(counts, "epoch"),
        traced=_whole(values, "traced"),
        lost=sum(_whole(values, name) for name in _LOST),
        cost=cost(values),
        steps_ns=_untouched_ns(values),
        state=info.state,
        status=info.end.get("status"),
        signal=info.end.get("signal"),
        started_ns=started,
        ended_ns=ended,
        duration_ns=max(0, (ended or now_ns) - started),
        launch=str(identity.get("launch") or ""),
        trace=str(identity.get("trace") or ""),
    )


def job_rows(infos: Sequence[JobInfo], now_ns: int) -> list[JobRow]:
    """Fold the records of all jobs of a store, in their order."""
    short = short_ids([info.hex for info in infos])
    return [job_row(info, short[info.hex], now_ns) for info in infos]
