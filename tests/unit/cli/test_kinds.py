"""Jobs with steps of several kinds: commands cover one kind by default.

Tests collector/query/kind_selection.py, collector/summaries/kinds.py.
"""

import json
import zlib
from pathlib import Path

import pyarrow as pa
import pytest
from fakes.command import Run
from fakes.made_steps import Execution, graph, run_metadata
from fakes.made_store import START_NS, rows, trace_tables, write_job
from tfprof.collector.api import open_store
from tfprof.collector.errors import UsageError
from tfprof.collector.store.schema import TRACES
from tfprof.collector.summaries.kinds import kind_name, parse_kinds
from tfprof.formats import layout

STEPS = [
    (layout.BATCH, 3),
    (layout.BATCH, 4),
    (layout.BATCH, 90),
    *((layout.TEST_BATCH, number) for number in range(3, 8)),
]
TIMES = {"batch": 10**9, "test_batch": 4 * 10**9, "fit": 5 * 10**9}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a fit with validation.

    MatMul takes 10 µs of a batch, Cast takes 90 µs of a test batch.
    """
    ops = {layout.BATCH: Execution("dense", 0, 10), layout.TEST_BATCH: Execution("cast", 0, 90)}
    messages = [run_metadata([ops[kind]], START_NS) for kind, _ in STEPS]
    tables = trace_tables(graph({"dense": "MatMul", "cast": "Cast"}), messages)
    traces = [
        {**row, "kind": kind, "step": step}
        for row, (kind, step) in zip(tables["traces"].to_pylist(), STEPS, strict=True)
    ]
    tables["traces"] = pa.Table.from_pylist(traces, schema=TRACES)
    counters = {"counts": {"batch": 100, "test_batch": 7500}, "times": TIMES, "failed": {"batch": 2}}
    path = tmp_path_factory.mktemp("kinds") / "store"
    write_job(path, 0xAA << 56, tables, identity={"name": "fit.py"}, counters=counters)
    return path


def times_and_kinds(run: Run, *words: str) -> tuple[dict[str, int], dict[str, int]]:
    """Return the time of each op type in µs, and the number of steps of each kind."""
    document = json.loads(run("op", "aa", "--json", *words)[1])
    if "--exact-tf" not in words:
        rows = {row["name"]: int(row["time_ns"] / 1000 + 0.5) for row in document["rows"] if row["time_ns"]}
        return rows, document["kinds"]
    times, entry = {}, document["profile"]
    while entry["children"]:
        (entry,) = entry["children"]
        times[entry["name"]] = entry["exec_micros"]
    return {name: micros for name, micros in times.items() if micros}, document["kinds"]


@pytest.mark.parametrize(
    ("words", "micros", "kinds"),
    [
        ((), {"MatMul": 10}, {"batch": 3}),
        (("--kind", "test_batch"), {"Cast": 90}, {"test_batch": 5}),
        (("--kind", "batch,test_batch"), {"MatMul": 4, "Cast": 56}, {"batch": 3, "test_batch": 5}),
        (("--kind", "all"), {"MatMul": 4, "Cast": 56}, {"batch": 3, "test_batch": 5}),
        (("--exact-tf",), {"MatMul": 10, "Cast": 90}, {"batch": 3, "test_batch": 5}),
        (("--exact-tf", "--kind", "batch"), {"MatMul": 10}, {"batch": 3}),
        (("-step", "3"), {"MatMul": 10}, {"batch": 1}),
        (("--exact-tf", "-step", "3"), {"MatMul": 10}, {"batch": 1}),
        (("-step", "3", "--kind", "test_batch"), {"Cast": 90}, {"test_batch": 1}),
        (("--steps", "4-6", "--kind", "all"), {"MatMul": 3, "Cast": 68}, {"batch": 1, "test_batch": 3}),
    ],
)
def test_a_view_covers_the_selected_kind(
    run: Run, words: tuple[str, ...], micros: dict[str, int], kinds: dict[str, int]
) -> None:
    assert times_and_kinds(run, *words) == (micros, kinds)


def test_kinds_that_are_left_out_are_named(run: Run) -> None:
    heading = run("op", "aa")[1].splitlines()[:2]
    assert "3 traced batch steps" in heading[0]
    assert heading[1].endswith("also traced: 5 test_batch (--kind)")
    assert "5 traced test_batch steps" in run("scope", "aa", "--kind", "test_batch")[1]
    assert "also traced" not in run("op", "aa", "--kind", "all")[1]
    assert "also traced" not in "".join(run("op", "aa", "--exact-tf")[1:])
    message = run("op", "aa", "-output", "file:outfile=/dev/null")[2]
    assert "shown: 3 batch steps; also traced, and left out: 5 test_batch (--kind)" in message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-step", "5"], "traced are 3, 4, 90 (of the kind batch; --kind test_batch has the step) [no-such-step]"),
        (["-step", "99"], "traced are 3, 4, 90 (of the kind batch) [no-such-step]"),
        (
            ["-step", "90", "--kind", "test_batch"],
            "traced are 3, 4, 5, 6, 7 (of the kind test_batch; --kind batch has the step)",
        ),
        (
            ["--kind", "function"],
            "no step of the kind function was traced; there are 3 batch, 5 test_batch [no-such-kind]",
        ),
        (["--kind", "bach"], "no kind of step is called 'bach': batch, train, "),
        (["--kind", ""], "[no-such-kind]"),
        (["--kind", "all,batch"], "no kind of step is called 'all'"),
    ],
)
def test_an_unknown_kind_is_refused(run: Run, words: list[str], message: str) -> None:
    status, out, err = run("op", "aa", *words)
    assert (status, out) == (2, "")
    assert message in err


def test_the_steps_of_a_job_are_the_successful_ones_of_its_main_kind(run: Run) -> None:
    (job,) = json.loads(run("jobs", "--json")[1])["jobs"]
    assert (job["steps"], job["step_kind"], job["traced_of_kind"]) == (98, "batch", 3)
    header, job_row = run("jobs")[1].splitlines()
    assert job_row[: header.index("TRACED") + len("TRACED")].split()[-1] == "3"


def test_the_shell_accepts_a_kind_for_a_line_or_for_the_session(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import io
    import sys

    lines = "op\nop -kind test_batch\nop\nset -kind all\nop\nop -kind nothing\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
    status, out, err = run("shell", "aa", "-select", "micros", "-min_micros", "1")
    assert (status, "no kind of step is called 'nothing'" in err) == (1, True)
    result = [line.partition(": ")[2] for line in out.splitlines() if line.startswith("op view of job ")]
    assert [line.partition(" of ")[0] for line in result] == [
        "3 traced batch steps",
        "5 traced test_batch steps",
        "3 traced batch steps",
        "8 traced steps (3 batch, 5 test_batch)",
    ]


def test_profile_proto_writes_all_or_selected_kinds(run: Run, tmp_path: Path) -> None:
    from tfprof.collector.proto.tfprof_log_pb2 import ProfileProto

    def steps(*words: str) -> list[int]:
        file = tmp_path / "profile"
        assert run("profile-proto", "aa", "-o", str(file), *words)[0] == 0
        return sorted(ProfileProto.FromString(file.read_bytes()).steps)

    assert steps() == [3, 4, 90, *range(94, 99)]
    assert steps("--kind", "test_batch") == [3, 4, 5, 6, 7]
    assert steps("--steps", "4-5") == [4]


def test_python_can_select_kinds(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    api_store = open_store(store)
    options = {"output": "none", "account_type_regexes": [".*"], "show_name_regexes": [".*"], "max_depth": 9}
    totals = [
        api_store.select("aa", kind=kind).profile_operations(options).total_exec_micros
        for kind in (None, "test_batch", ["batch", "test_batch"])
    ]
    assert totals == [10, 90, 60]
    assert "left out: 5 test_batch" in capsys.readouterr().err
    with pytest.raises(UsageError, match="no kind of step"):
        api_store.select("aa", kind="x")


def test_kinds_are_parsed_in_their_fixed_order() -> None:
    assert parse_kinds("test_batch, batch") == (layout.BATCH, layout.TEST_BATCH)
    assert parse_kinds("all") == layout.STEP_KINDS
    kinds = parse_kinds("function:eval_step,batch")
    assert [kind_name(kind, NAMES) for kind in kinds] == ["batch", "function:eval_step"]


#: Keys of functions by name, and names by key.
KEYS = {name: zlib.crc32(name.encode()) for name in ("train_step", "eval_step")}
NAMES = {key: name for name, key in KEYS.items()}
CALLS = [(3, "train_step"), (4, "train_step"), (5, "eval_step"), (6, "eval_step"), (7, "eval_step")]


@pytest.fixture(scope="module")
def loop_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a job that calls two functions in a loop.

    One function does training steps, the other does evaluation steps. A training step
    has a gradient of 10 µs, an evaluation step has a Cast of 90 µs.
    """
    ops = {"train_step": Execution("gradient_tape/dense", 0, 10), "eval_step": Execution("cast", 0, 90)}
    messages = [run_metadata([ops[name]], START_NS) for _, name in CALLS]
    tables = trace_tables(graph({"gradient_tape/dense": "MatMul", "cast": "Cast"}), messages)
    traces = [
        {**row, "kind": layout.FUNCTION, "step": step, "key": KEYS[name]}
        for row, (step, name) in zip(tables["traces"].to_pylist(), CALLS, strict=True)
    ]
    tables["traces"] = pa.Table.from_pylist(traces, schema=TRACES)
    times = {"train_step": 10**9, "eval_step": 4 * 10**9}
    spans = [
        {"kind": layout.FUNCTION, "key": KEYS[name], "count": 40, "total_ns": times[name], "min_ns": 1, "max_ns": 1}
        for name in times
    ]
    tables["spans"] = rows("spans", spans)
    counters = {"counts": {"function": 90}, "times": {"function": 5 * 10**9}}
    path = tmp_path_factory.mktemp("loop") / "store"
    identity = {"name": "loop.py", "functions": {str(key): name for key, name in NAMES.items()}}
    write_job(path, 0xAA << 56, tables, identity=identity, counters=counters)
    return path


@pytest.mark.parametrize(
    ("words", "micros", "kinds"),
    [
        ((), {"MatMul": 10}, {"function:train_step": 2}),
        (("--kind", "function:eval_step"), {"Cast": 90}, {"function:eval_step": 3}),
        (("--kind", f"function:#{KEYS['eval_step']:x}"), {"Cast": 90}, {"function:eval_step": 3}),
        (
            ("--kind", "function"),
            {"MatMul": 4, "Cast": 54},
            {"function:train_step": 2, "function:eval_step": 3},
        ),
        (("--exact-tf",), {"MatMul": 10, "Cast": 90}, {"function:train_step": 2, "function:eval_step": 3}),
        (("-step", "4"), {"MatMul": 10}, {"function:train_step": 1}),
        (("--exact-tf", "-step", "5"), {"Cast": 90}, {"function:eval_step": 1}),
    ],
)
def test_each_function_is_a_kind_and_a_training_function_is_the_default(
    run: Run, loop_store: Path, words: tuple[str, ...], micros: dict[str, int], kinds: dict[str, int]
) -> None:
    assert times_and_kinds(run, "--store", str(loop_store), *words) == (micros, kinds)


def test_functions_are_named_if_their_steps_are_left_out_or_missing(run: Run, loop_store: Path) -> None:
    heading = run("op", "aa", "--store", str(loop_store))[1].splitlines()[:2]
    assert "2 traced function:train_step steps of 40" in heading[0]
    assert heading[1].endswith("also traced: 3 function:eval_step (--kind)")
    step_message = run("op", "aa", "-step", "6", "--store", str(loop_store))[2]
    assert "traced are 3, 4 (of the kind function:train_step; --kind function:eval_step has the step)" in step_message
    kind_message = run("op", "aa", "--kind", "function:step", "--store", str(loop_store))[2]
    assert "no step of a function of that name was traced; there are 2 function:train_step, 3" in kind_message
    assert "[no-such-kind]" in run("op", "aa", "--kind", "function:", "--store", str(loop_store))[2]


def test_a_profile_has_the_calls_of_all_functions_by_their_numbers(run: Run, loop_store: Path, tmp_path: Path) -> None:
    from tfprof.collector.proto.tfprof_log_pb2 import ProfileProto

    file = tmp_path / "profile"
    assert run("profile-proto", "aa", "-o", str(file), "--store", str(loop_store))[0] == 0
    assert sorted(ProfileProto.FromString(file.read_bytes()).steps) == [3, 4, 5, 6, 7]
