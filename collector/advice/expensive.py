"""The op types, scopes and lines of code that take most of the time.

The reports have the TF profiler's words unless parity.has_own_advice is true.
"""

from collections.abc import Sequence
from typing import Final

from ..numbers import duration, percent, tf_profiler_time
from ..summaries.top import Share, heaviest, shares
from ..tfviews.code import code_view
from ..tfviews.nodes import Stats
from ..tfviews.op import op_view
from ..tfviews.options import Options
from ..tfviews.tree import Branch, scope_view
from .evidence import Evidence
from .report import Report

#: Maximum number of entries that are named; maximum depth of scopes and lines of code; minimum time
#: of a line (µs).
_NAMED_MAX: Final = 3
_DEPTH_MAX: Final = 3
_LINE_MICROS_MIN: Final = 1000
#: Minimum share of a scope that dominates its level; minimum share of a second or third entry that
#: is named.
_DOMINANT_SHARE_MIN: Final = 0.9
_SHARE_MIN: Final = 0.01
#: Minimum share of an op type that the verdict on a job without another finding names.
_VERDICT_SHARE_MIN: Final = 0.5


def check(evidence: Evidence) -> Sequence[Report]:
    """Name the three most expensive op types, scopes, and lines of code."""
    own_checks, tf_checks = (_top_op_types, _top_scopes, _top_lines), (_tf_op_types, _tf_scopes, _tf_code)
    checks = own_checks if evidence.parity.has_own_advice else tf_checks
    return [report for check_one in checks if (report := check_one(evidence)) is not None]


# -- in tfprof's words -----------------------------------------------------------------------------


def _top_op_types(evidence: Evidence) -> Report | None:
    ranked = shares(((node.op, node) for node in evidence.nodes), evidence.times, evidence.traced_steps)
    if not ranked:
        return None
    top = [node for node in evidence.nodes if node.op == ranked[0].key]
    line = heaviest(top, evidence.places.location)
    is_dominant = ranked[0].share >= _VERDICT_SHARE_MIN
    return Report(
        _ranking_text(ranked),
        _numbers(ranked),
        line=line,
        verdict=f"{ranked[0].key} takes {percent(ranked[0].share)} of the time of all ops" if is_dominant else "",
    )


def _top_scopes(evidence: Evidence) -> Report | None:
    """Name the outermost scopes, or those inside a scope that takes nearly all of the time.

    None if no op took time, or if the first entry is an op.
    """
    nodes = [node for node in evidence.nodes if node.stats.micros > 0]
    for depth in range(1, _DEPTH_MAX + 1):
        scopes = (("/".join(node.name.split("/")[:depth]), node) for node in nodes)
        ranked = shares(scopes, evidence.times, evidence.traced_steps)
        if len(ranked) > 1 and ranked[0].share < _DOMINANT_SHARE_MIN:
            break
    if not ranked or ranked[0].key in {node.name for node in nodes}:  # an op, not a scope
        return None
    return Report("the scope " + _ranking_text(ranked), _numbers(ranked))


def _top_lines(evidence: Evidence) -> Report | None:
    locations = ((evidence.places.location(node), node) for node in evidence.nodes)
    ranked = [entry for entry in shares(locations, evidence.times, evidence.traced_steps) if entry.key]
    if len(ranked) < 2:
        return None
    return Report(_ranking_text(ranked), _numbers(ranked))


def _ranking_text(ranked: Sequence[Share[str]]) -> str:
    first, *others = ranked[:_NAMED_MAX]
    _, ns, least_ns, most_ns, share = first
    spread = f" ({duration(least_ns)} to {duration(most_ns)})" if least_ns < most_ns else ""
    others_text = " and ".join(f"{other.key} {percent(other.share)}" for other in others if other.share >= _SHARE_MIN)
    text = f"{first.key} takes {percent(share)} of the time of all ops, {duration(ns)} a step{spread}"
    return text + (f"; then come {others_text}." if others_text else ".")


def _numbers(ranked: Sequence[Share[str]]) -> dict[str, float | str]:
    return {entry.key: entry.ns for entry in ranked[:_NAMED_MAX]}


# -- in the TF profiler's words --------------------------------------------------------------------


def _times(stats: Stats) -> str:
    cpu, accelerator, total = map(tf_profiler_time, (stats.cpu_micros, stats.accelerator_micros, stats.micros))
    return f"cpu: {cpu}, accelerator: {accelerator}, total: {total}"


def _tf_op_types(evidence: Evidence) -> Report | None:
    if not evidence.has_steps:
        return None
    options = Options(max_depth=_NAMED_MAX, min_micros=1, order_by="micros")
    view = op_view(evidence.nodes, options, evidence.parity)
    lines = [
        f"top {rank} operation type: {entry.name}, {_times(entry.own)}"
        f" ({100.0 * entry.own.micros / (view.total.micros + 1e-10):.2f}%)"
        for rank, entry in enumerate(view.entries[:_NAMED_MAX], 1)
    ]
    numbers = {entry.name: entry.own.micros for entry in view.entries[:_NAMED_MAX]}
    return Report("\n".join(lines), numbers) if lines else None


def _tf_scopes(evidence: Evidence) -> Report | None:
    """Name the outermost scopes and ops.

    The TF profiler prints the own time of each, which is 0 for a scope that is no op.
    """
    options = Options(max_depth=100, min_micros=100, order_by="micros")
    scopes = scope_view(evidence.nodes, options, evidence.parity).root.children[:_NAMED_MAX]
    lines = [f"top {rank} graph node: {scope.name}, {_times(scope.own)}" for rank, scope in enumerate(scopes, 1)]
    return Report("\n".join(lines), {scope.name: scope.own.micros for scope in scopes}) if lines else None


def _tf_code(evidence: Evidence) -> Report | None:
    """Name the lines below the first call that has several callees.

    The text is empty if none of these lines takes a millisecond. None if there is no such call.
    """
    options = Options(max_depth=100, min_micros=1, order_by="micros")
    branch = code_view(evidence.nodes, options, evidence.parity).root
    while len(branch.children) == 1:
        branch = branch.children[0]
    if not branch.children:
        return None
    lines: list[str] = []
    _add_lines(branch, 0, lines)
    return Report("\n".join(lines))


def _add_lines(branch: Branch, depth: int, lines: list[str]) -> None:
    if len(branch.children) <= 1 or depth > _DEPTH_MAX:
        return
    for child in branch.children[:_NAMED_MAX]:
        if child.total.micros >= _LINE_MICROS_MIN:
            lines.append(f"{'  ' * depth}{child.name}, {_times(child.total)}")
            _add_lines(child, depth + 1, lines)
