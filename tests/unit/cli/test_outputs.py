"""Files that commands write when a job or its traced steps are over, and selections of export.

Tests commands/new_outputs.py.
"""

import json
import os
import re
import time
from pathlib import Path

import pytest
from fakes import ended_jobs
from fakes.command import Run, caller
from fakes.made_store import START_NS
from fakes.many_executions import write_many_executions
from tfprof.agent.launcher import run as launcher
from tfprof.cli import report
from tfprof.collector.errors import UsageError
from tfprof.commands import new_outputs

LAUNCH = "00000000000000aa"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command in an empty folder, on a store with a traced job."""
    write_many_executions(tmp_path / "store", 3 << 60, name="many.py")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("TFPROF_STORE", str(tmp_path / "store"))
    return caller(capsys)


def end(tmp_path: Path, *options: str) -> int:
    """Run the end of the launch whose jobs are in the store."""
    return report.main([LAUNCH, "--store", str(tmp_path / "store"), *options])


def test_files_are_written_when_the_job_ends(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert end(tmp_path, "--output", "{name}-{id}.json", "--output", "a.csv", "--output", "a.xyz") == 0
    out = capsys.readouterr().out
    (name,) = [path.name for path in Path().glob("many-*.json")]
    assert re.fullmatch(r"many-[0-9a-f]{4}\.json", name)
    assert json.loads(Path(name).read_bytes())["traceEvents"]
    assert f"tfprof: wrote {name}\ntfprof: wrote a.csv\n" in out
    assert "tfprof: no file: the name a.xyz does not tell the format" in out
    assert run("export", "many.py", "-o", "b.csv")[0] == 0
    assert Path("b.csv").read_bytes() == Path("a.csv").read_bytes()


def test_a_quiet_launch_names_only_files_that_are_not_written(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("b.json").write_text("mine")
    assert end(tmp_path, "--quiet", "--output", "a.json", "--output", "b.json") == 0
    assert capsys.readouterr().out == "tfprof: no file: b.json exists: remove it, or give another name [file-exists]\n"
    assert (Path("b.json").read_text(), Path("a.json").exists()) == ("mine", True)


def test_a_name_of_a_job_cannot_leave_the_folder(run: Run, tmp_path: Path) -> None:
    write_many_executions(tmp_path / "store", 5 << 60, name="../../evil\0\n.py", launch="00000000000000ab")
    report.main(["00000000000000ab", "--store", str(tmp_path / "store"), "--quiet", "--output", "x{name}.csv"])
    (path,) = Path().glob("x*.csv")
    assert path.name.isprintable()
    assert not list(tmp_path.parent.glob("*evil*"))


def test_the_launcher_refuses_files_before_the_job_starts(run: Run) -> None:
    Path("there.json").write_text("mine")
    Path("full").mkdir()
    Path("full", "a").touch()
    Path("folder.json").mkdir()
    os.mkfifo("fifo")
    for path, text in (
        ("there.json", "exists: remove it"),
        ("full/", "exists: remove it"),
        ("folder.json", "it is a folder"),
        ("fifo/", "Not a directory"),
        ("none/a.json", "there is no folder"),
        ("there.json/a.json", "there.json is not a folder"),
        ("there.json/a/b/", "there.json is not a folder"),
        ("a.xyz", "does not tell the format: end it with one of"),
        ("a.tfprof.gz", "does not tell the format"),
        (f"{'a' * 300}.json", "File name too long"),
        ("-", "standard output is the job's"),
        ("", "--output is empty"),
    ):
        with pytest.raises(UsageError, match=text):
            launcher.parse(["-o", path, "true"])
    with pytest.raises(UsageError, match=r"a\.json is named twice"):
        launcher.parse(["-o", "a.json", "-o", "b.json", "-o", "a.json", "true"])
    with pytest.raises(UsageError, match="--exec replaces it"):
        launcher.parse(["-o", "a.json", "--exec", "true"])
    names = ["a.json", "new/b/", "{name}/a.csv.gz", "{id}.pb"]
    options = launcher.parse([word for name in names for word in ("-o", name)] + ["--", "true", "-o", "c"])
    assert options.outputs == [os.path.abspath(name) + "/" * name.endswith("/") for name in names]
    assert options.command == ["true", "-o", "c"]


def test_a_folder_without_permission_is_named_before_the_job_starts(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "access", lambda path, _mode: path != f"{tmp_path}")
    with pytest.raises(UsageError, match=r"cannot write .*: no permission to write in"):
        launcher.parse(["-o", f"{tmp_path}/a.json", "true"])


def test_a_package_that_is_missing_is_named_before_the_job_starts(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_outputs, "find_spec", lambda _name: None)
    with pytest.raises(UsageError, match=r"memory-flow-png needs the extra png \(pip install 'tfprof\[png\]'\)"):
        launcher.parse(["-o", "a.png", "true"])
    assert "needs the extra png" in run("export", "many.py", "-o", "a.png")[2]


def test_the_setting_names_files_for_every_job(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFPROF_OUTPUT", "/tmp/{name}-{id}.json,b.csv")
    assert launcher.parse(["true"]).outputs == ["/tmp/{name}-{id}.json", str(Path("b.csv").absolute())]
    assert launcher.parse(["-o", "a.json", "true"]).outputs == [str(Path("a.json").absolute())]


def test_a_setting_that_cannot_be_met_is_named_before_the_job_starts(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TFPROF_OUTPUT", "/nowhere/a.json,b.xyz,b.csv")
    assert len(launcher.parse(["true"]).outputs) == 3
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "tfprof: the setting output: cannot write /nowhere/a.json: there is no folder /nowhere [io]"
    assert [line.endswith("[no-such-format]") for line in lines] == [False, True]


@pytest.mark.parametrize("command", [("trace", "many.py", "--steps", "3"), ("attach", "1")])
def test_orders_refuse_files_before_they_trace(command: tuple[str, ...], run: Run) -> None:
    Path("there.json").write_text("mine")
    for path, text in (
        ("there.json", "there.json exists: remove it, or give another name [file-exists]"),
        ("a.xyz", "[no-such-format]"),
        ("none/a.csv", "there is no folder none [io]"),
        ("-", "standard output has the lines of the command"),
    ):
        status, out, error = run(*command, "-o", path)
        assert (status, out) == (2, "")
        assert text in error
    assert [path.name for path in Path().iterdir()] == ["there.json"]


def test_steps_since_a_moment(run: Run) -> None:
    began = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(START_NS // 10**9))
    assert run("export", "many.py", "--since", began, "-o", "a.csv") == (0, "", "")
    assert len(Path("a.csv").read_text().splitlines()) == 121
    for name in ("b.csv", "b.json", "b.pb"):
        status, _, error = run("export", "many.py", "--since", "5m", "-o", name)
        assert (status, error.endswith(f": the last one at {began} [no-such-step]\n")) == (2, True)
    assert run("export", "many.py", "--since", "5m", "--table", "ops", "-o", "b.csv")[0] == 2
    assert "has no option --since" in run("export", "many.py", "--since", "5m", "-o", "b.tfprof")[2]
    assert [path.name for path in Path().iterdir()] == ["a.csv"]


def test_jobs_of_a_host_or_a_process(run: Run, tmp_path: Path) -> None:
    ended_jobs.write(tmp_path / "store")
    write_many_executions(tmp_path / "store", 5 << 60, name="other.py", pid=99)
    assert run("export", "--pid", "99", "-o", "a.csv") == (0, "", "")
    assert {line.split(",")[1] for line in Path("a.csv").read_text().splitlines()[1:]} == {'"other.py"'}
    assert run("export", "--host", "node*", "--table", "steps", "-o", "b.csv") == (0, "", "")
    assert {line.split(",")[1] for line in Path("b.csv").read_text().splitlines()[1:]} >= {'"other.py"', '"many.py"'}
    assert "no job of host nowhere" in run("export", "--host", "nowhere", "-o", "c.csv")[2]
