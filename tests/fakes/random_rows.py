"""Random rows of a store, and their expected rollups, computed row by row."""

import random
from collections import defaultdict

import pyarrow as pa
from fakes.made_store import rows as table
from tfprof.collector.store import schema

CPU, GPU, STREAM, HOST = range(4)
DEVICES = (
    b"/job:localhost/replica:0/task:0/device:CPU:0",
    b"/job:localhost/replica:0/task:0/device:GPU:0",
    b"/device:GPU:0/stream:all",
    b"/host:CPU",
)
NO_CANONICAL = pa.array([], pa.uint32())
BASE_NS = 1_700_000_000_000_000_000


def device_names(devices=DEVICES):
    return table("names", [{"kind": schema.DEVICE, "id": number, "text": text} for number, text in enumerate(devices)])


def traces(first, count, base_ns=BASE_NS):
    rows = [
        {"trace": first + number, "base_ns": base_ns + number, "duration_ns": 1_000_000, "rows": 1}
        for number in range(count)
    ]
    return table("traces", rows)


def op(trace, node, device=CPU, **columns):
    return {"trace": trace, "node": node, "device": device, "op_end_ns": 1000, **columns}


def random_ops(first, count, nodes, seed=0):
    """Return ops of ``count`` traces in order of arrival.

    There are nodes on several devices, loops, missing start times and negative bytes.
    """
    rng = random.Random(seed)
    times = [0, 1, 999, -5, 123_456, -BASE_NS, -BASE_NS - 1]
    return [
        op(
            trace,
            node,
            rng.randrange(len(DEVICES)),
            start_ns=rng.choice(times),
            op_start_ns=rng.randrange(3000),
            op_end_ns=rng.choice([0, 1, 400, int(rng.lognormvariate(10, 3))]),
            start_us_fix=rng.choice([0, 0, 1, -1]),
            end_us_fix=rng.choice([0, 0, 0, 1]),
            total_bytes=rng.randrange(10_000),
            peak_bytes=rng.randrange(10_000),
            live_bytes=rng.randrange(-5000, 5000),
            output_bytes=rng.randrange(10_000),
            temp_bytes=rng.randrange(100),
            persistent_bytes=rng.randrange(100),
        )
        for trace in range(first, first + count)
        for node in rng.sample(range(nodes), rng.randint(1, nodes))
        for _ in range(rng.choice([1, 1, 1, 2, 5]))
    ]


def plain_rollup(rows, bases_ns, devices=DEVICES, before=()):
    """Return the ROLLUP of ``rows`` as a list of rows, computed by the simplest code.

    ``rows`` are in order of arrival. ``bases_ns`` has the base of each trace. ``before`` has
    earlier rows, which only help to decide the canonical devices.
    """
    lower_names = [text.lower() for text in devices]
    may_be_canonical = [text.endswith((b"device:cpu:0", b"device:gpu:0")) for text in lower_names]
    canonical: dict[int, int] = {}
    for row in before:
        device = lower_names.index(lower_names[row["device"]])
        if may_be_canonical[device]:
            canonical.setdefault(row["node"], device)
    cells: dict[tuple[int, int], list[dict[str, int]]] = defaultdict(list)
    cell_traces, node_traces = defaultdict(set), defaultdict(set)
    for row in rows:
        node, device = row["node"], lower_names.index(lower_names[row["device"]])
        if may_be_canonical[device]:
            canonical.setdefault(node, device)
        cell_traces[node, device].add(row["trace"])
        if not may_be_canonical[device] or canonical[node] == device:
            node_traces[node].add(row["trace"])
        cells[node, device] += _execution_counters(row, bases_ns[row["trace"]])
    result = [_rollup_row(node, device, cell_traces[node, device], cell) for (node, device), cell in cells.items()]
    for node, traces in node_traces.items():
        result.append(
            {**_rollup_row(node, schema.NONE_ID, traces, []), "canonical": canonical.get(node, schema.NONE_ID)}
        )
    return sorted(result, key=lambda row: (row["node"], row["device"]))


def plain_times(rows, bases_ns):
    """Return the ns by trace of each (node, device) with a start, by the simplest code."""
    times: dict[tuple[int, int], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for row in rows:
        start_us = (bases_ns[row["trace"]] + row.get("start_ns", 0)) // 1000 + row.get("start_us_fix", 0)
        if start_us > 0:
            times[row["node"], row["device"]][row["trace"]] += row.get("op_start_ns", 0) + row["op_end_ns"]
    return times


def unit_times(table):
    """Return the ns of each (node, device) in a result of `step_times.unit_times`."""
    return {(row["node"], row["device"]): row["ns"] for row in table.to_pylist()}


def sorted_names(folder):
    """Return the names in ``folder``, sorted."""
    return sorted(entry.name for entry in folder.iterdir())


def _execution_counters(row, base_ns):
    start = base_ns + row.get("start_ns", 0)
    end = start + row.get("op_start_ns", 0) + row["op_end_ns"]
    if start // 1000 + row.get("start_us_fix", 0) <= 0:
        return []
    micros = end // 1000 - start // 1000 + row.get("end_us_fix", 0)
    held_bytes = row.get("temp_bytes", 0) + row.get("persistent_bytes", 0)
    return [
        {
            "us": micros or 1,
            "ns": end - start,
            "requested_bytes": row.get("total_bytes", 0) + held_bytes,
            "peak_bytes": row.get("peak_bytes", 0) + held_bytes,
            "residual_bytes": row.get("live_bytes", 0) + row.get("persistent_bytes", 0),
            "output_bytes": row.get("output_bytes", 0),
        }
    ]


def _rollup_row(node, device, traces, runs):
    sums = ("requested_bytes", "peak_bytes", "residual_bytes", "output_bytes")
    return {
        "node": node,
        "device": device,
        "canonical": schema.NONE_ID,
        "traces": len(traces),
        "runs": len(runs),
        "sum_us": sum(run["us"] for run in runs),
        "sum_ns": sum(run["ns"] for run in runs),
        **{name: sum(run[name] for run in runs) for name in sums},
    }
