"""Traced steps of invented jobs: a test lists executions, which are decoded as RunMetadata."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from fakes.made_store import MS, START_NS, rows, trace_tables, write_job
from fakes.nodes import CPU
from tfprof.collector.decoders.proto import graph_pb2
from tfprof.collector.decoders.proto.run_metadata_pb2 import RunMetadata
from tfprof.collector.store.reader import LocalJob, LocalStore
from tfprof.formats import layout


class Execution(NamedTuple):
    """One execution; times are in µs, ``start_us`` from the start of its step.

    ``held_bytes``: bytes that the execution still holds at its end. ``in_use_bytes``: bytes in use
    in the GPU's allocator at that time.
    """

    name: str
    start_us: int
    duration_us: int
    device: str = CPU
    held_bytes: int = 0
    in_use_bytes: int = 0
    thread: int = 1


def run_metadata(executions: Iterable[Execution], step_start_ns: int) -> bytes:
    """Return the RunMetadata of one step."""
    message = RunMetadata()
    message.step_stats.SetInParent()
    devices: dict[str, Any] = {}
    for execution in executions:
        if execution.device not in devices:
            devices[execution.device] = message.step_stats.dev_stats.add(device=execution.device.encode())
        start_us = step_start_ns // 1000 + execution.start_us
        stats = devices[execution.device].node_stats.add(
            node_name=execution.name.encode(),
            all_start_micros=start_us,
            op_end_rel_micros=execution.duration_us,
            all_end_rel_micros=execution.duration_us,
            all_start_nanos=1000 * start_us,
            op_end_rel_nanos=1000 * execution.duration_us,
            all_end_rel_nanos=1000 * execution.duration_us,
            thread_id=execution.thread,
        )
        if execution.held_bytes or execution.in_use_bytes:
            stats.memory.add(
                allocator_name=b"GPU_0_bfc" if execution.in_use_bytes else b"cpu",
                total_bytes=execution.held_bytes,
                live_bytes=execution.held_bytes,
                allocator_bytes_in_use=execution.in_use_bytes,
            )
    return message.SerializeToString()


def graph(ops: Mapping[str, str], **data_format: str) -> bytes:
    """Return a GraphDef from {name: op type}; ``data_format`` has this attribute of nodes."""
    message = graph_pb2.GraphDef()
    for name, op in ops.items():
        node = message.node.add(name=name, op=op)
        if name in data_format:
            node.attr["data_format"].s = data_format[name].encode()
    return message.SerializeToString()


def made_job(
    store: Path,
    steps: Sequence[Iterable[Execution]],
    graph_def: bytes = b"",
    *,
    step_ms: float = 1.0,
    uid: int = 1,
    source: int = layout.RUN_METADATA,
    **tables: pa.Table,
) -> LocalJob:
    """Return a job whose traced steps 1, 2, … have the given executions and last ``step_ms``.

    ``source``: kind of the records that the steps are from. ``tables`` are more tables of the job.
    """
    starts = [START_NS + int(number * 2 * step_ms * MS) for number in range(len(steps))]
    messages = [run_metadata(step, start) for step, start in zip(steps, starts, strict=True)]
    tables_of_traces: dict[str, Any] = trace_tables(graph_def, messages)
    traces = tables_of_traces["traces"].to_pylist()
    for number, (trace, start) in enumerate(zip(traces, starts, strict=True)):
        trace |= {"step": number + 1, "start_ns": start, "duration_ns": int(step_ms * MS), "source": source}
    write_job(store, uid, {**tables_of_traces, "traces": rows("traces", traces), **tables})
    return LocalStore(store).job("last")
