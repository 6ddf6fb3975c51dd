"""One sentence about the parts of a step, with XProf's limits and words."""

from typing import Final

from ..numbers import percent
from .op_classes import INPUT, LAUNCH, WAITING
from .parts import TITLES, UNEXPLAINED, Breakdown

#: Shares of input from which a job is moderately and highly input-bound.
INPUT_MODERATE, INPUT_HIGH = 0.05, 0.2
#: Share of starting ops, or of collectives, from which it is high.
OTHER_HIGH: Final = 0.15
#: The sentence names the share that is not explained if it is at least this.
_UNEXPLAINED_MIN: Final = 0.1
_COLLECTIVES: Final = "collectives"


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
