"""`tfprof import` and `tfprof profile-proto`: spellings, output, errors.

Tests collector/documents/imported.py, collector/imports/writing.py,
collector/store/archive_import.py, cli/import_.py.
"""

import json
from pathlib import Path

import pytest
from fakes.command import Run, caller
from fakes.run_metadata import node, run_metadata, text
from tfprof.collector.proto.tensorflow_pb2 import GraphDef
from tfprof.collector.proto.tfprof_log_pb2 import OpLogProto, ProfileProto
from tfprof.collector.store.reader import LocalStore

GRAPH = GraphDef(
    node=[
        {"name": "w", "op": "VariableV2", "attr": {"shape": {"shape": {"dim": [{"size": 6}]}}}},
        {"name": "y", "op": "Neg", "input": ["w"]},
        {"name": "z", "op": "NoOp"},
    ]
)
LOG = OpLogProto(log_entries=[{"name": b"y", "float_ops": 7, "types": [b"mine"]}, {"name": b"nobody", "float_ops": 1}])


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in a folder with files to import; returns exit status, stdout, stderr.

    The store is in the same folder.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TFPROF_STORE", str(tmp_path / "store"))
    Path("graph").write_bytes(GRAPH.SerializeToString())
    Path("graph.pbtxt").write_text(str(GRAPH))
    Path("log").write_bytes(LOG.SerializeToString())
    for number, names in enumerate(([b"w", b"_SINK"], [b"y", b"_SINK"])):
        Path(f"run-{number}").write_bytes(run_metadata(names))
    Path("untraced").write_bytes(b"\x12\x00")

    return caller(capsys)


def jobs(tmp_path: Path) -> list[str]:
    return [job.info.hex for job in LocalStore(tmp_path / "store").jobs()] if (tmp_path / "store").exists() else []


@pytest.mark.parametrize("prefix", ["-", "--"])
@pytest.mark.parametrize("separator", ["-", "_"])
def test_options_have_the_tf_profilers_spelling(run: Run, tmp_path: Path, prefix: str, separator: str) -> None:
    words = [f"{prefix}{name}{separator}path" for name in ("graph", f"run{separator}meta", f"op{separator}log")]
    code, out, err = run("import", words[0], "graph", f"{words[1]}=run-0,run-1", words[2], "log")
    assert code == 0
    (uid,) = jobs(tmp_path)
    assert out == f"run graph coverage: 0.25\nrun graph coverage: 0.75\n{uid} graph: 3 nodes, 2 steps\n"
    assert err == "tfprof: 1 entries of log have no node in the graph and are left out\n"


def test_an_imported_job_can_be_queried_like_any_other(run: Run) -> None:
    run("import", "--graph_path", "graph", "--run_meta_path", "run-0,run-1", "--op_log_path", "log", "--name", "mine")
    assert "imported" in run("jobs")[1]
    _, out, _ = run("op", "mine", "-select", "micros,occurrence,float_ops", "-order_by", "micros", "--exact-tf")
    lines = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert "1|1" in lines["_SINK"]
    assert "7 float_ops" in lines["Neg"]
    assert run("scope", "mine", "-step", "1", "-select", "occurrence", "--exact-tf")[1].count("1/1|1/1") == 2


def test_a_graph_alone_has_parameters(run: Run) -> None:
    assert run("import", "--graph_path", "graph.pbtxt")[0] == 0
    code, out, _ = run("scope", "graph.pbtxt", "-select", "params", "-min_params", "1")
    assert code == 0
    assert [line.split() for line in out.splitlines()[1:]] == [["scope", "params", "share"], ["w", "6", "100", "%"]]
    assert run("steps", "last")[2].startswith("tfprof: no steps: the job was imported")


def test_an_imported_loop_has_no_eager_ops(run: Run) -> None:
    nodes = b"".join(text(2, node(b"while/body/add", 1_700_000_000_000_000 + 100 * at)) for at in range(20))
    Path("loop").write_bytes(text(1, text(1, text(1, b"/device:CPU:0") + nodes)))
    assert run("import", "--graph_path", "graph", "--run_meta_path", "loop")[0] == 0
    assert "between ops" in run("breakdown", "graph")[1]
    assert "between eager ops" not in run("breakdown", "graph")[1]


def test_a_step_without_times_has_no_parts(run: Run) -> None:
    Path("timeless").write_bytes(text(1, text(1, text(1, b"/device:CPU:0") + text(2, text(1, b"w")))))
    assert run("import", "--graph_path", "graph", "--run_meta_path", "timeless")[0] == 0
    assert json.loads(run("breakdown", "graph", "--json")[1])["kinds"] == []


def test_what_an_imported_job_never_had_is_not_missed(run: Run) -> None:
    assert run("import", "--graph_path", "graph", "--name", "alone")[0] == 0
    assert run("import", "--graph_path", "graph", "--run_meta_path", "run-0")[0] == 0
    for command in ("steps", "spans"):
        assert run(command, "graph")[2].startswith(f"tfprof: no {command}: the job was imported")
    assert run("host", "graph")[2] == "tfprof: no samples of this job: it was imported\n"
    assert "tfprof host" not in run("memory", "graph")[1]
    assert "starting" not in run("show", "graph")[1].split()
    assert json.loads(run("show", "graph", "--json")[1])["phases"] == []
    assert "ran in this process" not in run("op", "alone")[2]
    assert "--profile_path or --graph_path [bad-file]" in run("import", "graph")[2]


def test_json_names_the_job(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("import", "--graph_path", "graph", "--run_meta_path", "run-0", "--json")
    document = json.loads(out)
    assert code == 0
    assert document.pop("coverage") == [pytest.approx(0.25)]
    assert document == {"schema": "tfprof.import/1", "job": jobs(tmp_path)[0], "name": "graph", "nodes": 3, "steps": 1}


def test_a_step_that_was_not_traced_is_left_out_and_keeps_its_number(run: Run) -> None:
    code, out, err = run("import", "--graph_path", "graph", "--run_meta_path", "run-0,untraced,run-1")
    assert code == 0
    assert err == "tfprof: Invalid RunMetadata for step 1: untraced has no step_stats; the step was not traced\n"
    assert out.endswith("2 steps\n")
    assert run("op", "last", "-step", "2")[0] == 0
    assert "traced are 0, 2" in run("op", "last", "-step", "1")[2]


def test_a_profile_is_exported_and_imported_again(run: Run, tmp_path: Path) -> None:
    run("import", "--graph_path", "graph", "--run_meta_path", "run-0,run-1", "--op_log_path", "log")
    assert run("profile-proto", "last", "-o", "p1", "--op-log", "l1") == (0, "", "")
    assert run("import", "-profile_path", "p1")[1].endswith("p1: 4 nodes, 2 steps\n")
    assert run("profile-proto", "p1", "--output", "p2", "-op_log", "l2") == (0, "", "")
    assert Path("p1").read_bytes() == Path("p2").read_bytes()
    (entry,) = OpLogProto.FromString(Path("l2").read_bytes()).log_entries
    assert (entry.name, entry.float_ops, list(entry.types)) == (b"y", 7, [b"mine"])
    assert run("profile-proto", "p1", "-o", "p3", "--steps", "1") == (0, "", "")
    assert list(ProfileProto.FromString(Path("p3").read_bytes()).steps) == [1]
    assert len(jobs(tmp_path)) == 2


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ([], 2, "nothing to import: give a file of `tfprof export`, --profile_path, or --graph_path [usage]"),
        (["--run_meta_path", "run-0"], 2, "nothing to import"),
        (["--profile_path", "p", "--graph_path", "graph"], 2, "--profile_path contains everything"),
        (["--profile_path", "p", "--run_meta_path", "run-0"], 2, "--profile_path contains everything"),
        (["--profile_path", "p", "--op_log_path", "log"], 2, "--profile_path contains everything"),
        (["--graph_path"], 2, "requires an argument"),
        (["--no_such", "x"], 2, "no such option"),
        (["--graph_path", "missing"], 1, "cannot read missing: No such file or directory [io]"),
        (["--graph_path", "."], 1, "cannot read .: Is a directory [io]"),
        (["--graph_path", "run-0"], 1, "run-0 is not a valid GraphDef"),
        (["--profile_path", "graph"], 1, "graph is not a valid ProfileProto"),
        (["--graph_path", "graph", "--run_meta_path", "run-0,missing"], 1, "cannot read missing"),
        (["--graph_path", "graph", "--run_meta_path", "run-0,log"], 1, "log is not a valid RunMetadata"),
        (["--graph_path", "graph", "--op_log_path", "graph"], 1, "graph is not a valid OpLogProto"),
    ],
)
def test_a_failed_import_leaves_nothing(run: Run, tmp_path: Path, words: list[str], status: int, message: str) -> None:
    code, _, err = run("import", *words)
    assert (code, err.count("\n")) == (status, 1)
    assert message in err
    assert err.startswith("tfprof: ")
    assert err.rstrip().endswith("]")
    assert jobs(tmp_path) == []
    assert not list((tmp_path / "store" / "jobs").glob("*"))


@pytest.mark.parametrize(
    ("store", "slug"), [("tcp://head:7199", "store-remote"), ("clickhouse://127.0.0.1/jobs", "folder-only")]
)
def test_no_folder_is_made_for_a_url(run: Run, monkeypatch: pytest.MonkeyPatch, store: str, slug: str) -> None:
    monkeypatch.setenv("TFPROF_STORE", store)
    files = list(Path().iterdir())
    code, _, err = run("import", "--graph_path", "graph")
    assert code != 0
    assert f"[{slug}]" in err
    assert list(Path().iterdir()) == files


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["last"], 2, "nothing to write: give -o FILE, or --op-log FILE [usage]"),
        (["last", "-o", "missing/p"], 1, "cannot write missing/p: No such file or directory [io]"),
        (["last", "-o", "p", "--steps", "4-5"], 2, "no step of 4-5 was traced: traced are 0 [no-such-step]"),
        (["last", "-o", "p", "--steps", "5-4"], 2, "Invalid option '--steps' value: '5-4'"),
        (["nosuch", "-o", "p"], 1, "no job 'nosuch'"),
    ],
)
def test_a_failed_export_is_reported(run: Run, words: list[str], status: int, message: str) -> None:
    run("import", "--graph_path", "graph", "--run_meta_path", "run-0")
    code, out, err = run("profile-proto", *words)
    assert (code, out, err.count("\n")) == (status, "", 1)
    assert message in err
    assert not Path("p").exists()


def test_a_job_moves_to_another_store_as_one_file(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("import", "--graph_path", "graph", "--run_meta_path", "run-0", "--name", "mine")[0] == 0
    (uid,) = jobs(tmp_path)
    before = run("op", "mine")
    assert run("export", "mine", "-o", "mine.tfprof") == (0, "", "")
    assert run("import", "mine.tfprof")[::2] == (
        1,
        (
            f"tfprof: the job {uid} is in the store already: remove it with `tfprof rm {uid}`, or use another --store"
            " [job-exists]\n"
        ),
    )
    monkeypatch.setenv("TFPROF_STORE", str(tmp_path / "colleague"))
    assert run("import", "mine.tfprof") == (0, f"{uid} mine: 3 nodes, 1 steps\n", "")
    assert run("op", "mine") == before
    assert run("rm", "mine", "--yes")[0] == 0
    assert json.loads(run("import", "mine.tfprof", "--json")[1]) == {
        "schema": "tfprof.import/1",
        "job": uid,
        "name": "mine",
        "nodes": 3,
        "steps": 1,
        "coverage": [],
    }


def test_a_file_of_tfprof_excludes_the_options_for_others(run: Run) -> None:
    status, out, error = run("import", "a.tfprof", "--graph_path", "graph")
    assert (status, out) == (2, "")
    assert "a.tfprof contains everything" in error
