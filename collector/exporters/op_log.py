"""The format `op-log`: facts about a job's nodes as the OpLogProto of `write_op_log`."""

from collections.abc import Iterable
from typing import Any

from ..export.code_defs import CodeDefs
from ..proto.tfprof_log_pb2 import OpLogProto
from ..store.catalog import IMPORTED
from ..store.columns import column_list
from ..store.protocols import JobReader
from ..tfviews.encoding import octets
from ..tfviews.nodes import NO_FACTS
from .profile_proto import exact_nodes
from .request import Request


def op_log(job: JobReader) -> Any:
    """Return an OpLogProto of those nodes of ``job`` that have operations, types or a Python stack.

    They are in the order of the graph. StoreError ``no-data`` if nothing was traced.
    """
    facts_by_name = {node.name: node.facts for node in exact_nodes(job)}
    code_defs, message = CodeDefs(literal=job.info.state == IMPORTED), OpLogProto()
    for name in dict.fromkeys(column_list(job.table("graph_nodes", ["name"]), "name")):
        facts = facts_by_name.get(name, NO_FACTS)
        if facts.float_ops or facts.types or facts.stack is not None:
            entry = message.log_entries.add(name=octets(name), float_ops=facts.float_ops)
            entry.types.extend(map(octets, facts.types))
            if facts.stack is not None:
                entry.code_def.CopyFrom(code_defs.code_def(facts.stack))
    code_defs.fill_table(message.id_to_string)
    return message


def pieces(request: Request) -> Iterable[bytes]:
    """Return the bytes of the file, which covers all traced steps."""
    return [op_log(request.selection.jobs[0]).SerializeToString(deterministic=True)]
