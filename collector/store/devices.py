"""Classifies devices by name, by the rules of the TF profiler."""

import re
from typing import Any, Final

import pyarrow as pa

from .columns import pc
from .schema import DEVICE, NAMES

_CANONICAL: Final = re.compile(rb".*/(device:gpu|gpu|device:cpu|cpu):[0-9]+", re.DOTALL)
_GPU: Final = re.compile(rb"gpu:[0-9]+")

#: Device of tf.data iterators. It cannot be canonical, since the op that waits for an iterator
#: already has the iterator's time.
ITERATOR_DEVICE: Final = b"/host:CPU/tf.data"

#: Device of the ops of functions that tf.data calls, and the scope that is put before their names.
#: These ops run beside the step. Their own names may be those of ops of the step.
PIPELINE_DEVICE: Final = b"/tf.data/device:CPU:0"
PIPELINE_SCOPE: Final = b"tf.data/"
#: The devices of the input pipeline.
INPUT_DEVICES: Final = (ITERATOR_DEVICE, PIPELINE_DEVICE)

#: Flags of ``accelerator``: the device is a GPU; the device has the times of a GPU's kernels.
GPU, STREAMS = 1, 2


class Devices:
    """The devices of a job by id; an id without a name is a device that cannot be canonical."""

    def __init__(self, names: pa.Table) -> None:
        """Read the rows of kind DEVICE in ``names`` (schema.NAMES)."""
        rows = device_rows(names)
        pairs: Any = zip(rows["id"].to_pylist(), rows["text"].to_pylist(), strict=True)
        texts = {number: text.lower() for number, text in pairs}
        first_ids: dict[bytes, int] = {}
        for number, text in sorted(texts.items()):
            first_ids.setdefault(text, number)
        #: Id of a name that differs only in case from an earlier name -> the id of the earlier
        #: name.
        self.spellings = [(number, first_ids[text]) for number, text in texts.items() if first_ids[text] != number]
        self._canonical = pa.array(
            [number for number, text in sorted(texts.items()) if can_be_canonical(text)], pa.uint32()
        )

    @property
    def canonical_ids(self) -> list[int]:
        """The ids of CPUs and GPUs, to which nodes can belong, ascending."""
        ids: list[Any] = self._canonical.to_pylist()
        return ids

    @property
    def canonical_flags(self) -> bytes:
        """By device id: 1 for a CPU or GPU, to which nodes can belong, else 0.

        Ids beyond the end count as 0.
        """
        flags = bytearray(max(self.canonical_ids, default=-1) + 1)
        for number in self.canonical_ids:
            flags[number] = 1
        return bytes(flags)

    def unified(self, device: Any) -> Any:
        """Return the ids ``device``, with one id for all names that differ only in case."""
        for number, first in self.spellings:
            device = pc.if_else(pc.equal(device, pa.scalar(number, pa.uint32())), pa.scalar(first, pa.uint32()), device)
        return device

    def can_be_canonical(self, device: Any) -> Any:
        """Return for each id whether it is a CPU or GPU, to which nodes can belong."""
        return pc.is_in(device, value_set=self._canonical)


def can_be_canonical(name: bytes) -> bool:
    """Whether the lower-case device ``name`` is a CPU or GPU, to which nodes can belong."""
    return _CANONICAL.fullmatch(name) is not None


def host_device(name: bytes) -> bytes:
    """Return the host CPU of the lower-case device ``name``, as in the TF profiler.

    Any device but a GPU is its own host.
    """
    return _GPU.sub(b"cpu:0", name)


def accelerator(name: bytes) -> int:
    """Return the flags GPU and STREAMS of the device ``name``, 0 if it is not a GPU.

    A step whose devices have GPU but not STREAMS has no kernel times.
    """
    lower = name.lower()
    return (GPU | STREAMS * (b"stream:all" in lower)) if b"gpu" in lower else 0


def device_rows(names: pa.Table) -> pa.Table:
    """Return the rows of ``names`` that name devices."""
    return names.filter(pc.equal(names["kind"], DEVICE)) if names.num_rows else NAMES.empty_table()
