"""No text of a job steers the terminal, or forges a line, whatever command prints it."""

import io
import json
import re
from pathlib import Path

import pytest
from fakes import hostile_store
from fakes.command import Run
from fakes.hostile_store import HOSTILE, JOB
from tfprof.cli import main as cli
from tfprof.collector.api import open_store

ID = f"{JOB:x}"
#: What no command may print: controls of ASCII, Latin-1 and Unicode, and the line that texts forge.
FORBIDDEN = re.compile("[\0-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]|^forged:", re.MULTILINE)
TF_LAYOUT = ("--exact-tf", "-select", "micros,bytes,device,op_types,occurrence,input_shapes")
VIEWS = ("scope", "graph", "op", "code")
COMMAND_LINES = [
    ("jobs",),
    ("top", "--once"),
    *((command, ID) for command in ("show", "steps", "spans", "host", "alerts", "advise", "tag", "follow", *VIEWS)),
    ("follow", ID, "--all", "--each"),
    ("op", ID, f"{JOB + 1:x}"),
    ("code", ID, "-show_name_regexes", ".*", "-max_depth", "1000"),
    *((view, ID, *TF_LAYOUT) for view in VIEWS),
    ("advise", ID, "--exact-tf"),
    *((command, ID, "--steps", "2") for command in ("trace",)),
    ("detach", ID),
    ("tag", ID, HOSTILE, "--remove"),
    ("tag", ID, "--remove", "no such\x1b[2J\ntag"),
    ("show", HOSTILE),
    ("show", ID, "--store", "/nonexistent\x1b[2J\nforged: x"),
    ("status", "--store", "/nonexistent\x1b[2J\nforged: x"),
    ("doctor", "/nonexistent\x1b[2J\nforged: x"),
    ("op", ID, "-output", "file:outfile=/nonexistent/\x1b[2J\nforged: x"),
    ("import", "/nonexistent\x1b[2J\nforged: x"),
    ("no such\x1b[2J\nforged: command",),
    ("config",),
    ("metrics", "--ended", "5000d"),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_store.write(tmp_path_factory.mktemp("hostile") / "store")


def printed(results: tuple[int, str, str], *words: str) -> str:
    """Return the printed text, without tabs if ``words`` ask for the layout of the TF profiler."""
    _, out, err = results
    assert out + err
    return (out + err).replace("\t", "") if "--exact-tf" in words else out + err


@pytest.mark.parametrize("words", COMMAND_LINES, ids=lambda words: ascii(" ".join(words))[:60])
@pytest.mark.parametrize("columns", ["", "80"])
def test_no_command_prints_a_control_character(
    run: Run, words: tuple[str, ...], columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("TFPROF_ALERT_COMMAND", "echo \x1b[2J\rx")
    assert not FORBIDDEN.search(printed(run(*words), *words))


def test_an_unexpected_error_prints_no_control_character(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object) -> None:
        raise RuntimeError(HOSTILE)

    monkeypatch.setattr("tfprof.cli.jobs.jobs_text.lines", fail)
    monkeypatch.setenv("TFPROF_DEBUG", "1")
    results = run("jobs")
    assert "Traceback" in results[2]
    assert not re.search(FORBIDDEN.pattern.replace("|^forged:", ""), printed(results))


def test_json_has_the_texts_as_they_are(run: Run) -> None:
    out = run("jobs", "--json")[1]
    assert not FORBIDDEN.search(out)
    assert HOSTILE in {job["name"] for job in json.loads(out)["jobs"]}
    assert not FORBIDDEN.search(run("op", ID, "--json")[1])


@pytest.mark.parametrize("compat", ["", "--exact-tf"])
def test_the_shell_prints_no_control_character(
    run: Run, compat: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    lines = ["op", "code -show_name_regexes .*", "advise", "op -x\x1b[2J", "history", "op -step 9", "set -order_by \a"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("\n".join([*lines, ""]).encode())))
    words = ("shell", ID, *filter(None, [compat]))
    assert not FORBIDDEN.search(printed(run(*words), *words))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_have_no_control_character_but_the_tab_of_fish(
    store: Path, shell: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFPROF_STORE", str(store))
    monkeypatch.setenv("_TFPROF_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", "tfprof show ")
    monkeypatch.setenv("COMP_CWORD", "2" if shell != "fish" else "")
    with pytest.raises(SystemExit):
        cli.main([])
    out = capsys.readouterr().out
    assert ID[:4] in out
    assert not FORBIDDEN.search(out.replace("\t", "", out.count("\n")))


def test_the_question_before_a_removal_has_no_control_character(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.confirm", lambda *_arguments, **_options: False)
    results = run("rm", "--all")
    assert "nothing was removed" in results[2]
    assert not FORBIDDEN.search(printed(results))


def test_the_python_api_prints_no_control_character(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = open_store(store).job(ID)
    for method in (job.profile_name_scope, job.profile_graph, job.profile_operations, job.profile_python):
        method(
            {
                "output": "stdout",
                "account_type_regexes": [".*"],
                "select": ["micros", "device", "op_types", "input_shapes"],
            }
        )
    job.advise()
    assert not FORBIDDEN.search(printed((0, *capsys.readouterr()), "--exact-tf"))
