"""The format `op-log`: facts about a job's nodes as TensorFlow's OpLogProto."""

from collections.abc import Iterable
from typing import Any

from ..export.op_log import op_log as op_log_of
from ..query.recorded_job import OpLogNodes
from ..store.protocols import JobReader
from .request import Request


def op_log(job: JobReader) -> Any:
    """Return an OpLogProto of the nodes of ``job``, in the order of the graph.

    Raises StoreError ``no-data`` if nothing was traced.
    """
    op_log_nodes = OpLogNodes.read(job)
    return op_log_of(op_log_nodes.names, op_log_nodes.nodes, literal=op_log_nodes.literal)


def pieces(request: Request) -> Iterable[bytes]:
    """Return the bytes of the file, which covers all traced steps."""
    return [op_log(request.selection.jobs[0]).SerializeToString(deterministic=True)]
