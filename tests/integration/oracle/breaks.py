"""Breaks single rules of tfprof; the comparison with the TF profiler must notice each."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

import pytest
from tfprof.collector.advice import expensive, operations, utilization
from tfprof.collector.export import gpu_memory, pprof, timeline
from tfprof.collector.flops import attributes
from tfprof.collector.query import profile
from tfprof.collector.render import op_text
from tfprof.collector.store import aggregation, sealing
from tfprof.collector.store.columns import integer, pc
from tfprof.collector.tfviews import code, entries, nodes, op, tree
from tfprof.collector.tfviews.encoding import octets
from tfprof.collector.tfviews.matcher import Matcher
from tfprof.collector.tfviews.order import ordered
from tfprof.collector.tfviews.parity import Parity

OLD, NEW = "tf1", "tf2"


class Break(NamedTuple):
    """A rule, the patch that breaks it, and the views, output and version that it must affect.

    ``reimports``: cases must be imported again under the patch.
    """

    rule: str
    apply: Callable[[pytest.MonkeyPatch], None]
    views: Sequence[str] = ("scope", "graph", "op", "code")
    output: str = ""
    version: str = NEW
    reimports: bool = False


def wrap(module: Any, name: str, wrapper: Callable[[Any], Any]) -> Callable[[pytest.MonkeyPatch], None]:
    """Return a patch that replaces the value of ``name`` in a module by ``wrapper(value)``."""

    def apply(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(module, name, wrapper(getattr(module, name)))

    return apply


def substitute(module: Any, name: str, value: Any) -> Callable[[pytest.MonkeyPatch], None]:
    """Return a patch that replaces the value of ``name`` in a module by ``value``."""
    return wrap(module, name, lambda _: value)


def _without_c(apply: Callable[[pytest.MonkeyPatch], None]) -> Callable[[pytest.MonkeyPatch], None]:
    """Return a patch that applies ``apply`` and aggregates rows in Python instead of C."""

    def apply_both(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(aggregation, "native", None)
        apply(patch)

    return apply_both


def _changed_columns(change: Callable[[Any, Any], dict[str, Any]]) -> Callable[[pytest.MonkeyPatch], None]:
    """Return a patch that changes columns of measured values before they are aggregated.

    ``change`` returns the new columns, from the columns of executions and the columns to be summed.
    """

    def wrapper(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def summands(columns: Any) -> Any:
            summed = original(columns)
            changed = change(columns, summed)
            has_run = pc.equal(summed["runs"], integer(1))
            return summed | {name: pc.if_else(has_run, new, summed[name]) for name, new in changed.items()}

        return summands

    return _without_c(wrap(aggregation, "_summands", wrapper))


def _average_over_all(original: Any) -> Any:
    def with_counts(all_nodes: Any, **options: Any) -> Any:
        entries_max = max((node.entries or 0 for node in all_nodes), default=0)
        return original([node._replace(entries=node.entries and entries_max) for node in all_nodes], **options)

    return with_counts


def _last_device(original: Any) -> Any:
    def canonical_after(ops: Any, devices: Any, canonical: Any) -> Any:
        return original(ops.take(list(range(ops.num_rows))[::-1]), devices, canonical)

    return canonical_after


def _of_every_device(original: Any) -> Any:
    def stats(self: Any, devices: Any, device: str) -> Any:
        return original(self, dict.fromkeys(devices, device), device) if device else original(self, devices, device)

    return stats


def _no_operations_without_runs(original: Any) -> Any:
    def final_stats(node: Any, **options: Any) -> Any:
        stats = original(node, **options)
        return stats if node.entries else stats._replace(float_ops=0)

    return final_stats


def _starting_anywhere(_original: Any) -> Any:
    def started(entries: Any, patterns: tuple[str, ...]) -> Any:
        matches, result, waiting = Matcher(patterns), [], list(reversed(entries))
        if matches.accepts_all:
            return entries
        while waiting:
            entry = waiting.pop()
            if matches(entry.name):
                result.append(entry)
            waiting.extend(reversed(entry.children))
        return result

    return started


def _scopes_are_no_definitions(original: Any) -> Any:
    class Entry(original):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.definitions -= not self.nodes

    return Entry


def _own_numbers_of_accounted(original: Any) -> Any:
    def accounted_node(name: str, own: Any, *arguments: Any, accounted: bool) -> Any:
        return original(name, own if accounted else nodes.NO_STATS, *arguments, accounted=accounted)

    return accounted_node


def _by_totals(_original: Any) -> Any:
    def entry_filter(options: Any) -> Any:
        shows = code._entry_filter(options)
        return lambda entry: shows(entry) and entry.own.runs >= options.min_occurrence

    return entry_filter


def _one_deeper(original: Any) -> Any:
    return lambda root, options, *arguments, **keywords: original(
        root, replace(options, max_depth=options.max_depth + 1), *arguments, **keywords
    )


def _inputs_backwards(original: Any) -> Any:
    def walked(all_nodes: Any) -> Any:
        return original(
            [node._replace(facts=replace(node.facts, inputs=node.facts.inputs[::-1])) for node in all_nodes]
        )

    return walked


def _no_control_inputs(original: Any) -> Any:
    def read(node_def: bytes) -> Any:
        attributes_, node = original(node_def), attributes.graph_pb2.NodeDef.FromString(node_def)
        input_flags = [not text.startswith("^") for text in node.input]
        return replace(
            attributes_,
            inputs=tuple(name for name, is_input in zip(attributes_.inputs, input_flags, strict=True) if is_input),
            slots=tuple(slot for slot, is_input in zip(attributes_.slots, input_flags, strict=True) if is_input),
        )

    return read


def _flows_within(_original: Any) -> Any:
    def connect(self: Any, accounted: frozenset[str]) -> None:
        for _, bars in self._bars_by_device():
            for bar in bars:
                for name in bar.node.facts.inputs:
                    source = self.executed_entry(name) if name in accounted else None
                    if source is not None:
                        self._add_consumer(source.device, source.cpu.get(source.device, []), bar)

    return connect


def _matched_once(original: Any) -> Any:
    def match_counts(patterns: tuple[str, ...]) -> Any:
        match_count = original(patterns)
        return lambda node: min(match_count(node), 1)

    return match_counts


def _by_running_totals(original: Any) -> Any:
    def in_order(op_entries: Any, *arguments: Any) -> Any:
        entries_by_name = {entry.name: entry for entry in op_entries}
        sorted_entries = original(
            [replace(entry, own=entry.running_total) for entry in op._with_running_totals(op_entries)], *arguments
        )
        return [entries_by_name[entry.name] for entry in sorted_entries]

    return in_order


def _filter_by_own(original: Any) -> Any:
    def make_filter(options: Any, parity: Any) -> Any:
        shown = original(options, parity)
        return lambda entry: shown(replace(entry, running_total=entry.own))

    return make_filter


def _sorted_as(compat: str) -> Any:
    def sort(entries: Any, key: Any, *, descending: bool = False, parity: Parity = Parity()) -> Any:  # noqa: B008
        return ordered(entries, key, descending=descending, parity=parity._replace(compat=compat))

    return sort


def _cut_at(length: int) -> Any:
    def frame_text(frame: Any) -> str:
        raw = octets(frame.function)
        function = raw[:17].decode("utf-8", "surrogateescape") + "..." if len(raw) >= length else frame.function
        return f"{code.basename(frame.file)}:{frame.line}:{function}"

    return frame_text


def _inner_samples(_original: Any) -> Any:
    def samples(branch: Any) -> Any:
        waiting = [branch.entry]
        while waiting:
            call = waiting.pop()
            yield from call.nodes
            waiting.extend(reversed(call.children))

    return samples


#: One break for each rule. The texts are the rules, not the ways in which they are broken.
BREAKS: Final = (
    Break(
        "a duration of 0 counts as 1",
        _changed_columns(
            lambda _, summed: {
                "sum_us": pc.if_else(pc.equal(summed["sum_us"], integer(1)), integer(0), summed["sum_us"])
            }
        ),
        reimports=True,
    ),
    Break(
        "temporary bytes count as requested",
        _changed_columns(
            lambda columns, summed: {"requested_bytes": pc.subtract(summed["requested_bytes"], columns["temp_bytes"])}
        ),
        reimports=True,
    ),
    Break(
        "persistent bytes count as residual",
        _changed_columns(lambda columns, _: {"residual_bytes": columns["live_bytes"]}),
        reimports=True,
    ),
    Break(
        "the first CPU or GPU of a node is its canonical device",
        _without_c(wrap(sealing, "canonical_after", _last_device)),
        reimports=True,
    ),
    Break("CPUs and GPUs other than the canonical device do not count", wrap(nodes._Sums, "stats", _of_every_device)),
    Break("averages are over the steps in which a node has an entry", wrap(profile, "with_counts", _average_over_all)),
    Break(
        "averages of negative sums wrap around",
        substitute(nodes, "average", lambda total, count: total // count if count else 0),
    ),
    Break("nodes that never ran keep their operations", wrap(nodes, "_final_stats", _no_operations_without_runs)),
    Break(
        "scalars have one element",
        substitute(attributes, "shape_of", lambda proto: tuple(dim.size for dim in proto.dim)),
    ),
    Break("control inputs are inputs", wrap(attributes, "attributes", _no_control_inputs), views=("graph",)),
    Break(
        "slots of inputs are ignored",
        wrap(attributes, "input_shapes", lambda original: lambda *arguments, **_: original(*arguments, by_slot=True)),
    ),
    Break(
        "slots of inputs are read",
        wrap(attributes, "input_shapes", lambda original: lambda *arguments, **_: original(*arguments, by_slot=False)),
        version=OLD,
    ),
    Break(
        "the device of a node counts as one of its types",
        substitute(nodes.Node, "op_types", property(lambda node: tuple(sorted({node.op, *node.facts.types})))),
    ),
    Break(
        "regexes match whole names",
        substitute(
            Matcher,
            "__call__",
            lambda self, name: self.accepts_all or any(pattern.search(octets(name)) for pattern in self.patterns),
        ),
    ),
    Break("equal entries stay in order", substitute(tree, "ordered", _sorted_as("1.15"))),
    Break(
        "equal entries are ordered by an unstable sort", substitute(tree, "ordered", _sorted_as("2.21")), version=OLD
    ),
    Break("depth counts the root", wrap(tree, "tree_view", _one_deeper), views=("scope",)),
    Break(
        "a trimmed node stays and loses its children",
        wrap(tree, "tree_view", lambda original: partial(original, prunes=True)),
        views=("scope",),
    ),
    Break(
        "a trimmed call is removed, and so are its children",
        wrap(
            code,
            "tree_view",
            lambda original: lambda *arguments, **options: original(*arguments, **{**options, "prunes": False}),
        ),
        views=("code",),
    ),
    Break(
        "shown nodes start at the topmost match",
        wrap(tree, "start_entries", _starting_anywhere),
        views=("scope", "graph"),
    ),
    Break(
        "minima of parameters and operations apply to own numbers",
        wrap(tree, "entry_filter", _by_totals),
        views=("scope", "graph"),
    ),
    Break(
        "totals can include displayed nodes only",
        wrap(tree, "tree_view", lambda original: partial(original, displayed_only=False)),
        views=("scope",),
    ),
    Break("scopes count as definitions", wrap(tree, "AccountedNode", _scopes_are_no_definitions), views=("scope",)),
    Break(
        "own numbers of scopes count even if they are not accounted",
        wrap(tree, "AccountedNode", _own_numbers_of_accounted),
        views=("scope",),
    ),
    Break(
        "nodes that are not accounted are dropped",
        substitute(tree, "account_filter", lambda _: lambda _: True),
        views=("graph",),
    ),
    Break("a shared input is below its first consumer", wrap(tree, "_walk", _inputs_backwards), views=("graph",)),
    Break("a node that matches two patterns counts twice", wrap(op, "match_counts", _matched_once), views=("op",)),
    Break("minima of op types apply to running totals", wrap(op, "_filter", _filter_by_own), views=("op",)),
    Break("op types are ordered by own numbers", wrap(op, "in_order", _by_running_totals), views=("op",)),
    Break(
        "an op type's own bytes decide whether percentages are shown", substitute(op_text, "SIZES", ()), views=("op",)
    ),
    Break(
        "gradients are next to the calls of their ops",
        substitute(code, "forward_name", lambda _: None),
        views=("code",),
    ),
    Break(
        "function names of twenty bytes and more are cut", substitute(code, "frame_text", _cut_at(21)), views=("code",)
    ),
    Break(
        "-min_occurrence has no effect in the code view",
        substitute(code, "_entry_filter", tree.entry_filter),
        views=("code",),
    ),
    Break(
        "a duration of 0 is drawn as 1",
        wrap(
            entries,
            "_add_time",
            lambda original: lambda entry, device, row: original(entry, device, row) if row.duration else None,
        ),
        ("graph",),
        "timeline",
    ),
    Break(
        "flows within a device are not drawn",
        wrap(timeline._Drawing, "connect", _flows_within),
        ("graph",),
        "timeline",
    ),
    Break(
        "a lane is free when its last bar has ended",
        substitute(timeline, "_is_free", lambda lane, start: lane[-1].end < start),
        ("graph",),
        "timeline",
    ),
    Break("memory samples are 100 µs apart", substitute(gpu_memory, "_DISTANCE_MIN_US", 0), ("graph",), "timeline"),
    Break("calls with callees have no samples", wrap(pprof, "_created_nodes", _inner_samples), ("code",), "pprof"),
    Break("low utilization is below one half", substitute(utilization, "UTILIZATION_MIN", 0.9), ("advise",)),
    Break(
        "FusedBatchNorm is advised where there is a BatchNorm", substitute(operations, "_FUSED", "Fused"), ("advise",)
    ),
    Break(
        "advice names only calls of a millisecond or more", substitute(expensive, "_LINE_MICROS_MIN", 1), ("advise",)
    ),
)
