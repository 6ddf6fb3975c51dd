"""Answers as they are shown on a screen: the steps' own times beside the sums, what took most first, what took nothing left out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ..loader import load
from ..tfviews.added import grouped
from ..tfviews.nodes import NOTHING, Node, Stats, total
from ..tfviews.op import OpView
from ..tfviews.options import ALL, MINIMA, Options
from ..tfviews.own_files import has_own_line
from ..tfviews.primary import primary
from ..tfviews.rows import Judge, Limit, Rows, Times, lines_of, op_rows, tree_rows, with_rest
from .engine import TENSOR_VALUE, VIEWS, About, Answer, Desk, needs
from .required_facts import STACKS
from .step_times import StepTimes, step_times

#: No tree is so deep, no table so long.
_UNLIMITED: Final = 1 << 62
_NAMES: Final = frozenset({"start_name_regexes", "trim_name_regexes", "show_name_regexes", "hide_name_regexes"})


@dataclass(frozen=True, slots=True)
class Screen:
    """An answer with its rows; ``looked_at``: of how many steps they have times."""

    answer: Answer
    rows: Rows
    looked_at: int


def ask(desk: Desk, about: About, view: str, options: Options) -> Screen:
    """Return what ``view`` shows where options do not say otherwise; NoSuchStepError, and UsageError ``no-such-device``."""
    chosen, asked = VIEWS[view], _ordered(options)
    wanted = needs(chosen, asked, whole=False) | (frozenset() if "select" in options.given else {STACKS})
    profile = desk.profile(about, asked.step, wanted, averaged=False)
    if profile is None:
        folded = load(chosen.fold)([], asked, about.parity)
        return Screen(Answer(about, chosen, asked, None, folded), Rows((), NOTHING), 0)
    nodes, times = profile.nodes, step_times(profile, about.device) if profile.traces > 1 else StepTimes(0, {})
    if not options.given & _NAMES:
        nodes, names = grouped(nodes, linked=view == "graph")
        times = times.renamed(names)
    folded = load(chosen.fold)(nodes, _scaled(asked, view, max(1, profile.traces)), about.parity)
    answer = Answer(about, chosen, asked, profile, folded)
    return Screen(answer, _rows(answer, nodes, times.nodes), times.steps)


def _ordered(options: Options) -> Options:
    """Return ``options`` with what holds where they were not given: largest first, however deep."""
    given = options.given
    return replace(
        options,
        order_by=options.order_by if "order_by" in given else primary(options),
        max_depth=options.max_depth if "max_depth" in given else _UNLIMITED,
    )


def _scaled(options: Options, view: str, steps: int) -> Options:
    """Return ``options`` with the minima of a step as those of ``steps`` steps, which numbers are added up over."""
    of_nodes = {"min_params", *(("min_occurrence",) if view == "op" else ())}
    minima = {name: getattr(options, name) for name in MINIMA if name not in of_nodes}
    return replace(options, **{name: least * steps for name, least in minima.items()})


def _rows(answer: Answer, nodes: Sequence[Node], times: Times) -> Rows:
    options, folded, line = answer.options, answer.folded, lines_of(nodes)
    if isinstance(folded, OpView):
        return op_rows(folded, times, _limit(options, folded.total), line)
    whole = total(nodes) if answer.view.name == "code" and options.account_type_regexes == ALL and nodes else None
    limit = _limit(options, whole or folded.root.total)
    own = answer.view.name == "code" and not options.given & _NAMES and any(map(has_own_line, nodes))
    rows = tree_rows(folded, times, Judge(answer.view.name, limit, own), options.order_by, line)
    return rows if whole is None else with_rest(rows, whole, limit)


def _limit(options: Options, whole: Stats) -> Limit:
    """Return what a row needs: enough of any selected number, unless minima are given, or values are looked for."""
    if options.given & set(MINIMA) or TENSOR_VALUE in options.select:
        return Limit((), whole)
    names = {"runs" if name == "occurrence" else name for name in {*options.select, primary(options)}}
    counters = tuple(at for at, name in enumerate(Stats._fields) if name in names)
    return Limit(counters, whole)
