"""The CPU of an op in a profiler session is the CPU on which the job's graphs place its node."""

import pyarrow as pa
import pytest
from fakes.made_store import rows
from tfprof.collector.decoders.placement import Placement
from tfprof.collector.decoders.session_ops import HOST_DEVICE

SECOND_CPU = HOST_DEVICE[:-1] + b"1"


def nodes(**devices: bytes) -> pa.Table:
    graph_nodes = [{"name": name, "device": device.decode(), "node_def": b""} for name, device in devices.items()]
    return rows("graph_nodes", graph_nodes)


def test_nodes_on_a_second_cpu_are_found_there_and_all_other_nodes_on_the_first_cpu() -> None:
    placement = Placement()
    placement.add_nodes(
        nodes(a=SECOND_CPU, b=HOST_DEVICE, c=b"", d=HOST_DEVICE.replace(b"CPU", b"GPU"), e=b"/job:ps/task:1")
    )
    assert placement.device_of(b"a", HOST_DEVICE) == SECOND_CPU
    assert {placement.device_of(name, HOST_DEVICE) for name in (b"b", b"c", b"d", b"e", b"new")} == {HOST_DEVICE}


@pytest.mark.parametrize("device", [b"/device:CPU:1", b"/task:0/device:CPU:1", b"/job:localhost/device:CPU:1"])
def test_the_name_of_a_cpu_is_completed(device: bytes) -> None:
    placement = Placement()
    placement.add_nodes(nodes(a=device))
    assert placement.device_of(b"a", HOST_DEVICE) == SECOND_CPU


def test_graphs_can_be_added_later() -> None:
    placement = Placement()
    placement.add_nodes(nodes(a=SECOND_CPU))
    placement.add_nodes(nodes(b=HOST_DEVICE[:-1] + b"12").to_batches()[0])
    assert placement.device_of(b"a", HOST_DEVICE) == SECOND_CPU
    assert placement.device_of(b"b", HOST_DEVICE).endswith(b"CPU:12")
