"""Merging of the segments of small tables."""

import pyarrow as pa
import pytest
from fakes import random_rows
from hypothesis import given
from hypothesis import strategies as st
from tfprof.collector.store import segment, small_segments
from tfprof.collector.store.schema import JOB_TABLES
from tfprof.collector.store.writer import LocalStoreWriter

UID = 0xABC


def seal_generations(folder, tables, in_force=()):
    """Seal each table as a generation; return the generations in force after each sealing."""
    history = []
    for generation, table in enumerate(tables, start=len(in_force)):
        data, unmerged = small_segments.merged_segment(folder, "traces", table, in_force)
        (folder / segment.file_name("traces", generation)).write_bytes(data)
        in_force = (*unmerged, generation)
        history.append(in_force)
    return history


def read_segments(folder, in_force):
    return pa.concat_tables(segment.read(folder / segment.file_name("traces", part), "traces") for part in in_force)


@given(st.lists(st.integers(1, 200), min_size=1, max_size=40))
def test_rows_stay_in_order_and_segments_stay_few(tmp_path_factory, sizes):
    folder = tmp_path_factory.mktemp("segments")
    all_traces = random_rows.traces(0, sum(sizes))
    starts = [sum(sizes[:at]) for at in range(len(sizes))]
    history = seal_generations(
        folder, [all_traces.slice(start, size) for start, size in zip(starts, sizes, strict=True)]
    )
    for in_force, start, size in zip(history, starts, sizes, strict=True):
        assert read_segments(folder, in_force) == all_traces.slice(0, start + size)
        assert len(in_force) <= len(sizes).bit_length() + 1


def test_a_large_segment_is_not_merged(tmp_path, monkeypatch):
    all_traces = random_rows.traces(0, 8)
    size = len(segment.encode("traces", all_traces.slice(0, 1)))
    monkeypatch.setattr(small_segments, "FULL_BYTES", 2 * size + size // 2)
    (*_, in_force) = seal_generations(tmp_path, [all_traces.slice(at, 1) for at in range(8)])
    assert len(in_force) > 2
    assert read_segments(tmp_path, in_force) == all_traces


def test_a_damaged_segment_stays_in_force(tmp_path):
    all_traces = random_rows.traces(0, 3)
    (in_force,) = seal_generations(tmp_path, [all_traces.slice(0, 1)])
    (tmp_path / "traces-000000.parquet").write_bytes(b"PAR1 rubbish PAR1")
    (in_force,) = seal_generations(tmp_path, [all_traces.slice(1, 1)], in_force)
    assert in_force == (0, 1)
    assert segment.read(tmp_path / "traces-000001.parquet", "traces") == all_traces.slice(1, 1)


@pytest.mark.parametrize("name", sorted(JOB_TABLES))
def test_every_table_is_whole_after_many_generations(tmp_path, name):
    store = LocalStoreWriter(tmp_path / "store", "here")
    job = store.job(UID)
    for generation in range(9):
        job.append({name: random_rows.table(name, [{}] * (generation + 1))})
        job.seal()
    files = [file for file in random_rows.sorted_names(job.folder) if file.startswith(f"{name}-")]
    assert len(files) < 5 if small_segments.is_merged(name) else len(files) == 9
    assert job.table(name).num_rows == sum(range(10)) == job.info.rows[name]
    store.close()
    reopened = LocalStoreWriter(tmp_path / "store", "here")
    assert reopened.job(UID).table(name).num_rows == sum(range(10))
    reopened.close()
