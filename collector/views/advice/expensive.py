"""What takes most of the time: op types, scopes, lines of code."""

from collections.abc import Sequence
from typing import Final

from tfprof.collector.render.numbers import tfprof_time
from tfprof.collector.views.advice.evidence import Evidence
from tfprof.collector.views.advice.report import Report
from tfprof.collector.views.code import code_view
from tfprof.collector.views.nodes import Stats
from tfprof.collector.views.op import op_view
from tfprof.collector.views.options import Options
from tfprof.collector.views.scope import scope_view
from tfprof.collector.views.tree import Branch

#: How many are told, and of lines of code how deep, and from how many µs on.
_MOST: Final = 3
_DEEPEST: Final = 3
_LEAST_MICROS: Final = 1000


def check(evidence: Evidence) -> Sequence[Report]:
    """Name the three most expensive op types, scopes, and lines of code."""
    return [report for report in (_op_types(evidence), _scopes(evidence), _code(evidence)) if report is not None]


def _times(stats: Stats) -> str:
    cpu, accelerator, total = map(tfprof_time, (stats.cpu_micros, stats.accelerator_micros, stats.micros))
    return f"cpu: {cpu}, accelerator: {accelerator}, total: {total}"


def _op_types(evidence: Evidence) -> Report | None:
    if not evidence.has_steps:
        return None
    options = Options(max_depth=_MOST, min_micros=1, order_by="micros")
    view = op_view(evidence.nodes, options, evidence.rules)
    lines = [
        f"top {at} operation type: {entry.name}, {_times(entry.own)}"
        f" ({100.0 * entry.own.micros / (view.total.micros + 1e-10):.2f}%)"
        for at, entry in enumerate(view.entries[:_MOST], 1)
    ]
    numbers = {entry.name: entry.own.micros for entry in view.entries[:_MOST]}
    return Report("\n".join(lines), numbers) if lines else None


def _scopes(evidence: Evidence) -> Report | None:
    """Name the scopes on top; tfprof prints a scope's own time, which is none, and we that of all below it."""
    options = Options(max_depth=100, min_micros=100, order_by="micros")
    scopes = scope_view(evidence.nodes, options, evidence.rules).root.children[:_MOST]
    told = [(scope.name, scope.own if evidence.rules.strict else scope.total) for scope in scopes]
    lines = [f"top {at} graph node: {name}, {_times(stats)}" for at, (name, stats) in enumerate(told, 1)]
    return Report("\n".join(lines), {name: stats.micros for name, stats in told}) if lines else None


def _code(evidence: Evidence) -> Report | None:
    """Name the lines below the first branching of the calls; tfprof says an empty text where none takes a millisecond."""
    options = Options(max_depth=100, min_micros=1, order_by="micros")
    branch = code_view(evidence.nodes, options, evidence.rules).root
    while len(branch.children) == 1:
        branch = branch.children[0]
    if not branch.children:
        return None
    lines: list[str] = []
    _lines(branch, 0, lines)
    return Report("\n".join(lines)) if lines or evidence.rules.strict else None


def _lines(branch: Branch, depth: int, lines: list[str]) -> None:
    if len(branch.children) <= 1 or depth > _DEEPEST:
        return
    for child in branch.children[:_MOST]:
        if child.total.micros >= _LEAST_MICROS:
            lines.append(f"{'  ' * depth}{child.name}, {_times(child.total)}")
            _lines(child, depth + 1, lines)
