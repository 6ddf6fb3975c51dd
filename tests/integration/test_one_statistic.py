"""The report, `show`, `op`, `scope`, `steps` and `advise` give the same figures."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fakes.command import output_of
from tfprof.collector.numbers import duration, percent

pytestmark = pytest.mark.tf

JOBS = Path(__file__).parent / "jobs"
TFPROF = Path(sys.executable).with_name("tfprof")
VIEWS = ("op", "scope", "graph", "code")


class Screens(NamedTuple):
    """The screens of one job: the report, and other commands as text and as JSON."""

    report: str
    text: Callable[..., str]
    document: Callable[..., Any]


def screens_of(python: Path, script: str) -> Screens:
    """Run a job, and return its screens."""
    command = [f"{TFPROF}-run", "--trace", "every=7", "--name", script, python, JOBS / script]
    job = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    return Screens(job.stderr, output_of, lambda *words: json.loads(output_of(*words, "--json")))


@pytest.fixture(scope="module", params=[("tf1", "two_calls.py"), ("tf2", "keras_fit.py")], ids=["session", "fit"])
def screens(request: pytest.FixtureRequest, shared_store: Path) -> Screens:
    del shared_store  # the commands take it from the environment
    version, script = request.param
    return screens_of(request.getfixturevalue(f"{version}_python"), script)


def row(text: str, name: str) -> str:
    """Return the row of a table that begins with ``name``."""
    return next(line for line in text.splitlines() if line.split()[:1] == [name])


def test_ops_have_the_same_time_and_share_everywhere(screens: Screens) -> None:
    ops = screens.document("show", "last")["top_ops"]["ops"]
    assert len(ops) > 10
    assert sum(op["share"] for op in ops) == pytest.approx(1)
    texts = [screens.report, screens.text("show", "last"), screens.text("op", "last", "-min_micros", "0")]
    for op in ops[:5]:
        figures = f" {duration(op['ns'])} ", f" {percent(op['share'])} "
        for text in texts:
            assert all(figure in row(text, op["op"]) for figure in figures), (op, row(text, op["op"]))
    rows = screens.document("op", "last")["rows"]
    assert {row["name"]: row["time_ns"] for row in rows if row["time_ns"]} == {
        op["op"]: pytest.approx(op["ns"]) for op in ops
    }
    shares = [row["share"] for row in rows]
    assert shares == sorted(shares, reverse=True)


def test_views_have_the_same_total(screens: Screens) -> None:
    total_ns = sum(op["ns"] for op in screens.document("show", "last")["top_ops"]["ops"])
    for view in VIEWS:
        assert f"{duration(total_ns)} of ops a step" in screens.text(view, "last")
    for view in VIEWS[:3]:
        assert screens.document(view, "last")["total"]["time_ns"] == pytest.approx(total_ns, abs=1000)


def test_advice_has_the_times_of_ops_and_scopes(screens: Screens) -> None:
    ops = {op["op"]: op for op in screens.document("show", "last")["top_ops"]["ops"]}
    checkers = {checker["slug"]: checker["reports"] for checker in screens.document("advise", "last")["checkers"]}
    op_types, *others = checkers["expensive"]
    assert op_types["numbers"] == {op: pytest.approx(ops[op]["ns"]) for op in op_types["numbers"]}
    first = next(iter(op_types["numbers"]))
    assert f"{first} takes {percent(ops[first]['share'])} of the time" in op_types["text"]
    scopes = [report["numbers"] for report in others if report["text"].startswith("the scope")]
    text = screens.text("scope", "last", "-min_micros", "0")
    for name, ns in next(iter(scopes), {}).items():
        assert f" {duration(ns)} " in next(line for line in text.splitlines() if line.startswith(f"{name} "))


def test_the_median_step_is_of_the_kind_of_the_ops(screens: Screens) -> None:
    document = screens.document("show", "last")
    (kind,) = document["top_ops"]["kinds"]
    times = next(times for times in document["step_times"] if times["kind"] == kind)
    median = duration(times["spread"]["p50_ns"])
    assert f"median step {median} " in " ".join(screens.report.split())
    assert f" {median} " in row(screens.text("show", "last"), kind)
    (group,) = (group for group in screens.document("steps", "last")["kinds"] if group["kind"] == kind)
    assert group["untraced"]["p50_ns"] == times["spread"]["p50_ns"]
    assert f" {median} " in row(screens.text("steps", "last"), kind)


def test_one_traced_step_has_no_other_statistic(screens: Screens) -> None:
    """Its times are those of TensorFlow, except that TensorFlow rounds each execution to µs."""
    (kind,) = screens.document("op", "last")["kinds"]
    number = next(entry["ordinal"] for entry in screens.document("steps", "last", "--all")["steps"] if entry["traced"])
    words = ("op", "last", "--kind", kind, "-step", str(number), "-max_depth", "1000")
    own, exact = screens.document(*words)["total"], screens.document(*words, "--exact-tf")["profile"]
    runs = sum(node["run_count"] for node in _nodes(exact))
    assert abs(own["time_ns"] / 1000 - exact["total_exec_micros"]) <= runs


def _nodes(root: Any) -> list[Any]:
    nodes: list[Any] = []
    while root["children"]:
        (root,) = root["children"]
        nodes += root["graph_nodes"]
    return nodes
