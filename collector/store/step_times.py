"""Histograms of step times (schema.STEP_TIMES), and the times of nodes computed from them.

A unit is a node on a device. Its time in a traced step is the sum of its executions there. Bucket 0
has the times of 0 ns. Each power of two is divided into 64 buckets, so that a bucket is at most
1.6 % wide: the bucket of another time is 1 more than the first 6 digits of the binary fraction and
the exponent of the time as a float.
"""

from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa

from .aggregation import START_TIMES, has_start
from .columns import changes, constant, flat, integer, pc, repeat, run_sums
from .devices import Devices
from .node_keys import pack
from .rollup import bases
from .schema import STEP_TIMES

#: The columns of ops that are read.
COLUMNS: Final = ("trace", "node", "device", *START_TIMES, "op_start_ns", "op_end_ns")

#: A float has 52 digits after its binary point; buckets keep the first 6 of them.
DROPPED_BITS: Final = 52 - 6
#: The bits of 1.0 without the dropped ones, minus 1.
BUCKET_OFFSET: Final = (1023 << 6) - 1
#: Bits of a bucket: 6 for the fraction, 6 for the exponent of a time of less than 2^63 ns, and one
#: for the last power of two.
_BUCKET_BITS: Final = 13
#: Rows of histograms that are read before they are merged.
PENDING_ROWS: Final = 200_000


def times_by_trace(ops: pa.Table, traces: pa.Table, devices: Devices) -> pa.Table:
    """Return the time of each unit in each trace: the columns node, device, trace and ns.

    ``ops``: sorted as by `rollup.sorted_by_node`. ``traces``: the rows of TRACES of their traces.
    """
    columns = {name: flat(ops[name]) for name in COLUMNS}
    columns["base"] = bases(columns["trace"], traces)
    columns["device"] = devices.unified(columns["device"])
    columns["ns"] = pc.add(columns["op_start_ns"], columns["op_end_ns"])
    table = pa.table({name: columns[name] for name in ("node", "device", "trace", "ns")}).filter(has_start(columns))
    node, device, trace, ns = map(flat, table.columns)
    starts = pc.indices_nonzero(pc.or_(pc.or_(changes(node), changes(device)), changes(trace)))
    sums = pc.max_element_wise(run_sums(ns, starts), integer(0))
    return pa.table({"node": node.take(starts), "device": device.take(starts), "trace": trace.take(starts), "ns": sums})


def histogram_of(ops: pa.Table, traces: pa.Table, devices: Devices) -> pa.Table:
    """Return the STEP_TIMES of ``ops``; the parameters are those of `times_by_trace`."""
    return summed(bucket_rows(ops, traces, devices))


def bucket_rows(ops: pa.Table, traces: pa.Table, devices: Devices) -> pa.Table:
    """Return a row like those of STEP_TIMES, of one step, for each unit in each trace of ``ops``.

    The parameters are those of `times_by_trace`.
    """
    times = times_by_trace(ops, traces, devices)
    columns = [flat(times["node"]), flat(times["device"]), _buckets(flat(times["ns"]))]
    return pa.Table.from_arrays([*columns, repeat(1, len(times), pa.int64())], schema=STEP_TIMES)


def merge_histograms(*histograms: pa.Table) -> pa.Table:
    """Return the merged STEP_TIMES of ``histograms``; their traces must be disjoint."""
    parts = [histogram for histogram in histograms if histogram.num_rows]
    if len(parts) < 2:
        return parts[0] if parts else STEP_TIMES.empty_table()
    return summed(pa.concat_tables(parts))


def merge_many(histograms: Iterable[pa.Table]) -> pa.Table:
    """Return the merged STEP_TIMES of ``histograms``, which are read a few at a time."""
    merged, pending, rows = STEP_TIMES.empty_table(), list[pa.Table](), 0
    for histogram in histograms:
        pending.append(histogram)
        rows += histogram.num_rows
        if rows > max(PENDING_ROWS, merged.num_rows):
            merged, pending, rows = merge_histograms(merged, *pending), [], 0
    return merge_histograms(merged, *pending)


def unit_times(histogram: pa.Table, rollup: pa.Table) -> pa.Table:
    """Return node, device and ``ns`` of each unit in a STEP_TIMES table.

    ``ns`` is the median of the unit's times over the steps in which it ran, times the number of
    these steps. Divided by the number of all steps, it is the unit's time per step. The median is
    the middle of the bucket that has the middle step; with two middle steps, it is the mean of
    both. If a unit ran in at most two steps, or if all its times are in one bucket, the mean of the
    times is used instead. ``rollup``: the ROLLUP of the same traces.
    """
    node, device, steps = (flat(histogram[name]) for name in ("node", "device", "steps"))
    is_start = pc.or_(changes(node), changes(device))
    starts = pc.indices_nonzero(is_start)
    buckets, unit_steps = run_sums(repeat(1, len(node), pa.int64()), starts), run_sums(steps, starts)
    middle_ns = _middle_times(flat(histogram["bucket"]), steps, is_start, unit_steps)
    node, device = node.take(starts), device.take(starts)
    position = pc.index_in(pack(node, device), value_set=pack(flat(rollup["node"]), flat(rollup["device"])))
    is_mean = pc.or_(pc.less_equal(unit_steps, integer(2)), pc.equal(buckets, integer(1)))
    times = pc.multiply(middle_ns, unit_steps.cast(pa.float64(), safe=False))
    ns = pc.if_else(is_mean, flat(rollup["sum_ns"]).take(position), pc.round(times).cast(pa.int64(), safe=False))
    return pa.table({"node": node, "device": device, "ns": ns})


def _middle_times(bucket: Any, steps: Any, is_start: Any, unit_steps: Any) -> Any:
    """Return the median of each unit, as the middle of buckets."""
    end = pc.cumulative_sum(steps)  # the steps of all units follow each other; those of a bucket end at this number
    begin = pc.subtract(end, steps)
    unit = pc.subtract(pc.cumulative_sum(is_start.cast(pa.int64())), integer(1))
    unit_begin, middles = begin.filter(is_start), _middles(bucket)

    def time_of(number: Any) -> Any:
        """Return the time of step ``number`` of each unit, in ascending order of times."""
        step = pc.add(unit_begin, number).take(unit)
        return middles.filter(pc.and_(pc.less_equal(begin, step), pc.less(step, end)))

    lower = time_of(pc.divide(pc.subtract(unit_steps, integer(1)), integer(2)))
    upper = time_of(pc.divide(unit_steps, integer(2)))
    return pc.divide(pc.add(lower, upper), constant(2.0, pa.float64()))


def _buckets(ns: Any) -> Any:
    """Return the bucket of each time, which must not be negative."""
    bits = ns.cast(pa.float64(), safe=False).view(pa.int64())
    numbers = pc.subtract(pc.shift_right(bits, integer(DROPPED_BITS)), integer(BUCKET_OFFSET))
    return pc.max_element_wise(numbers, integer(0)).cast(pa.uint16())


def _middles(bucket: Any) -> Any:
    """Return the middle of each bucket in ns, as a float."""
    first_bits = pc.shift_left(pc.add(bucket.cast(pa.int64()), integer(BUCKET_OFFSET)), integer(DROPPED_BITS))
    middle = pc.add(first_bits, integer(1 << (DROPPED_BITS - 1))).view(pa.float64())
    return pc.if_else(pc.equal(bucket, constant(0, pa.uint16())), constant(0.0, pa.float64()), middle)


def summed(rows: pa.Table) -> pa.Table:
    """Return the STEP_TIMES with the sum of ``rows`` of the same node, device and bucket."""
    *units, steps = map(flat, rows.columns)
    key = _keys(*units)
    order = pc.array_sort_indices(key)
    starts = pc.indices_nonzero(changes(key.take(order)))
    columns = [column.take(order.take(starts)) for column in units]
    return pa.Table.from_arrays([*columns, run_sums(steps.take(order), starts)], schema=STEP_TIMES)


def _keys(node: Any, device: Any, bucket: Any) -> Any:
    """Return an integer for each row that sorts by node, device and bucket; ids are dense."""
    device_count = pc.add(pc.max(device).cast(pa.uint64()), constant(1, pa.uint64()))
    unit = pc.add(pc.multiply(node.cast(pa.uint64()), device_count), device.cast(pa.uint64()))
    return pc.bit_wise_or(pc.shift_left(unit, constant(_BUCKET_BITS, pa.uint64())), bucket.cast(pa.uint64()))
