"""`tfprof diff` on a store with invented runs: verdict, exact differences, ops, errors."""

import json
import random
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest
from fakes.command import Run
from fakes.made_store import IDENTITY, SECOND, START_NS, rows, span, trace_tables, write_job
from fakes.run_metadata import node, text
from tfprof.collector.decoders.proto import graph_pb2
from tfprof.formats import layout

DEVICE = b"/job:localhost/replica:0/task:0/device:CPU:0"
OPS = ("Conv2D", "MatMul", "Relu", "Add", "Mul", "Sub")
NAMES = {"old.py": 0.0, "new.py": 0.5}


def write_run(
    store: Path,
    uid: int,
    name: str,
    *,
    step_ms: float,
    op_us: Sequence[int],
    ops: Sequence[str] = OPS,
    **identity: object,
) -> None:
    """Write an ended run whose untraced steps take ``step_ms``, and whose ops take ``op_us``."""
    graph = graph_pb2.GraphDef(node=[graph_pb2.NodeDef(name=op.lower(), op=op) for op in ops])
    start_us, nodes = START_NS // 1000, b""
    for op, us in zip(ops, op_us, strict=True):
        nodes += text(2, node(op.lower().encode(), start_us, us - 1))
        start_us += us
    message = text(1, text(1, text(1, DEVICE) + nodes))
    spans = [span(layout.RUN, number, 10 * number, step_ms) for number in range(1, 21)]
    tables = {**trace_tables(graph.SerializeToString(), [message] * 3), "spans": rows("spans", spans)}
    opened = {"created_real_ns": START_NS + (uid & 0xFF) * SECOND, "launch": ""}
    write_job(store, uid, tables, identity={**IDENTITY, "name": name, **opened, **identity})


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with three runs of old.py, and three of new.py with a Conv2D 1.5 times as long."""
    path = tmp_path / "s"
    for number in range(3):
        noise = (1.0, 1.01, 0.99)[number]
        times = [int(us * noise) for us in (1000, 500, 200, 100, 80, 60)]
        write_run(path, (0xA0 + number) << 56 | number, "old.py", step_ms=2 * noise, op_us=times)
        slower = [int(1500 * noise), *times[1:]]
        write_run(path, (0xB0 + number) << 56 | (number + 9), "new.py", step_ms=2.5 * noise, op_us=slower)
    return path


@pytest.fixture
def compare(run: Run, store: Path):
    return lambda *words: run("diff", *words, "--store", str(store))


def test_several_runs_have_a_verdict_and_the_slower_op_is_first(compare) -> None:
    code, out, err = compare("b0", "b1", "b2", "--against", "a0", "a1", "a2")
    verdict, *others = out.splitlines()
    assert (code, err) == (0, "")
    assert verdict == "25 % slower: 2.00 ms -> 2.50 ms a step, beyond noise (3 runs against 3)"
    title = next(at for at, line in enumerate(others) if line.startswith("op "))
    assert others[title + 1].split()[:2] == ["Conv2D", "CPU:0"]
    assert others[title + 1].endswith("slower")
    assert not any(line.endswith(("slower", "faster")) for line in others[title + 2 :])


def test_the_document_has_the_same_numbers(compare) -> None:
    document = json.loads(compare("b0", "b1", "b2", "--against", "a0", "a1", "a2", "--json")[1])
    assert [run["name"] for run in document["before"]] == ["old.py"] * 3
    assert document["step"]["ratio"] == pytest.approx(1.25)
    assert document["step"]["significant"] is True
    first, *others = document["ops"]
    assert (first["op"], first["significant"]) == ("Conv2D", True)
    assert first["after_ns"] / first["before_ns"] == pytest.approx(1.5, rel=0.01)
    assert [op["significant"] for op in others] == [False] * 5
    assert document["differences"] == []


def test_two_runs_are_listed_without_a_verdict_on_ops(compare) -> None:
    code, out, _ = compare("old.py", "new.py")
    assert code == 0
    assert "one run a side cannot tell a change from noise" in out.splitlines()[0]
    assert not any(line.endswith(("slower", "faster")) for line in out.splitlines()[1:])


def test_a_baseline_is_the_ended_runs_of_a_name(compare) -> None:
    document = json.loads(compare("new.py", "--baseline", "old.py", "--json")[1])
    assert [len(document[side]) for side in ("before", "after")] == [3, 1]
    same = json.loads(compare("old.py", "--baseline", "old.py", "--json")[1])
    assert len(same["before"]) == 2
    assert compare("old.py", "--baseline", "other.py")[0] == 2


@pytest.mark.parametrize(("limit", "status"), [("20%", 3), ("24", 3), ("30%", 0)])
def test_fail_over_is_an_exit_status_for_changes_beyond_noise(compare, limit: str, status: int) -> None:
    assert compare("b0", "b1", "b2", "--against", "a0", "a1", "a2", "--fail-over", limit)[0] == status


def test_fail_over_needs_several_runs(compare) -> None:
    code, _, err = compare("old.py", "new.py", "--fail-over", "1%")
    assert (code, "--fail-over needs several runs" in err) == (0, True)


def write_changing_job(store: Path, ratio: float, count: int = 300) -> None:
    """Write a job whose steps take ``ratio`` times as long after the first ``count`` ones."""
    generator = random.Random(1)
    spans = [
        span(layout.RUN, number, 10 * number, 2 * generator.lognormvariate(0, 0.05) * (ratio if number > count else 1))
        for number in range(1, 2 * count + 1)
    ]
    counters = {"counts": {"run": 2 * count}, "times": {"run": 4 * count * 10**6}}
    write_job(store, 0xC0 << 56, {"spans": rows("spans", spans)}, identity={"name": "job.py"}, counters=counters)


def moment(step: int) -> str:
    return datetime.fromtimestamp((START_NS + (10 * step + 5) * 10**6) / 1e9).isoformat()  # noqa: DTZ006  # local time, as users type it


@pytest.mark.parametrize(
    ("ratio", "answer"), [(1.03, "% slower: "), (0.95, "% faster: "), (1.0, "no change beyond noise")]
)
def test_a_job_is_compared_with_itself_at_a_moment(run: Run, tmp_path: Path, ratio: float, answer: str) -> None:
    path = tmp_path / "other"
    write_changing_job(path, ratio)
    code, out, _ = run("diff", "job.py", "--before", moment(300), "--store", str(path))
    verdict = out.splitlines()[0]
    assert (code, answer in verdict) == (0, True), verdict
    assert ("beyond noise (300 steps against 300)" in verdict) == (ratio != 1)
    document = json.loads(run("diff", "job.py", "--before", moment(300), "--json", "--store", str(path))[1])
    assert document["step"]["ratio"] == pytest.approx(ratio, abs=0.015)


def test_a_moment_needs_steps_on_both_sides_and_one_job(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "other"
    write_changing_job(path, 1.0, 20)
    assert (
        "no untraced step before that time" in run("diff", "job.py", "--before", "2020-01-01", "--store", str(path))[2]
    )
    assert "no untraced step after that time" in run("diff", "job.py", "--before", "1s", "--store", str(path))[2]
    assert "compares one JOB with itself" in run("diff", "a0", "b0", "--before", "1s")[2]
    few = run("diff", "job.py", "--before", moment(3), "--store", str(path))[1]
    assert "so few steps a side cannot tell a change from noise" in few


def test_what_differs_exactly_is_named_before_any_op(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "other"
    write_run(path, 0xA0 << 56, "a.py", step_ms=2, op_us=[1000, 500], ops=("Conv2D", "MatMul"), python="3.11.1")
    write_run(path, 0xB0 << 56, "b.py", step_ms=2, op_us=[1000, 500], ops=("Conv2D", "Einsum"), python="3.12.0")
    lines = run("diff", "a.py", "b.py", "--store", str(path))[1].splitlines()
    assert "different: python: 3.11.1 -> 3.12.0" in lines
    assert {(line.split()[0], line.split()[-1]) for line in lines if line} >= {("MatMul", "gone"), ("Einsum", "new")}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["old.py"], "give two jobs, BEFORE and AFTER"),
        (["a0", "a1", "b0"], "give two jobs, BEFORE and AFTER"),
        (["a0", "--against", "b0", "--baseline", "old.py"], "exclude each other"),
        (["--against", "a0"], "no JOB given"),
        (["a0", "b0", "--fail-over", "x"], "a percentage, such as 5%"),
    ],
)
def test_bad_command_lines_are_refused(compare, words: list[str], message: str) -> None:
    code, out, err = compare(*words)
    assert (code, out, message in err) == (2, "", True)


def test_jobs_without_steps_or_traces_are_compared_as_far_as_possible(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "other"
    write_job(path, 0xA0 << 56, {}, identity={"name": "a.py"})
    write_job(path, 0xB0 << 56, {}, identity={"name": "b.py"})
    code, out, err = run("diff", "a.py", "b.py", "--store", str(path))
    assert code == 0
    assert out.startswith("no steps were timed on either side")
    assert "no op is compared" in err
