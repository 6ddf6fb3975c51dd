"""Invalid command lines of every command, option and setting.

Each command line is refused by a message of one line with one slug.
"""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from fakes import small_store
from fakes.command import Run, caller
from fakes.refusals import refusal_slug
from tfprof.cli.main import COMMANDS
from tfprof.collector.loader import load
from tfprof.collector.tfviews.option_values import (
    BOOLEAN,
    BYTES,
    COUNT,
    MICROS,
    NUMBER,
    OCCURRENCE,
    ORDER,
    OUTPUT,
    REGEXES,
    SELECT,
)
from tfprof.collector.tfviews.options import TABLE
from tfprof.formats.settings import SETTINGS

LONG_TEXT = "x" * 5000
ODD_TEXTS = ("", " ", LONG_TEXT, "a\nb", "\x1b[31mred", "\udcff", "nöłé", "' OR 1=1", "%s%n", "{0}", "../../etc")
VIEWS = ("scope", "graph", "op", "code")
#: Arguments that each command requires before others are checked.
REQUIRED_ARGUMENTS = {
    **dict.fromkeys(VIEWS, ("aa10",)),
    **dict.fromkeys(
        ("advise", "analyze", "breakdown", "compiled", "curves", "follow", "host", "memory", "workers"), ("aa10",)
    ),
    **dict.fromkeys(("shell", "show", "source", "spans", "steps"), ("aa10",)),
    "attach": ("4194305",),  # above all process ids
    "tag": ("aa10", "note"),
    "rm": ("nosuch",),
    "completion": ("tcsh",),
    "profile-proto": ("aa10", "-o", "out"),
    "report": ("aa10", "-o", "out.md"),
    "export": ("aa10", "-o", "/dev/null", "--format", "pprof"),
    "import": ("--graph_path", "graph"),
    "trace": ("aa10", "--for", "5s"),
    "detach": ("aa10",),
    "diff": ("aa10", "bb10"),
}
BAD_NUMBERS = (
    "",
    "-2",
    "x",
    "nan",
    "inf",
    "-inf",
    "1e3",
    "1.5",
    "0x10",
    "٣",
    "½",
    "1 2",
    "1_0",
    "+-1",
    "9" * 30,
    "9" * 5000,
)
BAD_TIMES = ("", " ", "x", "s", "0", "0s", "-1", "-5s", "nan", "inf", "5x", "5 s 3", "1h30", "9" * 5000, "٣s", "\udcff")
BAD_RANGES = ("", "x", "-1", "5-3", "1--2", "1-2-3", "1,2", "٣", "9" * 5000, "nan", "0x1")
#: Invalid values of the options of views, by the type of the value.
BAD_VALUES = {
    **dict.fromkeys((NUMBER, MICROS, BYTES, COUNT), BAD_NUMBERS),
    OCCURRENCE: (*BAD_NUMBERS, "10%"),
    ORDER: ("", "colour", "micros,bytes", "MICROS", LONG_TEXT, "na\nme"),
    SELECT: ("", ",", "colour", "micros,,colour", LONG_TEXT, "\udcff"),
    REGEXES: ("((", "a,((", "*", "[a", "(?<n", "a{9999}"),
    BOOLEAN: ("", "maybe", "2", "truee", LONG_TEXT),
    OUTPUT: (
        "",
        "foo",
        "file",
        "file:",
        "file:out",
        "file:outfile=",
        "stdout:outfile=x",
        "none:x=y",
        "timeline",
        ":",
        LONG_TEXT,
    ),
}
#: Paths to which no file can be written.
BAD_FILES = ("folder", "loop", "missing/x", "socket", "graph/x", LONG_TEXT, "/dev/full", "", "a/" * 2500)
BAD_STORES = ("", " ", "graph", "loop", "/dev/null", "fifo", "socket", LONG_TEXT, "a/" * 2500, "graph/x")
#: Paths that a daemon may turn into a store.
NEW_STORES = ("missing", "folder", "\udcff", "new\nline", "~nosuchuser/x", "loop-inside")
DAMAGED_STORES = ("not-json", "deep-json", "no-object", "other-version", "folder-inside", "fifo-inside")
#: Invalid values of the other options, by the name of the option.
OTHER_BAD_VALUES = {
    "against": ("", "nosuch"),
    "moment_ns": (*ODD_TEXTS, "3x", "-1d"),
    "baseline": ("", "nosuch"),
    "limit": ("", "x", "%", "-5%", "nan", "5%%", "9" * 5000),
    "pids": ("", "x", "-1", "1.5", "nan", "9" * 5000, "٣", "4711"),
    "host": (*ODD_TEXTS, "moon"),
    "hosts": (*ODD_TEXTS, "moon"),
    "jobs hosts": ("", " "),  # like names, they may match no job
    "group": (*ODD_TEXTS, "nosuch"),
    "steps": BAD_RANGES,
    "kinds": (*ODD_TEXTS, "trains", "batch,", ",", "all,batch", "BATCH,epoch"),
    "device": (*ODD_TEXTS, "tpu"),
    "sort": (*ODD_TEXTS, "slower"),
    "by": (*ODD_TEXTS, "lines"),
    "filter_text": ("", " "),
    "ended_before_ns": (*ODD_TEXTS, "3x", "-1d"),
    "ended": (*ODD_TEXTS, "3x", "-1d"),
    "listen": (*ODD_TEXTS, "0.0.0.0:9464", ":9464", "127.0.0.1", "127.0.0.1:65536", "127.0.0.1:x", "unix:"),
    "compat": (*ODD_TEXTS, "2.22", "1"),
    "last": (*BAD_NUMBERS, "-1"),
    "names": ("", " "),
    "states": (*ODD_TEXTS, "runing", "running,", "ended exited"),
    "top": (*BAD_NUMBERS, "-1"),
    "since": (*ODD_TEXTS, "3x", "d", "-3d", "25:00", "14:30x", "2026-13-01", "9" * 5000 + "d", "٣d"),
    "name": ("", " ", "last", "a\nb", LONG_TEXT, "\x07", "\udcff"),
    "profile_path": ("", "missing", "folder", "loop", "socket", "/dev/null", "graph", LONG_TEXT),
    "run_meta_path": ("", ",", "missing", "folder", "graph,", "loop", "junk", LONG_TEXT),
    "op_log_path": ("", "missing", "folder", "loop", "junk"),
    "checkpoint_path": ("", "missing", "folder", "loop", "junk"),
    "graph_path": ("", "missing", "folder", "loop", "socket", "/dev/null", "junk", LONG_TEXT, "a\nb"),
    "profile": BAD_FILES,
    "paths": (*BAD_FILES, "graph"),
    "format_name": (*ODD_TEXTS, "json", "timeline", "file"),
    "table": (*ODD_TEXTS, "traces"),
    "next_steps": ("0", "0-3", *(text for text in BAD_RANGES if text != "1,2")),
    "time": BAD_TIMES,
    "wait": BAD_TIMES,
    "every": ("0", *BAD_NUMBERS),
    "budget": ("", "%", "x", "1", "0%", "101%", "nan%", "-1%", "1%%", "9" * 5000),
    "level": (*ODD_TEXTS, "loud"),
    "trace": (*ODD_TEXTS, "sometimes", "every=0", "steps=3-1", "budget=0%"),
    "method": (*ODD_TEXTS, "gdb"),
    "user": (*ODD_TEXTS, "root"),
    "pattern": ("", " ", "x"),
    "path": (*ODD_TEXTS, "report.txt", "folder"),
    "port": (*BAD_NUMBERS, "-1", "65536"),
    "types": ("", " "),
    "type_regex": ("", "((", "[a", "a{9999999999}"),
    "opr_name": ("", "((", "[a"),
    "min_time": ("", "x", "nan", "1s", "٣"),
    "max_time": ("", "x", "nan", "1s", "٣"),
    "aggregate": (*ODD_TEXTS, "median"),
    "aggregate_by": (*ODD_TEXTS, "name"),
    "order_by": ("", " ", "size", "++time", LONG_TEXT),
    "outputs": (*ODD_TEXTS, "scope", "op"),
    "since_ns": (*ODD_TEXTS, "3x", "-1d", "25:00"),
    "op_log": tuple(file for file in BAD_FILES if file != "/dev/full"),  # writing an empty op log there succeeds
}
BAD_WORDS = ("--nosuch", "-nosuch", "--jsn", "-x", "--store", "--=", "-é", "--json=maybe", f"--{LONG_TEXT}")
#: Selections of jobs that are invalid or match no running job.
BAD_SELECTIONS = (
    (),
    ("--all", "aa10"),
    ("--all", "--host", "moon"),
    ("--pid", "99999"),
    ("--pid", "x"),
    ("aa10", "--pid", "2"),
    ("--group", "aa10"),
    ("--group", "nosuch", "--all"),
)
#: Command lines with an unknown command, job or value, with options that exclude each other, or
#: with a wrong number of arguments.
BAD_COMBINATIONS = (
    *((word,) for word in ("nosuch", "statsu", "--nosuch", "-x", LONG_TEXT, "", "a\nb", "--store", "\udcff")),
    *((name,) for name in (*VIEWS, "advise", "shell", "steps", "spans", "host", "profile-proto", "import")),
    *((name,) for name in ("show", "follow", "tag", "rm", "completion")),
    *((name, "aa10", "bb10") for name in ("steps", "spans", "host", "profile-proto")),
    *((name, "extra") for name in ("top", "status", "start", "stop")),
    ("steps", "aa10", "--last", "3", "--all"),
    ("follow", "aa10", "--last", "3", "--all"),
    ("tag", "aa10", "\x1b[31mred"),
    ("tag", "aa10", LONG_TEXT),
    ("tag", "aa10", "--remove", "nothing"),
    ("rm", "aa10", "--all"),
    ("rm", "--all"),
    ("rm", "--name", "*"),
    ("completion", "tcsh"),
    ("op", "aa10", "--json", "-output", "file:outfile=x"),
    ("op", "aa10", "-output", "timeline:outfile=x"),
    ("op", "aa10", "-output", "pprof:outfile=x"),
    ("scope", "aa10", "-output", "pprof:outfile=x"),
    ("op", "aa10", "-step", "9"),
    ("op", "aa10", "--host", "node8"),
    ("op", "--host", "node7", "--pid", "3"),
    ("profile-proto", "aa10"),
    ("export",),
    ("export", "aa10"),
    ("export", "-o", "out.json"),
    ("export", "aa10", "-o", "out.unknown"),
    ("export", "aa10", "-o", "out", "--format", "chrome", "--table", "ops"),
    ("export", "aa10", "bb10", "-o", "out", "--format", "op-log"),
    ("profile-proto", "aa10", "bb10", "-o", "x"),
    ("import", "--profile_path", "graph", "--graph_path", "graph"),
    ("import", "--op_log_path", "junk"),
    ("import", "--name", "x"),
    ("import", "graph"),
    ("import", "folder"),
    ("import", "fifo"),
    ("import", "missing.tfprof"),
    ("import", "graph", "--name", "x"),
    ("import", "--graph_path", "graph", "--run_meta_path", "untraced,junk"),
    *((name, *selection) for name in ("trace", "detach") for selection in BAD_SELECTIONS),
    ("trace", "--for", "5s"),
    ("trace", "aa10"),
    ("trace", "aa10", "--every", "5", "--off"),
    ("trace", "aa10", "--all-steps", "--budget", "1%"),
    ("trace", "aa10", "--off", "--steps", "3"),
    ("trace", "aa10", "--end", "--for", "5s"),
    ("trace", "aa10", "--off", "-o", "ops"),
    ("trace", "nosuch", "--steps", "3"),
    ("trace", "--all", "--name", "nosuch", "--steps", "3"),
    ("trace", "--group", "nosuch", "--steps", "3"),
    ("trace", "--group", "nosuch", "--steps", "3", "--every", "2"),
    ("trace", "--group", "nosuch", "--steps", "3", "--for", "5s"),
    ("attach",),
    ("attach", "--all", "no such program"),
    ("attach", "--follow"),
    ("attach", "4194305", "--all", "x"),
    ("attach", "--all", "x", "--follow", "--no-wait"),
    ("attach", "x"),
    ("attach", "-1"),
    ("attach", "4194305", "--steps", "0"),
    ("attach", "4194305", "--steps", "3", "--trace", "all"),
    ("op", "nosuch", "-show_name_regexes", "((", "--exact-tf"),
    ("keys",),
    ("store",),
    ("serve", "--system"),
    ("serve", "--print", "--force"),
    ("serve", "--print", "--system", "--user", "no such user"),
)


def _options(name: str) -> Iterator[tuple[click.Option, tuple[str, ...]]]:
    """Yield the options of a command, each with invalid values.

    Values of --store have a separate test.
    """
    view_values = {option.name: BAD_VALUES[option.value_type] for option in TABLE}
    for option in load(COMMANDS[name][0]).params:
        if isinstance(option, click.Option) and not option.is_flag and option.name != "store":
            key = f"{name} {option.name}" if f"{name} {option.name}" in OTHER_BAD_VALUES else str(option.name)
            yield option, view_values[option.name] if option.name in view_values else OTHER_BAD_VALUES[key]


def lines() -> Iterator[tuple[str, ...]]:
    """Yield the command lines."""
    yield from BAD_COMBINATIONS
    for name in COMMANDS:
        arguments = REQUIRED_ARGUMENTS.get(name, ())
        for word in BAD_WORDS:
            yield (name, *arguments, word)
        for option, values in _options(name):
            for value in values:
                if option.name == "step" and value == "-1":
                    continue
                yield (name, *arguments, f"{max(option.opts, key=len)}={value}")
        first = load(COMMANDS[name][0]).params[:1]
        if any("JOB" in str(parameter.metavar or parameter.name).upper() for parameter in first):
            for job in (*ODD_TEXTS, "nosuch", "-1", "aa10,bb10"):
                yield (name, job, *arguments[1:])


LINES = list(lines())
_DAEMON_COMMANDS = frozenset({"status", "start", "stop"})
#: Commands for which a store may not exist yet.
_NEW_STORE_COMMANDS = _DAEMON_COMMANDS | {"import", "metrics", "web"}
#: Commands without --store, and `tfprof serve`, which would replace this process.
_WITHOUT_STORE = {"completion", "config", "doctor", "keys", "ps", "serve", "store"}
STORE_CASES = [
    (name, store)
    for name in COMMANDS
    for store in (*BAD_STORES, *DAMAGED_STORES, *(() if name in _NEW_STORE_COMMANDS else NEW_STORES))
    if name not in _WITHOUT_STORE and (name != "start" or not store.strip())
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store and with many invalid stores."""
    folder = tmp_path_factory.mktemp("bad")
    small_store.write(folder / "store")
    (folder / "folder").mkdir()
    (folder / "graph").write_bytes(small_store.GRAPH.SerializeToString())
    (folder / "untraced").write_text("partition_graphs { }")
    (folder / "junk").write_bytes(b"\xff\x00junk" * 99)
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        previous = Path.cwd()
        os.chdir(folder)
        listener.bind("socket")
        os.chdir(previous)
    for name in (*DAMAGED_STORES, "loop-inside"):
        (folder / name).mkdir()
    (folder / "not-json/store.json").write_text("{")
    (folder / "deep-json/store.json").write_text("[" * 100_000)
    (folder / "no-object/store.json").write_text("[2]")
    (folder / "other-version/store.json").write_text('{"version": 99}')
    (folder / "folder-inside/store.json").mkdir()
    os.mkfifo(folder / "fifo-inside/store.json")
    (folder / "loop-inside/store.json").symlink_to("store.json")
    return folder


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in the folder of the store."""
    for name in [name for name in os.environ if name.startswith("TFPROF")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TFPROF_STORE", str(folder / "store"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder / "run"))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    monkeypatch.chdir(folder)
    return caller(capsys)


def _test_id(words: object) -> str:
    return ascii(" ".join(words) if isinstance(words, tuple) else words)[1:50]


def test_there_are_hundreds_of_bad_lines() -> None:
    assert len(LINES) > 600
    assert len(STORE_CASES) > 200


# A test for each of thousands of lines would take ten times as long.
@pytest.mark.parametrize("name", sorted({words[0] for words in LINES}))
def test_bad_command_lines_are_refused_in_one_line_with_one_slug(run: Run, name: str) -> None:
    for words in LINES:
        if words[0] == name:
            refusal_slug(run(*words), words)


@pytest.mark.parametrize("name", sorted({name for name, _ in STORE_CASES}))
def test_bad_stores_are_refused_in_one_line_with_one_slug(run: Run, name: str) -> None:
    for store in [store for case_name, store in STORE_CASES if case_name == name]:
        slug = refusal_slug(run(name, *REQUIRED_ARGUMENTS.get(name, ()), f"--store={store}"), store)
        if name not in _DAEMON_COMMANDS | {"attach", "import"}:
            usual_slug = "store-damaged" if store in (*DAMAGED_STORES, "loop-inside") else "store-missing"
            assert slug == {"other-version": "store-version", "": "usage"}.get(store.strip(), usual_slug), store


@pytest.mark.parametrize("variable", ["XDG_RUNTIME_DIR", "XDG_STATE_HOME", "HOME"])
@pytest.mark.parametrize("text", ["relative", "./x", "~", " "])
def test_a_relative_folder_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch, variable: str, text: str) -> None:
    settings_folder = ["XDG_CONFIG_HOME"] if variable == "HOME" else []
    for name in ("TFPROF_STORE", "XDG_STATE_HOME", *settings_folder):
        monkeypatch.delenv(name)
    monkeypatch.setenv(variable, text)
    assert refusal_slug(run("status")) == "runtime-dir"


@pytest.mark.parametrize("text", ["graph", "fifo", "socket"])
def test_an_unusable_runtime_folder_is_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch, folder: Path, text: str
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder / text))
    assert {refusal_slug(run(name)) for name in ("status", "start", "stop")} == {"runtime-dir"}


BAD_IDLE_TIMES = ("-5", "0", "x", "nan", "inf", "1e999", "1_0", "٣", "5s", LONG_TEXT, "a\nb", " ", "--")
BAD_SIZES = ("-5", "0", "x", "nan", "1.5G", "5T", "G", "1_0", "٣", "9" * 5000, "a\nb")
BAD_SETTINGS = [
    *((name, text) for name in ("agent-idle", "collector-idle") for text in BAD_IDLE_TIMES),
    *(("keep-days", text) for text in BAD_IDLE_TIMES if text.strip()),
    *(("keep-bytes", text) for text in BAD_SIZES),
    *(("debug", text) for text in ("maybe", "2", "-1", LONG_TEXT, "ja", "\udcff")),
]


@pytest.mark.parametrize(("name", "text"), BAD_SETTINGS, ids=_test_id)
def test_a_bad_setting_is_refused_in_one_line_that_names_it(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    variable = SETTINGS[name].variable
    monkeypatch.setenv(variable, text)
    answer = run("start")
    assert refusal_slug(answer) == "usage"
    assert answer[2].startswith(f"tfprof: {variable}: ")


@pytest.mark.parametrize("text", ["0", "no", "off", "False", "", "1", "yes", "on", "TRUE"])
def test_the_debug_setting_means_the_same_for_commands_and_jobs(
    run: Run, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("TFPROF_DEBUG", text)
    assert ("Traceback" in run("op", "nosuch")[2]) == SETTINGS["debug"].read()
