"""Output signatures: types and shapes of an op execution's outputs, encoded as comparable bytes."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from ...formats.pb_wire import encode_varint, varint
from ..errors import FormatError

#: Flags of an output (see OpOutput); SHAPED: its shape is known.
DESCRIBED, SHAPED, ALLOCATED = 1, 2, 4

_WORD: Final = 1 << 32


class OpOutput(NamedTuple):
    """One output; ``shape`` is a serialized TensorShapeProto (empty: a scalar), None if unknown.

    ``described``: the output has a tensor_description; ``allocated``: its tensor_description has an
    allocation_description.
    """

    slot: int
    dtype: int  # number of a DataType
    shape: bytes | None
    described: bool
    allocated: bool


def encode(outputs: Iterable[OpOutput]) -> bytes:
    """Return the signature of ``outputs``, empty if there are none."""
    signature = bytearray()
    for slot, dtype, shape, described, allocated in outputs:
        flags = DESCRIBED * described | SHAPED * (shape is not None) | ALLOCATED * allocated
        signature += encode_varint(slot % _WORD) + encode_varint(dtype) + bytes((flags,))
        if shape is not None:
            signature += encode_varint(len(shape)) + shape
    return bytes(signature)


def decode(signature: bytes) -> list[OpOutput]:
    """Return the outputs in ``signature``; FormatError if it is malformed."""
    outputs = []
    offset = 0
    try:
        while offset < len(signature):
            output, offset = _output(signature, offset)
            outputs.append(output)
    except ValueError:
        raise FormatError("an output signature is truncated") from None
    return outputs


def _output(signature: bytes, offset: int) -> tuple[OpOutput, int]:
    """Return the output at ``offset`` and its end; ValueError if it is truncated."""
    slot, offset = varint(signature, offset)
    dtype, offset = varint(signature, offset)
    flags, offset = varint(signature, offset)
    shape = None
    if flags & SHAPED:
        length, start = varint(signature, offset)
        offset = start + length
        if offset > len(signature):
            raise ValueError
        shape = signature[start:offset]
    signed_slot = slot - _WORD if slot >= _WORD // 2 else slot
    return OpOutput(signed_slot, dtype, shape, bool(flags & DESCRIBED), bool(flags & ALLOCATED)), offset
