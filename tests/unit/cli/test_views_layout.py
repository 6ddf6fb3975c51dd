"""The views in tfprof's own layout.

Rows are sorted by time, and empty rows are left out. No line is wider than the terminal.

Tests collector/query/own_layout.py, collector/render/row_cells.py,
collector/render/view_text.py.
"""

from pathlib import Path

import pyarrow as pa
import pytest
from fakes import small_store
from fakes.command import Run
from fakes.made_store import trace_tables, write_job
from fakes.run_metadata import run_metadata
from tfprof.formats import layout


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_store.write(tmp_path_factory.mktemp("layout") / "store")


def table(text: str) -> list[str]:
    """Return titles and rows."""
    return [line for line in text.splitlines()[2:] if not line.startswith("left out: ")]


def rows(text: str) -> list[str]:
    """Return the names of the rows below heading and titles."""
    return [line.split()[0] for line in table(text)[1:]]


def test_op_view_has_a_heading_and_a_table(run: Run) -> None:
    code, out, err = run("op", "aa10")
    assert code == 0
    assert out.splitlines() == [
        "op view of job aa10 train.py: 2 traced run steps",
        "25.0 µs of ops a step, all threads together, on CPU:0",
        "op          time/step  share     min/median/max  calls/step",
        "MatMul        10.0 µs   40 %  10.0/10.0/10.0 µs           1",
        "Mean          10.0 µs   40 %  10.0/10.0/10.0 µs           1",
        "VariableV2    5.00 µs   20 %    0.0/5.0/10.0 µs        0.50",
        "left out: 1 op type that took no time (-min_micros 0 shows them)",
    ]
    assert err == ""


def test_scope_has_names_below_names(run: Run) -> None:
    out = table(run("scope", "aa10")[1])
    assert out[0] == "scope      time/step  share     min/median/max  calls/step  mostly"
    assert [line[:9].rstrip() for line in out[1:]] == ["net", "  MatMul", "  weights", "loss"]
    assert out[2].startswith("  MatMul     10.0 µs   40 %")


def test_graph_has_own_time_beside_total_time(run: Run) -> None:
    out = table(run("graph", "aa10")[1])
    assert out[0] == "node (its inputs below)  time/step  share     self     min/median/max  calls/step  op"
    assert [line[:15].rstrip() for line in out[1:]] == ["loss", "  net/MatMul", "    net/weights"]
    assert [line.split()[3:7] for line in out[1:]] == [
        ["100", "%", "10.0", "µs"],
        ["60", "%", "10.0", "µs"],
        ["20", "%", "5.00", "µs"],
    ]


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("view", ["op", "scope", "graph"])
def test_lines_are_no_wider_than_the_terminal(run: Run, monkeypatch: pytest.MonkeyPatch, view: str, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    out = run(view, "aa10", "bb10")[1]
    assert max(map(len, out.splitlines())) <= width
    assert {"time/step", "share"} <= set(out.split())


def test_selected_columns_are_shown_unless_all_values_are_0(run: Run) -> None:
    out = run("op", "aa10", "-select", "micros,params,float_ops,accelerator_micros,device,bytes")[1]
    assert out.splitlines()[2].split() == [
        "op",
        "time/step",
        "share",
        "min/median/max",
        "requested/step",
        "params",
        "device",
    ]
    assert run("op", "aa10", "-select", "occurrence")[1].splitlines()[2].split() == [
        "op",
        "time/step",
        "share",
        "min/median/max",
        "calls/step",
        "nodes",
    ]


def test_the_first_selected_column_determines_order_and_shares(run: Run) -> None:
    _, out, err = run("scope", "aa10", "-select", "params")
    assert out.splitlines()[2:] == [
        "scope        params  share",
        "net/weights       6  100 %",
        "left out: 3 scopes and nodes without params (-min_params 0 shows them)",
    ]
    assert err == ""


def test_a_given_order_applies(run: Run) -> None:
    assert rows(run("op", "aa10", "-order_by", "name")[1]) == ["MatMul", "Mean", "VariableV2"]
    by_params = run("op", "aa10", "-order_by", "params")[1]
    assert by_params.splitlines()[2].split()[:4] == ["op", "params", "share", "time/step"]
    assert rows(by_params)[0] == "VariableV2"
    assert rows(run("scope", "aa10", "-order_by", "name")[1])[0] == "loss"


def test_a_given_minimum_replaces_the_default_limit(run: Run) -> None:
    _, out, err = run("op", "aa10", "-min_micros", "0")
    assert rows(out) == ["MatMul", "Mean", "VariableV2", "Placeholder"]
    assert err == ""
    assert rows(run("scope", "aa10", "-min_micros", "6")[1]) == ["net", "MatMul", "loss"]


def test_a_given_depth_applies_and_is_explained(run: Run) -> None:
    _, out, err = run("scope", "aa10", "-max_depth", "2")
    assert rows(out) == ["net", "loss"]
    assert err == "tfprof: 2 of 5 scopes and nodes shown: 3 beyond -max_depth or -trim_name_regexes\n"


def test_several_devices_have_a_column(run: Run) -> None:
    out = run("op", "aa10", "bb10")[1]
    assert out.splitlines()[:2] == [
        "op view of jobs aa10 train.py, bb10 train.py: 3 traced run steps",
        "20.0 µs of ops a step, all threads together",
    ]
    assert [line.split()[-1] for line in table(out)] == ["device", "CPU:0,GPU:0", "CPU:0", "CPU:0"]


def test_one_step_has_no_spread(run: Run) -> None:
    out = run("op", "aa10", "-step", "1")[1]
    assert out.startswith("op view of job aa10 train.py: run 1\n20.0 µs of ops a step")
    assert "median" not in out


def test_a_job_without_traced_steps_has_no_heading(run: Run) -> None:
    assert run("op", "cc10")[:2] == (0, "")


def test_the_heading_contains_the_kinds_of_the_steps(tmp_path: Path, run: Run) -> None:
    tables = trace_tables(small_store.GRAPH.SerializeToString(), [run_metadata([b"loss"])] * 3)
    kinds = pa.array([layout.BATCH, layout.BATCH, layout.TEST_BATCH], pa.uint16())
    column = tables["traces"].column_names.index("kind")
    tables["traces"] = tables["traces"].set_column(column, "kind", kinds)
    write_job(tmp_path, 1, tables, counters={"counts": {"batch": 7500, "test_batch": 9}})
    result = run("op", "last", "--store", str(tmp_path))[1].splitlines()
    assert result[0] == "op view of job 0000 train.py: 2 traced batch steps of 7,500"
    assert result[1].endswith("on CPU:0; also traced: 1 test_batch (--kind)")
    all_kinds = run("op", "last", "--kind", "all", "--store", str(tmp_path))[1].splitlines()
    assert all_kinds[0] == "op view of job 0000 train.py: 3 traced steps (2 batch, 1 test_batch) of 7,509"


def test_a_view_shows_steps_of_a_kind_that_this_release_does_not_know(run: Run, tmp_path: Path) -> None:
    tables = trace_tables(small_store.GRAPH.SerializeToString(), [run_metadata([b"loss"])])
    column = tables["traces"].column_names.index("kind")
    tables["traces"] = tables["traces"].set_column(column, "kind", pa.array([99], pa.uint16()))
    write_job(tmp_path, 1, tables, counters={"counts": {"batch": 7500}})
    code, out, _ = run("op", "last", "--store", str(tmp_path))
    assert code == 0
    assert out.splitlines()[0] == "op view of job 0000 train.py: 1 traced 99 step"
