"""Ops ranked by their time in a step."""

from dataclasses import replace

import pytest
from fakes.nodes import node
from tfprof.collector.summaries.shares import shares
from tfprof.collector.summaries.top import short_device, top_line, top_ops
from tfprof.collector.tfviews.nodes import Frame, Node
from tfprof.collector.tfviews.own_files import stack_lookup

GPU = "/job:localhost/replica:0/task:0/device:gpu:1"


def node_with_stack(name: str, *frames: tuple[str, int, str]) -> Node:
    """Return a node that these calls created, outermost first."""
    plain_node = node(name, "MatMul")
    return plain_node._replace(facts=replace(plain_node.facts, stack=tuple(Frame(*frame) for frame in frames)))


def test_ops_are_grouped_by_type_and_device_and_ranked_by_the_median_step() -> None:
    nodes = [node("a", "Add"), node("b", "Add", GPU), node("c", "Add"), node("d", "Mul")]
    times = {"a": [10, 10, 10], "b": [60, 50, 70], "c": [20, 21, 19], "d": [10, 10, 1000]}
    result = top_ops(nodes, times, 3)
    assert [
        (entry.op, entry.device, entry.least_us, entry.median_us, entry.most_us, entry.share) for entry in result
    ] == [
        ("Add", "GPU:1", 50, 60, 70, 0.6),
        ("Add", "CPU:0", 29, 30, 31, 0.3),
        ("Mul", "CPU:0", 10, 10, 1000, 0.1),
    ]


def test_calls_and_bytes_are_per_step() -> None:
    add_node = node("a", "Add")
    (result,) = top_ops([add_node._replace(stats=add_node.stats._replace(runs=8, bytes=400))], {"a": [1, 1, 1, 1]}, 4)
    assert (result.calls, result.bytes) == (2, 100)


def test_ops_without_time_are_left_out() -> None:
    assert top_ops([node("a", "Const")], {}, 1) == []
    assert top_ops([node("a", "Const")], {"a": [0, 0]}, 2) == []


def test_shares_are_computed_from_total_times_if_no_op_runs_in_half_of_the_steps() -> None:
    result = shares([("A", "a"), ("B", "b")], {"a": [30, 0, 0], "b": [0, 10, 0]})
    assert [(entry.key, entry.median_us, entry.share) for entry in result] == [("A", 0, 0.75), ("B", 0, 0.25)]


def test_the_line_is_the_users_line_with_most_time() -> None:
    keras = ("/venv/lib/python3.11/site-packages/keras/src/trainer.py", 399, "fit")
    nodes = [
        node_with_stack("a", ("/home/ada/train.py", 40, "<module>"), ("/home/ada/train.py", 30, "main"), keras),
        node_with_stack("b", ("/home/ada/train.py", 40, "<module>"), keras, ("/home/ada/layers.py", 7, "call"), keras),
        node_with_stack("c", keras),
    ]
    assert top_line(nodes, {"a": [5, 5], "b": [3, 4], "c": [99, 99]}, stack_lookup(nodes)) == "train.py:30"
    assert top_line(nodes, {"a": [5, 5], "b": [8, 4], "c": [99, 99]}, stack_lookup(nodes)) == "layers.py:7"
    assert top_line(nodes[2:], {"c": [99, 99]}, stack_lookup(nodes)) == ""


def test_a_gradient_has_the_line_of_its_forward_op() -> None:
    nodes = [
        node_with_stack("dense/MatMul", ("/home/ada/train.py", 19, "model")),
        node_with_stack("gradients/dense/MatMul_grad/MatMul", ("/home/ada/train.py", 38, "minimize")),
    ]
    assert top_line(nodes[1:], {nodes[1].name: [9]}, stack_lookup(nodes)) == "train.py:19"


@pytest.mark.parametrize(("name", "shown"), [("/job:a/task:0/cpu:0", "CPU:0"), ("", "-"), ("/device:gpu:3", "GPU:3")])
def test_devices_have_short_names(name: str, shown: str) -> None:
    assert short_device(name) == shown
