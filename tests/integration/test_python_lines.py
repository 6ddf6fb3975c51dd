"""The code view of real jobs: ops are at the lines that made them, and `pprof` reads the file."""

import json
import os
import re
import shutil
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.tf

JOB = Path(__file__).parent / "jobs" / "python_lines.py"
LINES = dict(zip(JOB.read_text().splitlines(), count(1), strict=False))
FRAME, LATER_FRAME = (
    f"python_lines.py:{next(number for line, number in LINES.items() if line.endswith(mark))}:{function}"
    for mark, function in (("# here", "product"), ("# later", "difference"))
)
#: Options of `pprof` for the counts of the script's own lines.
OWN_LINES = ("-top", "-nodefraction=0", "-unit=count", "-show=^python_lines:")
#: A row of `pprof -top`: flat, share, sum of shares, cumulative, share, name.
TOP_ROW = re.compile(r" *(\d+) +\S+% +\S+% +\S+ +\S+% +(.*)")
TFPROF = str(Path(sys.executable).parent / "tfprof")


@pytest.fixture(scope="session")
def go() -> str:
    """The path of the `go` command, which has `pprof`."""
    path = shutil.which("go")
    if path is None:
        message = "no go command: `go tool pprof` reads the files; install golang-go"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return path


@pytest.fixture(
    scope="module", params=["tf1-session", "tf2-session", "tf2-function", "tf313-session", "tf313-function"]
)
def job(request: pytest.FixtureRequest, shared_store: Path) -> str:
    """Run a job with every step traced as the last job of the store; return its kind."""
    version, kind = request.param.split("-")
    python = request.getfixturevalue(f"{version}_python")
    report = run(TFPROF + "-run", "--trace", "all", str(python), str(JOB), kind, TF_CPP_MIN_LOG_LEVEL="3").stderr
    assert f"{5 if kind == 'function' else 7} steps traced" in report
    return kind


def run(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command that must exit with 0."""
    completed = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **variables}
    )
    assert completed.returncode == 0, completed.stderr
    return completed


def ask(view: str, *options: str) -> Any:
    """Return the rows of a view of the last job."""
    return json.loads(run(TFPROF, view, "last", *options, "--json").stdout)["rows"]


def nodes_below(rows: Any, *names: str) -> set[str]:
    """Return the nodes at and below the frames called ``names``."""
    below: list[bool] = []
    for row in rows:
        below.append(row["name"] in names or (row["parent"] is not None and below[row["parent"]]))
    return {node["name"] for row, is_below in zip(rows, below, strict=True) if is_below for node in row["nodes"]}


def pprof(go: str, file: Path, *options: str) -> list[str]:
    return run(go, "tool", "pprof", *options, str(file)).stdout.splitlines()


def test_products_and_their_gradients_are_at_the_line_that_made_them(job: str) -> None:
    (row,) = ask("op", "-show_name_regexes", "MatMul")
    products = {node["name"] for node in row["nodes"] if node["runs"]}
    view = ask("code", "-show_name_regexes", ".*")
    assert len(products) >= 2, "products and their gradients"
    assert products <= nodes_below(view, FRAME, FRAME + " (gradient)")
    assert len(nodes_below(view, FRAME) & products) == 1


def test_ops_that_a_graph_gets_after_a_step_are_at_their_own_lines(job: str) -> None:
    if job == "session":
        names = nodes_below(ask("code", "-show_name_regexes", ".*"), LATER_FRAME)
        assert {name.partition("/")[0] for name in names} == {"later"}


def test_all_gradients_are_beside_the_lines_of_their_forward_ops(job: str) -> None:
    view = ask("code", "-show_name_regexes", ".*")
    gradients = {
        node["name"]
        for row in view
        for node in row["nodes"]
        if node["runs"] and re.search("_grad/|gradient_tape/", node["name"])
    }
    beside = {node["name"] for row in view if row["name"].endswith(" (gradient)") for node in row["nodes"]}
    assert len(gradients) > 2
    assert gradients <= beside


def test_pprof_reads_what_the_code_view_writes(job: str, go: str, tmp_path: Path) -> None:
    file = tmp_path / "lines.pb.gz"
    run(TFPROF, "code", "last", "-max_depth", "1000", "-select", "float_ops", "-output", f"pprof:outfile={file}")
    rows = ask("code", "-show_name_regexes", ".*")
    parents = {row["parent"] for row in rows}
    leaves = [row for position, row in enumerate(rows) if position not in parents]
    float_ops = {node["name"]: node["float_ops"] for leaf in leaves for node in leaf["nodes"]}
    assert sum(float_ops.values()) > 0
    raw = pprof(go, file, "-raw")
    samples = [int(match[1]) for line in raw if (match := re.match(r" +1 +(\d+):", line))]
    labels = [match[1] for line in raw if (match := re.search(r"graph node::\[(.*)\]", line))]
    assert dict(zip(labels, samples, strict=True)) == float_ops
    top = {match[2]: int(match[1]) for line in pprof(go, file, *OWN_LINES) if (match := TOP_ROW.match(line))}
    assert sum(top.values()) == sum(samples)
    assert max(top, key=lambda name: top[name]).startswith("python_lines:product")
    assert sum(line.startswith("graph node::") for line in pprof(go, file, "-traces")) == len(samples)
