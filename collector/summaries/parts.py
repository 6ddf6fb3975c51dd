"""The parts of a step: their names and times, and a sentence about them.

The parts are means, so that they add up to the mean time from start to start.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, NamedTuple

from ..numbers import percent
from .op_classes import COPIES, DEVICE, INPUT, LAUNCH, PYTHON, WAITING
from .step_cut import AFTER, BEFORE
from .step_records import Activity, NamedSum, OtherSpan, StepTrace, ThreadUse, TimedSteps

BETWEEN, TRACING, UNEXPLAINED = "between", "tracing", "unexplained"
#: The parts by slug, in the order of a step, with their titles.
TITLES: Final = {
    INPUT: "input",
    BEFORE: "before the device",
    DEVICE: "on the device",
    LAUNCH: "starting ops",
    COPIES: "copies",
    WAITING: "waiting",
    AFTER: "after the device",
    TRACING: "building graphs",
    BETWEEN: "between steps",
    PYTHON: "Python",
    UNEXPLAINED: "not explained",
}
EAGER_OPS: Final = "between eager ops"
FOR_CPU: Final = "for a CPU"
FOR_CPU_BETWEEN: Final = "for a CPU between the steps"
#: Other threads of the job, which run ops, waited for one.
OPS_FOR_CPU: Final = "ops for a CPU"
#: The name of time in which the step's thread neither used a CPU nor waited for one.
CODE_BETWEEN: Final = "code between the steps"
ASLEEP: Final = "asleep between the steps"
#: The input pipeline begins anew with each epoch.
FIRST_BATCHES: Final = "for the first batches of epochs"
UNRECORDED: Final = "code between the steps that is in no span"
FROM_TRACE, FROM_SPANS, FROM_SAMPLES = "traced steps", "all timed steps", "samples"
#: Shares of input from which a job is moderately and highly input-bound.
INPUT_MODERATE, INPUT_HIGH = 0.05, 0.2
#: Share of starting ops, or of collectives, from which it is high.
OTHER_HIGH: Final = 0.15
#: The sentence names the share that is not explained if it is at least this.
_UNEXPLAINED_MIN: Final = 0.1
_COLLECTIVES: Final = "collectives"


class Recording(NamedTuple):
    """What is recorded about the steps of one kind, on the thread with the most time in them.

    ``steps`` are sorted by time. ``phases``: the phase of training of each node that has one.
    ``is_eager``: the steps run op by op, so the step's thread is busy with Python between two ops.
    ``epochs``: the starts of the epochs. ``cores``: the CPUs that the job used, 0 if unknown.
    """

    kind: str
    steps: Sequence[TimedSteps]
    others: Sequence[OtherSpan] = ()
    activities: Sequence[Activity] = ()
    traces: Sequence[StepTrace] = ()
    functions: Sequence[NamedSum] = ()
    marked: Sequence[NamedSum] = ()
    phases: Mapping[str, str] = {}
    use: ThreadUse | None = None
    is_eager: bool = False
    epochs: Sequence[int] = ()
    cores: float = 0.0


class Detail(NamedTuple):
    """What takes the time of a part: a name, and its mean time in a step, ns."""

    name: str
    mean_ns: float


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the step: its mean time, ns, and the sources of this figure."""

    slug: str
    mean_ns: float
    details: tuple[Detail, ...]
    evidence: str

    @property
    def title(self) -> str:
        """The name of the part for users."""
        return TITLES[self.slug]


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The parts of the steps of one kind; times in ns.

    ``steps``: number of steps that count, of ``all_steps`` timed ones. ``traced``: number of traced
    steps whose inside was cut. ``period_ns``: mean time from start to start, the sum of the parts.
    ``step_ns``, ``median_ns``: mean and median step. ``notes``: what limits these figures.
    ``pipeline``: the user's functions in the input pipeline, whose times are no part, since
    they run beside the steps. ``marked``: parts that the user's code marks, which contain parts or
    whole steps. ``is_eager``: the steps run op by op.
    """

    kind: str
    steps: int
    all_steps: int
    traced: int
    period_ns: float
    step_ns: float
    median_ns: float
    parts: tuple[Part, ...]
    notes: tuple[str, ...]
    pipeline: tuple[Detail, ...] = ()
    marked: tuple[Detail, ...] = ()
    is_eager: bool = False

    def ns(self, slug: str) -> float:
        """Return the time of a part, 0 if it has none."""
        return sum(part.mean_ns for part in self.parts if part.slug == slug)

    def share(self, slug: str) -> float:
        """Return the share of a part in the time from start to start."""
        return self.ns(slug) / self.period_ns if self.period_ns > 0 else 0.0

    @property
    def queued_ns(self) -> float:
        """The time in which the thread of the steps waits for a CPU."""
        details = self.detail_ns(WAITING)
        return details.get(FOR_CPU, 0.0) + details.get(FOR_CPU_BETWEEN, 0.0)

    def detail_ns(self, slug: str) -> dict[str, float]:
        """Return the details of a part, by name."""
        return {detail.name: detail.mean_ns for part in self.parts if part.slug == slug for detail in part.details}


class PartChange(NamedTuple):
    """The mean time of a part before and after a change, ns."""

    slug: str
    before_ns: float
    after_ns: float


def part_changes(before: Sequence[Breakdown], after: Sequence[Breakdown]) -> list[PartChange]:
    """Return the parts that the runs of either side have. Each side must have at least one run."""
    changes = (PartChange(slug, *(fmean(run.ns(slug) for run in side) for side in (before, after))) for slug in TITLES)
    return [change for change in changes if change.before_ns or change.after_ns]


class Sums:
    """Times by part and detail, with their sources."""

    def __init__(self) -> None:
        self.ns: dict[str, float] = defaultdict(float)
        self.details: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        self.evidence: dict[str, dict[str, None]] = defaultdict(dict)

    def add(self, slug: str, ns: float, evidence: str, detail: str = "") -> None:
        """Add ``ns`` to a part and to its ``detail``, if it has one."""
        if ns <= 0:
            return
        self.ns[slug] += ns
        self.evidence[slug][evidence] = None
        if detail:
            self.details[slug][detail] += ns

    def take(self, slugs: Iterable[str], ns: float) -> float:
        """Take ``ns`` from the parts ``slugs`` in proportion; return what they did not have."""
        available = {slug: self.ns[slug] for slug in slugs if self.ns[slug] > 0}
        taken = min(ns, sum(available.values()))
        if taken > 0:
            self.scale(available, 1 - taken / sum(available.values()))
        return ns - taken

    def scale(self, slugs: Iterable[str], factor: float) -> None:
        """Multiply the times of the parts ``slugs`` and of their details by ``factor``."""
        for slug in slugs:
            self.ns[slug] *= factor
            for name in self.details[slug]:
                self.details[slug][name] *= factor

    @property
    def total(self) -> float:
        """The time of all parts."""
        return sum(self.ns.values())

    def parts(self) -> tuple[Part, ...]:
        """Return the parts with any time, in the order of a step."""
        return tuple(
            Part(
                slug,
                self.ns[slug],
                tuple(
                    Detail(name, ns)
                    for name, ns in sorted(self.details[slug].items(), key=lambda pair: -pair[1])
                    if ns > 1
                ),
                ", ".join(self.evidence[slug]),
            )
            for slug in TITLES
            if self.ns[slug] > 1
        )


def input_words(share: float) -> str:
    """Return how much a job is bound by its input."""
    if share < INPUT_MODERATE:
        return "not input-bound"
    return "highly input-bound" if share >= INPUT_HIGH else "moderately input-bound"


def part_verdict(breakdown: Breakdown) -> str:
    """Return a sentence about the largest part of the steps; the share of input is always said."""
    known = [part for part in breakdown.parts if part.slug != UNEXPLAINED]
    if not known:
        return f"it is unknown where the time goes: {'; '.join(breakdown.notes) or 'nothing else was recorded'}"
    input_share = breakdown.share(INPUT)
    largest = max(known, key=lambda part: part.mean_ns)
    if not breakdown.traced and breakdown.share(UNEXPLAINED) > breakdown.share(largest.slug):
        unknown = percent(breakdown.share(UNEXPLAINED))
        return f"{unknown} of the time from step to step is unknown, since no op of these steps was recorded"
    if input_share >= INPUT_HIGH or largest.slug == INPUT:
        text = f"{input_words(input_share)}: {percent(input_share)} of the time from step to step is input"
        if largest.slug != INPUT:
            text += f", {percent(breakdown.share(largest.slug))} {largest.title}"
    else:
        text = (
            f"most of the time from step to step is {_place(largest.slug)}, {percent(breakdown.share(largest.slug))};"
            f" input {percent(input_share)}: {input_words(input_share)}"
        )
    return "; ".join([text, *_further(breakdown, largest.slug)])


def _place(slug: str) -> str:
    return TITLES[slug] if slug not in {WAITING, LAUNCH} else f"spent {TITLES[slug]}"


def _further(breakdown: Breakdown, largest: str) -> list[str]:
    """Return further clauses: parts above XProf's limits, and what is not explained."""
    collectives = breakdown.detail_ns(WAITING).get(_COLLECTIVES, 0.0) / breakdown.period_ns
    shares = {TITLES[LAUNCH]: breakdown.share(LAUNCH) if largest != LAUNCH else 0.0, _COLLECTIVES: collectives}
    clauses = [f"{title} {percent(share)}, which is much" for title, share in shares.items() if share >= OTHER_HIGH]
    if breakdown.share(UNEXPLAINED) >= _UNEXPLAINED_MIN:
        clauses.append(f"{percent(breakdown.share(UNEXPLAINED))} is not explained")
    return clauses
