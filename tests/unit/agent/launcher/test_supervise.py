"""The launcher as the job's parent: the start of a command and its end."""

import os
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tfprof.agent.launcher import supervise
from tfprof.agent.launcher.supervise import NotStartedError, Outcome

#: A process that blocks its signals, supervises a command and prints the outcome.
PARENT = """
import os, sys
from tfprof.agent.launcher import forwarding, supervise, witness
inherited = supervise.block_signals()
try:
    pid = supervise.start(sys.argv[1:], os.environ, inherited, lambda: print("announced", flush=True))
except supervise.NotStartedError as error:
    print(error.exit_code, error, flush=True)
    sys.exit(0)
calls = []
forwarder = forwarding.Forwarding(lambda: None, lambda _sender: False)
outcome = supervise.wait(pid, lambda: calls.append(1) or 0.01, forwarder, witness.NoWitness().stopping)
print(outcome.status, outcome.signal, outcome.exit_code, flush=True)
if "COUNT" in os.environ: print(len(calls))
"""


def run_supervised(*command: str, **environment: str) -> list[str]:
    completed = subprocess.run(
        [sys.executable, "-c", PARENT, *command],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, **environment},
    )
    assert completed.stderr == ""
    return completed.stdout.splitlines()


@pytest.mark.parametrize(
    ("outcome", "code"),
    [(Outcome(0, None), 0), (Outcome(3, None), 3), (Outcome(None, 9), 137), (Outcome(None, 2), 130)],
)
def test_the_exit_code_is_that_of_a_shell(outcome: Outcome, code: int) -> None:
    assert outcome.exit_code == code


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGPIPE, signal.SIGRTMAX])
def test_the_process_ends_by_the_signal_that_killed_the_job(number: int) -> None:
    code = f"""
from tfprof.agent.launcher import supervise
supervise.block_signals()
supervise.end_like(supervise.Outcome(None, {int(number)}))
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == -number


@pytest.mark.parametrize("limit", [0, 4096, resource.RLIM_INFINITY])
def test_the_process_is_killed_whatever_its_limit_of_core_files(limit: int) -> None:
    code = f"""
import resource
from tfprof.agent.launcher import supervise
hard_limit = resource.getrlimit(resource.RLIMIT_CORE)[1]
limit = {limit} if hard_limit == resource.RLIM_INFINITY else min({limit} % 2**64, hard_limit)
resource.setrlimit(resource.RLIMIT_CORE, (limit, limit))
supervise.end_like(supervise.Outcome(None, 15))
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == -15


@pytest.mark.parametrize(
    ("script", "printed"),
    [
        ("exit 0", "0 None 0"),
        ("exit 77", "77 None 77"),
        ("kill -9 $$", "None 9 137"),
        ("kill -15 $$", "None 15 143"),
    ],
)
def test_the_end_of_a_job_is_returned(script: str, printed: str) -> None:
    assert run_supervised("sh", "-c", script) == ["announced", printed]


def test_the_watch_function_is_called_repeatedly() -> None:
    *_, outcome, calls = run_supervised("sleep", "0.2", COUNT="")
    assert outcome == "0 None 0"
    assert int(calls) > 1


def test_a_job_inherits_the_signal_settings_of_the_launcher() -> None:
    lines = run_supervised("grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status")
    expected = subprocess.run(
        ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert lines[1:-1] == expected


def test_a_job_inherits_an_ignored_sigchld() -> None:
    ignoring_script = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    )
    grep = ["grep", "^SigIgn", "/proc/self/status"]
    words = [sys.executable, "-c", ignoring_script, sys.executable, "-c", PARENT, *grep]
    printed = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
    assert int(printed[1].split()[1], 16) >> (signal.SIGCHLD - 1) & 1
    assert printed[-1] == "0 None 0"


@pytest.mark.parametrize(
    ("name", "code", "text"),
    [
        ("no-such-command-anywhere", 127, "command not found"),
        ("./missing", 127, "No such file or directory"),
        ("./folder", 126, "Is a directory"),
        ("./plain", 126, "Permission denied"),
        ("./lacks", 127, "cannot execute: required file not found"),
        ("./plain/x", 126, "Not a directory"),
    ],
)
def test_a_command_that_cannot_be_started_fails_as_in_a_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: int, text: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "plain").write_text("")
    (tmp_path / "lacks").write_text("#!/no/such/interpreter\n")
    (tmp_path / "lacks").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert run_supervised(name) == ["announced", f"{code} {name}: {text} [not-started]"]


def test_a_script_that_names_no_interpreter_is_run_by_a_shell(tmp_path: Path) -> None:
    script = tmp_path / "true"
    script.write_text('echo "$1"; exit 5\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    assert run_supervised(str(script), "told") == ["announced", "told", "5 None 5"]
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert run_supervised("true", "told", **environment) == ["announced", "told", "5 None 5"]


def test_a_command_is_not_started_if_fork_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    before = os.listdir("/proc/self/fd")
    monkeypatch.setattr(os, "fork", refuse)
    inherited = supervise.InheritedSignals(set(), ignores_children=False)
    with pytest.raises(NotStartedError) as caught:
        supervise.start(["true"], {}, inherited, lambda: None)
    assert caught.value.exit_code == 126
    assert len(os.listdir("/proc/self/fd")) == len(before)
