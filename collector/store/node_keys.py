"""Packs node and device into one number, which sorts by node, then by device."""

from typing import Any, Final

import pyarrow as pa

from .columns import pc
from .schema import NONE_ID

_SHIFT: Final = pa.scalar(32, pa.uint64())
_DEVICE_MASK: Final = pa.scalar(NONE_ID, pa.uint64())


def pack(node: Any, device: Any) -> Any:
    """Return the keys of columns of node and device ids."""
    return pc.bit_wise_or(pc.shift_left(node.cast(pa.uint64()), _SHIFT), device.cast(pa.uint64()))


def node_of(key: Any) -> Any:
    """Return the node ids in keys."""
    return pc.shift_right(key, _SHIFT).cast(pa.uint32())


def device_of(key: Any) -> Any:
    """Return the device ids in keys."""
    return pc.bit_wise_and(key, _DEVICE_MASK).cast(pa.uint32())
