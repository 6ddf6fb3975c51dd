"""The `tfprof` command as a process: pipes, signals, imports."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from fakes import small_store
from fakes.made_store import SECOND, START_NS, rows, span, trace_tables, write_job
from fakes.polling import until
from fakes.run_metadata import run_metadata
from tfprof.formats import layout

BIN = Path(sys.executable).parent
TFPROF = [sys.executable, "-m", "tfprof.cli.main"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one job of many steps."""
    path = tmp_path_factory.mktemp("cli") / "store"
    write_job(path, 1, {"spans": rows("spans", [span(layout.RUN, at, at, 1) for at in range(20_000)])})
    return path


@pytest.fixture(scope="module")
def full_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a job for which every command has output."""
    path = tmp_path_factory.mktemp("full") / "store"
    tables = trace_tables(small_store.GRAPH.SerializeToString(), [run_metadata([b"net/MatMul"])])
    tables["spans"] = rows("spans", [span(layout.RUN, at, at, 1) for at in range(3)])
    samples = [{"t_ns": START_NS + n * SECOND, "cpu_user_s": 2.0 * n, "rss_bytes": 10**9} for n in range(4)]
    tables["samples"] = rows("samples", samples)
    write_job(path, small_store.FIRST_JOB, tables, end={"status": 0})
    return path


def test_a_reader_that_closes_the_pipe_is_no_error(store: Path) -> None:
    command = [*TFPROF, "steps", "last", "--all", "--store", str(store)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 0


@pytest.mark.parametrize("words", [("op", "--json"), ("scope", "-min_micros", "0"), ("scope", "--exact-tf")])
def test_a_reader_of_a_view_that_closes_the_pipe_is_no_error(tmp_path: Path, words: tuple[str, ...]) -> None:
    names = [b"scope_%d/node_%d" % (number, number) for number in range(5000)]
    write_job(tmp_path, 1, trace_tables(b"", [run_metadata(names)]))
    command = [*TFPROF, words[0], "last", *words[1:], "--store", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


def test_output_to_a_full_disk_ends_with_one_line_of_error(store: Path) -> None:
    with Path("/dev/full").open("w") as full:
        completed = subprocess.run(
            [*TFPROF, "jobs", "--store", str(store)], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert completed.returncode == 1
    assert completed.stderr == "tfprof: standard output: No space left on device [io]\n"


def test_ctrl_c_ends_the_command_silently(store: Path) -> None:
    read_fd, write_fd = os.pipe()
    command = [*TFPROF, "steps", "last", "--all", "--store", str(store)]
    with subprocess.Popen(command, stdout=write_fd, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        os.read(read_fd, 1)
        until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_SLEEPING, "a full pipe")
        process.send_signal(signal.SIGINT)
        os.close(write_fd)
        assert process.wait(30) == -signal.SIGINT  # shells report 130
        assert process.stderr.read() == b""
    os.close(read_fd)


@pytest.mark.parametrize("words", [("tfprof", "jobs"), ("tfprof", "advise", "last"), ("tfprof-run", "--help")])
def test_ctrl_c_is_silent_at_any_moment(store: Path, words: tuple[str, ...]) -> None:
    """The signal may come while the command starts, imports, works or ends."""
    environ = {**os.environ, "TFPROF_STORE": str(store)}
    statuses = []
    for tick in range(40):
        with subprocess.Popen([str(BIN / words[0]), *words[1:]], stdout=-1, stderr=-1, env=environ) as process:
            time.sleep(tick * 0.01)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        statuses.append(process.returncode)
        assert b"Traceback" not in err
        assert b"Interrupt" not in err
    assert set(statuses) <= {0, -signal.SIGINT}
    assert statuses[0] == -signal.SIGINT


def test_ctrl_c_stays_ignored_under_a_shell_that_ignores_it(store: Path) -> None:
    command = f"trap '' INT; '{BIN}/tfprof' jobs --store '{store}' & job=$!; kill -INT $job; wait $job"
    completed = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert (completed.returncode, completed.stderr) == (0, "")


#: Commands that print something.
COMMANDS = (
    "jobs",
    "steps last",
    "spans last",
    "host last",
    "op last",
    "advise last",
    "status",
    "stop",
    "--help",
    "--version",
)
#: Redirection -> the error message of the operating system.
ERRORS = {">&-": "Bad file descriptor", ">/dev/full": "No space left on device"}


def shell(line: str, store: Path) -> subprocess.CompletedProcess[str]:
    """Run a line in a shell that has the commands on its path."""
    environ = {**os.environ, "TFPROF_STORE": str(store), "PATH": f"{BIN}:{os.environ['PATH']}"}
    return subprocess.run(["bash", "-c", line], env=environ, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.usefixtures("private_store")
@pytest.mark.parametrize("stream", [">&-", ">/dev/full"])
@pytest.mark.parametrize("words", COMMANDS)
def test_an_output_that_cannot_be_written_is_reported_in_one_line(full_store: Path, words: str, stream: str) -> None:
    completed = shell(f"tfprof {words} {stream}", full_store)
    assert (completed.returncode, completed.stdout) == (1, "")
    assert completed.stderr.splitlines()[-1] == f"tfprof: standard output: {ERRORS[stream]} [io]"
    assert "Traceback" not in completed.stderr


@pytest.mark.usefixtures("private_store")
@pytest.mark.parametrize("words", [*COMMANDS, "shell last", "profile-proto last -o /dev/null"])
def test_only_the_shell_needs_a_standard_input(full_store: Path, words: str) -> None:
    completed = shell(f"tfprof {words} <&-", full_store)
    errors = ["tfprof: standard input: Bad file descriptor [io]"] if words == "shell last" else []
    assert (completed.returncode, completed.stderr.splitlines()) == (len(errors), errors)


@pytest.mark.parametrize("stream", ["2>&-", "2>/dev/full"])
@pytest.mark.parametrize(
    ("line", "status"),
    [("tfprof nosuch", 2), ("tfprof jobs --store /nonexistent", 1), ("tfprof-run --nosuch", 2), ("tfprof jobs", 0)],
)
def test_a_standard_error_that_cannot_be_written_does_not_change_the_status(
    full_store: Path, line: str, status: int, stream: str
) -> None:
    assert shell(f"{line} {stream}", full_store).returncode == status


@pytest.mark.parametrize("line", ["tfprof --help", "tfprof op --help", "tfprof-run --help", "tfprof jobs"])
def test_a_pipe_that_is_closed_before_the_first_output_is_no_error(full_store: Path, line: str) -> None:
    completed = shell(f"set -o pipefail; (sleep 0.1; {line}) | exec true", full_store)
    assert (completed.returncode, completed.stderr) == (0, "")


@pytest.mark.parametrize("stream", [">&-", ">/dev/full"])
def test_the_help_of_the_launcher_needs_an_output(full_store: Path, stream: str) -> None:
    completed = shell(f"tfprof-run --help {stream}", full_store)
    assert (completed.returncode, completed.stderr) == (1, f"tfprof-run: standard output: {ERRORS[stream]} [io]\n")


def test_a_folder_as_standard_input_is_one_line_of_error(full_store: Path) -> None:
    completed = shell("tfprof shell last </", full_store)
    assert (completed.returncode, completed.stderr) == (2, "tfprof: standard input is a folder [usage]\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("pattern", [".", "store.json", "jobs", "jobs/*", "jobs/*/job.json", "jobs/*/*.parquet"])
def test_files_without_permission_are_reported_as_unreadable_and_not_as_damaged(
    full_store: Path, tmp_path: Path, pattern: str
) -> None:
    shutil.copytree(full_store, tmp_path / "store")
    for path in (tmp_path / "store").glob(pattern) if pattern != "." else [tmp_path / "store"]:
        path.chmod(0)
    code = (
        "import os, sys; from tfprof.cli import main, steps; from tfprof.collector.store import reader;"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534); main.main(sys.argv[1:])"
    )
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o055)
    command = [sys.executable, "-c", code, "steps", "aa10", "--store", str(tmp_path / "store")]
    completed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, cwd="/")
    assert (completed.returncode, completed.stdout) == (1, "")
    assert re.fullmatch(r"tfprof: cannot read .*: Permission denied \[store-unreadable\]\n", completed.stderr)


def test_output_in_ascii_causes_no_error(store: Path) -> None:
    environ = {**os.environ, "PYTHONIOENCODING": "ascii"}
    completed = subprocess.run(
        [*TFPROF, "steps", "last", "--last", "1", "--store", str(store)],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "run" in completed.stdout


def test_listing_jobs_loads_neither_the_query_engine_nor_protobuf_nor_the_network() -> None:
    code = "import sys, tfprof.cli.main, tfprof.cli.jobs; print(*sys.modules)"
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"duckdb", "google.protobuf", "zmq", "psutil", "rich", "asyncio"} & set(completed.stdout.split())


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("view", ["scope", "graph", "op", "code"])
def test_a_view_loads_no_more_than_it_needs(tmp_path: Path, view: str, exact: bool) -> None:
    small_store.write(tmp_path / "s")
    code = "import sys\nfrom tfprof.cli.main import main\ntry: main(sys.argv[1:])\nfinally: print(*sys.modules)"
    words = [view, "aa10", "--store", str(tmp_path / "s"), *["--exact-tf"] * exact]
    completed = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    loaded_modules = set(completed.stdout.splitlines()[-1].split())
    heavy_modules = {"duckdb", "rich", "prompt_toolkit", "re2", "asyncio", "zmq", "psutil", "tensorflow"}
    file_exporters = {
        "tfprof.collector.export.messages",
        "tfprof.collector.export.timeline",
        "tfprof.collector.exporters.view_timeline",
    }
    assert not (heavy_modules | file_exporters) & loaded_modules
    assert ("google.protobuf" in loaded_modules) == (view == "graph")  # it needs the inputs of nodes
    module = {"scope": "tree", "graph": "tree"}.get(view, view)
    assert f"tfprof.collector.tfviews.{module}" in loaded_modules


@pytest.mark.usefixtures("private_store")
def test_status_start_and_stop_of_the_daemons() -> None:
    def tfprof(*words: str) -> list[str]:
        completed = subprocess.run([*TFPROF, *words], capture_output=True, text=True, check=True, timeout=60)
        return completed.stdout.splitlines()

    assert tfprof("status")[1].startswith("agent: not running (started when needed")
    assert [line.split(",")[0] for line in tfprof("start")] == ["collector: started", "agent: started"]
    assert [line.split(",")[0] for line in tfprof("start")] == ["collector: already running", "agent: already running"]
    states = [line.split(",")[0] for line in tfprof("status") if not line.startswith(" ")]
    assert states[1:] == ["agent: running", "collector: running"]
    assert tfprof("stop") == ["agent: stopped", "collector: stopped"]
    assert tfprof("stop") == ["agent: not running", "collector: not running"]
