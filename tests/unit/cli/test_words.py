"""Words and units of the views as people type them.

Tests collector/moment.py, cli/values.py.
"""

import re
from pathlib import Path

import pytest
from fakes import small_store
from fakes.command import Run, caller
from fakes.made_store import START_NS
from fakes.many_executions import write_many_executions
from tfprof.collector.numbers import date_and_time


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command on the store in the test's folder."""
    monkeypatch.setenv("TFPROF_STORE", str(tmp_path / "store"))
    return caller(capsys)


def names(output: str) -> list[str]:
    """Return the first words of the rows of a view."""
    lines = output.splitlines()
    start = next(
        at for at, line in enumerate(lines) if re.match(r"(op|scope|line|node)\b", line) and "view of" not in line
    )
    return [line.split("  ")[0].strip() or line.split()[0] for line in lines[start + 1 :] if line[:4] != "left"]


def test_top_shows_the_largest_rows_and_counts_the_others(run: Run, tmp_path: Path) -> None:
    small_store.write(tmp_path / "store")
    whole = run("op", "aa10")[1]
    assert names(whole) == ["MatMul", "Mean", "VariableV2"]
    first = run("op", "aa10", "--top", "1")[1]
    assert names(first)[:2] == ["MatMul", "(2 others)"]
    assert "2 op types beyond --top 1" in first
    assert run("op", "aa10", "-top", "1")[1] == first
    tree = run("graph", "aa10", "--top", "1")[1]
    assert re.search(r"\d nodes? beyond --top 1", tree)
    assert run("op", "aa10", "--top", "5")[1] == whole
    for words in (("--json",), ("--exact-tf",)):
        assert run("op", "aa10", "--top", "1", *words)[2].endswith("--exact-tf has -max_depth [usage]\n")


def test_a_minimum_may_be_a_percentage_of_the_total(run: Run, tmp_path: Path) -> None:
    write_many_executions(tmp_path / "store")
    shares = dict(re.findall(r"^(\w+) .* (\d+) %", run("op", "last")[1], re.MULTILINE))
    assert 30 < int(shares["Add"]) < 45
    assert names(run("scope", "last", "-min_micros", "20%")[1])
    kept = run("scope", "last", "-min_micros", "20%")[1].count("node_")
    assert 0 < kept < run("scope", "last", "-min_micros", "1%")[1].count("node_")
    assert run("op", "last", "-min_micros", "101%")[2].startswith("tfprof: Invalid option '-min_micros' value: '101%'")


@pytest.mark.parametrize(
    ("title", "name"),
    [("time/step", "micros"), ("requested/step", "bytes"), ("kept/step", "residual_bytes"), ("GPU time", "gpu_time")],
)
def test_titles_of_columns_are_names_of_options(title: str, name: str, run: Run, tmp_path: Path) -> None:
    small_store.write(tmp_path / "store")
    for option in ("-select", "-order_by"):
        status, output, _ = run("op", "aa10", option, title)
        assert (status, output) == (0, run("op", "aa10", option, name)[1])


def test_lines_and_calls_are_columns_and_calls_an_order(run: Run, tmp_path: Path) -> None:
    write_many_executions(tmp_path / "store")
    assert "calls/step" in run("op", "last", "-select", "time,calls")[1]
    assert "nodes" not in run("op", "last", "-select", "time,calls")[1]
    assert names(run("op", "last", "-order_by", "calls/step")[1]) == ["MatMul", "Add"]
    assert run("op", "last", "-select", "time,line")[0] == 0


def test_since_selects_the_steps_that_began_later(run: Run, tmp_path: Path) -> None:
    write_many_executions(tmp_path / "store")
    day = date_and_time(START_NS)[:10]
    assert run("op", "last", "--since", day)[1].startswith("op view of job 0000 train.py: 3 traced batch steps")
    assert f", since {day} 00:00:00" in run("op", "last", "--since", day)[1]
    status, output, error = run("op", "last", "--since", "5m")
    assert (status, output) == (2, "")
    assert re.fullmatch(r"tfprof: no step was traced since .*: the last one at .* \[no-such-step\]\n", error)
    assert run("export", "last", "-o", str(tmp_path / "x.csv"), "--since", day)[0] == 0
    assert run("export", "last", "-o", str(tmp_path / "y.csv"), "--since", "5m")[0] == 2
    assert "has no option --since" in run("export", "last", "--format", "op-log", "-o", "z", "--since", "5m")[2]
