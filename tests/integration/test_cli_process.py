"""The tfprof command as a process: pipes, signals, what it imports."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fakes import asked_store
from fakes.made_store import rows, span, traced, write_job
from fakes.run_metadata import run_metadata
from tfprof.shim import layout

TFPROF = [sys.executable, "-m", "tfprof.collector.cli.main"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one job of many steps."""
    path = tmp_path_factory.mktemp("cli") / "store"
    write_job(path, 1, {"spans": rows("spans", [span(layout.RUN, at, at, 1) for at in range(20_000)])})
    return path


def test_a_reader_that_goes_away_is_no_error(store: Path) -> None:
    command = [*TFPROF, "steps", "last", "--all", "--store", str(store)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 0


@pytest.mark.parametrize("words", [("op", "--json"), ("scope", "-max_depth", "100")])
def test_a_reader_of_a_view_that_goes_away_is_no_error(tmp_path: Path, words: tuple[str, ...]) -> None:
    names = [b"scope_%d/node_%d" % (number, number) for number in range(5000)]
    write_job(tmp_path, 1, traced(b"", [run_metadata(names)]))
    command = [*TFPROF, words[0], "last", *words[1:], "--store", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


def test_a_full_disk_under_the_output_is_one_line(store: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*TFPROF, "jobs", "--store", str(store)], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr == "tfprof: standard output: No space left on device [io]\n"


def test_ctrl_c_ends_it_without_a_word(store: Path) -> None:
    read, write = os.pipe()
    command = [*TFPROF, "steps", "last", "--all", "--store", str(store)]
    with subprocess.Popen(command, stdout=write, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        os.read(read, 1)  # it writes, and soon waits for a reader
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        os.close(write)
        assert process.wait(30) == 130
        assert process.stderr.read().strip() == b""
    os.close(read)


def test_an_ascii_terminal_gets_question_marks_instead_of_a_traceback(store: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [*TFPROF, "steps", "last", "--last", "1", "--store", str(store)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "run" in done.stdout


def test_listing_jobs_loads_neither_the_query_engine_nor_protobuf_nor_the_network() -> None:
    code = "import sys, tfprof.collector.cli.main, tfprof.collector.cli.jobs; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"duckdb", "google.protobuf", "zmq", "psutil", "rich", "asyncio"} & set(done.stdout.split())


@pytest.mark.parametrize("view", ["scope", "graph", "op", "code"])
def test_a_view_loads_no_more_than_it_needs(tmp_path: Path, view: str) -> None:
    asked_store.write(tmp_path / "s")
    code = (
        "import sys\nfrom tfprof.collector.cli.main import main\ntry: main(sys.argv[1:])\nfinally: print(*sys.modules)"
    )
    words = [view, "aa10", "--store", str(tmp_path / "s")]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    heavy = {"duckdb", "rich", "prompt_toolkit", "re2", "asyncio", "zmq", "psutil", "tensorflow"}
    of_files = {
        "tfprof.collector.export.messages",
        "tfprof.collector.export.timeline",
        "tfprof.collector.answers.timelines",
    }
    assert not (heavy | of_files) & loaded
    assert ("google.protobuf" in loaded) == (view in {"graph", "code"})  # which look at graphs
    assert f"tfprof.collector.views.{view}" in loaded


@pytest.mark.usefixtures("private_places")
def test_the_daemons_are_told_about_started_and_stopped() -> None:
    def tfprof(*words: str) -> list[str]:
        done = subprocess.run([*TFPROF, *words], capture_output=True, text=True, check=True, timeout=60)
        return done.stdout.splitlines()

    assert tfprof("status")[1].startswith("agent: not running (started when needed")
    assert [line.split(",")[0] for line in tfprof("start")] == ["collector: started", "agent: started"]
    assert [line.split(",")[0] for line in tfprof("start")] == ["collector: already running", "agent: already running"]
    states = [line.split(",")[0] for line in tfprof("status") if not line.startswith(" ")]
    assert states[1:] == ["agent: running", "collector: running"]
    assert tfprof("stop") == ["agent: stopped", "collector: stopped"]
    assert tfprof("stop") == ["agent: not running", "collector: not running"]
