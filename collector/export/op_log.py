"""Exports the op log of a job, like TensorFlow's `write_op_log`."""

from collections.abc import Iterable, Sequence
from typing import Any

from ..proto.tfprof_log_pb2 import OpLogProto
from ..tfviews.encoding import octets
from ..tfviews.nodes import NO_FACTS, Node
from .code_defs import CodeDefs


def op_log(names: Iterable[str], nodes: Sequence[Node], *, literal: bool = False) -> Any:
    """Return an OpLogProto of the nodes ``names`` that have operations, types or a Python stack.

    ``literal``: as for `CodeDefs`.
    """
    facts_by_name = {node.name: node.facts for node in nodes}
    code_defs, message = CodeDefs(literal=literal), OpLogProto()
    for name in names:
        facts = facts_by_name.get(name, NO_FACTS)
        if facts.float_ops or facts.types or facts.stack is not None:
            entry = message.log_entries.add(name=octets(name), float_ops=facts.float_ops)
            entry.types.extend(map(octets, facts.types))
            if facts.stack is not None:
                entry.code_def.CopyFrom(code_defs.code_def(facts.stack))
    code_defs.fill_table(message.id_to_string)
    return message
