"""The command line of tfprof-run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from house.tree import ROOT
from tfprof.agent.launcher.run import parse
from tfprof.agent.launcher.series import Repetition
from tfprof.agent.launcher.supervise import NotStartedError
from tfprof.agent.launches import DumpRequest
from tfprof.formats.errors import TfprofError, UsageError


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("TFPROF")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("words", "dump_request"),
    [
        ((), None),
        (("--dump-steps", "5"), DumpRequest([5], ".")),
        (("--dump-steps=10,5,10", "--dump-dir", "out"), DumpRequest([5, 10], "out")),
        (("--dump-steps", "5", "--dump-dir", "/a/b"), DumpRequest([5], "/a/b")),
    ],
)
def test_profiles_are_requested_by_steps_and_folder(
    tmp_path: Path, words: tuple[str, ...], dump_request: DumpRequest | None
) -> None:
    parsed = parse([*words, "true"]).dump_request
    expected = dump_request and DumpRequest(dump_request.steps, os.path.normpath(tmp_path / dump_request.folder))
    assert parsed == expected


def test_the_setting_output_keeps_no_job_from_being_executed_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFPROF_OUTPUT", "{name}.json")
    assert len(parse(["true"]).outputs) == 1
    assert not parse(["--exec", "true"]).outputs


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--dump-steps", ""), "--dump-steps is empty"),
        (("--dump-steps", "1,,2"), "'1,,2' is not a list of steps"),
        (("--dump-steps", "0"), "'0' is not a list of steps"),
        (("--dump-steps", "1-3"), "'1-3' is not a list of steps"),
        (("--dump-steps", "²"), "'²' is not a list of steps"),
        (("--dump-dir", "x"), "--dump-dir needs --dump-steps"),
        (("--dump-steps", "1", "--exec"), "--dump-steps needs tfprof-run at the end, and --exec replaces it"),
    ],
)
def test_an_invalid_request_for_profiles_is_refused(words: tuple[str, ...], text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse([*words, "true"])
    assert text in str(caught.value)
    assert caught.value.exit_code == 2


def test_several_ranges_of_steps_reach_the_job() -> None:
    assert parse(["--trace", "steps=1-3,10", "true"]).changes == {"TFPROF_TRACE": "steps=1-3,10"}


def test_a_series_has_a_number_of_runs_and_another_command(tmp_path: Path) -> None:
    assert parse(["true"]).repetition is None
    assert parse(["--repeat", "5", "true"]).repetition == Repetition(5)
    alternate = parse(["--repeat", "2", "--alternate", "true 'a b'", "true"]).repetition
    assert alternate == Repetition(2, ["true", "a b"])
    (tmp_path / "new.py").touch()
    other = parse(["--repeat", "2", "--alternate", f"{tmp_path}/new.py", "true"]).repetition
    assert other is not None
    assert other.alternate is not None
    assert other.alternate[-1] == f"{tmp_path}/new.py"


def test_another_command_that_does_not_exist_is_refused_before_the_first_run() -> None:
    with pytest.raises(NotStartedError) as caught:
        parse(["--repeat", "2", "--alternate", "no-such-command", "true"])
    assert caught.value.exit_code == 127


LONG_TEXT = "x" * 5000
DOCUMENTED_SLUGS = frozenset(re.findall(r"^## `([a-z0-9-]+)`", (ROOT / "docs/errors.md").read_text(), re.MULTILINE))
BAD_VALUES = {
    "--trace": tuple(
        f"| |some|every=|every=0|every=-1|every=x|every=1.5|every=٣|every={'9' * 5000}|steps=|steps=0|"
        "steps=5-3|steps=1,|steps=-1|steps=1-99999999999999999999|budget=|budget=0%|budget=-1%|budget=101%|"
        "budget=nan%|budget=inf%|budget=5|"
        f"off=1|all=|ALL|{LONG_TEXT}|a\nb|\udcff".split("|")
    ),
    "--trace-level": ("", " ", "hard", "FULL", LONG_TEXT, "\udcff"),
    "--ring": (
        "",
        " ",
        "x",
        "0",
        "-1",
        "1",
        "1K",
        "2G",
        "1T",
        "1.5M",
        "nan",
        "inf",
        "1e6",
        "٣M",
        "16 M M",
        "9" * 5000,
        LONG_TEXT,
    ),
    "--store": ("", " "),
    "--name": ("", " ", "last", "a\nb", "\x1b[1m", "\udcff", LONG_TEXT),
    "--repeat": ("", " ", "0", "1", "-1", "x", "1001", "2.5", "٣", "9" * 5000, LONG_TEXT),
    "--dump-steps": ("", " ", "0", "-1", "x", "1,", "1-3", "٣", "1.5", "nan", "9" * 5000, LONG_TEXT),
}
BAD_LINES = [
    (),
    ("--",),
    ("--nosuch", "true"),
    ("-x", "true"),
    (f"--{LONG_TEXT}", "true"),
    ("--tra", "all", "true"),
    *((option,) for option in BAD_VALUES),
    ("--quiet=yes", "true"),
    ("--dump-dir", ".", "true"),
    ("--alternate", "true", "true"),
    *(("--repeat", "2", f"--alternate={value}", "true") for value in ("", " ", "'", "a\\")),
    ("--repeat", "2", "--exec", "true"),
    ("--repeat", "2", "--dump-steps", "1", "true"),
    ("--repeat", "2", "-o", "x.json", "true"),
    ("--dump-steps", "1", "--exec", "true"),
    ("--dump-steps", "1", "--dump-dir", "/dev/null", "true"),
    ("--dump-steps", "1", "--dump-dir", "", "true"),
    *((f"{option}={value}", "true") for option, values in BAD_VALUES.items() for value in values),
]


def check_refusal(words: tuple[str, ...]) -> None:
    with pytest.raises(TfprofError) as caught:
        parse(words)
    text = str(caught.value)
    assert caught.value.exit_code == 2
    assert text.isprintable()
    assert len(text) < 1500
    assert [slug for slug in re.findall(r"\[([a-z-]+)\]", text) if slug in DOCUMENTED_SLUGS] == [caught.value.slug]
    assert text.endswith(f" [{caught.value.slug}]")


@pytest.mark.parametrize("words", BAD_LINES, ids=lambda words: ascii(" ".join(words))[1:50])
def test_a_bad_command_line_is_refused_in_one_line_with_one_slug(words: tuple[str, ...]) -> None:
    check_refusal(words)


@pytest.mark.parametrize(
    ("variable", "values"),
    [
        ("TFPROF_TRACE", BAD_VALUES["--trace"][1:]),
        ("TFPROF_TRACE_LEVEL", BAD_VALUES["--trace-level"][1:]),
        ("TFPROF_RING", BAD_VALUES["--ring"][1:]),
        ("TFPROF_DEBUG", ("maybe", "2", LONG_TEXT, "\udcff")),
        ("TFPROF_RAISE", ("maybe", "-1", "a\nb")),
    ],
)
def test_a_bad_setting_of_the_job_is_refused_like_an_option(
    monkeypatch: pytest.MonkeyPatch, variable: str, values: tuple[str, ...]
) -> None:
    for value in values:
        monkeypatch.setenv(variable, value)
        check_refusal(("true",))


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("TFPROF_TRACE", "TFPROF_TRACE_LEVEL", "TFPROF_RING", "TFPROF_DEBUG", "TFPROF_STORE"):
        monkeypatch.setenv(variable, "")
    assert parse(["true"]).changes == {}
    assert parse(["true"]).store


def test_a_tilde_in_the_path_of_a_store_is_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert parse(["--store", "~/profiles", "true"]).store == "/home/ada/profiles"


def test_a_missing_working_folder_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for words in (("--store", "here", "true"), ("--dump-steps", "1", "true")):
        with pytest.raises(TfprofError, match=r"the working folder, which .* is gone"):
            parse(words)
    assert parse(["--store", "/there", "true"]).store == "/there"


_WITHOUT_RESOURCES = """
import errno, os, sys
from tfprof.agent.launcher import channel_holder, report, run

def fail(*_args):
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

{target} = fail
sys.exit(run.main(["--store", sys.argv[1], sys.executable, "-c", "import time; time.sleep(2.1); raise SystemExit(3)"]))
"""


@pytest.mark.parametrize(
    "target", ["report.EndReport.report", "channel_holder.ChannelHolder._update", "report.EndReport._run_report"]
)
def test_the_exit_status_is_the_jobs_even_if_the_system_has_no_resources_left(tmp_path: Path, target: str) -> None:
    environment = {
        **os.environ,
        "XDG_RUNTIME_DIR": str(tmp_path),
        "TFPROF_AGENT_IDLE": "1",
        "TFPROF_COLLECTOR_IDLE": "1",
    }
    command = [sys.executable, "-c", _WITHOUT_RESOURCES.format(target=target), str(tmp_path / "store")]
    completed = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert completed.returncode == 3
    assert re.fullmatch(r"tfprof: no profile: .* \[(report|agent|no-tensorflow)\]\n", completed.stderr)


@pytest.mark.parametrize("option", [["-o", "x.json"], ["--dump-steps", "1"], ["--repeat", "2"]])
def test_options_that_read_the_store_are_refused_if_it_is_on_another_host(
    option: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFPROF_COLLECTOR", "tcp://head:7199")
    with pytest.raises(UsageError, match=r"tcp://head:7199.*--store DIR"):
        parse([*option, "true"])
    assert parse(["true"]).store == "tcp://head:7199"
    assert parse(["--store", "/data/x", "true"]).store == "/data/x"
