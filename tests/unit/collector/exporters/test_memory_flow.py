"""The picture of a step's memory: valid XML whose blocks are those of the records."""

import importlib.util
import xml.etree.ElementTree as ET
from pathlib import Path

import pyarrow as pa
import pytest
from fakes.command import Run
from fakes.made_store import START_NS, rows, trace_tables, write_job
from fakes.many_executions import CPU, write_many_executions
from tfprof.collector.query.memory_blocks import Block, peak
from tfprof.collector.store import schema
from tfprof.formats import layout

SVG, TAG = "{http://www.w3.org/2000/svg}", "{https://megengine.org.cn}"
DATA = Path(__file__).parents[3] / "contract" / "data"
GPU = b"/job:localhost/replica:0/task:0/device:GPU:0"
#: (node, time in µs after the step's start, bytes): a block that was there before, one that stays.
RECORDS = [(0, 10, 1000), (1, 20, 500), (0, 30, -1000), (1, 40, 2000), (1, 60, -500), (2, 5, -300)]


@pytest.fixture
def run(run: Run, tmp_path: Path) -> Run:
    """Run a command in the folder `work`; the store has a job with records of a GPU's allocator."""
    names = [b"model/a", b'model/"<b>&\n\x00\x1b[31m', b"c" * 10_000]
    texts = [(schema.NODE, at, name) for at, name in enumerate(names)]
    texts += [(schema.DEVICE, 0, GPU), (schema.DEVICE, 1, CPU), (schema.ALLOCATOR, 0, b"GPU_0_bfc")]
    texts += [(schema.ALLOCATOR, 1, b"cpu")]
    ops = [
        {
            "node": node,
            "device": 0,
            "start_ns": node * 1000,
            "op_end_ns": 900,
            "total_bytes": 9,
            "outputs": schema.NONE_ID,
        }
        for node in range(3)
    ]
    graph = [{"name": "model/a", "op": "Add"}, {"name": "used", "op": "Neg"}]
    tables = {
        "ops": rows("ops", ops),
        "traces": rows(
            "traces",
            [
                {"kind": layout.BATCH, "step": 4, "rows": 3, "source": layout.RUN_METADATA, "start_ns": START_NS}
                | {"base_ns": START_NS, "duration_ns": 100_000}
            ],
        ),
        "names": rows("names", [{"kind": kind, "id": number, "text": text} for kind, number, text in texts]),
        "graph_nodes": rows("graph_nodes", graph),
        "allocations": rows(
            "allocations",
            [{"node": node, "t_us": START_NS // 1000 + us, "bytes": size} for node, us, size in RECORDS],
        ),
    }
    write_job(tmp_path / "store", 7 << 60, tables, identity={"name": "gpu\x00<.py"})
    return run


def blocks(path: str) -> list[tuple[str, int, float, float]]:
    """Return (node, bytes, start, end) of each block; times in µs after the step's start."""
    root = ET.parse(path).getroot()
    rectangles = [element for element in root.iter(f"{SVG}rect") if element.get(f"{TAG}type") == "tensor"]
    return [
        (
            str(element.get(f"{TAG}name")),
            int(element.get(f"{TAG}size", "")),
            *(float(element.get(f"{TAG}{name}", "").removesuffix("us")) for name in ("produced", "erased")),
        )
        for element in rectangles
    ]


def test_blocks_are_the_records_and_the_peak_is_their_sum(run: Run) -> None:
    assert run("export", "7000", "-o", "memory.svg") == (0, "", "")
    found = sorted((size, start, end) for _, size, start, end in blocks("memory.svg"))
    assert found == [(300, 0, 5), (500, 20, 60), (1000, 10, 30), (2000, 40, 100)]
    root = ET.parse("memory.svg").getroot()
    texts = ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]
    alive = 300 + max(sum(size for _, us, size in RECORDS if us <= moment) for _, moment, _ in RECORDS)
    assert alive == 2500
    assert "peak: 2.5 KB in 2 blocks after 40.0 µs" in texts
    assert any(
        text.startswith("GPU:0 allocator GPU_0_bfc: peak") and "(recorded, without addresses)" in text for text in texts
    )
    assert root.findtext(f"{SVG}title", "").startswith("Memory of gpu")
    assert "peak 2.5 KB" in root.findtext(f"{SVG}desc", "")


def test_blocks_that_are_alive_together_do_not_overlap(run: Run, tmp_path: Path) -> None:
    write_many_executions(tmp_path / "store", 9)
    run("export", "7000", "-o", "memory.svg")
    rectangles = [
        [float(element.get(name, "")) for name in ("x", "y", "width", "height")]
        for element in ET.parse("memory.svg").getroot().iter(f"{SVG}rect")
        if element.get(f"{TAG}type") == "tensor"
    ]
    for at, (x, y, width, height) in enumerate(rectangles):
        for other_x, other_y, other_width, other_height in rectangles[at + 1 :]:
            beside = x + width <= other_x + 0.31 or other_x + other_width <= x + 0.31
            assert beside or y + height <= other_y + 0.02 or other_y + other_height <= y + 0.02


def test_without_records_the_picture_is_an_estimate_and_says_so(run: Run, tmp_path: Path) -> None:
    graph, step = (DATA / name for name in ("tf1.graph", "tf1_software.run_metadata"))
    tables = trace_tables(graph.read_bytes(), [step.read_bytes()])
    write_job(tmp_path / "store", 5 << 60, {**tables, "memory_changes": tables["memory_changes"].slice(0, 0)})
    status, _, error = run("export", "5000", "-o", "tf.svg")
    assert (status, "the picture is an estimate" in error) == (0, True)
    assert "estimated: an output lives until" in Path("tf.svg").read_text()
    found = blocks("tf.svg")
    assert len(found) > 20
    assert all(size > 0 and end > start for _, size, start, end in found)
    relu = [end for name, _, _, end in found if name == "conv0/Conv2D"]
    assert relu


def test_the_memory_of_a_cpu_is_recorded(run: Run) -> None:
    files = ("--graph_path", str(DATA / "tf1.graph"), "--run_meta_path", str(DATA / "tf1_software.run_metadata"))
    assert run("import", *files, "--name", "tf")[0] == 0
    assert run("export", "tf", "-o", "tf.svg") == (0, "", "")
    text = Path("tf.svg").read_text()
    assert "(recorded)" in text
    assert "without 3 blocks whose address is not recorded" in text
    drawn = [element for element in ET.fromstring(text).iter(f"{SVG}rect") if element.get(f"{TAG}type") == "tensor"]
    addresses = [element.get(f"{TAG}address") for element in drawn]
    assert (len(drawn), addresses.count(None)) == (62, 3)


def with_addresses(changes: list[tuple[int, int, int]], addresses: list[int]) -> dict[str, pa.Table]:
    """Return the tables of a step with (time in µs, bytes, node) and the address of each change."""
    texts = [(schema.NODE, node, b"node_%d" % node) for node in range(3)]
    texts += [(schema.DEVICE, 0, CPU), (schema.ALLOCATOR, 0, b"cpu")]
    ops = [{"node": node, "op_end_ns": 900, "outputs": schema.NONE_ID} for node in range(3)]
    trace = {"kind": layout.BATCH, "step": 4, "rows": 3, "start_ns": START_NS, "base_ns": START_NS}
    return {
        "ops": rows("ops", ops),
        "traces": rows("traces", [{**trace, "duration_ns": 100_000, "source": layout.XSPACE}]),
        "names": rows("names", [{"kind": kind, "id": number, "text": text} for kind, number, text in texts]),
        "memory_changes": rows(
            "memory_changes",
            [
                {"t_us": START_NS // 1000 + us, "bytes": size, "node": node, "device": schema.NONE_ID}
                for us, size, node in changes
            ],
        ),
        "block_addresses": rows("block_addresses", [{"address": address} for address in addresses]),
    }


def at_addresses(path: str) -> list[tuple[str, float, float, float, float]]:
    """Return tooltip, left, top, width and height of the blocks in the parts by address."""
    return [
        (element.findtext(f"{SVG}title", ""), *(float(element.get(name, "")) for name in ("x", "y", "width", "height")))
        for element in ET.parse(path).getroot().iter(f"{SVG}rect")
        if element.find(f"{SVG}title") is not None and element.get(f"{TAG}type") is None
    ]


def test_blocks_are_drawn_at_their_addresses(run: Run, tmp_path: Path) -> None:
    changes = [(0, 100, 0), (10, 100, 0), (20, -100, 0), (30, 100, 1), (40, 700, 2)]
    tables = with_addresses(changes, [0x1000, 0x1064, 0x1064, 0x1064, 0xFF00_0000_0000_0000])
    write_job(tmp_path / "store", 5 << 60, tables)
    assert run("export", "5000", "-o", "a.svg") == (0, "", "")
    first, second, third, far = sorted(at_addresses("a.svg"))
    assert [block[0].split(" at ")[1] for block in (first, second, third, far)] == [
        "0x1000, 0.000 to 100.000 µs",
        "0x1064, 10.000 to 20.000 µs",
        "0x1064, 30.000 to 100.000 µs",
        "0xff00000000000000, 40.000 to 100.000 µs",
    ]
    assert second[2] == third[2] == pytest.approx(first[2] - first[4], abs=0.02)
    assert second[2] - far[2] - far[4] == pytest.approx(0.02 * 900 / 918 * 320, abs=0.02)  # the gap is shortened
    assert sum(block[4] for block in (first, second, far)) == pytest.approx(900 / 918 * 320, abs=0.1)
    text = Path("a.svg").read_text()
    assert "by address, from 0x1000 on; gaps shortened at 1 gray line" in text
    assert "peak: 900 B in 3 blocks after 40.0 µs" in text


def test_many_gaps_leave_room_for_the_blocks(run: Run, tmp_path: Path) -> None:
    changes = [(0, 8, 0)] * 500
    tables = with_addresses(changes, [1 + at * 0x10_0000 for at in range(500)])
    write_job(tmp_path / "store", 5 << 60, tables)
    assert run("export", "5000", "-o", "a.svg") == (0, "", "")
    assert sum(block[4] for block in at_addresses("a.svg")) > 0.6 * 320


def test_a_store_without_addresses_has_the_other_parts(run: Run, tmp_path: Path) -> None:
    tables = with_addresses([(0, 100, 0), (10, 100, 0)], [])
    write_job(tmp_path / "store", 5 << 60, tables)
    assert run("export", "5000", "-o", "a.svg") == (0, "", "")
    assert "(recorded, without addresses)" in Path("a.svg").read_text()
    assert at_addresses("a.svg") == []


def test_a_job_without_memory_or_traces_has_no_picture(run: Run, tmp_path: Path) -> None:
    write_job(tmp_path / "store", 6 << 60, {}, identity={"name": "none.py"})
    write_many_executions(tmp_path / "store", 9, name="many.py")
    for job in ("none.py", "many.py"):
        status, _, error = run("export", job, "-o", "a.svg")
        assert (status, error.split()[-1]) == (1, "[no-data]")
    assert list(Path().iterdir()) == []


def test_pixels_need_the_extra(run: Run) -> None:
    status, _, error = run("export", "7000", "-o", "a.png")
    if importlib.util.find_spec("resvg_py") is None:
        assert (status, "tfprof[png]" in error) == (2, True)
        assert list(Path().iterdir()) == []
    else:
        assert status == 0
        assert Path("a.png").read_bytes().startswith(b"\x89PNG")


def test_the_peak_is_the_first_moment_with_most_bytes() -> None:
    every = [
        Block("a", "A", 0, 10, 5),
        Block("b", "B", 10, 20, 5),
        Block("c", "C", 12, 15, 3),
        Block("d", "D", 16, 18, 3),
    ]
    top = peak(every)
    assert (top.time_ns, top.bytes, [block.node for block in top.holders]) == (12, 8, ["b", "c"])
