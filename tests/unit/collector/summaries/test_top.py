"""Ops ranked by their time in a step."""

import pytest
from fakes.nodes import node
from tfprof.collector.summaries.top import heaviest, shares, short_device, top_ops
from tfprof.collector.tfviews.nodes import Stats

GPU = "/job:localhost/replica:0/task:0/device:gpu:1"


def test_ops_are_grouped_by_type_and_device_and_ranked_by_their_time() -> None:
    nodes = [
        node("a", "Add", micros=30),
        node("b", "Add", GPU, micros=180),
        node("c", "Add", micros=60),
        node("d", "Mul", micros=30),
    ]
    times = {"a": [10, 10, 10], "b": [60, 50, 70], "c": [20, 21, 19], "d": [10, 10, 1000]}
    result = top_ops(nodes, times, 3)
    assert [(entry.op, entry.device, entry.ns, entry.least_ns, entry.most_ns, entry.share) for entry in result] == [
        ("Add", "GPU:1", 60, 50, 70, 0.6),
        ("Add", "CPU:0", 30, 29, 31, 0.3),
        ("Mul", "CPU:0", 10, 10, 1000, 0.1),
    ]


def test_calls_and_bytes_are_per_step() -> None:
    (result,) = top_ops([node("a", "Add", micros=4, runs=8, bytes=400)], {"a": [1, 1, 1, 1]}, 4)
    assert (result.calls, result.bytes) == (2, 100)


def test_ops_without_time_are_left_out() -> None:
    assert top_ops([node("a", "Const")], {}, 1) == []
    assert top_ops([node("a", "Const")], {"a": [0, 0]}, 2) == []


def test_a_group_has_a_share_of_the_time_of_all_groups_even_if_it_ran_in_few_steps() -> None:
    result = shares([("A", node("a", "A", micros=30)), ("B", node("b", "B", micros=10))], {"b": [0, 10]}, 20)
    assert result == [("A", 1.5, 0, 0, 0.75), ("B", 0.5, 0, 10, 0.25)]


def test_the_place_is_the_one_with_most_time() -> None:
    lines = {"a": "train.py:30", "b": "layers.py:7", "c": ""}
    nodes = [node(name, "MatMul") for name in lines]

    def heaviest_of(*times: int) -> str:
        timed = [plain._replace(stats=Stats(micros=time)) for plain, time in zip(nodes, times, strict=True)]
        return heaviest(timed, lambda node: lines[node.name])

    assert heaviest_of(10, 7, 99) == "train.py:30"
    assert heaviest_of(10, 12, 99) == "layers.py:7"
    assert heaviest(nodes[2:], lambda node: lines[node.name]) == ""


def test_ops_of_tasks_are_apart_and_a_node_may_have_several_devices() -> None:
    workers = [GPU.replace("localhost", "worker").replace("task:0", f"task:{number}") for number in (0, 1)]
    nodes = [node(name, "Add", device, micros=30) for name, device in zip("ab", workers, strict=True)]
    both = nodes[0]._replace(name="c", devices=tuple(workers))
    result = top_ops([*nodes, both], {}, 1)
    assert [entry.device for entry in result] == ["worker:0 GPU:1", "worker:0 GPU:1,worker:1 GPU:1", "worker:1 GPU:1"]


@pytest.mark.parametrize(
    ("name", "shown"), [("/job:a/task:0/cpu:0", "a:0 CPU:0"), ("", "-"), ("/device:gpu:3", "GPU:3"), (GPU, "GPU:1")]
)
def test_devices_have_short_names(name: str, shown: str) -> None:
    assert short_device(name) == shown
