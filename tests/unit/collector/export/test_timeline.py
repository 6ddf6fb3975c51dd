"""Timelines of trees and of steps."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from tfprof.collector.export.timeline import file_message, file_name, graph_timeline, scope_timeline
from tfprof.collector.tfviews.entries import Entry, Interval, MemoryRecord
from tfprof.collector.tfviews.nodes import NO_STATS, Node, NodeFacts, Stats
from tfprof.collector.tfviews.options import Options
from tfprof.collector.tfviews.parity import Parity
from tfprof.collector.tfviews.tree import graph_view, scope_view

CPU, GPU, STREAM = "/job:w/device:cpu:0", "/job:w/device:gpu:0", "/device:gpu:0/stream:all"
WHOLE_TREE = Options(max_depth=10000)


def events(data: bytes, phase: str) -> list[Any]:
    """Return the events of one kind in a file."""
    return [event for event in json.loads(data)["traceEvents"] if event["ph"] == phase]


def bars(data: bytes) -> list[tuple[str, int, int, int, int]]:
    """Return name, process, lane, start and duration of each bar."""
    return [(bar["name"], bar["pid"], bar["tid"], bar["ts"], bar["dur"]) for bar in events(data, "X")]


def node(name: str, device: str = CPU, inputs: tuple[str, ...] = (), micros: int = 1) -> Node:
    """Return a node that ran."""
    return Node(name, name, (device,) if device else (), Stats(runs=1, micros=micros), NodeFacts(inputs=inputs))


def entry(device: str, *pairs: Interval, kernels: tuple[Interval, ...] = ()) -> Entry:
    """Return the entry of a node with executions on a device, and kernels on the stream."""
    starts = [start for start, _ in (*pairs, *kernels)]
    cpu, accelerator = (
        {name: list(intervals)} if intervals else {} for name, intervals in ((device, pairs), (STREAM, kernels))
    )
    return Entry(device, min(starts, default=0), 0, len(pairs), accelerator, cpu)


def draw(entries: Mapping[Node, Entry], options: Options = WHOLE_TREE, **persistent_bytes: int) -> bytes:
    """Return the timeline of a step with these entries by node."""
    nodes = sorted(entries, key=lambda node: node.name)
    return graph_timeline(
        graph_view(nodes, options), {node.name: entries[node] for node in entries}, persistent_bytes
    ).data


# -- trees -----------------------------------------------------------------------------------------


def test_children_are_drawn_from_left_to_right_as_wide_as_their_times() -> None:
    nodes = [node("a/x", micros=30), node("a/y", micros=0), node("a/z", micros=5), node("b", micros=7)]
    data = scope_timeline(scope_view(nodes, Options()))
    assert bars(data) == [
        ("_TFProfRoot", 0, 0, 0, 42),
        ("a", 1, 0, 0, 35),
        ("a/x", 2, 0, 0, 30),
        ("a/z", 2, 0, 30, 5),
        ("b", 1, 0, 35, 7),
    ]
    assert [event["args"]["name"] for event in events(data, "M")] == ["Scope:0", "Scope:1", "Scope:2"]
    assert events(data, "X")[1]["args"] == {"name": "a", "op": "a"}


def test_a_tree_may_be_deep() -> None:
    data = scope_timeline(scope_view([node("/".join("x" * 3000))], WHOLE_TREE))
    assert len(bars(data)) == 3001


def test_an_empty_tree_is_a_root_without_time() -> None:
    assert bars(scope_timeline(scope_view([], Options()))) == [("_TFProfRoot", 0, 0, 0, 0)]


# -- steps -----------------------------------------------------------------------------------------


def test_devices_are_processes_in_the_order_in_which_nodes_are_shown() -> None:
    parent, child = node("b", GPU, ("a",)), node("a", CPU)
    data = draw({parent: entry(GPU, (10, 5), kernels=((20, 9),)), child: entry(CPU, (1, 3))})
    names = [event["args"]["name"] for event in events(data, "M")][:3]
    assert names == [
        f"Op execution threads: {STREAM}",
        f"Op scheduling threads: {GPU}",
        f"Op scheduling threads: {CPU}",
    ]
    assert bars(data) == [("b", 0, 0, 20, 9), ("b", 1, 0, 10, 5), ("a", 2, 0, 1, 3)]


def test_of_bars_with_the_same_start_only_the_first_is_drawn() -> None:
    data = draw({node("a"): entry(CPU, (10, 1), (10, 4)), node("b"): entry(CPU, (10, 50), (11, 2))})
    assert bars(data) == [("a", 0, 0, 10, 1), ("b", 0, 0, 11, 2)]


def test_overlapping_bars_are_in_separate_lanes() -> None:
    pairs = ((1, 10), (5, 10), (7, 1), (11, 2), (13, 1), (15, 1))
    data = draw({node("a"): entry(CPU, *pairs)})
    assert [(start, lane) for _, _, lane, start, _ in bars(data)] == [(1, 0), (11, 0), (13, 0), (15, 0), (5, 1), (7, 2)]


@pytest.mark.parametrize("entry", [Entry(CPU), Entry("", 5, 0, 0, {STREAM: [(5, 1)]}, {})])
def test_entries_without_a_start_or_a_device_are_not_drawn(entry: Entry) -> None:
    assert draw({node("a"): entry}) == b'{"traceEvents":[]}\n'


def test_hidden_nodes_are_not_drawn() -> None:
    nodes = {node("a", inputs=("b",)): entry(CPU, (1, 1)), node("b"): entry(CPU, (5, 1))}
    assert [bar[0] for bar in bars(draw(nodes, Options(max_depth=2)))] == ["a"]


def test_arrows_lead_from_one_device_to_another() -> None:
    source, target, same_device = node("s", GPU), node("t", CPU, ("s", "s", "u", "?")), node("u", CPU)
    data = draw(
        {
            source: entry(GPU, (1, 5), (7, 2), kernels=((3, 1),)),
            target: entry(CPU, (9, 1)),
            same_device: entry(CPU, (2, 1)),
        }
    )
    arrows = [(event["name"], event["id"], event["ts"]) for event in events(data, "s")]
    assert arrows == [("s_flow", 1, 6), ("s_flow", 2, 6), ("s_flow", 3, 9), ("s_flow", 4, 9)]
    assert {(event["pid"], event["tid"], event["ts"]) for event in events(data, "t")} == {(0, 0, 9)}


def test_no_arrow_starts_at_an_unaccounted_or_undrawn_node() -> None:
    nodes = {node("s", GPU): entry(GPU, (1, 5)), node("t", CPU, ("s",)): entry(CPU, (9, 1))}
    assert len(events(draw(nodes), "s")) == 1
    assert not events(draw(nodes, Options(max_depth=10000, account_type_regexes=("t",))), "s")
    assert not events(draw(nodes, Options(max_depth=2)), "s")


def entry_with_memory(device: str, start: int, in_use: int) -> Entry:
    """Return the entry of an execution that starts at ``start``, with ``in_use`` bytes in use."""
    return Entry(
        device,
        start,
        start,
        1,
        {},
        {device: [(start, 1)]},
        memory=[MemoryRecord(start, 0, 0, 0, 0, 0, 0, 0, 0, in_use, {})],
    )


def test_a_gpu_has_two_processes_of_counters_and_a_cpu_has_none() -> None:
    nodes = {node("a", GPU): entry_with_memory(GPU, 500, 2_500_000), node("b", CPU): entry_with_memory(CPU, 600, 7)}
    view = graph_view(list(nodes), WHOLE_TREE)
    drawing = graph_timeline(view, {node.name: entry for node, entry in nodes.items()}, {"a": 1_234_567})
    assert drawing.peaks == ((GPU, 2_500_000),)
    assert drawing.messages() == ["generating trace file.", f"{GPU} peak memory: 2.50 MB"]
    names = [(event["pid"], event["args"]["name"]) for event in events(drawing.data, "M")]
    assert names[2:] == [(2, f"mem usage on:{GPU}"), (3, f"mem usage on:{GPU} allocations")]
    in_use_event, allocations_event = events(drawing.data, "C")
    assert (in_use_event["pid"], in_use_event["ts"], in_use_event["args"]) == (
        2,
        500,
        {"Allocator Bytes in Use": 2_500_000},
    )
    assert allocations_event["args"] == {
        "Not Displayed": "1.27 MB",
        "Top Allocation 00": "1.23457 MB from a",
        **{f"Top Allocation {number:02d}": "N/A" for number in range(1, 10)},
    }


@pytest.mark.parametrize(
    ("size", "new_text", "old_text"),
    [
        (1_000_000, "1", "1"),
        (1_234_567, "1.23457", "1.234567"),
        (1, "1e-06", "1e-06"),
        (3 * 10**15 + 1, "3e+09", "3000000000.000001"),
        (123_456_789_012, "123457", "123456.789012"),
    ],
)
def test_megabytes_have_the_digits_that_tensorflow_writes(size: int, new_text: str, old_text: str) -> None:
    gpu_node = node("a", GPU)
    for parity, text in ((Parity("2.21"), new_text), (Parity("1.15"), old_text)):
        drawing = graph_timeline(
            graph_view([gpu_node], WHOLE_TREE), {"a": entry_with_memory(GPU, 500, 10**16)}, {"a": size}, parity
        )
        assert events(drawing.data, "C")[1]["args"]["Top Allocation 00"] == f"{text} MB from a"


def test_file_names_contain_the_step_and_are_printed() -> None:
    assert file_name("out/t", -1) == "out/t_-1"
    assert "Timeline file is written to out/t_3." in file_message("out/t_3")


def test_nodes_without_entries_are_not_drawn() -> None:
    assert not bars(graph_timeline(graph_view([Node("a", "a", (), NO_STATS)], WHOLE_TREE), {}, {}).data)


def test_executions_that_start_in_the_same_microsecond_are_counted() -> None:
    nodes = {
        node("a"): entry(CPU, (5, 1), (7, 1)),
        node("b"): entry(CPU, (5, 2), (9, 1)),
        node("c"): entry(CPU, (5, 1)),
    }
    timeline = graph_timeline(graph_view(list(nodes), WHOLE_TREE), {n.name: e for n, e in nodes.items()}, {})
    assert (len(bars(timeline.data)), timeline.hidden) == (3, 2)
