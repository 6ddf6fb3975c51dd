"""Commands on a store with invented jobs: text, JSON, errors.

Tests collector/documents/jobs.py, collector/documents/series.py, collector/documents/spread.py,
cli/command.py, cli/job_names.py, cli/jobs.py, cli/main.py, cli/report.py, cli/status.py.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from fakes.command import Run, caller
from fakes.made_store import HOST, MS, SECOND, START_NS, rows, span, trace_tables, write_host, write_job
from fakes.run_metadata import run_metadata
from tfprof.cli import main as cli
from tfprof.cli import report
from tfprof.collector.decoders.proto import graph_pb2
from tfprof.collector.loader import load
from tfprof.formats import layout

TRAIN, KILLED, RUNNING = 0x7F3A112233445566, 0x7F3B112233445566, 0x1234112233445566
GRAPH = graph_pb2.GraphDef(
    node=[graph_pb2.NodeDef(name="a", op="MatMul"), graph_pb2.NodeDef(name="b", op="Add", input=["a"])]
)


def tables() -> dict[str, Any]:
    """Return the rows of a job with four training steps, two of them traced, and session runs."""
    job_tables = trace_tables(GRAPH.SerializeToString(), [run_metadata([b"a", b"b"]), run_metadata([b"a"])])
    spans = [span(layout.FIT, 1, 0, 100), span(layout.EPOCH, 1, 0, 100)]
    spans += [span(layout.BATCH, n, 10 * n, 5, parent=1, flags=n % 2) for n in range(1, 5)]
    job_tables["spans"] = rows("spans", [*spans, span(layout.RUN, 1, 200, 1, count=7)])
    samples = [{"t_ns": START_NS + n * SECOND, "cpu_user_s": 2.0 * n, "rss_bytes": 10**9} for n in range(4)]
    job_tables["samples"] = rows("samples", samples)
    return job_tables


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with three jobs.

    One job has ended, one was killed before its first step, and one is running.
    """
    path = tmp_path_factory.mktemp("made") / "store"
    counters = {"traced": 2, "counts": {"batch": 4, "epoch": 1, "fit": 1, "run": 7}, "step_ns": 100, "self_ns": 1}
    write_job(path, TRAIN, tables(), counters=counters, end={"status": 0})
    write_job(path, KILLED, {}, state="killed", identity={"name": "other.py", "launch": "none"}, end={"signal": 9})
    write_job(path, RUNNING, {}, state=None, identity={"name": "live.py", "launch": "none"})
    write_host(path, [{"t_ns": START_NS + n * SECOND, "cpus": 8, "cpu_busy_s": 3.0 * n} for n in range(9)])
    return path


@pytest.fixture
def run(store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command on the store; returns exit status, stdout, stderr."""
    monkeypatch.setenv("TFPROF_STORE", str(store))
    monkeypatch.delenv("TFPROF_DEBUG", raising=False)

    return caller(capsys)


def test_jobs_lists_every_job_with_its_state(run: Run) -> None:
    code, out, err = run("jobs")
    lines = [line.split() for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert lines[0][:5] == ["ID", "NAME", "USER", "HOST", "PID"]
    assert [line[:5] for line in lines[1:]] == [
        ["7f3a", "train.py", "ada", HOST, "4711"],
        ["7f3b", "other.py", "ada", HOST, "4711"],
        ["1234", "live.py", "ada", HOST, "4711"],
    ]
    assert "killed SIGKILL" in out.splitlines()[2]
    assert "starting" in lines[3]


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        (("--state", "killed"), ["7f3b"]),
        (("--state", "killed,starting"), ["7f3b", "1234"]),
        (("--state", "running", "--state", "EXITED"), ["7f3a", "1234"]),
        (("--state", "ended"), []),
        (("--state", "detached,lost,stale,imported"), []),
        (("--name", "*.py", "--name", "nothing"), ["7f3a", "7f3b", "1234"]),
        (("--name", "TRAIN*"), ["7f3a"]),
        (("--host", "NODE*"), ["7f3a", "7f3b", "1234"]),
        (("--host", "other"), []),
        (("--since", "2023-11-14"), ["7f3a", "7f3b", "1234"]),
        (("--since", "1h"), []),
        (("--since", "2023-11-16 12:00"), []),
        (("train", "live"), ["7f3a", "1234"]),
        (("4711",), ["7f3a", "7f3b", "1234"]),
        (("7f", "--state", "killed"), ["7f3b"]),
    ],
)
def test_jobs_lists_only_selected_jobs(run: Run, words: tuple[str, ...], ids: list[str]) -> None:
    code, out, err = run("jobs", *words)
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[1:]] == ids
    assert ("none of 3 jobs matches the names, hosts, state and time" in err) == (not ids)
    assert [job["id"] for job in json.loads(run("jobs", "--json", *words)[1])["jobs"]] == ids


def test_jobs_shows_step_time_and_resource_use(run: Run, tmp_path: Path) -> None:
    counters = {"counts": {"batch": 4}, "times": {"batch": 10 * MS}, "step_ns": 10 * MS, "self_ns": MS // 10}
    write_job(tmp_path / "s", TRAIN, tables(), counters=counters)
    (job,) = json.loads(run("jobs", "--json", "--store", str(tmp_path / "s"))[1])["jobs"]
    assert (job["step_ns"], job["cpu_cores"], job["memory_bytes"], job["phase"]) == (2.5 * MS, 2.0, 10**9, "ended")
    header, cells = (line.split("  ") for line in run("jobs", "--store", str(tmp_path / "s"))[1].splitlines())
    assert {"MEAN STEP", "CPU", "MEMORY", "COST"} <= {word.strip() for word in header}
    assert {"2.50 ms", "2.00", "1.0 GB", "1.0 %"} <= {word.strip() for word in cells}


def test_jobs_as_json_has_counts_states_and_durations(run: Run) -> None:
    jobs = json.loads(run("jobs", "--json")[1])["jobs"]
    assert [(job["uid"], job["steps"], job["traced"], job["lost"], job["state"]) for job in jobs] == [
        ("7f3a112233445566", 4, 2, 0, "exited"),
        ("7f3b112233445566", 0, 0, 0, "killed"),
        ("1234112233445566", 0, 0, 0, "running"),
    ]
    assert jobs[0]["duration_ns"] == 60 * SECOND


def test_op_shows_each_type_with_the_selected_columns(run: Run) -> None:
    code, out, err = run("op", "7f3a", "-select", "micros,occurrence", "-order_by", "micros", "--exact-tf")
    legend, *entries = out.splitlines()[out.splitlines().index("Profile:") + 1 :]
    assert (code, err) == (0, "")
    assert legend.endswith("| cpu execution time | op occurrence (run|defined)")
    assert [(entry.split()[0], entry.split()[-1]) for entry in entries] == [("Add", "1|1"), ("MatMul", "1|1")]


def test_op_as_json_has_a_row_for_each_op_type(run: Run) -> None:
    document = json.loads(run("op", "train.py", "--json")[1])
    assert (document["job"], document["jobs"], document["traces"]) == ("7f3a112233445566", ["7f3a112233445566"], 2)
    matmul, add = document["rows"]
    assert (matmul["name"], matmul["time_ns"], matmul["parent"], matmul["own"]["time_ns"]) == (
        "MatMul",
        10_000,
        None,
        10_000,
    )
    assert (add["name"], add["time_ns"], add["bytes"], add["runs"]) == ("Add", 5_000, 32, 0.5)
    assert [node["name"] for node in matmul["nodes"]] == ["a"]
    assert add["nodes"][0]["input_shapes"] == [None]


def test_op_as_json_with_exact_tf_contains_the_tf_profilers_message(run: Run) -> None:
    document = json.loads(run("op", "train.py", "--json", "--exact-tf")[1])
    assert (document["job"], document["jobs"], document["traces"]) == ("7f3a112233445566", ["7f3a112233445566"], 2)
    root = document["profile"]
    (add,) = root["children"]
    (matmul,) = add["children"]
    assert (root["name"], root["total_exec_micros"], matmul["children"]) == ("_TFProfRoot", 20, [])
    assert (add["name"], add["exec_micros"], add["total_exec_micros"], add["requested_bytes"]) == ("Add", 10, 20, 64)
    assert [node["name"] for node in matmul["graph_nodes"]] == ["a"]
    assert add["graph_nodes"][0]["input_shapes"] == {"0": {"unknown_rank": True}}


def test_scope_and_graph_as_json_are_trees(run: Run) -> None:
    for view, names in (("scope", ["a", "b"]), ("graph", ["b"])):
        root = json.loads(run(view, "train.py", "--json", "--exact-tf")[1])["profile"]
        assert [child["name"] for child in root["children"]] == names
        assert (root["total_exec_micros"], root["total_run_count"]) == (20, 2)
    assert [grandchild["name"] for grandchild in root["children"][0]["children"]] == ["a"]


def test_a_job_without_a_command_is_shown(run: Run, tmp_path: Path) -> None:
    assert run("train.py") == run("show", "train.py")
    assert json.loads(run("7f3b", "--json")[1])["job"] == "7f3b112233445566"
    assert "'7f' means 2 jobs" in run("7f")[2]
    write_job(tmp_path / "other", 0xAB << 56, {}, identity={"name": "other.py"})
    for options in (["--store", str(tmp_path / "other")], [f"--store={tmp_path / 'other'}"]):
        assert run("other", *options)[0] == 0
    assert "no such command or job 'other'" in run("other", "--store", str(tmp_path / "nowhere"))[2]


def test_help_is_a_command(run: Run) -> None:
    assert run("help") == run("--help")
    assert run("help", "op") == run("op", "--help")
    assert run("help", "nosuch")[0] == 2


def test_op_of_one_step_has_that_step_only(run: Run) -> None:
    assert json.loads(run("op", "7f3a", "-step", "1", "--json")[1])["total"]["time_ns"] == 10_000


def test_op_explains_which_entries_the_filters_hide(run: Run) -> None:
    assert (
        run("op", "7f3a", "-max_depth", "0")[2]
        == "tfprof: 1 of 2 op types shown: 1 beyond -max_depth or -trim_name_regexes\n"
    )
    assert "0 of 2 op types shown: 2 hidden by -min_" in run("op", "7f3a", "-min_bytes", "1000")[2]
    assert "0 of 2 op types shown: 2 before -start_" in run("op", "7f3a", "-start_name_regexes", "Nothing")[2]
    code, out, err = run("op", "7f3a", "-account_type_regexes", "Nothing")
    assert (code, out, err) == (0, "", "tfprof: none of 2 op types has a node that -account_type_regexes matches\n")


def test_steps_separates_traced_and_untraced_steps(run: Run) -> None:
    code, out, _ = run("steps", "7f3a")
    lines = [line.split() for line in out.splitlines()]
    assert code == 0
    assert lines[1][:2] == ["batch", "2"]
    assert lines[2][:3] == ["batch", "traced", "2"]
    assert [line[-1] for line in lines if line and line[0] == "batch"][2:].count("traced") == 2


def test_steps_as_json_lists_the_requested_number(run: Run) -> None:
    document = json.loads(run("steps", "7f3a", "--json", "--last", "2")[1])
    assert document["entries"] == 5
    assert [(step["kind"], step["count"]) for step in document["steps"]] == [("batch", 1), ("run", 7)]
    assert document["groups"][0]["untraced"]["p50_ns"] == 5 * MS
    assert len(json.loads(run("steps", "7f3a", "--json", "--all")[1])["steps"]) == 5


def test_steps_say_why_none_was_traced(tmp_path: Path, run: Run) -> None:
    spans = {"spans": rows("spans", [span(layout.BATCH, 1, 0, 5)])}
    write_job(tmp_path / "store", TRAIN, spans, identity={"trace": "off"}, counters={"counts": {"batch": 1}})
    reason = "no traced steps: its only step was only timed, as requested (--trace off)"
    arguments = ("steps", "7f3a", "--store", str(tmp_path / "store"))
    assert run(*arguments)[2] == f"tfprof: {reason}\n"
    assert json.loads(run(*arguments, "--json")[1])["note"] == reason


def event_table(*slugs: str) -> dict[str, Any]:
    """Return the events of a job, one for each of ``slugs``."""
    events = [
        {"t_ns": START_NS + n, "slug": slug, "text": f"\033{slug} occurred", "count": n}
        for n, slug in enumerate(slugs, 1)
    ]
    return {"events": rows("events", events)}


@pytest.mark.parametrize("with_steps", [True, False])
def test_events_of_a_job_are_printed_with_its_steps(tmp_path: Path, run: Run, with_steps: bool) -> None:
    job_tables = {**(tables() if with_steps else {}), **event_table("profiler-busy", "outside-steps")}
    write_job(tmp_path / "store", TRAIN, job_tables)
    expected = ["?profiler-busy occurred [profiler-busy]", "?outside-steps occurred, 2 times [outside-steps]"]
    out = run("steps", "7f3a", "--store", str(tmp_path / "store"))[1]
    assert [line for line in out.splitlines() if "occurred" in line] == expected
    document = json.loads(run("steps", "7f3a", "--json", "--store", str(tmp_path / "store"))[1])
    assert [(event["slug"], event["count"]) for event in document["events"]] == [
        ("profiler-busy", 1),
        ("outside-steps", 2),
    ]
    assert (document["entries"] > 0) == with_steps


@pytest.mark.parametrize(
    ("slugs", "expected"),
    [
        ((), None),
        (("outside-steps",), None),
        (("outside-steps", "page-faults"), "?page-faults occurred, 2 times [page-faults]"),
        (("gap", "a", "b"), "?gap occurred: 1 [gap]; 2 more in: tfprof steps 7f3a112233445566"),
    ],
)
def test_the_report_contains_unusual_events(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], slugs: tuple[str, ...], expected: str | None
) -> None:
    write_job(tmp_path, TRAIN, {**tables(), **event_table(*slugs)}, end={"status": 0})
    assert report.main(["00000000000000aa", "--store", str(tmp_path)]) == 0
    *_, note, _, _ = capsys.readouterr().out.splitlines()
    assert note == f"tfprof: {expected}" if expected else note.startswith("  ")


def test_the_event_that_prevented_tracing_is_given_as_the_reason(tmp_path: Path, run: Run) -> None:
    write_job(tmp_path / "store", TRAIN, event_table("profiler-server"))
    message = run("op", "7f3a", "--store", str(tmp_path / "store"))[2]
    assert message == "tfprof: no traced steps: ?profiler-server occurred [profiler-server]\n"


def test_spans_is_a_tree(run: Run) -> None:
    lines = run("spans", "7f3a")[1].splitlines()
    assert [line.split("  ")[0] or line[:7].rstrip() for line in lines][1:3] == ["fit 1", "  epoch"]
    tree = json.loads(run("spans", "7f3a", "--json")[1])["spans"]
    assert [(entry["depth"], entry["kind"], entry["count"]) for entry in tree] == [
        (0, "fit", 1),
        (1, "epoch", 1),
        (2, "batch", 4),
        (0, "run", 7),
    ]


def test_host_shows_the_job_and_its_host_while_it_ran(run: Run) -> None:
    document = json.loads(run("host", "7f3a", "--json")[1])
    assert (document["host"], document["cpus"], document["samples"]) == (HOST, 8, 4)
    assert document["job_series"]["cpu_cores"]["mean"] == 2.0
    assert document["host_series"]["cpu_cores"]["values"] == [3.0] * 3
    assert f"host {HOST}, 8 CPUs, while the job ran" in run("host", "7f3a")[1]


@pytest.mark.parametrize(
    ("command", "job", "reason"),
    [
        ("op", "7f3b", "no traced steps: TensorFlow ran no step"),
        ("op", "live.py", "no traced steps yet"),
        ("steps", "7f3b", "no steps: the job ended before"),
        ("steps", "live.py", "no steps yet"),
        ("spans", "7f3b", "no spans: the job ended before"),
        ("host", "7f3b", "no samples of this job"),
    ],
)
def test_an_empty_result_is_explained_and_is_valid_json(run: Run, command: str, job: str, reason: str) -> None:
    code, out, err = run(command, job)
    assert (code, out) == (0, "")
    assert err.startswith(f"tfprof: {reason}")
    assert json.loads(run(command, job, "--json")[1])["job"]


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["nosuch"], 2, "no such command or job 'nosuch' (tfprof --help) [usage]"),
        (["stat"], 2, "no such command or job 'stat': did you mean status? (tfprof --help) [usage]"),
        (["ops", "train.py"], 2, "no such command or job 'ops': did you mean op? (tfprof --help) [usage]"),
        (["setps"], 2, "no such command or job 'setps': did you mean steps? (tfprof --help) [usage]"),
        (["run", "python"], 2, "no such command or job 'run': did you mean tfprof-run? (tfprof --help) [usage]"),
        (
            ["op", "last", "--sort", "time"],
            2,
            "no such option --sort: did you mean --order-by? (tfprof op --help) [usage]",
        ),
        (["steps", "last", "-n", "5"], 2, "no such option -n: did you mean --top? (tfprof steps --help) [usage]"),
        (["show"], 2, "no JOB given: a name, the start of an id, a pid, or `last` (`tfprof jobs` lists them) [usage]"),
        (["show", "last", "--since", "5m"], 2, "did you mean tfprof breakdown JOB --since TIME? (tfprof show --help)"),
        (["jobs", "--running"], 2, "no such option --running: did you mean --state running? (tfprof jobs --help)"),
        (["parts", "last"], 2, "no such command or job 'parts': did you mean breakdown?"),
        (["export", "last", "x.json"], 2, "nothing to write: give -o FILE: did you mean -o x.json? [usage]"),
        (["attach", "train.py"], 2, "'train.py' is a name, not a pid: tfprof ps lists pids"),
        (["op", "last", "--csv"], 2, "no such option --csv: did you mean tfprof export JOB -o FILE.csv?"),
        (["jobs", "--sort", "time"], 2, "no such option --sort (tfprof jobs --help) [usage]"),
        (["jobs", "--stor", "x"], 2, "no such option --stor: did you mean --store? (tfprof jobs --help) [usage]"),
        (["steps", "last", "--traced"], 2, "no such option --traced (tfprof steps --help) [usage]"),
        (["op", "last", "--layer"], 2, "no such option --layer: did you mean --by layer? (tfprof op --help) [usage]"),
        (["show", "--pid", "7"], 2, "no such option --pid: did you mean tfprof show PID? (tfprof show --help) [usage]"),
        (["-V"], 2, "no such option -V: did you mean --version? (tfprof --help) [usage]"),
        (["config", "budget"], 2, "no setting is called 'budget': did you mean trace? [usage]"),
        (["config", "trace", "all"], 2, "no setting is called 'all': /"),
        (["op", "trian.py"], 1, "no job 'trian.py': did you mean train.py? `tfprof jobs` lists them"),
        (["op"], 2, "no JOB given: name jobs by the start of an id, by a name, or as `last`"),
        (["op", "7f3a", "-colour", "red"], 2, "no such option -colour"),
        (["op", "7f3a", "--colour", "red"], 2, "no such option --colour (tfprof op --help)"),
        (["op", "7f3a", "-select", "colour"], 2, "Invalid option '-select' value: 'colour'"),
        (["op", "7f3a", "-order_by", "colour"], 2, "Invalid option '-order_by' value: 'colour'"),
        (["op", "7f3a", "-show_name_regexes", "(("], 2, "Invalid option '-show_name_regexes' value: '(('"),
        (["op", "7f3a", "-step", "9"], 2, "step 9 was not traced: traced are 0, 1 [no-such-step]"),
        (["op", "nosuch"], 1, "no job 'nosuch'"),
        (["op", "7f"], 1, "'7f' means 2 jobs"),
        (["steps", "7f3a", "--last", "x"], 2, "Invalid value for '--last'"),
        (["jobs", "--store", "/nonexistent"], 1, "/nonexistent is not a tfprof store"),
        (["host", "7f3a", "extra"], 2, "Got unexpected extra argument"),
    ],
)
def test_bad_input_is_reported_in_one_line_with_a_slug(run: Run, words: list[str], status: int, message: str) -> None:
    code, out, err = run(*words)
    assert (code, out) == (status, "")
    assert err.startswith("tfprof: ")
    assert message in err
    assert err.count("\n") == 1
    assert err.rstrip().endswith("]")


def test_the_note_on_an_empty_store_shows_how_to_fill_it(run: Run, tmp_path: Path) -> None:
    write_job(tmp_path / "s", TRAIN, {})
    for folder in (tmp_path / "s" / "jobs").iterdir():
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
    code, out, err = run("jobs", "--store", str(tmp_path / "s"))
    assert (code, out) == (0, "")
    assert "tfprof-run python train.py" in err


def test_a_damaged_job_is_reported_and_the_others_are_listed(run: Run, tmp_path: Path) -> None:
    for uid in (TRAIN, KILLED):
        write_job(tmp_path / "s", uid, {})
    (tmp_path / "s" / "jobs" / f"{TRAIN:016x}" / "job.json").write_text("{")
    code, out, err = run("jobs", "--store", str(tmp_path / "s"))
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["ID", "7f3b", "7f3a"]
    assert "damaged" in out.splitlines()[2]
    rows = json.loads(run("jobs", "--json", "--store", str(tmp_path / "s"))[1])["jobs"]
    assert [row["lost"] for row in rows] == [0, None]
    assert err.rstrip().endswith("[store-damaged]")


def test_a_traceback_is_shown_if_debugging_is_on(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFPROF_DEBUG", "1")
    code, _, err = run("op", "nosuch")
    assert code == 1
    assert "Traceback" in err


@pytest.mark.parametrize("name", sorted(cli.COMMANDS))
def test_every_command_in_the_table_has_help(run: Run, name: str) -> None:
    assert load(cli.COMMANDS[name][0]).name == name
    code, out, _ = run(name, "--help")
    assert code == 0
    assert out.startswith(f"Usage: tfprof {name}")


def test_without_a_command_the_help_is_printed(run: Run) -> None:
    code, out, _ = run()
    assert code == 0
    assert all(name in out for name in cli.COMMANDS)


@pytest.mark.parametrize("command", ["show", "breakdown", "memory"])
@pytest.mark.parametrize("default", ["/another/store", "clickhouse://host/database"])
def test_next_commands_need_the_option_of_a_store_that_is_not_the_default(
    store: Path, run: Run, monkeypatch: pytest.MonkeyPatch, default: str, command: str
) -> None:
    assert "--store" not in run(command, "7f3a", "--store", str(store))[1]
    monkeypatch.setenv("TFPROF_STORE", default)
    assert run(command, "7f3a", "--store", str(store))[1].endswith(f"\n(with --store {store})\n")


def test_the_report_summarizes_the_jobs_of_a_launch(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main(["00000000000000aa", "--store", str(store), "--problem", "one thing"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(
        "tfprof: job 7f3a train.py · 1 epoch, 4 steps · median step 5.00 ms · 2 steps traced (cost"
    )
    assert lines[1].startswith("tfprof: batch to batch ")
    assert lines[3].split()[:3] == ["MatMul", "CPU:0", "1"]
    assert lines[-3:] == [
        "tfprof: more with  tfprof op 7f3a · tfprof breakdown 7f3a · tfprof steps 7f3a",
        f"tfprof: (with --store {store})",
        "tfprof: one thing",
    ]


def test_the_report_explains_why_there_is_no_profile(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report.main(["bb", "--store", str(store), "--problem", "no memory [memfd]"]) == 0
    assert report.main(["bb", "--store", str(store)]) == 0
    assert report.main(["bb", "--store", str(tmp_path)]) == 1
    assert [line[:45] for line in capsys.readouterr().out.splitlines()] == [
        "tfprof: no profile: no memory [memfd]",
        "tfprof: no profile: no data of this command r",
        f"tfprof: no profile: {tmp_path}"[:45],
    ]
