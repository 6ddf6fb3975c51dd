"""The peak of a job's memory with who holds it, its growth, and what of RSS is known.

Tests collector/documents/memory.py, collector/query/memory_blocks.py,
collector/render/memory_text.py, collector/summaries/memory.py, cli/memory.py.
"""

import json
from itertools import accumulate
from pathlib import Path

import pytest
from fakes.command import caller
from fakes.made_store import MS, SECOND, START_NS, rows, span, trace_tables, write_job
from tfprof.collector.decoders.proto.run_metadata_pb2 import AllocationRecord, RunMetadata
from tfprof.collector.documents.memory import memory_document
from tfprof.collector.query.memory import job_memory
from tfprof.collector.query.memory_blocks import device_of, host_devices
from tfprof.collector.render import memory_text
from tfprof.collector.store import schema
from tfprof.collector.store.opening import open_reader
from tfprof.collector.summaries.memory import Named, verdict
from tfprof.formats import layout

DATA = Path(__file__).parents[3] / "contract" / "data"
CPU = b"/job:localhost/replica:0/task:0/device:CPU:0"
NODES = ("model/big", "model/small", "grad/work")
US, MB = 1000, 10**6
NOBODY = schema.NONE_ID


def change(trace: int, node: int, us: int, size: int, in_use: int = 0, use: int = 0) -> dict[str, int]:
    t_us = START_NS // 1000 + trace * 1000 + us
    device = NOBODY if in_use else 0
    return {"trace": trace, "node": node, "device": device, "t_us": t_us, "bytes": size, "in_use_bytes": in_use} | {
        "use": use,
        "fragmentation": 0.25 if in_use else 0,
    }


def job(
    store: Path, changes: list[dict[str, int]], source: int = layout.RUN_METADATA, processes: int = 1, **sizes: int
):
    """Return the memory of a job with a traced step in each ms, whose second op has ``sizes``."""
    traces = sorted({row["trace"] for row in changes}) or [0]
    texts = [(schema.NODE, number, name.encode()) for number, name in enumerate(NODES)]
    texts += [(schema.DEVICE, 0, CPU), (schema.ALLOCATOR, 0, b"cpu")]
    ops = [
        {"trace": trace, "node": node, "start_ns": node * US, "op_end_ns": 9, "total_bytes": 1, "outputs": NOBODY}
        | (sizes if node == 2 else {"output_bytes": 100 * MB})
        for trace in traces
        for node in range(len(NODES))
    ]
    step = {"kind": layout.RUN, "source": source, "duration_ns": MS, "rows": 3}
    spans = [span(layout.RUN, trace, trace, 0.9, flags=layout.FLAG_TRACED) for trace in traces]
    samples = [(-SECOND, 300 * MB), (2 * MS, 500 * MB), (9 * SECOND, 400 * MB)]
    tables = {
        "ops": rows("ops", ops),
        "traces": rows(
            "traces",
            [
                step
                | {"trace": trace, "step": trace, "start_ns": START_NS + trace * MS, "base_ns": START_NS + trace * MS}
                for trace in traces
            ],
        ),
        "names": rows("names", [{"kind": kind, "id": number, "text": text} for kind, number, text in texts]),
        "graph_nodes": rows("graph_nodes", [{"name": name, "op": "MatMul"} for name in NODES]),
        "spans": rows("spans", spans),
        "samples": rows(
            "samples",
            [{"t_ns": START_NS + at, "rss_bytes": size, "processes": processes} for at, size in samples],
        ),
        "memory_changes": rows("memory_changes", changes),
    }
    write_job(store, 7 << 60, tables)
    return job_memory(open_reader(str(store)).job("7000"))


#: In the second step the big block is alive together with all others.
STEPS = [
    *(change(0, 0, 10, 5 * MB), change(0, 0, 20, -5 * MB)),
    *(change(1, 0, 10, 6 * MB), change(1, 1, 11, MB), change(1, 2, 12, 2 * MB), change(1, 2, 13, -2 * MB)),
    *(change(1, 0, 20, -6 * MB), change(1, 1, 30, 3 * MB)),
]


def test_the_peak_is_that_of_the_records_and_names_who_holds_it(tmp_path: Path) -> None:
    answer = job(tmp_path, STEPS, temp_bytes=2 * MB)
    (memory,) = answer.use.allocators
    assert (memory.device, memory.allocator, memory.step, memory.after_ns) == ("CPU:0", "cpu", 1, 12 * US)
    assert (memory.peak_bytes, memory.peaks, memory.steps) == (9 * MB, (5 * MB, 9 * MB), 2)
    assert [(holder.node, holder.bytes, holder.use) for holder in memory.holders] == [
        ("model/big", 6 * MB, "output"),
        ("grad/work", 2 * MB, "temporary"),
        ("model/small", MB, "output"),
    ]
    assert memory.uses == {"output": 7 * MB, "temporary": 2 * MB, "persistent": 0}
    assert memory.scopes == [Named("model", 7 * MB), Named("grad", 2 * MB)]
    assert verdict(answer.use) == (
        "the peak of 2 traced steps is 9.0 MB on CPU:0 (cpu), 67 % of it by model/big;"
        " growth is unknown: fewer than 12 s of steps"
    )


def test_the_peak_of_a_real_step_is_the_sum_of_its_records(tmp_path: Path) -> None:
    step = (DATA / "tf1_software.run_metadata").read_bytes()
    records = [
        AllocationRecord.FromString(record)
        for device in RunMetadata.FromString(step).step_stats.dev_stats
        for node in device.node_stats
        for use in node.memory
        for record in use.allocation_records
    ]
    records.sort(key=lambda record: (record.alloc_micros, record.alloc_bytes))
    write_job(tmp_path, 7 << 60, trace_tables((DATA / "tf1.graph").read_bytes(), [step]))
    (memory,) = job_memory(open_reader(str(tmp_path)).job("7000")).use.allocators
    assert memory.peak_bytes == max(accumulate(record.alloc_bytes for record in records)) > 0
    assert memory.peak_bytes == sum(holder.bytes for holder in memory.holders)


def test_what_an_op_keeps_is_persistent(tmp_path: Path) -> None:
    (memory,) = job(tmp_path, STEPS, persistent_bytes=2 * MB).use.allocators
    assert memory.uses["persistent"] == 2 * MB


def growing(steps: int, growth: int) -> list[dict[str, int]]:
    """Return steps of a session, each of which leaves ``growth`` bytes behind."""
    found = []
    for step in range(steps):
        before = 50 * MB + step * growth
        found.append(change(step, 0, 10, growth, before + growth, schema.OUTPUT_BLOCK))
        found.append(change(step, 1, 20, 3 * MB, before + growth + 3 * MB, schema.TEMPORARY_BLOCK))
        found.append(change(step, 1, 30, -3 * MB, before + growth))
        found.append(change(step, NOBODY, 40, -7, before + growth))
    return found


def test_an_allocator_that_says_what_it_has_in_use_shows_growth_and_the_op(tmp_path: Path) -> None:
    answer = job(tmp_path, growing(20, 2 * MB), layout.XSPACE)
    (memory,) = answer.use.allocators
    assert memory.peak_bytes == 50 * MB + 20 * 2 * MB + 3 * MB
    assert sum(memory.uses.values()) == memory.peak_bytes
    assert (memory.uses["before"], memory.uses["output"], memory.uses["temporary"]) == (88 * MB, 2 * MB, 3 * MB)
    assert memory.fragmentation == 0.25
    assert memory.growth is not None
    assert memory.growth.step_bytes == 2 * MB
    assert memory.growth.kept == (Named("model/big", 2 * MB),)
    assert verdict(answer.use).endswith("before a step grows by 2.0 MB a step, left by model/big")


@pytest.mark.parametrize(("steps", "growth"), [(7, 2 * MB), (20, 10)])
def test_few_steps_and_small_growth_are_no_finding(tmp_path: Path, steps: int, growth: int) -> None:
    (memory,) = job(tmp_path, growing(steps, growth), layout.XSPACE).use.allocators
    assert memory.growth is None


def test_of_rss_the_peak_is_known_unless_processes_share_it(tmp_path: Path) -> None:
    host = job(tmp_path / "one", STEPS).use.host
    assert host is not None
    assert (host.before_bytes, host.peak_bytes, host.most_bytes, host.last_bytes) == tuple(
        size * MB for size in (300, 500, 500, 400)
    )
    assert host.known == (Named("on CPU:0 (cpu)", 9 * MB),)
    assert host.unknown_bytes == 491 * MB
    host = job(tmp_path / "two", STEPS, processes=2).use.host
    assert host is not None
    assert host.unknown_bytes is None


def test_without_records_there_is_no_peak(tmp_path: Path) -> None:
    answer = job(tmp_path, [])
    assert answer.use.allocators == ()
    first = next(memory_text.lines(answer.use, "7000", None))
    assert first.startswith("Verdict: no peak: TensorFlow recorded no allocation in the traced steps")
    assert memory_document(answer)["no_peak"]


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_the_text_fits_and_the_document_has_its_numbers(
    tmp_path: Path, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = job(tmp_path, growing(20, 2 * MB), layout.XSPACE)
    lines = list(memory_text.lines(answer.use, "7000", width))
    assert all(len(line) <= max(width, 60) for line in lines)
    assert any(line.startswith("temporary") and "3.0 MB" in line for line in lines)
    monkeypatch.setenv("TFPROF_STORE", str(tmp_path))
    status, output, _ = caller(capsys)("memory", "7000", "--json")
    document = json.loads(output)
    assert status == 0
    assert document == json.loads(json.dumps(memory_document(answer)))
    assert document["allocators"][0]["peak_bytes"] == 93 * MB


def test_a_device_of_another_process_is_named_and_memory_of_gpus_on_the_host_is_there() -> None:
    gpu, cpu = "/job:worker/replica:0/task:1/device:GPU:0", "/job:worker/replica:0/task:1/device:CPU:0"
    assert host_devices({4: gpu, 7: cpu, 8: f"{gpu}/stream:all", 9: "/job:ps/task:0/device:GPU:0"}) == {4: 7}
    assert device_of(gpu, "GPU_0_bfc") == "worker:1 GPU:0"
    assert device_of(CPU.decode(), "cpu") == device_of("", "mklcpu") == "CPU:0"
    assert device_of("", "GPU_3_bfc") == "GPU:3"
