"""What XLA compiled: the TensorFlow op that each HLO instruction of a program came from."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from .proto.hlo_pb2 import HloProto

#: Name of the plane, and of the stat of its event metadata, that have the compiled programs.
PLANE: Final = b"/host:metadata"
PROGRAM_STAT: Final = b"Hlo Proto"
#: The instructions of larger programs keep their own names (bytes).
PROGRAM_MAX: Final = 32 << 20

_FUSION: Final = b"fusion"
#: Computations within a fusion. Their instructions have no events.
_FUSED: Final = (b"fused_", b"wrapped_")
_NUMBER: Final = re.compile(rb"(?:\.\d+)+\Z")
_RUNS_OTHERS: Final = re.compile(rb"(?:while|conditional|call)(?:\.\d+)*\Z")


class Origin(NamedTuple):
    """The TensorFlow op that an HLO instruction came from.

    ``op_type`` and ``op_name`` are empty if it came from none, such as a copy that XLA added. A
    fusion came from the last one of its ops.
    """

    op_type: bytes = b""
    op_name: bytes = b""
    is_fusion: bool = False


def origins(program: bytes) -> dict[bytes, Origin]:
    """Return the origins of a program's instructions by name, {} if it is damaged or too large."""
    if len(program) > PROGRAM_MAX:
        return {}
    try:
        module = HloProto.FromString(program).hlo_module
    except DecodeError:
        return {}
    return {
        instruction.name: Origin(
            instruction.metadata.op_type, instruction.metadata.op_name, instruction.opcode == _FUSION
        )
        for computation in module.computations
        if not computation.name.startswith(_FUSED)
        for instruction in computation.instructions
    }


def runs_others(instruction: bytes) -> bool:
    """Whether an instruction only runs others, which have events of their own."""
    return _RUNS_OTHERS.match(instruction) is not None


def node_and_label(instruction: bytes, program: Mapping[bytes, Origin]) -> tuple[bytes, bytes]:
    """Return the node and the label of the executions of an HLO instruction.

    The node is the TensorFlow op that it came from, and the label the op's type, followed by
    `_fusion` if other ops were fused with it. Without such an op, both are the instruction's name,
    the label without number.
    """
    op_type, op_name, is_fusion = program.get(instruction, Origin())
    if not (op_type and op_name):
        return instruction, _NUMBER.sub(b"", instruction)
    return op_name, op_type + b"_" + _FUSION if is_fusion else op_type
