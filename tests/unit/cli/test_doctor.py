"""`tfprof doctor`: the verdict about a command or a process, and its reasons.

Tests agent/diagnosis.py, collector/documents/diagnosis.py.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from fakes.made_store import rows, write_job
from tfprof.agent import diagnosis
from tfprof.cli.doctor import doctor


@pytest.fixture
def run(tmp_path, monkeypatch):
    short_folder = Path(tempfile.mkdtemp(dir="/tmp"))  # the path of a socket must be short
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short_folder / "run"))

    def run(*arguments):
        result = CliRunner().invoke(
            doctor, ["--store", str(tmp_path / "store"), "--json", *arguments], standalone_mode=False
        )
        assert result.exception is None, result.output
        document = json.loads(result.output)
        assert result.return_value == (document["verdict"] == "no")
        assert not (short_folder / "run").exists()
        assert not (tmp_path / "store").exists()
        return {finding["part"]: finding for finding in document["findings"]}

    yield run
    short_folder.rmdir()


@pytest.fixture
def python(tmp_path):
    """The interpreter of an environment with the files of a fake TensorFlow."""
    folder = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    packages = next((folder / "lib").glob("python*")) / "site-packages"
    (packages / "tensorflow_cpu-2.15.1.dist-info").mkdir()
    return folder / "bin" / "python"


def test_a_command_with_tensorflow_can_be_profiled(run, python):
    findings = run(str(python), "-u", "train.py", "--steps", "3")
    assert {finding["verdict"] for finding in findings.values()} <= {"ok", "note"}
    assert "2.15.1" in findings["tensorflow"]["text"]
    assert "a tested version" in findings["tensorflow"]["text"]
    assert str(python) in findings["python"]["text"]
    assert "a tested version" in findings["python"]["text"]


@pytest.mark.parametrize(
    ("version", "verdict", "remark"),
    [
        ("1.14.0", "note", "older than 1.15, the oldest tested version"),
        ("2.12.1", "ok", "between the tested versions 2.10 and 2.15"),
        ("2.22.0rc0", "note", "newer than 2.21, the newest tested version"),
    ],
)
def test_a_version_of_tensorflow_that_was_not_tested_is_named(run, python, version, verdict, remark):
    packages = next((python.parents[1] / "lib").glob("python*")) / "site-packages"
    (packages / "tensorflow_cpu-2.15.1.dist-info").rename(packages / f"tensorflow_cpu-{version}.dist-info")
    finding = run(str(python), "x.py")["tensorflow"]
    assert (finding["verdict"], remark in finding["text"]) == (verdict, True)


@pytest.mark.parametrize(
    ("version", "verdict", "remark"),
    [
        ((3, 6, 15), "no", "older than 3.7, the oldest tested version; the shim needs 3.7 or later"),
        ((3, 7, 0), "ok", "a tested version"),
        ((3, 14, 0), "note", "newer than 3.13, the newest tested version; plain functions count and time every step"),
    ],
)
def test_a_version_of_cpython_that_was_not_tested_is_named(version, verdict, remark):
    result, text = diagnosis._python_verdict("cpython", version, "/usr/bin/python")
    assert (result, remark in text) == (verdict, True)


def test_what_cannot_be_recorded_of_a_profiled_process_is_named(tmp_path):
    identity = {"pid": os.getpid(), "host": os.uname().nodename}
    event = {"t_ns": 1, "slug": "patch-missing", "text": "a module lacks a name", "count": 1}
    write_job(tmp_path, 1, {"events": rows("events", [event])}, identity=identity, state=None)
    result = CliRunner().invoke(doctor, ["--store", str(tmp_path), "--json", str(os.getpid())], standalone_mode=False)
    findings = [finding for finding in json.loads(result.output)["findings"] if finding["part"] == "job"]
    assert findings == [{"part": "job", "verdict": "note", "text": "a module lacks a name [patch-missing]"}]


def test_an_isolated_python_cannot_be_profiled_by_the_launcher(run, python):
    assert run(str(python), "-I", "train.py")["start"]["verdict"] == "no"


def test_a_script_is_checked_with_its_interpreter(run, python, tmp_path):
    script = tmp_path / "train"
    script.write_text(f"#!{python} -E\n")
    script.chmod(0o700)
    findings = run(str(script))
    assert "-E" in findings["start"]["text"]
    assert "2.15.1" in findings["tensorflow"]["text"]


def test_a_python_file_that_is_no_command_is_checked_as_tfprof_run_runs_it(run, python, tmp_path, monkeypatch):
    (tmp_path / "train.py").touch()
    monkeypatch.setenv("PATH", str(python.parent))
    findings = run(str(tmp_path / "train.py"))
    assert "2.15.1" in findings["tensorflow"]["text"]


@pytest.mark.parametrize(
    ("command", "part"), [((sys.executable, "x.py"), "tensorflow"), (("no such program",), "program")]
)
def test_the_obstacle_is_named(run, command, part):
    assert run(*command)[part]["verdict"] == "no"


def test_a_python_that_does_not_run_is_reported(run, tmp_path):
    broken = tmp_path / "python3"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o700)
    assert run(str(broken), "x.py")["python"]["verdict"] == "no"


def test_a_process_is_checked_and_not_changed(run):
    # A new process is checked, since another test may have loaded a library named like TensorFlow's
    # into this one.
    process = subprocess.Popen([sys.executable, "-c", "print(flush=True); input()"], stdin=-1, stdout=-1)
    try:
        process.stdout.readline()
        findings = run(str(process.pid))
    finally:
        process.communicate(b"\n")
    assert findings["process"]["verdict"] == "ok"
    assert findings["attach"]["verdict"] == "note"
    other = subprocess.Popen(["sleep", "60"])
    # A process that has just executed another program has no command line for a moment.
    while not Path(f"/proc/{other.pid}/cmdline").read_bytes():
        time.sleep(0.001)
    try:
        assert run(str(other.pid))["attach"]["verdict"] == "no"
    finally:
        other.kill()
        other.wait()
    assert run("4194305")["process"]["verdict"] == "no"


def test_a_store_that_cannot_be_used_is_named(tmp_path):
    (tmp_path / "store.json").write_text('{"version": 99}')
    result = CliRunner().invoke(doctor, ["--store", str(tmp_path), "--json", "sh"], standalone_mode=False)
    document = json.loads(result.output)
    assert document["verdict"] == "no"
    assert "version 99" in document["findings"][-1]["text"]
