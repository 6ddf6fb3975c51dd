"""The tables `host`, `events` and `graph`."""

from collections.abc import Iterator

import pyarrow as pa
from google.protobuf.message import DecodeError

from ..decoders.proto.graph_pb2 import NodeDef
from ..query.alerts import alert_rows
from ..query.job_selection import Selection
from ..store.columns import row_tuples
from ..tfviews.places import own_frame
from ..tfviews.stacks import FRAME_COLUMNS, stacks
from ..traces.curves import curves
from ..traces.moments import moments
from .columns import EVENTS, GRAPH, HOST
from .parts import table_of_job


def host(selection: Selection) -> Iterator[pa.Table]:
    """Yield the samples of each job and of its host, a row for each value."""
    for job in selection.jobs:
        rows = [
            (time_ns, curve.name, curve.unit, value)
            for curve in curves(0, job, job.table("samples"))
            for time_ns, value in zip(curve.times_ns, curve.values, strict=True)
        ]
        yield table_of_job(job, rows, HOST)


def events(selection: Selection) -> Iterator[pa.Table]:
    """Yield the events and alerts of each job, in order of time."""
    for job in selection.jobs:
        yield table_of_job(job, moments(job, job.table("events"), alert_rows(job)), EVENTS)


def graph(selection: Selection) -> Iterator[pa.Table]:
    """Yield the nodes of the graphs of each job."""
    for job in selection.jobs:
        stack_of = stacks(job.table("frames", FRAME_COLUMNS), job.table("stacks"))
        rows = []
        for graph_number, name, op, device, node_def in row_tuples(job.table("graph_nodes")):
            frame = own_frame(stack_of.get(name))
            where = (frame.file, frame.line, frame.function) if frame else ("", 0, "")
            rows.append((graph_number, name, op, device, _inputs(node_def), *where))
        yield table_of_job(job, rows, GRAPH)


def _inputs(node_def: bytes) -> list[str]:
    """Return the inputs in a serialized NodeDef; a malformed one has none."""
    try:
        return list(NodeDef.FromString(node_def).input)
    except DecodeError:
        return []
