"""What a job says of its nodes besides their graph, as the op log that TensorFlow's `write_op_log` would write."""

from typing import Any

from ..proto.tfprof_log_pb2 import OpLogProto
from ..store.columns import listed
from ..store.reader import Job
from ..tfviews.encoding import octets
from ..tfviews.nodes import NO_FACTS
from .code_defs import CodeDefs
from .profile_proto import exact_nodes


def op_log(job: Job) -> Any:
    """Return an OpLogProto with an entry a node, in the order of the graph: operations, types, Python stack.

    StoreError ``no-data`` where nothing was traced.
    """
    by_name = {node.name: node.facts for node in exact_nodes(job)}
    codes, message = CodeDefs.of(job.info), OpLogProto()
    for name in dict.fromkeys(listed(job.table("graph_nodes", ["name"]), "name")):
        facts = by_name.get(name, NO_FACTS)
        if facts.float_ops or facts.types or facts.stack is not None:
            entry = message.log_entries.add(name=octets(name), float_ops=facts.float_ops)
            entry.types.extend(map(octets, facts.types))
            if facts.stack is not None:
                entry.code_def.CopyFrom(codes.code(facts.stack))
    codes.put(message.id_to_string)
    return message
