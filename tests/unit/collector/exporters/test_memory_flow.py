"""The picture of a step's memory: valid XML whose blocks are those of the records."""

import importlib.util
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from fakes.command import Run, caller
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
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
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
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("TFPROF_STORE", str(tmp_path / "store"))
    return caller(capsys)


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
    assert any(text.startswith("GPU:0 allocator GPU_0_bfc: peak") and "(recorded)" in text for text in texts)
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
    assert "(recorded)" in Path("tf.svg").read_text()


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
