"""Answers in tfprof's own layout.

By default, rows are sorted by the first selected counter, largest first. They have the spread of
times over steps. Negligible entries are left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from ..loader import load
from ..tfviews.matcher import ALL
from ..tfviews.nodes import NO_STATS, Node, Stats, total_of
from ..tfviews.op import OpView
from ..tfviews.options import LINE, MINIMA, SHAPE, STEP, Options, multiplied, primary_counter, without_shares
from ..tfviews.places import Places, group_added, has_own_line
from ..tfviews.rows import (
    NO_PARTS,
    Limit,
    Parts,
    RowFilter,
    Times,
    VisibleRows,
    largest,
    op_rows,
    tree_rows,
    with_unattributed_row,
)
from .engine import TENSOR_VALUE, VIEWS, Answer, QueryEngine, in_time_units, required_facts
from .explanations import notes_of
from .facts import FLOAT_OPS, GRAPH, SHAPES, STACKS
from .job_selection import Selection
from .kind_selection import steps_run
from .node_times import NodeTimes, node_times

#: A depth greater than that of any tree or table.
_UNLIMITED: Final = 1 << 62
_NAME_OPTIONS: Final = frozenset({"start_name_regexes", "trim_name_regexes", "show_name_regexes", "hide_name_regexes"})


@dataclass(frozen=True, slots=True)
class AnswerRows:
    """An answer with its rows.

    ``spread_steps``: number of steps whose times are in the spread. ``all_steps``: number of steps
    of the covered kinds that ran; ``is_estimate``: whether this number is an estimate. ``notes``:
    why the answer is empty or incomplete, and what to know about its numbers.
    """

    answer: Answer
    rows: VisibleRows
    spread_steps: int
    all_steps: int
    is_estimate: bool
    notes: tuple[str, ...]

    @property
    def trace_count(self) -> int:
        """The number of traced steps over which the counters of rows are sums."""
        return self.answer.profile.trace_count if self.answer.profile else 0

    @property
    def steps(self) -> int:
        """The same, at least 1."""
        return max(1, self.trace_count)


def ask(
    engine: QueryEngine, selection: Selection, view: str, options: Options, *, is_complete: bool = False
) -> AnswerRows:
    """Return the answer of ``view`` with its rows.

    ``is_complete``: read all facts about nodes, and return a row for every entry, however small,
    with the nodes that TensorFlow added under their own names.

    Raises NoSuchStepError, and UsageError ``no-such-kind``, ``no-such-device``.
    """
    view_type, shown_options = VIEWS[view], _with_layout_defaults(options)
    facts = required_facts(view_type, shown_options, for_message=is_complete) | _own_facts(options)
    profile = engine.profile(selection, shown_options.step, facts, averaged=False)
    if profile is None:
        folded = load(view_type.fold)([], shown_options, selection.parity)
        return _answer_rows(Answer(selection, view_type, shown_options, None, folded), VisibleRows((), NO_STATS), 0)
    nodes, times = profile.nodes, node_times(profile, selection.device) if profile.trace_count > 1 else NodeTimes(0, {})
    if not is_complete and not options.by and not options.explicit & _NAME_OPTIONS:
        nodes, names = group_added(nodes, linked=view == "graph")
        times = times.renamed(names)
    scaled_options = _scaled(in_time_units(shown_options, selection.parity), view, max(1, profile.trace_count))
    folded = load(view_type.fold)(nodes, without_shares(scaled_options, total_of(nodes)), selection.parity)
    answer = Answer(selection, view_type, shown_options, profile, folded)
    rows = _rows(answer, nodes, times.by_node, is_complete=is_complete)
    return _answer_rows(answer, rows, times.steps)


def _own_facts(options: Options) -> frozenset[str]:
    """Return the facts about nodes that only this layout requires."""
    needs_lines = "select" not in options.explicit or "line" in options.select or options.by == LINE
    return frozenset({STACKS} if needs_lines else ()) | ({SHAPES} if options.by == SHAPE else frozenset())


def _answer_rows(answer: Answer, rows: VisibleRows, spread_steps: int) -> AnswerRows:
    kinds = answer.profile.kind_numbers if answer.profile else ()
    return AnswerRows(
        answer,
        rows,
        spread_steps,
        *steps_run(answer.selection.jobs, kinds),
        tuple(notes_of(answer, in_own_layout=answer.has_data)),
    )


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

    The numbers of a row are sums over these steps. Parameters do not grow with the steps, nor do
    occurrences in the op view: their minima stay the same.
    """
    per_node = {"min_params", *(("min_occurrence",) if view == "op" else ())}
    return multiplied(options, {name: steps for name in MINIMA if name not in per_node})


def _rows(answer: Answer, nodes: Sequence[Node], times: Times, *, is_complete: bool) -> VisibleRows:
    options, folded, find_line = answer.options, answer.folded, Places(nodes).line
    limit_of = partial(Limit, ()) if is_complete else partial(_limit, options)
    if isinstance(folded, OpView):
        return op_rows(
            folded,
            times,
            limit_of(folded.total),
            find_line,
            options.top,
            _parts(answer, nodes, is_complete=is_complete),
        )
    total = total_of(nodes) if answer.view.name == "code" and options.account_type_regexes == ALL and nodes else None
    limit = limit_of(total or folded.root.total)
    own_lines_only = (
        answer.view.name == "code" and not options.explicit & _NAME_OPTIONS and any(map(has_own_line, nodes))
    )
    rows = tree_rows(folded, times, RowFilter(answer.view.name, limit, own_lines_only), options.order_by, find_line)
    all_rows = rows if total is None else with_unattributed_row(rows, total, limit)
    return largest(all_rows, options.top, primary_counter(options))


def _parts(answer: Answer, nodes: Sequence[Node], *, is_complete: bool) -> Parts:
    """Return the parts into which the options take op types apart.

    ``is_complete``: as for `ask`.
    """
    options, selection, profile = answer.options, answer.selection, answer.profile
    if not options.by or profile is None:
        return NO_PARTS
    from ..summaries.op_parts import by_part, op_parts  # noqa: PLC0415  # few queries need them
    from .node_times import nodes_by_step  # noqa: PLC0415

    if options.by != STEP:
        return op_parts(by_part(nodes, options.by), options, selection.parity)
    facts = required_facts(answer.view, options, for_message=is_complete) & {FLOAT_OPS, GRAPH}
    steps = nodes_by_step(profile, selection.device, facts, selection.parity)
    scaled = {name: [_scaled_node(node, profile.trace_count) for node in nodes] for name, nodes in steps.items()}
    return op_parts(scaled, options, selection.parity, add_up=False)


def _scaled_node(node: Node, steps: int) -> Node:
    """Return a node of one step with its numbers times ``steps``, since rows have sums."""
    stats = Stats(*[number * steps for number in node.stats])
    return node._replace(stats=stats._replace(params=node.stats.params))


def _limit(options: Options, total: Stats) -> Limit:
    """Return the limit for rows: the selected counters, and the total to which shares refer.

    There is no limit if the options give minima or select the values of variables.
    """
    if options.explicit & set(MINIMA) or TENSOR_VALUE in options.select:
        return Limit((), total)
    names = {"runs" if name == "occurrence" else name for name in {*options.select, primary_counter(options)}}
    counters = tuple(index for index, name in enumerate(Stats._fields) if name in names)
    return Limit(counters, total)
