"""Ops by what they cost."""

from fakes.nodes import node
from tfprof.collector.views.top import short_device, top_ops


def test_ops_are_put_together_by_type_and_device_and_ranked_by_time() -> None:
    gpu = "/job:localhost/replica:0/task:0/device:gpu:1"
    nodes = [
        node("a", "Add", micros=10),
        node("b", "Add", gpu, micros=60),
        node("c", "Add", micros=20),
        node("d", "Mul", micros=10),
    ]
    found = top_ops(nodes)
    assert [(one.op, one.device, one.stats.micros, one.share) for one in found] == [
        ("Add", "GPU:1", 60, 0.6),
        ("Add", "CPU:0", 30, 0.3),
        ("Mul", "CPU:0", 10, 0.1),
    ]


def test_ops_that_took_no_time_are_left_out() -> None:
    assert top_ops([node("a", "Const")]) == []


def test_devices_are_told_by_their_end() -> None:
    assert [short_device(name) for name in ("/job:a/task:0/cpu:0", "", "/device:gpu:3")] == ["CPU:0", "-", "GPU:3"]
