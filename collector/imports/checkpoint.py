"""Reads the values of variables from TensorFlow's checkpoints."""

import contextlib
from collections.abc import Callable, Collection, Iterator
from math import prod
from pathlib import Path
from typing import Any, Final, NamedTuple

from google.protobuf.message import DecodeError

from ...formats.pb_wire import varint
from ..decoders.columns import from_rows
from ..errors import TfprofError
from ..proto.checkpoint_pb2 import BundleEntryProto, BundleHeaderProto
from ..tfviews.tensors import SIZES, STRING, Tensor
from .checksum import crc32c, masked_crc
from .files import BYTES_MAX, BadFileError, NotRepresentableError, contents, text_of
from .sstable import DamagedTableError, entries
from .stacks import ImportedRows

_INDEX: Final = ".index"
#: A checksum covers the length of each string. Lengths up to this maximum have 4 bytes there,
#: larger ones 8 bytes.
_SHORT_LENGTH_MAX: Final = 0xFFFFFFFF
#: Type that the TF profiler gives to a node with a value in the checkpoint.
TYPE: Final = "_checkpoint_variables"


class SkippedTensor(NamedTuple):
    """A tensor that cannot be imported, and the reason."""

    name: str
    reason: str


class Checkpoint:
    """The checkpoint at ``prefix``.

    TfprofError ``io`` if it cannot be read, BadFileError if it is not a checkpoint.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix.removesuffix(_INDEX)
        self._shards = 0
        self._entries: dict[str, BundleEntryProto] = {}
        path = self._prefix + _INDEX
        if Path(self._prefix).is_file() and not Path(path).exists():
            raise BadFileError(f"{self._prefix} is not a checkpoint of format V2: it has no file {Path(path).name}")
        try:
            self._read(contents(path), path)
        except (DamagedTableError, DecodeError) as error:
            raise BadFileError(f"{path} is not the index of a checkpoint: {error}") from None

    @property
    def names(self) -> list[str]:
        """The names of all tensors, sorted."""
        return list(self._entries)

    def tensor(self, name: str) -> Tensor | SkippedTensor:
        """Return the tensor ``name``, or a SkippedTensor if it cannot be imported.

        BadFileError if the checkpoint is damaged or its data is incomplete, TfprofError ``io`` if
        the file with the data cannot be read, NotRepresentableError above 2 GiB.
        """
        entry = self._entries[name]
        if entry.slices:
            return SkippedTensor(name, "it is partitioned")
        if entry.dtype not in SIZES and entry.dtype != STRING:
            return SkippedTensor(name, f"its type is number {entry.dtype}, which the TF profiler does not show")
        shape = tuple(dim.size for dim in entry.shape.dim)
        size = prod(shape) * SIZES.get(entry.dtype, 0)
        # Each string takes at least one byte, for its length.
        fits = prod(shape) <= entry.size if entry.dtype == STRING else size == entry.size
        if min(shape, default=0) < 0 or not fits:
            raise BadFileError(f"{self._prefix}{_INDEX} is damaged: {name!r} has {entry.size} bytes for {shape}")
        if entry.size > BYTES_MAX:
            raise NotRepresentableError(f"{self._prefix}: {name!r} has {entry.size} bytes, more than 2 GiB")
        data = self._data(name, entry)
        if entry.crc32c != _checksum(entry.dtype, prod(shape), data):
            raise BadFileError(f"{self._prefix} is damaged: the checksum of {name!r} is wrong")
        return Tensor(entry.dtype, shape, data)

    def _read(self, data: bytes, path: str) -> None:
        index = dict(entries(data))
        header = BundleHeaderProto.FromString(index.pop(b"", b""))
        if header.num_shards < 1 or header.endianness:
            raise BadFileError(f"{path} is not the index of a supported checkpoint: {str(header).strip()!r}")
        self._shards = header.num_shards
        for key, value in _whole_tensors(index):
            self._entries[text_of(key, path)] = BundleEntryProto.FromString(value)

    def _data(self, name: str, entry: Any) -> bytes:
        path = Path(f"{self._prefix}.data-{entry.shard_id:05}-of-{self._shards:05}")
        try:
            with path.open("rb") as file:
                file.seek(entry.offset)
                data = file.read(entry.size)
        except OSError as error:
            raise TfprofError(f"cannot read {path}: {error.strerror}", slug="io") from None
        if len(data) < entry.size:
            raise BadFileError(f"{path} is truncated: {name!r} is incomplete")
        return data


def values(
    checkpoint: Checkpoint, names: Collection[str], on_skipped: Callable[[SkippedTensor], None]
) -> Iterator[ImportedRows]:
    """Yield the types of the nodes with a tensor, then the rows of each tensor.

    ``names``: the names of the nodes; tensors without a node are ignored. ``on_skipped`` is called
    with each tensor that cannot be imported.
    """
    node_names = [name for name in checkpoint.names if name in names]
    yield {"op_log": from_rows([(0, name, 0, [TYPE], False, []) for name in node_names], "op_log")}
    for name in node_names:
        tensor = checkpoint.tensor(name)
        if isinstance(tensor, SkippedTensor):
            on_skipped(tensor)
        else:
            yield {"tensors": from_rows([(name, tensor.dtype, tensor.shape, tensor.data)], "tensors")}


def _checksum(dtype: int, size: int, data: bytes) -> int:
    """Return the checksum of a tensor of ``size`` elements, as it is stored.

    The checksum of strings covers their lengths as fixed-size numbers, not as encoded in ``data``.
    """
    if dtype != STRING:
        return masked_crc(crc32c(data))
    crc = offset = 0
    with contextlib.suppress(ValueError, OverflowError):  # a damaged length: the checksum will not match
        for _ in range(size):
            length, offset = varint(data, offset)
            crc = crc32c(length.to_bytes(4 if length <= _SHORT_LENGTH_MAX else 8, "little"), crc)
    return masked_crc(crc32c(memoryview(data)[offset:], crc))


def _whole_tensors(index: dict[bytes, bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the entries of whole tensors; keys of the parts of a tensor begin with a zero byte."""
    yield from ((key, value) for key, value in index.items() if not key.startswith(b"\0"))
