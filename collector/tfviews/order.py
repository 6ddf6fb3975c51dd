"""Sorts entries like the TF profiler.

Newer TensorFlow sorts stably; older versions use libstdc++'s std::sort.
"""

from collections.abc import Callable, Iterable
from itertools import pairwise
from operator import itemgetter
from typing import Any, Final, TypeVar

from .parity import DEFAULT, Parity

#: Up to this number of entries, std::sort is an insertion sort, which is stable.
_THRESHOLD: Final = 16

#: Returns whether the first of two pairs (key, entry) sorts before the second.
_Less = Callable[[Any, Any], bool]
T = TypeVar("T")


def ordered(
    entries: Iterable[T], key: Callable[[T], Any], *, descending: bool = False, parity: Parity = DEFAULT
) -> list[T]:
    """Return ``entries`` sorted by ``key``; entries of equal keys are in TensorFlow's order."""
    unsorted = list(entries)
    if not parity.sorts_unstably or len(unsorted) <= _THRESHOLD:
        return sorted(unsorted, key=key, reverse=descending)
    pairs = [(key(entry), entry) for entry in unsorted]
    sorted_pairs = sorted(pairs, key=itemgetter(0), reverse=descending)
    if any(left[0] == right[0] for left, right in pairwise(sorted_pairs)):
        _sort(pairs, _is_greater if descending else _is_less)
        sorted_pairs = pairs
    return [entry for _, entry in sorted_pairs]


def _is_less(left: Any, right: Any) -> bool:
    return bool(left[0] < right[0])


def _is_greater(left: Any, right: Any) -> bool:
    return bool(left[0] > right[0])


def _sort(items: list[Any], less: _Less) -> None:
    """Sort ``items`` like std::sort of GCC 4.7 and later.

    It is a quicksort down to pieces of 16 items, or a heap sort where the recursion is too deep,
    and then an insertion sort of all items.
    """
    pieces = [(0, len(items), 2 * (len(items).bit_length() - 1))]
    while pieces:
        first, last, depth = pieces.pop()
        while last - first > _THRESHOLD:
            if depth == 0:
                heap_sort(items, first, last, less)
                break
            depth -= 1
            cut = _partition(items, first, last, less)
            pieces.append((cut, last, depth))
            last = cut
    for at in range(1, len(items)):
        _insert(items, at, less)


def _partition(items: list[Any], first: int, last: int, less: _Less) -> int:
    """Split items around a pivot, and return the start of the upper part.

    The pivot is the median of the second, the middle and the last item. It is moved to the front.
    """
    median = _median(items, first + 1, first + (last - first) // 2, last - 1, less)
    items[first], items[median] = items[median], items[first]
    pivot = items[first]
    low, high = first + 1, last
    while True:
        while less(items[low], pivot):
            low += 1
        high -= 1
        while less(pivot, items[high]):
            high -= 1
        if low >= high:
            return low
        items[low], items[high] = items[high], items[low]
        low += 1


def _median(items: list[Any], a: int, b: int, c: int, less: _Less) -> int:
    if less(items[a], items[b]):
        return b if less(items[b], items[c]) else c if less(items[a], items[c]) else a
    return a if less(items[a], items[c]) else c if less(items[b], items[c]) else b


def _insert(items: list[Any], at: int, less: _Less) -> None:
    item = items[at]
    while at > 0 and less(item, items[at - 1]):
        items[at] = items[at - 1]
        at -= 1
    items[at] = item


def heap_sort(items: list[Any], first: int, last: int, less: _Less) -> None:
    """Sort ``items[first:last]`` as std::__partial_sort does."""
    size = last - first
    for top in range((size - 2) // 2, -1, -1):
        _sift(items, first, top, size, items[first + top], less)
    for end in range(size - 1, 0, -1):
        item = items[first + end]
        items[first + end] = items[first]
        _sift(items, first, 0, end, item, less)


def _sift(items: list[Any], first: int, top: int, size: int, item: Any, less: _Less) -> None:
    """Sift the hole at ``top`` down to a leaf, then ``item`` up from there.

    This is what std::__adjust_heap does.
    """
    hole = child = top
    while child < (size - 1) // 2:
        child = 2 * (child + 1)
        if less(items[first + child], items[first + child - 1]):
            child -= 1
        items[first + hole] = items[first + child]
        hole = child
    if size % 2 == 0 and child == (size - 2) // 2:
        child = 2 * child + 1
        items[first + hole] = items[first + child]
        hole = child
    parent = (hole - 1) // 2
    while hole > top and less(items[first + parent], item):
        items[first + hole] = items[first + parent]
        hole, parent = parent, (parent - 1) // 2
    items[first + hole] = item
