"""Import of checkpoints: tensors, and the reasons for skipping or refusing them."""

from pathlib import Path

import pytest
from tfprof.collector.errors import TfprofError
from tfprof.collector.imports.checkpoint import Checkpoint, SkippedTensor, values
from tfprof.collector.imports.checksum import crc32c, masked_crc
from tfprof.collector.imports.files import BadFileError
from tfprof.collector.proto.checkpoint_pb2 import BundleEntryProto, BundleHeaderProto
from tfprof.collector.tfviews.tensors import FLOAT, INT64, STRING, Tensor
from unit.collector.imports.test_sstable import table

HALF = 19
#: The data of both shards.
DATA = bytes(range(32))
SHARDS = DATA[:16], DATA[16:]
#: The checksum of the first 8 bytes of the first shard, read as two strings of lengths 0 and 1.
STRINGS_CRC = crc32c((0).to_bytes(4, "little") + (1).to_bytes(4, "little") + DATA[2:8])


def entry(
    dtype: int, *shape: int, offset: int = 0, size: int = 0, shard: int = 0, slices: int = 0, crc: int | None = None
) -> bytes:
    crc = crc32c(SHARDS[shard][offset : offset + size]) if crc is None else crc
    message = BundleEntryProto(
        dtype=dtype, offset=offset, size=size, shard_id=shard, slices=[b""] * slices, crc32c=masked_crc(crc)
    )
    for dim in shape:
        message.shape.dim.add(size=dim)
    return message.SerializeToString()


def write(folder: Path, header: BundleHeaderProto | None = None, **entries: bytes) -> str:
    """Write a checkpoint with two data files of 16 bytes; return its prefix."""
    header = header or BundleHeaderProto(num_shards=2)
    pairs = [(b"", header.SerializeToString()), *((name.encode(), data) for name, data in sorted(entries.items()))]
    (folder / "model.index").write_bytes(table(pairs))
    for shard in range(2):
        (folder / f"model.data-0000{shard}-of-00002").write_bytes(SHARDS[shard])
    return str(folder / "model")


def test_a_tensor_lies_where_the_index_says(tmp_path: Path) -> None:
    prefix = write(tmp_path, a=entry(FLOAT, 1, 2, offset=4, size=8), b=entry(INT64, offset=8, size=8, shard=1))
    for path in (prefix, prefix + ".index"):
        checkpoint = Checkpoint(path)
        assert checkpoint.names == ["a", "b"]
        assert checkpoint.tensor("a") == Tensor(FLOAT, (1, 2), bytes(range(4, 12)))
        assert checkpoint.tensor("b") == Tensor(INT64, (), bytes(range(24, 32)))


def test_values_of_nodes_become_rows_and_the_nodes_are_marked(tmp_path: Path) -> None:
    prefix = write(
        tmp_path,
        a=entry(FLOAT, 4, size=16),
        h=entry(HALF, 8, size=16),
        p=entry(FLOAT, 4, slices=2),
        s=entry(STRING, 2, size=8, crc=STRINGS_CRC),
        x=entry(FLOAT, 4, size=16),
    )
    skipped: list[SkippedTensor] = []
    type_rows, *tensor_rows = values(Checkpoint(prefix), {"a", "h", "p", "s", "other"}, skipped.append)
    types = [(row["name"], row["types"]) for row in type_rows["op_log"].to_pylist()]
    assert types == [(name, ["_checkpoint_variables"]) for name in ("a", "h", "p", "s")]
    rows = [row for tables in tensor_rows for row in tables["tensors"].to_pylist()]
    assert [(row["name"], row["dtype"], row["shape"], len(row["data"])) for row in rows] == [
        ("a", FLOAT, [4], 16),
        ("s", STRING, [2], 8),
    ]
    assert [tensor.name for tensor in skipped] == ["h", "p"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (entry(FLOAT, 4, size=12), "has 12 bytes for (4,)"),
        (entry(FLOAT, -1, size=4), "has 4 bytes for (-1,)"),
        (entry(STRING, 9, size=8), "has 8 bytes for (9,)"),
        (entry(FLOAT, 4, offset=8, size=16), "is incomplete"),
        (entry(STRING, 2, offset=8, size=16), "is incomplete"),
        (entry(FLOAT, 4, size=16, crc=5), "the checksum of 'a' is wrong"),
        (entry(STRING, 2, size=8, crc=STRINGS_CRC ^ 1), "the checksum of 'a' is wrong"),
        (entry(STRING, 2, size=8), "the checksum of 'a' is wrong"),
    ],
)
def test_damaged_tensors_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(BadFileError) as caught:
        Checkpoint(write(tmp_path, a=data)).tensor("a")
    assert message in str(caught.value)


@pytest.mark.parametrize("header", [BundleHeaderProto(), BundleHeaderProto(num_shards=1, endianness=1)])
def test_an_unsupported_index_is_refused(tmp_path: Path, header: BundleHeaderProto) -> None:
    with pytest.raises(BadFileError, match="not the index of a supported checkpoint"):
        Checkpoint(write(tmp_path, header))


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(TfprofError, match=r"cannot read .*none.index: No such file or directory \[io\]"):
        Checkpoint(str(tmp_path / "none"))
    prefix = write(tmp_path, a=entry(FLOAT, 4, size=16, shard=1))
    (tmp_path / "model.data-00001-of-00002").unlink()
    with pytest.raises(TfprofError, match=r"cannot read .*model.data-00001-of-00002"):
        Checkpoint(prefix).tensor("a")


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"first format")
    with pytest.raises(BadFileError, match="not a checkpoint of format V2"):
        Checkpoint(str(tmp_path / "old"))
    (tmp_path / "bad.index").write_bytes(b"x" * 100)
    with pytest.raises(BadFileError, match="not the index of a checkpoint: it lacks the footer of a table"):
        Checkpoint(str(tmp_path / "bad"))
