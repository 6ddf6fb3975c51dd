"""Shell completion, in real shells and by the requests that a shell sends."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from fakes import small_store
from tfprof.agent import processes
from tfprof.agent.attach import targets
from tfprof.cli.attach import attach
from tfprof.cli.completion import SHELLS
from tfprof.cli.doctor import doctor

#: The folder of the interpreter, in which `tfprof` is installed, too.
BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_store.write(tmp_path_factory.mktemp("complete") / "store")


def environment(store: Path) -> dict[str, str]:
    return {"PATH": f"{BIN}:/usr/bin:/bin", "TFPROF_STORE": str(store), "HOME": str(store.parent), "LANG": "C.UTF-8"}


def bash(store: Path, line: str, environ: dict[str, str] | None = None) -> list[str]:
    """Return the completions of ``line`` in a real bash."""
    code = f"""
        eval "$(tfprof completion bash)"
        COMP_WORDS=({line.rstrip()} {"''" if line.endswith(" ") else ""})
        COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
        COMP_LINE='{line}' COMP_POINT={len(line)}
        _tfprof_completion tfprof
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    process = subprocess.run(
        ["bash", "-c", code], env=environ or environment(store), capture_output=True, text=True, timeout=60, check=False
    )
    assert (process.returncode, process.stderr) == (0, "")
    return process.stdout.split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tfprof sh", ["show", "shell"]),
        ("tfprof show ", ["last", "train.py", "idle.py", "aa10", "bb10", "cc10"]),
        ("tfprof show b", ["bb10"]),
        ("tfprof advise b", ["bb10"]),
        ("tfprof alerts b", ["bb10"]),
        ("tfprof op aa10 -ord", ["-order_by"]),
        ("tfprof op -order_by mic", ["micros"]),
        ("tfprof op -select bytes,mic", ["bytes,micros"]),
        ("tfprof steps aa10 --l", ["--last"]),
        ("tfprof op aa10 --kind batch,te", ["batch,test_batch"]),
        ("tfprof top --sort c", ["cpu", "cost"]),
        ("tfprof jobs --name t", ["train.py"]),
        ("tfprof jobs --state exited,ki", ["exited,killed"]),
        ("tfprof completion ", list(SHELLS)),
        ("tfprof nosuch x", []),
        ("tfprof op --nosuch ", []),
    ],
)
def test_bash_completes_commands_options_and_jobs(store: Path, line: str, expected: list[str]) -> None:
    completions = bash(store, line)
    assert set(completions) == set(expected) if expected else "Error" not in " ".join(completions)


@pytest.mark.parametrize("command", [attach, doctor])
def test_the_ids_of_processes_with_tensorflow_are_completed(
    command: click.Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = processes.process(os.getpid())
    assert job is not None
    state, words = targets.ATTACHABLE, ["python", "train.py"]
    monkeypatch.setattr(targets, "survey", lambda: [targets.Target(job, 0, "ada", 1.0, words, state, True)])
    (argument,) = [parameter for parameter in command.params if isinstance(parameter, click.Argument)]
    (item,) = argument.shell_complete(click.Context(command), str(job.pid)[0])
    assert (item.value, item.help) == (str(job.pid), "train.py (attachable)")
    assert argument.shell_complete(click.Context(command), f"{job.pid}0") == []


def test_commands_are_completed_without_messages_if_the_store_is_missing(tmp_path: Path) -> None:
    assert bash(tmp_path / "none", "tfprof follow ") == []
    assert bash(tmp_path / "none", "tfprof fol") == ["follow"]


def test_jobs_are_those_of_the_store_in_the_settings_file(store: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tfprof"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(f'store = "{store}"\n')
    environ = {**environment(store), "XDG_CONFIG_HOME": str(tmp_path)}
    del environ["TFPROF_STORE"]
    assert bash(store, "tfprof show b", environ) == ["bb10"]


def test_an_invalid_settings_file_completes_nothing_and_prints_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "tfprof"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text("store = ")
    request = {"_TFPROF_COMPLETE": "bash_complete", "COMP_WORDS": "tfprof show b", "COMP_CWORD": "2"}
    environ = {**environment(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), **request}
    process = subprocess.run([BIN / "tfprof"], env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert (process.stdout, process.stderr) == ("", "")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_accepts_its_script(store: Path, shell: str) -> None:
    script = subprocess.run(
        [BIN / "tfprof", "completion", shell], env=environment(store), capture_output=True, text=True, check=True
    ).stdout
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    flags = ["--no-execute"] if shell == "fish" else ["-n"]
    process = subprocess.run(
        [shell, *flags], input=script, env=environment(store), capture_output=True, text=True, check=False
    )
    assert (process.returncode, process.stderr) == (0, "")


def test_fish_completes_commands_options_and_jobs(store: Path) -> None:
    if shutil.which("fish") is None:
        pytest.skip("no fish here")
    code = "tfprof completion fish | source; complete -C 'tfprof show b'; complete -C 'tfprof fol'"
    process = subprocess.run(
        ["fish", "-c", code], env=environment(store), capture_output=True, text=True, timeout=60, check=False
    )
    assert process.stdout.splitlines() == [
        "bb10\ttrain.py (exited)",
        "follow\tThe steps of a job as lines; while it runs.",
    ]


def test_zsh_completes_commands_options_and_jobs(store: Path) -> None:
    if shutil.which("zsh") is None:
        pytest.skip("no zsh here")
    code = """
        autoload -U compinit; compinit -u -D
        eval "$(tfprof completion zsh)"
        compadd() { shift; print -l -- "$@" }
        _describe() { local -a found; found=("${(@P)3}"); print -l -- "${found[@]}" }
        words=(tfprof show b); CURRENT=3
        _tfprof_completion
    """
    process = subprocess.run(
        ["zsh", "-f", "-c", code], env=environment(store), capture_output=True, text=True, timeout=60, check=False
    )
    assert "bb10:train.py (exited)" in process.stdout.splitlines()
