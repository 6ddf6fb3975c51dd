"""Answers in tfprof's own layout.

By default, rows are sorted by the first selected counter, largest first. They have the spread of
times over steps. Negligible entries are left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ..loader import load
from ..tfviews.added import group_added
from ..tfviews.nodes import NO_STATS, Node, Stats, total_of
from ..tfviews.op import OpView
from ..tfviews.options import ALL, MINIMA, Options
from ..tfviews.own_files import has_own_line
from ..tfviews.primary import primary_counter
from ..tfviews.rows import Limit, RowFilter, Times, VisibleRows, line_lookup, op_rows, tree_rows, with_unattributed_row
from .engine import TENSOR_VALUE, VIEWS, Answer, QueryEngine, Selection, required_facts
from .node_times import NodeTimes, node_times
from .required_facts import STACKS

#: A depth greater than that of any tree or table.
_UNLIMITED: Final = 1 << 62
_NAME_OPTIONS: Final = frozenset({"start_name_regexes", "trim_name_regexes", "show_name_regexes", "hide_name_regexes"})


@dataclass(frozen=True, slots=True)
class AnswerRows:
    """An answer with its rows; ``spread_steps``: number of steps whose times are in the spread."""

    answer: Answer
    rows: VisibleRows
    spread_steps: int


def ask(engine: QueryEngine, selection: Selection, view: str, options: Options) -> AnswerRows:
    """Return the answer of ``view`` with its rows.

    Raises NoSuchStepError, and UsageError ``no-such-kind``, ``no-such-device``.
    """
    view_type, shown_options = VIEWS[view], _with_layout_defaults(options)
    facts = required_facts(view_type, shown_options, for_message=False) | (
        frozenset() if "select" in options.explicit else {STACKS}
    )
    profile = engine.profile(selection, shown_options.step, facts, averaged=False)
    if profile is None:
        folded = load(view_type.fold)([], shown_options, selection.parity)
        return AnswerRows(Answer(selection, view_type, shown_options, None, folded), VisibleRows((), NO_STATS), 0)
    nodes, times = profile.nodes, node_times(profile, selection.device) if profile.trace_count > 1 else NodeTimes(0, {})
    if not options.explicit & _NAME_OPTIONS:
        nodes, names = group_added(nodes, linked=view == "graph")
        times = times.renamed(names)
    folded = load(view_type.fold)(nodes, _scaled(shown_options, view, max(1, profile.trace_count)), selection.parity)
    answer = Answer(selection, view_type, shown_options, profile, folded)
    return AnswerRows(answer, _rows(answer, nodes, times.by_node), times.steps)


def _with_layout_defaults(options: Options) -> Options:
    """Return ``options`` with the defaults of tfprof's layout: largest first, unlimited depth."""
    explicit = options.explicit
    return replace(
        options,
        order_by=options.order_by if "order_by" in explicit else primary_counter(options),
        max_depth=options.max_depth if "max_depth" in explicit else _UNLIMITED,
    )


def _scaled(options: Options, view: str, steps: int) -> Options:
    """Return ``options`` with minima multiplied by ``steps``.

    The numbers of a row are sums over these steps. Parameters, and occurrences in the op view, do
    not grow with the steps: their minima stay the same.
    """
    per_node = {"min_params", *(("min_occurrence",) if view == "op" else ())}
    minima = {name: getattr(options, name) for name in MINIMA if name not in per_node}
    return replace(options, **{name: minimum * steps for name, minimum in minima.items()})


def _rows(answer: Answer, nodes: Sequence[Node], times: Times) -> VisibleRows:
    options, folded, find_line = answer.options, answer.folded, line_lookup(nodes)
    if isinstance(folded, OpView):
        return op_rows(folded, times, _limit(options, folded.total), find_line)
    total = total_of(nodes) if answer.view.name == "code" and options.account_type_regexes == ALL and nodes else None
    limit = _limit(options, total or folded.root.total)
    own_lines_only = (
        answer.view.name == "code" and not options.explicit & _NAME_OPTIONS and any(map(has_own_line, nodes))
    )
    rows = tree_rows(folded, times, RowFilter(answer.view.name, limit, own_lines_only), options.order_by, find_line)
    return rows if total is None else with_unattributed_row(rows, total, limit)


def _limit(options: Options, total: Stats) -> Limit:
    """Return the limit for rows: the selected counters, and the total to which shares refer.

    There is no limit if the options give minima or select the values of variables.
    """
    if options.explicit & set(MINIMA) or TENSOR_VALUE in options.select:
        return Limit((), total)
    names = {"runs" if name == "occurrence" else name for name in {*options.select, primary_counter(options)}}
    counters = tuple(index for index, name in enumerate(Stats._fields) if name in names)
    return Limit(counters, total)
