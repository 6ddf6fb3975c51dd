"""Whether graphs are rebuilt while steps run."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ..numbers import count, duration, percent
from ..summaries.kinds import RUN_KIND_NAMES
from ..summaries.parts import TRACING
from .between_steps import has_enough_steps
from .evidence import Evidence, IdenticalGraphs
from .report import Report

#: Minimum number of graphs with the same ops, in all and per traced step.
GRAPHS_MIN: Final = 4
_GRAPHS_PER_STEP_MIN: Final = 0.5
#: Minimum number of functions first called in the second half of a job.
FUNCTIONS_MIN: Final = 5
#: Minimum number of late traced steps, and the minimum share of them that ran new nodes.
STEPS_MIN: Final = 4
NEW_SHARE_MIN: Final = 0.75
#: Minimum number of late runs of a session that are compared by their fetches and feeds; minimum
#: number and share of those with new ones. Other runs of the loop may have the same each time.
RUNS_MIN: Final = 20
_NEW_RUNS_MIN: Final = 15
_NEW_RUNS_SHARE_MIN: Final = 0.1
#: Minimum share of tracing in the time from step to step.
_SHARE_MIN: Final = 0.1
_OF_PIPELINES: Final = "Dataset_"
_NUMBERED: Final = re.compile(r"_\d+$")
_REMEDY_FOR_FUNCTIONS: Final = (
    "call it with tensors instead of Python numbers, pad or bucket shapes, give it an input_signature or"
    " reduce_retracing=True; make it once, outside of loops"
)
_REMEDY_FOR_GROWTH: Final = "build the graph once, before the loop; graph.finalize() finds the line that adds to it"


def check(evidence: Evidence) -> Sequence[Report]:
    """Report retraced functions, late steps with new ops or fetches, and late functions."""
    tracing = _tracing(evidence)
    reports = (_graphs(evidence, tracing) or tracing, _nodes(evidence) or _runs(evidence), _functions(evidence))
    return [report for report in reports if report is not None]


def _tracing(evidence: Evidence) -> Report | None:
    """Check whether tracing takes much of the steps, which also shows it where few are traced.

    Functions of input pipelines do not count: calls of fit and predict make a pipeline each.
    """
    parts, largest = evidence.breakdown, _largest(evidence)
    if parts is None or not has_enough_steps(parts):
        return None
    functions: Counter[str] = Counter()
    for title, ns in parts.detail_ns(TRACING).items():
        functions[title.partition(" of ")[2]] += round(ns)
    own = {name: ns for name, ns in functions.items() if not name.startswith(_OF_PIPELINES)}
    total_ns = sum(own.values())
    # What is traced once is not traced again, as for the smaller last batch of an epoch.
    once_ns = (evidence.longest_ns.get("tracing", 0) + evidence.longest_ns.get("first_run", 0)) / parts.steps
    if total_ns - once_ns < _SHARE_MIN * parts.period_ns:
        return None
    name, share = max(own, key=lambda function: own[function]), total_ns / parts.period_ns
    return Report(
        f"{percent(share)} of the time from step to step is in tracing functions and optimizing their graphs:"
        f" {duration(total_ns)} a step. Most of it is for {name}, which was traced while steps ran.",
        {"share": share, "ns_per_step": total_ns, "name": name},
        _REMEDY_FOR_FUNCTIONS,
        largest.line if largest is not None and largest.line.endswith(f" ({name})") else "",
        share,
    )


def _largest(evidence: Evidence) -> IdenticalGraphs | None:
    return max(evidence.graphs, key=lambda graphs: graphs.nodes, default=None)


def _graphs(evidence: Evidence, tracing: Report | None) -> Report | None:
    """Check whether the largest function was traced many times; ``tracing``: what that takes.

    Smaller functions are not checked: they may be parts of the largest one, and a model may have
    many equal parts.
    """
    largest = _largest(evidence)
    if largest is None or largest.graphs < max(GRAPHS_MIN, _GRAPHS_PER_STEP_MIN * len(evidence.new_nodes)):
        return None
    text = (
        f"a function of {count(largest.nodes)} nodes, one of them {largest.example}, was traced"
        f" {count(largest.graphs)} times or more, which takes far longer than running it."
    )
    numbers: dict[str, float | str] = {"graphs": largest.graphs, "nodes": largest.nodes, "example": largest.example}
    if tracing is None:
        return Report(text, numbers, _REMEDY_FOR_FUNCTIONS, largest.line)
    return replace(tracing, text=f"{text} {tracing.text}", numbers={**tracing.numbers, **numbers}, line=largest.line)


def _nodes(evidence: Evidence) -> Report | None:
    """Check whether steps still run new nodes although their call was traced before.

    Only the later half of these steps is checked.
    """
    seen_calls: set[tuple[int, int]] = set()
    repeat_counts = []
    for call, nodes in evidence.new_nodes:
        if call in seen_calls:
            repeat_counts.append(nodes)
        seen_calls.add(call)
    late_counts = repeat_counts[len(repeat_counts) // 2 :]
    new_counts = [nodes for nodes in late_counts if nodes]
    if len(late_counts) < STEPS_MIN or len(new_counts) < NEW_SHARE_MIN * len(late_counts):
        return None
    return Report(
        f"{len(new_counts)} of {len(late_counts)} late traced steps ran ops that no earlier step ran,"
        f" {count(sum(new_counts))} in all: the graph grows.",
        {"steps": len(late_counts), "steps_with_new_ops": len(new_counts), "new_ops": sum(new_counts)},
        _REMEDY_FOR_GROWTH,
        _growing_line(evidence),
    )


def _runs(evidence: Evidence) -> Report | None:
    """Check whether the session's runs still get fetches and feeds that no earlier run had.

    Such runs cannot be compared by their ops if none of them was traced.
    """
    if evidence.step_kind not in RUN_KIND_NAMES:
        return None
    main_keys = [group.key for group in evidence.timed_steps]
    return _new_keys(evidence, main_keys, f"{evidence.step_kind} steps") or _new_keys(
        evidence, evidence.other_run_keys, f"runs beside the {evidence.step_kind} steps"
    )


def _new_keys(evidence: Evidence, keys: Sequence[int], what: str) -> Report | None:
    """Return a report if late runs still have ``keys`` that no earlier one had."""
    late_keys = keys[len(keys) // 2 :]
    new_keys = set(late_keys).difference(keys[: len(keys) // 2])
    if len(late_keys) < RUNS_MIN or len(new_keys) < max(_NEW_RUNS_MIN, _NEW_RUNS_SHARE_MIN * len(late_keys)):
        return None
    return Report(
        f"{count(len(new_keys))} of {count(len(late_keys))} late {what} have fetches or feeds that"
        " no earlier one had: the graph grows, and each of these waits until TensorFlow has prepared it.",
        {"steps": len(late_keys), "steps_with_new_fetches": len(new_keys)},
        _REMEDY_FOR_GROWTH,
        _growing_line(evidence),
    )


def _growing_line(evidence: Evidence) -> str:
    """Return the user's line that created most nodes with numbered names, '' if unknown.

    TensorFlow numbers a name that the graph already has, as in a loop.
    """
    numbered = Counter(
        location
        for node in evidence.nodes
        if _NUMBERED.search(node.name) and (location := evidence.places.location(node))
    )
    return numbered.most_common(1)[0][0] if numbered else ""


def _functions(evidence: Evidence) -> Report | None:
    late_calls = [call_time for call_time in evidence.first_calls if 1 / 2 < call_time < 1]
    if len(late_calls) < FUNCTIONS_MIN:
        return None
    return Report(
        f"{count(len(late_calls))} functions were called for the first time in the second half of the job;"
        " each was traced then.",
        {"functions": len(late_calls), "known_before": len(evidence.first_calls) - len(late_calls)},
        "make tf.functions once, outside of loops and methods that run often",
    )
