"""The files of timelines, and the messages about them."""

import json
from pathlib import Path

import pytest
from fakes.command import Run
from fakes.made_store import trace_tables, write_job
from fakes.run_metadata import run_metadata
from tfprof.collector.decoders.proto import graph_pb2
from tfprof.collector.exporters import view_timeline

GRAPH = graph_pb2.GraphDef(node=[graph_pb2.NodeDef(name=name, op="MatMul") for name in ("a", "b")])
STEPS = ([b"a"], [b"a", b"b"], [b"b", b"b", b"b"])


@pytest.fixture
def run(run: Run, tmp_path: Path) -> Run:
    """A function that runs a command on a store with two jobs of three steps."""
    step_metadata = [run_metadata(names) for names in STEPS]
    for uid in (1, 2):
        write_job(tmp_path / "store", uid, trace_tables(GRAPH.SerializeToString(), step_metadata))
    return run


def bars() -> dict[str, list[str]]:
    """Return the names of the bars in each file."""
    return {
        path.name: [event["name"] for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]
        for path in sorted(Path().iterdir())
    }


def test_a_graph_is_drawn_step_by_step(run: Run) -> None:
    code, out, err = run("graph", "last", "-output", "timeline:outfile=t")
    assert (code, err) == (0, "")
    assert bars() == {"t_0": ["a"], "t_1": ["a", "b"], "t_2": ["b", "b", "b"]}
    assert out.count("generating trace file.") == 3
    assert [line for line in out.splitlines() if line.startswith("Timeline file")] == [
        f"Timeline file is written to t_{step}." for step in range(3)
    ]


@pytest.mark.parametrize(
    ("words", "files"), [(("-step", "1"), {"t_1"}), (("--steps", "1-2"), {"t_1", "t_2"}), (("--steps", "2-9"), {"t_2"})]
)
def test_a_graph_is_drawn_for_the_selected_steps(run: Run, words: tuple[str, ...], files: set[str]) -> None:
    assert run("graph", "last", *words, "-output", "timeline:outfile=t")[0] == 0
    assert set(bars()) == files


def test_filters_apply_to_the_numbers_of_each_step(run: Run) -> None:
    run("graph", "last", "-min_micros", "30", "-output", "timeline:outfile=t")
    assert bars() == {"t_0": [], "t_1": [], "t_2": ["b", "b", "b"]}


def test_the_timeline_of_a_scope_view_has_averages_or_one_step(run: Run) -> None:
    assert run("scope", "last", "-output", "timeline:outfile=t")[0] == 0
    assert run("scope", "last", "-step", "0", "-output", "timeline:outfile=t")[0] == 0
    assert bars() == {"t_-1": ["_TFProfRoot", "a", "b"], "t_0": ["_TFProfRoot", "a"]}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("graph", "0000000000000001", "0000000000000002"), "shows one job"),
        (("graph", "last", "--device", "cpu"), "shows one job, with all its devices"),
        (("op", "last"), "-output timeline is for code, graph, scope, not for op"),
    ],
)
def test_an_unsupported_timeline_is_refused(run: Run, words: tuple[str, ...], message: str) -> None:
    code, out, err = run(*words, "-output", "timeline:outfile=t")
    assert (code, out) == (2, "")
    assert message in err
    assert not bars()


def test_a_file_that_cannot_be_written_is_named(run: Run) -> None:
    code, _, err = run("graph", "last", "-output", "timeline:outfile=nowhere/t")
    assert code == 1
    assert "cannot write nowhere/t_0: No such file or directory [io]" in err


def test_a_large_file_comes_with_a_warning(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_timeline, "LARGE_FILE_BYTES", 100)
    code, out, err = run("scope", "last", "-output", "timeline:outfile=t")
    assert code == 0
    assert "written to t_-1" in out
    assert "Trace file is over 200MB" in err
