"""What XLA compiled: the TensorFlow op that each HLO instruction of a program came from."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

import pyarrow as pa
from google.protobuf.message import DecodeError

from .columns import from_columns
from .proto.hlo_pb2 import HloInstructionProto, HloModuleProto, HloProto

#: Name of the plane with the compiled programs, and of the stat of its event metadata that holds a
#: program.
PLANE: Final = b"/host:metadata"
PROGRAM_STAT: Final = b"Hlo Proto"
#: Maximum size of a program (bytes). The instructions of larger ones keep their own names.
PROGRAM_MAX: Final = 32 << 20

_FUSION: Final = b"fusion"
#: Instructions that never run.
_STATIC: Final = frozenset({b"bitcast", b"constant", b"get-tuple-element", b"parameter", b"tuple"})
#: Computations within a fusion. Their instructions have no events.
_FUSED: Final = (b"fused_", b"wrapped_")
_NUMBER: Final = re.compile(rb"(?:\.\d+)+\Z")
#: Calls of functions that XLA inlined, in front of the names of their ops.
INLINED: Final = re.compile(rb"(?:(?:Stateful)?PartitionedCall(?:_\d+)?/)+(?=.)")
_RUNS_OTHERS: Final = re.compile(rb"(?:while|conditional|call)(?:\.\d+)*\Z")


class Origin(NamedTuple):
    """The TensorFlow op that an HLO instruction came from.

    ``op_type`` and ``op_name`` are empty if it came from no op, such as a copy that XLA added. A
    fusion came from the last one of its ops.
    """

    op_type: bytes = b""
    op_name: bytes = b""
    is_fusion: bool = False


def origins(program: bytes) -> dict[bytes, Origin]:
    """Return the origins of a program's instructions by name, {} if it is damaged or too large."""
    return {
        instruction.name: Origin(
            instruction.metadata.op_type, instruction.metadata.op_name, instruction.opcode == _FUSION
        )
        for computation in _module(program).computations
        if not computation.name.startswith(_FUSED)
        for instruction in computation.instructions
    }


def program_rows(module: bytes, program: bytes) -> pa.RecordBatch:
    """Return the ops of a program as PROGRAMS rows.

    The rows are the TensorFlow ops that went into the program, and the instructions that came from
    no op. There are no rows if the program is damaged or too large.
    """
    computations = _module(program).computations
    callers = {
        called: instruction
        for computation in computations
        for instruction in computation.instructions
        if not runs_others(instruction.opcode)
        for called in instruction.called_computation_ids
    }
    # of each instruction the node that has its executions: '' if it has some, None if there is none
    ops: dict[tuple[bytes, bytes], list[bytes | None]] = {}
    for computation in computations:
        caller = callers.get(computation.id)
        fusion = _node(caller) if caller is not None and caller.opcode == _FUSION else None
        for instruction in computation.instructions:
            node = _node(instruction)
            is_added = node == instruction.name
            runs = caller is None and instruction.opcode not in _STATIC
            if runs or not is_added:
                op = b"" if is_added else instruction.metadata.op_type
                ops.setdefault((node, op), []).append(b"" if runs else fusion)
    texts = [
        (module, node, op, b"" if b"" in into or node in into else next(filter(None, into), b""), len(into))
        for (node, op), into in ops.items()
    ]
    columns = list(zip(*texts, strict=True)) or [()] * 5
    names = [[text.decode("utf-8", "replace") for text in column] for column in columns[:4]]
    return from_columns((*names, list(columns[4])), "programs")


def _module(program: bytes) -> HloModuleProto:
    """Return the module of a program, an empty one if it is damaged or too large."""
    if len(program) > PROGRAM_MAX:
        return HloModuleProto()
    try:
        return HloProto.FromString(program).hlo_module
    except DecodeError:
        return HloModuleProto()


def _node(instruction: HloInstructionProto) -> bytes:
    """Return the name of the node whose executions are those of ``instruction``."""
    metadata = instruction.metadata
    return INLINED.sub(b"", metadata.op_name, count=1) if metadata.op_type and metadata.op_name else instruction.name


def runs_others(instruction: bytes) -> bool:
    """Whether an instruction only runs others, which have events of their own."""
    return _RUNS_OTHERS.match(instruction) is not None


def node_and_label(instruction: bytes, program: Mapping[bytes, Origin]) -> tuple[bytes, bytes]:
    """Return the node and the label of the executions of an HLO instruction.

    The node is the TensorFlow op that the instruction came from. The label is the op's type,
    followed by `_fusion` if other ops were fused with it. If it came from no op, the node is the
    instruction's name, and the label is that name without its number.
    """
    op_type, op_name, is_fusion = program.get(instruction, Origin())
    if not (op_type and op_name):
        return instruction, _NUMBER.sub(b"", instruction)
    return op_name, op_type + b"_" + _FUSION if is_fusion else op_type
