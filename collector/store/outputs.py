"""Output signatures: what the outputs of an op execution are, as bytes that are equal where the outputs are alike."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from tfprof.collector.errors import FormatError

DESCRIBED, SHAPED, ALLOCATED = 1, 2, 4

_WORD: Final = 1 << 32


class Output(NamedTuple):
    """One output; ``shape`` is a serialised TensorShapeProto (empty: a scalar), None where it was not told.

    ``described``: it had a tensor_description; ``allocated``: that had an allocation_description.
    """

    slot: int
    dtype: int  # number of a DataType
    shape: bytes | None
    described: bool
    allocated: bool


def encode(outputs: Iterable[Output]) -> bytes:
    """Return the signature of ``outputs``, empty without any."""
    signature = bytearray()
    for slot, dtype, shape, described, allocated in outputs:
        flags = DESCRIBED * described | SHAPED * (shape is not None) | ALLOCATED * allocated
        signature += _varint(slot % _WORD) + _varint(dtype) + bytes((flags,))
        if shape is not None:
            signature += _varint(len(shape)) + shape
    return bytes(signature)


def decode(signature: bytes) -> list[Output]:
    """Return the outputs of ``signature``; FormatError when it is none."""
    outputs = []
    at = 0
    while at < len(signature):
        slot, at = _number(signature, at)
        dtype, at = _number(signature, at)
        flags, at = _number(signature, at)
        shape = None
        if flags & SHAPED:
            length, start = _number(signature, at)
            at = start + length
            if at > len(signature):
                raise FormatError("an output signature that is cut short")
            shape = signature[start:at]
        signed = slot - _WORD if slot >= _WORD // 2 else slot
        outputs.append(Output(signed, dtype, shape, bool(flags & DESCRIBED), bool(flags & ALLOCATED)))
    return outputs


def _varint(value: int) -> bytes:
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return the varint at ``at`` and where it ends."""
    value = shift = 0
    while at < len(data):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # the last group of a varint
            return value, at
        shift += 7
    raise FormatError("an output signature that is cut short")
