"""Memory in use on a GPU over time."""

from collections.abc import Iterable

import pytest
from tfprof.collector.export.gpu_memory import GpuMemory, MemoryHolder
from tfprof.collector.tfviews.entries import Allocation, Entry, MemoryRecord


def entry(in_use: dict[int, int], allocations: Iterable[Allocation] = ()) -> Entry:
    """Return the entry of a node; ``in_use``: end of an execution (µs) -> bytes in use."""
    records = [MemoryRecord(end, 0, 0, 0, 0, 0, 0, 0, 0, size, {}) for end, size in in_use.items()]
    return Entry("gpu", memory=records, allocations=list(allocations))


def test_close_points_are_left_out_but_count_for_the_peak() -> None:
    memory = GpuMemory()
    memory.add("a", entry({99: 1, 100: 2, 199: 90, 200: 3, 301: 4, 0: 500, -7: 600}), 0)
    assert [(point.time_us, point.bytes) for point in memory.points()] == [(100, 2), (200, 3), (301, 4)]
    assert memory.peak == 90


def test_of_several_records_at_one_time_the_last_counts() -> None:
    memory = GpuMemory()
    memory.add("b", entry({100: 7}), 0)
    memory.add("a", entry({100: 5}), 0)
    assert [point.bytes for point in memory.points()] == [5]


def test_a_node_holds_persistent_bytes_and_earlier_allocations() -> None:
    memory = GpuMemory()
    memory.add("a", entry({100: 1000, 200: 1000, 300: 1000}, [(150, 30), (200, 50), (40, 5)]), 8)
    sizes = [[holder.bytes for holder in point.holders] for point in memory.points()]
    assert sizes == [[13], [43], [93]]


def test_the_largest_holders_that_fit_the_bytes_in_use_are_listed() -> None:
    memory = GpuMemory()
    memory.add("big", entry({100: 100}), 101)
    for name, size in (("b", 40), ("ä", 40), ("a", 40), ("small", 15), ("none", 0), ("freed", -3)):
        memory.add(name, entry({}), size)
    (point,) = memory.points()
    assert point.holders == [MemoryHolder(40, "a"), MemoryHolder(40, "b"), MemoryHolder(15, "small")]
    assert point.other_bytes == 5


def test_at_most_ten_holders_are_listed() -> None:
    memory = GpuMemory()
    memory.add("a", entry({100: 100}), 1)
    for number in range(12):
        memory.add(f"n{number:02d}", entry({}), 2)
    (point,) = memory.points()
    assert [holder.node for holder in point.holders] == [f"n{number:02d}" for number in range(10)]
    assert point.other_bytes == 80


@pytest.mark.parametrize("memory", [GpuMemory()])
def test_without_allocations_the_peak_is_0(memory: GpuMemory) -> None:
    assert memory.peak == 0
    assert not list(memory.points())
