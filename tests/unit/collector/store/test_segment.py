import random

import pyarrow.parquet as pq
import pytest
from fakes import random_rows
from fakes.rollups import rollup
from tfprof.collector.errors import StoreError
from tfprof.collector.store import segment
from tfprof.collector.store.devices import Devices
from tfprof.collector.store.schema import JOB_TABLES, NONE_ID
from tfprof.collector.store.step_times import histogram_of


@pytest.mark.parametrize("name", JOB_TABLES)
def test_a_table_is_read_back_unchanged(tmp_path, name):
    rng = random.Random(1)
    limits = {"uint16": 2**16 - 1, "uint32": NONE_ID, "uint64": 2**64 - 1, "int64": 2**63 - 1}
    values = {
        str(field.type): [0, *(rng.randint(0, limits[str(field.type)]) for _ in range(500))]
        for field in JOB_TABLES[name]
        if str(field.type) in limits
    }
    rows = [
        {field.name: values[str(field.type)][row] for field in JOB_TABLES[name] if str(field.type) in values}
        for row in range(501)
    ]
    table = random_rows.table(name, rows)
    path = tmp_path / segment.file_name(name, 3)
    path.write_bytes(segment.encode(name, table))
    assert segment.read(path, name) == table
    assert segment.read(path, name, []).num_columns == 0


def test_a_rollup_and_its_metadata_are_read_back(tmp_path):
    ops = random_rows.table("ops", random_rows.random_ops(0, 20, nodes=9))
    table, _ = rollup(ops, random_rows.traces(0, 20), random_rows.device_names(), random_rows.NO_CANONICAL)
    path = tmp_path / "rollup-000000.parquet"
    path.write_bytes(segment.encode("rollup", table, {"first_trace": 0, "last_trace": 19}))
    assert segment.read(path, "rollup") == table
    stored_metadata = segment.metadata(path)
    assert (stored_metadata["first_trace"], stored_metadata["last_trace"]) == (0, 19)


def test_integers_are_stored_as_differences(tmp_path):
    path = tmp_path / "ops-000000.parquet"
    path.write_bytes(segment.encode("ops", random_rows.table("ops", [random_rows.op(0, 0)] * 10)))
    group = pq.ParquetFile(path).metadata.row_group(0)
    for number in range(group.num_columns):
        column = group.column(number)
        assert "DELTA_BINARY_PACKED" in column.encodings, column.path_in_schema
        assert column.compression == "ZSTD"


def test_realistic_ops_take_thirteen_bytes_each_with_their_aggregates():
    rng = random.Random(3)
    nodes = [(int(rng.lognormvariate(10, 2)), rng.choice([0, 4, 65536, rng.randrange(10**7)])) for _ in range(300)]
    rows = []
    for trace in range(64):
        clock = 0
        for node, (typical, size) in enumerate(nodes):
            duration = int(typical * rng.lognormvariate(0, 0.3))
            clock += rng.randrange(duration + 500)
            row = random_rows.op(trace, node, label=node, thread=rng.randrange(4), start_ns=clock, op_end_ns=duration)
            row |= {"op_start_ns": rng.randrange(200, 2000)}
            row |= dict.fromkeys(("total_bytes", "peak_bytes", "output_bytes"), size)
            rows.append(row)
    ops = random_rows.table("ops", rows)
    table, _ = rollup(ops, random_rows.traces(0, 64), random_rows.device_names(), random_rows.NO_CANONICAL)
    sorted_ops = ops.sort_by([("node", "ascending"), ("device", "ascending"), ("trace", "ascending")])
    histogram = histogram_of(sorted_ops, random_rows.traces(0, 64), Devices(random_rows.device_names()))
    parts = {"ops": sorted_ops, "rollup": table, "times": histogram}
    sizes = {name: len(segment.encode(name, part)) for name, part in parts.items()}
    assert sum(sizes.values()) <= 13 * len(rows), sizes


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("ops-000012.parquet", ("ops", 12)),
        ("total-1000000.parquet", ("total", 1_000_000)),
        ("other-000001.parquet", None),
        (".ops-000001.parquet.tmp", None),
        ("ops-1.parquet", None),
    ],
)
def test_a_file_name_has_table_and_generation(name, parsed):
    assert segment.parse_name(name) == parsed


def test_an_error_about_damage_names_the_file(tmp_path):
    path = tmp_path / "ops-000000.parquet"
    path.write_bytes(b"")
    for read in (lambda: segment.read(path, "ops"), lambda: segment.metadata(path)):
        with pytest.raises(StoreError, match="ops-000000") as caught:
            read()
        assert caught.value.slug == "store-damaged"
