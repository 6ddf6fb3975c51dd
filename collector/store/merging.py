"""Merges rollups, by the C part or by pyarrow, with equal results."""

from collections.abc import Sequence
from functools import reduce
from types import ModuleType
from typing import Any, Final

import pyarrow as pa

from . import aggregation
from .columns import NULL, constant, flat, integer, pc, row_numbers, sorted_column
from .node_keys import device_of, node_of, packed
from .schema import NONE_ID, ROLLUP

_NONE: Final = constant(NONE_ID, pa.uint32())
#: Columns that merging adds; the others are minima, maxima and lists.
_ADDED: Final = tuple(name for name in aggregation.RESULTS if name not in ("min_ns", "max_ns", "first_bucket"))


def merge(*rollups: pa.Table) -> pa.Table:
    """Return the merged ROLLUP of ``rollups``, oldest first; their traces must be disjoint."""
    parts = [rollup for rollup in rollups if rollup.num_rows]
    if len(parts) < 2:
        return parts[0] if parts else ROLLUP.empty_table()
    if aggregation.native is None:
        return reduce(by_python, parts)
    return _by_native(aggregation.native, parts)


def by_python(older: pa.Table, newer: pa.Table) -> pa.Table:
    """Merge two rollups, as ``merge`` does."""
    sides = (older, newer)
    side_keys = [_keys(side) for side in sides]
    keys = sorted_column(pc.unique(pa.concat_arrays(side_keys)))
    indexes = [pc.index_in(keys, value_set=side_key) for side_key in side_keys]

    def aligned(name: str) -> list[Any]:
        return [flat(side[name]).take(index) for side, index in zip(sides, indexes, strict=True)]

    ran = [pc.fill_null(pc.greater(runs, integer(0)), False) for runs in aligned("runs")]
    known = [pc.if_else(pc.equal(column, _NONE), NULL, column) for column in aligned("canonical")]
    columns: dict[str, Any] = {"node": node_of(keys), "device": device_of(keys)}
    columns["canonical"] = pc.fill_null(pc.coalesce(*known), NONE_ID)
    for name in _ADDED:
        columns[name] = pc.add(*(pc.fill_null(column, 0) for column in aligned(name)))
    for name, choose in (("min_ns", pc.min_element_wise), ("max_ns", pc.max_element_wise)):
        measured = (pc.if_else(some, column, NULL) for some, column in zip(ran, aligned(name), strict=True))
        columns[name] = pc.fill_null(choose(*measured), 0)
    columns |= _histograms(sides, keys)
    return pa.table({name: columns[name] for name in ROLLUP.names}, schema=ROLLUP)


def _histograms(sides: Sequence[pa.Table], keys: Any) -> aggregation.Columns:
    """Return the summed histograms of all ``sides``, for the rows ``keys``."""
    rows, buckets, counts = [], [], []
    for side in sides:
        histogram, first = flat(side["histogram"]), flat(side["first_bucket"])
        of = pc.list_parent_indices(histogram)
        begins = histogram.offsets.slice(0, len(histogram)).cast(pa.int64())
        position = pc.subtract(pc.add(row_numbers(len(of)), histogram.offsets[0].cast(pa.int64())), begins.take(of))
        rows.append(pc.index_in(_keys(side), value_set=keys).cast(pa.int64()).take(of))
        buckets.append(pc.add(position, first.take(of)))
        counts.append(pc.list_flatten(histogram))
    return aggregation.histograms(
        pa.concat_arrays(rows), pa.concat_arrays(buckets), pa.concat_arrays(counts), len(keys)
    )


def _by_native(module: ModuleType, parts: Sequence[pa.Table]) -> pa.Table:
    part_keys = pa.concat_arrays([_keys(part) for part in parts])
    keys = sorted_column(pc.unique(part_keys))
    groups = pc.index_in(part_keys, value_set=keys)
    buffers, at = [], 0
    for part in parts:
        buffers.append(_buffers(part, groups.slice(at, part.num_rows)))
        at += part.num_rows
    words, canonical, ends, counts = module.merge(buffers, len(keys))
    columns = aggregation.columns_of(words, ends, counts, len(keys))
    columns |= {"node": node_of(keys), "device": device_of(keys)}
    columns["canonical"] = pa.Array.from_buffers(pa.uint32(), len(keys), [None, pa.py_buffer(canonical)])
    return pa.table({name: columns[name] for name in ROLLUP.names}, schema=ROLLUP)


def _buffers(part: pa.Table, groups: Any) -> tuple[memoryview, ...]:
    """Return the arguments of `_sums.merge` for the rollup ``part``.

    ``groups``: for each row of ``part``, its row in the result.
    """
    histograms = flat(part["histogram"])
    others = (groups, flat(part["canonical"]), histograms.offsets, histograms.values)
    return tuple(map(aggregation.values_of, (*others, *(flat(part[name]) for name in aggregation.RESULTS))))


def _keys(part: pa.Table) -> Any:
    return packed(flat(part["node"]), flat(part["device"]))
