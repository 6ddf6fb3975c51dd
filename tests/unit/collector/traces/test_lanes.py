"""Lanes: every slice is placed, and two slices of a lane are disjoint or one encloses the other."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st
from tfprof.collector.traces.lanes import Lanes

#: Start, duration and thread of slices, in batches that may overlap in time.
BATCHES = st.lists(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12), st.integers(1, 3)), max_size=25), max_size=3
)


def placed(batches, *, nested):
    """Pack ``batches``; return (lane, depth, start, end, thread) of each slice in order."""
    lanes, slices = Lanes(), []
    for batch in batches:
        rows = sorted(batch, key=lambda row: (row[0], -row[1]))
        starts, durations, threads = ([row[at] for row in rows] for at in range(3))
        packed = lanes.pack(starts, durations, threads if nested else None)
        slices += [
            (lane, depth, start, start + duration, thread)
            for lane, depth, (start, duration, thread) in zip(packed.lanes, packed.depths, rows, strict=True)
        ]
    return slices


def reopened(slices):
    """Return the enclosing slices of each slice, found from the order and the depths alone."""
    stacks, enclosing = {}, []
    for lane, depth, start, end, thread in slices:
        stack = stacks.setdefault(lane, [])
        del stack[depth:]
        assert len(stack) == depth
        enclosing.append(list(stack))
        stack.append((start, end, thread))
    return enclosing


@given(BATCHES)
def test_without_threads_slices_of_a_lane_are_disjoint_and_ascend(batches):
    slices = placed(batches, nested=False)
    assert len(slices) == sum(map(len, batches))
    assert all(depth == 0 for _, depth, *_ in slices)
    for first, second in combinations(slices, 2):
        assert first[0] != second[0] or first[3] <= second[2]


@given(BATCHES)
def test_with_threads_a_slice_is_within_slices_of_its_own_thread(batches):
    slices = placed(batches, nested=True)
    assert len(slices) == sum(map(len, batches))
    for (*_, start, end, thread), stack in zip(slices, reopened(slices), strict=True):
        assert all(other_start <= start and end <= other_end for other_start, other_end, _ in stack)
        assert all(other == thread for *_, other in stack)
    for first, second in combinations(slices, 2):
        encloses = first[2] <= second[2] and second[3] <= first[3]
        assert first[0] != second[0] or first[3] <= second[2] or encloses


def test_slices_with_equal_starts_are_all_kept():
    packed = Lanes().pack([5, 5, 5], [3, 3, 0])
    assert sorted(packed.lanes) == [0, 1, 2]


def test_a_lane_is_used_again_when_it_is_free():
    assert Lanes().pack([0, 1, 4, 5], [4, 9, 1, 1]).lanes == [0, 1, 0, 0]
