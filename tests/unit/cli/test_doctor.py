import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
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
    assert str(python) in findings["python"]["text"]


def test_an_isolated_python_cannot_be_profiled_by_the_launcher(run, python):
    assert run(str(python), "-I", "train.py")["start"]["verdict"] == "no"


def test_a_script_is_checked_with_its_interpreter(run, python, tmp_path):
    script = tmp_path / "train"
    script.write_text(f"#!{python} -E\n")
    script.chmod(0o700)
    findings = run(str(script))
    assert "-E" in findings["start"]["text"]
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
