"""Which devices the TF profiler accounts a node to, by their names."""

import re
from typing import Any, Final

import pyarrow as pa

from .columns import pc
from .schema import DEVICE, NAMES

_CANONICAL: Final = re.compile(rb".*/(device:gpu|gpu|device:cpu|cpu):[0-9]+", re.DOTALL)
_GPU: Final = re.compile(rb"gpu:[0-9]+")

#: Iterators of tf.data have a device of their own: the op that waits for them has their time already.
ITERATOR_DEVICE: Final = b"/host:CPU/tf.data"

#: What ``accelerator`` tells: that a device is a GPU's, and that it has the times of its kernels.
GPU, STREAMS = 1, 2


class Devices:
    """The devices of a job by id; ids of no device in ``names`` are neither canonical nor like another."""

    def __init__(self, names: pa.Table) -> None:
        """Take the names of kind DEVICE from ``names`` (schema.NAMES)."""
        rows = only(names)
        pairs: Any = zip(rows["id"].to_pylist(), rows["text"].to_pylist(), strict=True)
        texts = {number: text.lower() for number, text in pairs}
        first: dict[bytes, int] = {}
        for number, text in sorted(texts.items()):
            first.setdefault(text, number)
        self._plain = [(number, first[text]) for number, text in texts.items() if first[text] != number]
        self._canonical = pa.array(
            [number for number, text in sorted(texts.items()) if is_canonical(text)], pa.uint32()
        )

    @property
    def flags(self) -> bytes:
        """Whether it is a CPU or GPU that a node can belong to: 1 or 0 by device id; 0 for ids behind the end."""
        known: list[Any] = self._canonical.to_pylist()
        flags = bytearray(max(known, default=-1) + 1)
        for number in known:
            flags[number] = 1
        return bytes(flags)

    def plain(self, device: Any) -> Any:
        """Return ``device`` with one id for all spellings of a name."""
        for number, first in self._plain:
            device = pc.if_else(pc.equal(device, pa.scalar(number, pa.uint32())), pa.scalar(first, pa.uint32()), device)
        return device

    def canonical(self, device: Any) -> Any:
        """Return for each id whether it is a CPU or GPU that a node can belong to."""
        return pc.is_in(device, value_set=self._canonical)


def is_canonical(name: bytes) -> bool:
    """Whether the lower-case device ``name`` is a CPU or GPU that a node can belong to."""
    return _CANONICAL.fullmatch(name) is not None


def host_device(name: bytes) -> bytes:
    """Return the CPU from which the lower-case device ``name`` is driven, as in the TF profiler: a CPU is its own."""
    return _GPU.sub(b"cpu:0", name)


def accelerator(name: bytes) -> int:
    """Return GPU and STREAMS, added up, as far as the device ``name`` is one; a step with GPU alone lacks its kernels' times."""
    lower = name.lower()
    return (GPU | STREAMS * (b"stream:all" in lower)) if b"gpu" in lower else 0


def only(names: pa.Table) -> pa.Table:
    """Return the rows of ``names`` that name devices."""
    return names.filter(pc.equal(names["kind"], DEVICE)) if names.num_rows else NAMES.empty_table()
