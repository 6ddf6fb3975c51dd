"""`tfprof op JOB [OP]... --by WHAT`: op types are taken apart, with the figures of the view."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fakes import small_store
from fakes.command import Run
from tfprof.collector.tfviews.options import BY


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_store.write(tmp_path_factory.mktemp("apart") / "store")


def parts_of(document: dict[str, Any], op: str) -> list[dict[str, Any]]:
    rows = document["rows"]
    return [row for row in rows if row["parent"] is not None and rows[row["parent"]]["name"] == op]


@pytest.mark.parametrize("by", [by for by in BY if by != "step"])
def test_the_parts_of_an_op_type_add_up_to_its_row_in_the_view(run: Run, by: str) -> None:
    plain = {row["name"]: row for row in json.loads(run("op", "aa10", "bb10", "--json")[1])["rows"]}
    document = json.loads(run("op", "aa10", "bb10", "--by", by, "--json")[1])
    assert document["by"] == by
    for op, row in plain.items():
        parts = parts_of(document, op)
        assert parts
        for counter in ("time_ns", "runs", "bytes", "params", "definitions", "share"):
            assert sum(part[counter] for part in parts) == pytest.approx(row[counter])
        (shown_row,) = [shown for shown in document["rows"] if shown["name"] == op and shown["depth"] == 0]
        assert {**shown_row, "parent": None} == row


def test_the_rows_of_steps_have_the_figures_of_single_steps(run: Run) -> None:
    document = json.loads(run("op", "aa10", "--by", "step", "--json")[1])
    for row in [row for row in document["rows"] if row["depth"] == 0]:
        parts = {part["name"]: part for part in parts_of(document, row["name"])}
        assert list(parts) == sorted(parts, key=lambda name: -parts[name]["time_ns"])
        assert {part["time_ns"] for part in parts.values()} >= {row["min_ns"], row["max_ns"]} - {None}
        for number in (0, 1):
            step = json.loads(run("op", "aa10", "-step", str(number), "--json")[1])["rows"]
            (alone,) = [other for other in step if other["name"] == row["name"]]
            part = parts[f"run {number}"]
            assert [part[name] for name in ("time_ns", "runs", "bytes", "params")] == [
                alone[name] for name in ("time_ns", "runs", "bytes", "params")
            ]


def test_the_screen_names_the_parts_below_their_op_type(run: Run) -> None:
    code, out, err = run("op", "aa10", "MatMul", "Mean", "--by", "scope")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "op view of job aa10 train.py by scope: 2 traced run steps"
    assert lines[3:] == [
        "MatMul          10.0 µs   40 %  10.0/10.0/10.0 µs           1",
        "  net           10.0 µs   40 %  10.0/10.0/10.0 µs           1",
        "Mean            10.0 µs   40 %  10.0/10.0/10.0 µs           1",
        "  (no scope)    10.0 µs   40 %  10.0/10.0/10.0 µs           1",
    ]


def test_the_steps_beyond_top_have_a_row_without_numbers(run: Run) -> None:
    out = run("op", "aa10", "VariableV2", "--by", "step", "--top", "1")[1]
    assert [line.split("  ")[0] or line.split()[0] for line in out.splitlines()[3:]] == ["VariableV2", "run", "(1"]
    assert out.splitlines()[-1] == "  (1 other)"


def test_words_after_the_job_are_jobs_first_and_then_op_types(run: Run) -> None:
    assert "jobs aa10 train.py, bb10 train.py" in run("op", "aa10", "bb10", "MatMul")[1]
    assert run("op", "aa10", "MatMul")[1].splitlines()[-1].startswith("MatMul ")


def test_a_star_stands_for_the_rest_of_op_types(run: Run) -> None:
    assert [line.split()[0] for line in run("op", "aa10", "M*")[1].splitlines()[3:]] == ["MatMul", "Mean"]
    assert "no op type of that name" in run("op", "aa10", "N*")[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["aa10", "matmul"], "no job 'matmul', and no op type of that name: did you mean MatMul? [no-such-job]"),
        (
            ["aa10", "xyz"],
            "no job 'xyz', and no op type of that name: `tfprof jobs` lists jobs, `tfprof op JOB` op types",
        ),
        (
            ["aa10", "--by", "line", "--exact-tf"],
            "--by belongs to the screen and to --json: omit -output and --exact-tf",
        ),
        (["aa10", "--by", "lines"], "'lines' is not one of 'step', 'scope', 'line', 'layer', 'device', 'shape'"),
    ],
)
def test_mistakes_have_one_line_that_says_what_to_type(run: Run, arguments: Sequence[str], message: str) -> None:
    code, out, err = run("op", *arguments)
    assert code
    assert (out, err.count("\n")) == ("", 1)
    assert message in err
