"""Decoding of profiler sessions into the op executions of their step.

Tests collector/decoders/session.py.
"""

from pathlib import Path

import pytest
from fakes import step_stats
from fakes.xspaces import BEGAN_NS, Plane, session
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tfprof.collector.decoders import xspace as xspace_module
from tfprof.collector.decoders.decode import DecodedStep
from tfprof.collector.decoders.interner import Interner, name_table
from tfprof.collector.decoders.proto.xplane_pb2 import XEvent, XSpace
from tfprof.collector.decoders.xspace import SessionRows, xspace
from tfprof.collector.errors import DecodeError
from tfprof.collector.ingest.parsing import TracedStep, trace_of, trace_rows
from tfprof.collector.store.schema import DEVICE, LABEL, NODE, NONE_ID, OPS
from tfprof.formats import layout

DATA = Path(__file__).parents[3] / "contract" / "data"
SAMPLES = [path.read_bytes() for path in sorted(DATA.glob("*.xspace"))]


def _read(space: XSpace, interner: Interner | None = None, trace: int = 0) -> SessionRows:
    session_rows = xspace(space.SerializeToString(), 0, trace, interner or Interner())
    session_rows.ops.validate(full=True)
    return session_rows


def test_every_op_of_a_session_is_in_its_step() -> None:
    plane = Plane().line(*[(b"n%d:Mul" % at, at, at + 5) for at in (10, 18)])
    interner = Interner()
    session_rows = _read(session(plane), interner, 4)
    rows = [
        (row["trace"], interner.table.get(NODE, row["node"]), row["start_ns"]) for row in session_rows.ops.to_pylist()
    ]
    assert rows == [(4, b"n10", 0), (4, b"n18", 8000)]
    assert session_rows.step == DecodedStep(2, BEGAN_NS + 10_000, 0, None)


def test_a_step_has_the_flags_of_its_accelerators() -> None:
    host = Plane().line((b"a:Mul", 10, 15), (b"b:Mul", 30, 35))
    gpu = Plane(b"/device:GPU:0").line((b"kernel", 31, 32), name=b"Stream #1")
    tpu = Plane(b"/device:TPU:0").line((b"fusion", 11, 12), name=b"XLA Ops")
    steps = [_read(session(*planes)).step for planes in ((host,), (host, tpu), (host, gpu))]
    assert [(step.rows, step.accelerator) for step in steps] == [(2, 0), (3, 0), (3, 3)]


def test_rows_have_node_device_time_and_memory() -> None:
    stats = {b"allocation_bytes": 64, b"addr": 1, b"allocator_name": b"cpu"}
    plane = Plane().line((b"a:Mul", 10, 15), (b"MemoryAllocation", 11, 11, stats), thread=3)
    interner = Interner()
    (row,) = _read(session(plane), interner).ops.to_pylist()
    assert interner.table.get(DEVICE, row["device"]).endswith(b"device:CPU:0")
    assert interner.table.get(LABEL, row["label"]) == b"Mul"
    assert (row["thread"], row["op_start_ns"], row["op_end_ns"]) == (3, 0, 5000)
    assert (row["total_bytes"], row["peak_bytes"], row["live_bytes"], row["allocator"]) == (64, 64, 64, 0)
    assert (row["outputs"], row["start_us_fix"], row["end_us_fix"]) == (NONE_ID, 0, 0)


def test_a_step_without_ops_has_no_rows_and_no_names() -> None:
    interner = Interner()
    session_rows = _read(session(Plane()), interner)
    assert (session_rows.ops.num_rows, session_rows.ops.schema) == (0, OPS)
    assert session_rows.step == DecodedStep(0, 0, 0, None)
    assert interner.new_names().num_rows == 0


@pytest.mark.parametrize("data", [b"\xff", SAMPLES[0][:-1], b"\x0a\x05\x0a"])
def test_other_data_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError, match="not an XSpace"):
        xspace(data, 0, 0, Interner())


def test_large_sessions_are_refused_before_parsing(monkeypatch: pytest.MonkeyPatch) -> None:
    data = session(Plane().line(*[(b"a:Mul", at, at) for at in range(11)])).SerializeToString()
    monkeypatch.setattr(xspace_module, "EVENTS_MAX", 10)
    with pytest.raises(DecodeError, match="more than 10 events"):
        xspace(data, 0, 0, Interner())
    monkeypatch.setattr(xspace_module, "BYTES_MAX", len(data) - 1)
    with pytest.raises(DecodeError, match="bytes"):
        xspace(data, 0, 0, Interner())


def test_a_session_with_too_many_names_adds_no_names() -> None:
    interner = Interner(name_table(names_max=3, text_max=1 << 20))
    interner.id(NODE, b"old")
    plane = Plane().line(*[(b"n%d:Mul" % at, at, at + 1) for at in range(4)])
    with pytest.raises(DecodeError) as caught:
        _read(session(plane), interner)
    assert caught.value.slug == "too-many-names"
    assert [row["text"] for row in interner.new_names().to_pylist()] == [b"old"]


def test_numbers_that_do_not_fit_are_saturated() -> None:
    stats = {b"allocation_bytes": (1 << 63) - 1, b"addr": 1}
    plane = Plane().line(
        (b"a:Mul", 10, 15), *[(b"MemoryAllocation", 11, 11, {**stats, b"addr": at}) for at in range(3)]
    )
    plane.plane.lines[0].events.append(XEvent(metadata_id=1, offset_ps=20 * 10**6, duration_ps=(1 << 63) - 1))
    plane.plane.lines[0].events.append(XEvent(metadata_id=1, offset_ps=(1 << 63) - 1, duration_ps=-5))
    session_rows = _read(session(plane))
    assert max(session_rows.ops.column("total_bytes").to_pylist()) == (1 << 63) - 1
    assert session_rows.ops.num_rows == 3


@pytest.mark.parametrize("began_ns", [(1 << 63) - 5, 1 << 63, (1 << 64) - 1])
@pytest.mark.parametrize("size", [1, -(1 << 63)])
def test_times_and_sizes_at_the_ends_of_their_range_are_stored(began_ns: int, size: int) -> None:
    batch = (b"IteratorGetNextOp::DoCompute", 11, 12, {b"element_size": size})
    session_rows = _read(session(Plane().line((b"a:Mul", 10, 15), batch, batch), began_ns=began_ns))
    (row,) = session_rows.ops.to_pylist()
    assert (row["start_ns"] >= 0, row["op_end_ns"]) == (True, 5_000)
    step = TracedStep(layout.BATCH, 1, 0, 0, 5, 5)
    (trace,) = trace_rows([trace_of(layout.XSPACE, step, 0, session_rows.step, 9)]).to_pylist()
    assert trace["base_ns"] == (1 << 63) - 1


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(SAMPLES).flatmap(step_stats.damaged), st.integers(0, (1 << 63) - 1))
def test_damaged_sessions_are_read_or_refused(data: bytes, start_ns: int) -> None:
    interner = Interner()
    try:
        session_rows = xspace(data, start_ns, 0, interner)
    except DecodeError:
        assert interner.new_names().num_rows == 0
    else:
        session_rows.ops.validate(full=True)
        assert session_rows.step.rows == session_rows.ops.num_rows
