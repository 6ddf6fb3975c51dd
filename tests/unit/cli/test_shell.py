"""The shell with lines from a pipe.

Tests collector/render/wrapper_text.py.
"""

import io
from pathlib import Path

import pytest
from fakes import small_store
from fakes.command import Run, caller
from tfprof.cli import main as cli


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_store.write(tmp_path_factory.mktemp("shell") / "store")


@pytest.fixture
def run_shell(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a shell with lines from a pipe; returns exit status, stdout, stderr."""
    monkeypatch.setenv("TFPROF_STORE", str(store))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def call(text: str, *words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode("utf-8", "surrogateescape"))))
        return caller(capsys)("shell", *(words or ("aa10",)))

    return call


def test_a_line_prints_the_same_as_the_command(run_shell: Run, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["op", "-order_by", "micros"], ["scope", "-select", "params"], ["graph", "-max_depth", "2"]):
        with pytest.raises(SystemExit):
            cli.main([words[0], "aa10", *words[1:]])
        captured = capsys.readouterr()
        assert run_shell(" ".join(words) + "\n") == (0, captured.out, captured.err)


def test_an_empty_line_shows_the_options(run_shell: Run) -> None:
    code, out, err = run_shell("\n   \t \n")
    lines = out.splitlines()
    assert (code, err, len(lines)) == (0, "", 42)
    assert lines[:21] == lines[21:]
    assert lines[0] == "-max_depth                  10"
    assert lines[20] == "-output                     stdout:"


def test_options_apply_to_one_line_and_options_of_set_to_the_session(run_shell: Run) -> None:
    out = run_shell("op -select bytes -max_depth 0\n\nset -select params,bytes -max_depth 3\n\n")[1]
    shown_options = [line.split() for line in out.splitlines() if line.startswith(("-select", "-max_depth"))]
    assert shown_options == [
        ["-max_depth", "10"],
        ["-select", "micros"],
        ["-max_depth", "3"],
        ["-select", "bytes,params"],
    ]
    assert "params" in run_shell("set -select params\nop\n")[1]
    assert "# parameters" in run_shell("set -select params\nop\n", "aa10", "--exact-tf")[1]


def test_a_refused_set_changes_nothing(run_shell: Run) -> None:
    out = run_shell("set -max_depth 3 -order_by colour\n\n")[1]
    assert out.splitlines()[0] == "-max_depth                  10"


def test_options_of_the_command_line_are_the_defaults_of_the_session(run_shell: Run) -> None:
    assert (
        run_shell("\n", "aa10", "-max_depth", "5", "--select=bytes")[1].splitlines()[0]
        == "-max_depth                  5"
    )


BAD_LINES = [
    ("foo", "no such command 'foo' (help) [usage]", "First string must be a valid command."),
    ("scoop", "no such command 'scoop': did you mean scope? (help) [usage]", "First string must be a valid command."),
    ("op -foo 1", "no such option '-foo' (help op) [usage]", "Invalid option '-foo' value: '1'"),
    (
        "op -max_dept 1",
        "no such option '-max_dept': did you mean -max_depth? (help op) [usage]",
        "Invalid option '-max_dep",
    ),
    ("op -max_depth", "Invalid option '-max_depth' value: ''", "Invalid option '-max_depth' value: ''"),
    ("op -order_by colour", "Invalid option '-order_by' value: 'colour' (one of name bytes", None),
    ("op -select micros,colour", "Invalid option '-select' value: 'micros,colour' (one of", None),
    (
        "op -output foo",
        "-output foo is unknown: it can be stdout, none",
        "E.g. Unknown output type: foo",
    ),
    (
        "op -output file",
        "-output file needs a file: -output file:outfile=FILE [usage]",
        "Missing req",
    ),
]


@pytest.mark.parametrize(("line", "message", "tf_message"), BAD_LINES)
def test_a_bad_line_is_reported_in_one_line_and_the_next_is_read(
    run_shell: Run, line: str, message: str, tf_message: str | None
) -> None:
    code, out, err = run_shell(f"{line}\nhistory\n")
    assert err.startswith(f"tfprof: {message}")
    assert err.endswith(" [usage]\n")
    assert (code, err.count("\n")) == (1, 1)
    assert out.splitlines() == [f"    1  {line}", "    2  history"]
    exact_message = run_shell(f"{line}\n", "aa10", "--exact-tf")[2]
    assert exact_message.startswith(f"E: INVALID_ARGUMENT: {tf_message or message.removesuffix(' [usage]')}")
    assert "[usage]" not in exact_message


@pytest.mark.parametrize(
    ("line", "message", "tf_message"),
    [
        ("op -output pprof:outfile=x", "-output pprof is for code, not for op [usage]", "Only 'code' view supports"),
        (
            "op -output timeline:outfile=x",
            "-output timeline is for code, graph, scope, not for op",
            "op view doesn't support timeline yet.",
        ),
        (
            "op -step 9",
            "step 9 was not traced: traced are 0, 1 [no-such-step]",
            "Options -step=9 not found.\nAv",
        ),
        (
            "op -output file:outfile=/nonexistent/x",
            "cannot write /nonexistent/x: No such file",
            "tfprof: cannot write /n",
        ),
        ("op -output file:outfile=a\0b", "cannot write a\\x00b: embedded null byte [io]", "tfprof: cannot write a"),
    ],
)
def test_an_error_is_reported_in_one_line(run_shell: Run, line: str, message: str, tf_message: str | None) -> None:
    code, _, err = run_shell(f"{line}\nhistory\n")
    assert err.startswith(f"tfprof: {message}")
    assert (code, err.count("\n")) == (1, 1)
    assert run_shell(f"{line}\n", "aa10", "--exact-tf")[2].startswith(tf_message or message.removesuffix(" [usage]"))


@pytest.mark.parametrize("line", ["op -step -2", "op -max_depth -1", "scope -min_bytes -1", "op -show_name_regexes (("])
def test_senseless_values_are_refused_without_exact_parity(run_shell: Run, line: str) -> None:
    assert (run_shell(f"{line}\n")[0], run_shell(f"{line}\n", "aa10", "--exact-tf")[0]) == (1, 0)


def test_the_status_of_a_bad_line_is_named_as_in_the_selected_tensorflow(run_shell: Run) -> None:
    message = run_shell("foo\n", "aa10", "--compat", "1.15", "--exact-tf")[2]
    assert message == "E: Invalid argument: First string must be a valid command.\n"


def test_with_exact_parity_a_bad_regex_matches_nothing(run_shell: Run) -> None:
    code, _, err = run_shell("op -show_name_regexes ((\n", "aa10", "--exact-tf")
    assert code == 0
    assert err.startswith("tfprof: -show_name_regexes '((' matches nothing")


@pytest.mark.parametrize("command", ["exit", "quit"])
def test_exit_ends_the_shell_before_the_end_of_input(run_shell: Run, command: str) -> None:
    assert run_shell(f"{command}\nfoo\n") == (0, "", "")


def test_help_lists_commands_and_options_of_a_view(run_shell: Run) -> None:
    out = run_shell("help\n")[1]
    assert all(f"  {name} " in out for name in ("scope", "graph", "op", "code", "advise", "set", "help", "history"))
    assert "  -max_depth N " in out
    assert "Stop at the first entry that matches." in run_shell("help op\n")[1]
    assert "Leave out entries that match, with all below them." in run_shell("help code\n")[1]


def test_several_jobs_can_be_merged(run_shell: Run) -> None:
    single, merged = (
        run_shell("op -select micros -show_name_regexes MatMul\n", *jobs, "--exact-tf")[1]
        for jobs in (["aa10"], ["aa10", "bb10"])
    )
    assert "MatMul                           10us (" in single
    assert merged.startswith("\n\nFound accelerator operation")  # of the second job
    assert "MatMul                           10us (" in merged


def test_bytes_that_are_not_text_are_refused_like_other_words(run_shell: Run) -> None:
    assert "no such command" in run_shell("\udcff\n")[2]


def test_an_unknown_job_is_an_error_before_a_line_is_read(run_shell: Run) -> None:
    assert run_shell("op\n", "nosuch")[0] == 1
    assert run_shell("op\n", "--host", "moon")[0] == 1


def test_lines_from_a_pipe_are_not_saved(run_shell: Run, tmp_path: Path) -> None:
    run_shell("op\n")
    assert not (tmp_path / "state").exists()
