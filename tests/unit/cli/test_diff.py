"""`tfprof diff` on a store with invented runs: verdict, exact differences, ops, errors.

Tests collector/documents/comparison.py, collector/query/diffing.py, collector/render/diff_text.py,
collector/render/spread_text.py, web/markdown.py.
"""

import json
import random
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

import pytest
from fakes.command import Run
from fakes.made_store import SECOND, START_NS, rows, span, trace_tables, write_job
from fakes.run_metadata import node, text
from tfprof.cli import report
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
    flags: int = 0,
    devices: Sequence[bytes] = (DEVICE,),
    end: Mapping[str, object] | None = None,
    **identity: object,
) -> None:
    """Write an ended run whose steps take ``step_ms``, and whose ops take ``op_us``.

    The ops are on ``devices`` by turns.
    """
    nodes_of_ops = [graph_pb2.NodeDef(name=f"{op.lower()}_{number}", op=op) for number, op in enumerate(ops)]
    graph = graph_pb2.GraphDef(node=nodes_of_ops)
    start_us, nodes = START_NS // 1000, [b""] * len(devices)
    for number, (each, us) in enumerate(zip(nodes_of_ops, op_us, strict=True)):
        nodes[number % len(devices)] += text(2, node(each.name.encode(), start_us, us - 1))
        start_us += us
    message = text(1, b"".join(text(1, text(1, device) + ops) for device, ops in zip(devices, nodes, strict=True)))
    spans = [span(layout.RUN, number, 10 * number, step_ms, flags=flags) for number in range(1, 21)]
    tables = {**trace_tables(graph.SerializeToString(), [message] * 3), "spans": rows("spans", spans)}
    opened = {"created_real_ns": START_NS + (uid & 0xFF) * SECOND, "launch": ""}
    counters = {"counts": {"run": 20}, "times": {"run": int(20 * step_ms * 10**6)}}
    write_job(store, uid, tables, identity={"name": name, **opened, **identity}, counters=counters, end=end)


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


def test_the_same_runs_on_both_sides_are_named(compare) -> None:
    assert compare("old.py", "old.py")[2] == "tfprof: both sides are the same runs\n"


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


@pytest.fixture
def series(tmp_path: Path) -> Path:
    """A store with a series of two commands, whose last run failed, and a series of one command."""
    path = tmp_path / "series"
    for number, noise in enumerate((1.0, 1.01, 0.99, 3.0)):
        times = [int(us * noise) for us in (1000, 500, 200, 100, 80, 60)]
        end = {"status": 1} if number == 3 else {"status": 0}
        for digit, tag, slower in ((0xA0, "5f3a12:before", 1.0), (0xB0, "5f3a12:after", 1.5), (0xC0, "77aa01", 1.0)):
            us = [int(times[0] * slower), *times[1:]]
            uid, launch = (digit + number) << 56 | number + digit, f"{digit + number:016x}"
            write_run(path, uid, "net.py", step_ms=2 * noise, op_us=us, end=end, launch=launch, tags={"repeat": tag})
            forked = {"launch": launch, "tags": {"repeat": tag}, "pid": 1, "ppid": 2, "name": "helper"}
            write_job(path, uid + (1 << 48), {}, identity=forked)
    return path


def test_a_series_is_compared_by_its_sides_without_failed_runs(run: Run, series: Path) -> None:
    code, out, err = run("diff", "repeat:5f3a12", "--store", str(series))
    assert (code, err) == (0, "")
    assert "(3 runs against 3)" in out or "no change beyond noise" in out.splitlines()[0]
    document = json.loads(run("diff", "repeat:5f3a12", "--json", "--store", str(series))[1])
    assert [run["job"][:2] for run in document["before"]] == ["a0", "a1", "a2"]
    assert [run["job"][:2] for run in document["after"]] == ["b0", "b1", "b2"]
    assert (document["ops"][0]["op"], document["ops"][0]["significant"]) == ("Conv2D", True)
    words = ("diff", "repeat:5f3a12:before", "repeat:5f3a12:after", "--json", "--store", str(series))
    assert json.loads(run(*words)[1]) == document


def test_a_series_of_one_command_has_a_spread(run: Run, series: Path) -> None:
    code, out, err = run("diff", "repeat:77aa01", "--store", str(series))
    verdict, *others = out.splitlines()
    assert (code, err) == (0, "")
    assert verdict.startswith("2.00 ms a step in 3 runs, 1.98 ms to 2.02 ms; 3 runs a side show changes from ")
    conv = next(line.split() for line in others if line.startswith("Conv2D"))
    assert conv[2:8] == ["999", "µs", "989", "µs", "1.01", "ms"]
    assert sum(line.startswith("run ") for line in others) == 3


def test_the_end_of_a_series_shows_how_its_runs_compare(
    run: Run, series: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = run("diff", "repeat:77aa01", "--store", str(series))[1].splitlines()
    assert report.main(["repeat:77aa01", "--store", str(series)]) == 0
    more = ["tfprof: more with  tfprof diff repeat:77aa01", f"tfprof: (with --store {series})"]
    assert capsys.readouterr().out.splitlines() == ["", *lines, *more]
    assert report.main(["repeat:77aa02", "--store", str(series)]) == 0
    assert "no comparison: no job 'repeat:77aa02'" in capsys.readouterr().out


def test_a_side_of_a_series_is_compared_with_other_runs(run: Run, series: Path) -> None:
    other = f"{0xA3 << 56 | 0xA3:016x}"
    words = ("diff", "repeat:77aa01", "--against", "repeat:5f3a12:before", other, "--json", "--store", str(series))
    document = json.loads(run(*words)[1])
    assert [len(document[side]) for side in ("before", "after")] == [4, 3]


def test_the_name_of_a_series_is_a_tag_of_its_jobs_and_means_the_newest(run: Run, series: Path) -> None:
    assert "repeat:5f3a12:before" in run("jobs", "--store", str(series))[1]
    assert run("show", "repeat:5f3a12:after", "--store", str(series))[0] == 0


def test_the_last_series_needs_no_id(run: Run, series: Path) -> None:
    last, named = (run("diff", f"repeat:{name}", "--store", str(series))[1] for name in ("last", "77aa01"))
    assert last == named
    assert "no job 'repeat:last:after'" in run("diff", "repeat:last:after", "last", "--store", str(series))[2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["repeat:none"], "no job 'repeat:none'"),
        (["repeat:5f3a12", "--against", "a0"], "repeat:5f3a12 has two sides: repeat:5f3a12:before and repeat:5f3a12"),
        (["repeat:77aa01", "--json", "--markdown"], "exclude each other"),
        (["repeat:77aa01", "--fail-over", "5%"], "--fail-over needs two sides, and repeat:77aa01 has one"),
    ],
)
def test_wrong_words_about_a_series_are_refused(run: Run, series: Path, words: list[str], message: str) -> None:
    code, out, err = run("diff", *words, "--store", str(series))
    assert (code != 0, out, message in err) == (True, "", True), err


def test_markdown_has_the_verdict_and_the_ops(compare, run: Run, series: Path) -> None:
    words = ("b0", "b1", "b2", "--against", "a0", "a1", "a2", "--markdown")
    code, out, _ = compare(*words, "--fail-over", "5%")
    assert (code, out.splitlines()[0]) == (3, f"**{compare(*words[:-1])[1].splitlines()[0]}**")
    assert next(line for line in out.splitlines() if "Conv2D" in line).startswith("| Conv2D | CPU:0 | **slower** |")
    spread = run("diff", "repeat:77aa01", "--markdown", "--store", str(series))[1]
    assert spread.startswith("**2.00 ms a step in 3 runs")
    assert "| Conv2D | CPU:0 | 999 µs |" in spread


def test_counts_that_vary_between_equal_runs_are_no_difference(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "other"
    for digit, ops in ((0xA0, "AAB"), (0xA1, "AB"), (0xB0, "AAAB"), (0xB1, "AB"), (0xC0, "AAAABB"), (0xC1, "AAAAABB")):
        write_run(path, digit << 56, "a.py", step_ms=2, op_us=[1000] * len(ops), ops=ops)
    out = run("diff", "b0", "b1", "--against", "a0", "a1", "--store", str(path))[1]
    assert "different: calls" not in out
    out = run("diff", "c0", "c1", "--against", "a0", "a1", "--store", str(path))[1]
    assert "different: calls of A CPU:0 a step: 1.5 -> 4.5" in out


def test_ops_of_tasks_are_apart_and_two_tasks_are_compared(run: Run, tmp_path: Path) -> None:
    tasks = [DEVICE.replace(b"localhost", b"worker").replace(b"task:0", b"task:%d" % number) for number in (0, 1)]
    for number, devices in enumerate(([tasks[0]], [tasks[1]], tasks, tasks)):
        write_run(tmp_path, (0xA0 + number) << 56, f"{number}.py", step_ms=2, op_us=[100] * 6, devices=devices)
    of_workers, of_both = (
        json.loads(run("diff", *names, "--store", tmp_path, "--json")[1])
        for names in (("0.py", "1.py"), ("2.py", "3.py"))
    )
    assert {(op["device"], op["before_ns"] is None) for op in of_workers["ops"]} == {("CPU:0", False)}
    assert {(op["op"], op["device"]) for op in of_both["ops"] if op["op"] in {"Conv2D", "MatMul"}} == {
        ("Conv2D", "worker:0 CPU:0"),
        ("MatMul", "worker:1 CPU:0"),
    }


def test_an_op_that_some_run_lacks_is_not_compared_and_named(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "other"
    for digit, ops in ((0xA0, "AB"), (0xA1, "A"), (0xB0, "AB"), (0xB1, "AB")):
        write_run(path, digit << 56, "a.py", step_ms=2, op_us=[1000] * len(ops), ops=ops)
    words = ("diff", "b0", "b1", "--against", "a0", "a1", "--store", str(path))
    line = "not compared, since not every run has them: B CPU:0"
    assert line in run(*words)[1].splitlines()
    assert line in run(*words, "--markdown")[1].splitlines()
    assert json.loads(run(*words, "--json")[1])["partial_ops"] == ["B CPU:0"]


def test_traced_steps_are_not_compared_with_untraced_ones(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "other"
    write_run(path, 0xA0 << 56, "a.py", step_ms=2, op_us=[1000], ops="A")
    write_run(path, 0xB0 << 56, "b.py", step_ms=3, op_us=[1000], ops="A", flags=layout.FLAG_TRACED)
    out = run("diff", "a0", "b0", "--store", str(path))[1]
    assert out.startswith("no untraced steps on one side: only ops are compared")


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
    assert out.startswith("no untraced steps on either side")
    assert "no op is compared" in err
