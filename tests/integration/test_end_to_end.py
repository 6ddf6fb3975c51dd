"""Unmodified jobs under the real launcher, agent, collector and store, as a user sees them."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from fakes.armed_job import REFUSING_MEMORY_FILES
from fakes.daemon_pids import ready_pid
from fakes.log_text import without_numbers
from fakes.polling import until
from tfprof.collector.store.reader import LocalJob, LocalStore
from tfprof.commands import daemons
from tfprof.formats import runtime_dir
from tfprof.shim.pacing import sampling

pytestmark = pytest.mark.tf

JOBS = Path(__file__).parent / "jobs"
TFPROF = str(Path(sys.executable).parent / "tfprof")
RUN = TFPROF + "-run"
#: Maximum number of steps after the last timed step; they are only counted.
UNTIMED_TAIL_MAX = 3 * sampling.INTERVAL_MAX // 2
KILLS = int(os.environ.get("TFPROF_TEST_KILLS", "2"))


def _environment(**variables: str) -> dict[str, str]:
    return {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **variables}


def _command(python: Path, job: str, *arguments: object) -> list[str]:
    return [str(python), str(JOBS / job), *map(str, arguments)]


def _run(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env=_environment(**variables)
    )


def _split(stderr: str) -> tuple[str, str]:
    """Return (the part that the job wrote, the part that tfprof wrote)."""
    lines = stderr.splitlines(keepends=True)
    first = next((i for i, line in enumerate(lines) if line.startswith("tfprof: ")), len(lines))
    return "".join(lines[:first]), "".join(lines[first:])


def _ask(*arguments: str) -> dict[str, object]:
    completed = _run(TFPROF, *arguments, "--json")
    assert completed.returncode == 0, completed.stderr
    document: dict[str, object] = json.loads(completed.stdout)
    return document


def _entries(root: Any) -> Iterator[Any]:
    """Yield the entries of an op view, in which each entry is the child of the one before."""
    while root["children"]:
        (root,) = root["children"]
        yield root


def _daemon_pid(store: Path, name: str) -> int:
    """Return the pid of the running agent or collector of ``store``, 0 for none."""
    return daemons.running_pid(runtime_dir.instance_dir(str(store)), name)


def _last_job(store: Path) -> LocalJob:
    return LocalStore(store).job("last")


def _has_job(store: Path) -> bool:
    """Return whether ``store`` has a job."""
    return (store / "store.json").exists() and bool(LocalStore(store).jobs())


def _has_traces(store: Path, pid: int) -> bool:
    """Return whether the last job of ``store`` is the process ``pid``, with traced steps."""
    return (
        _has_job(store)
        and _last_job(store).info.identity.get("pid") == pid
        and _last_job(store).table("traces").num_rows > 0
    )


def test_three_jobs_of_two_releases_run_at_once_and_each_has_its_own_ops(
    tf1_python: Path, tf2_python: Path, private_store: Path
) -> None:
    commands = {
        "threads.py": _command(tf1_python, "threads.py", 200),
        "own_trace.py": _command(tf2_python, "own_trace.py", "/dev/null"),
        "keras_fit.py": _command(tf2_python, "keras_fit.py"),
    }
    alone = {name: _run(*command) for name, command in commands.items()}
    pipe = subprocess.PIPE
    processes = {
        name: subprocess.Popen([RUN, *command], stdout=pipe, stderr=pipe, text=True, env=_environment())
        for name, command in commands.items()
    }
    for name, process in processes.items():
        out, err = process.communicate(timeout=120)
        job_errors, report = _split(err)
        assert process.returncode == alone[name].returncode == 0
        assert out == alone[name].stdout
        assert without_numbers(job_errors) == without_numbers(alone[name].stderr)
        assert re.match(rf"tfprof: job \w+ {name} · .*\d+ steps? traced \(cost .*\) · 0 lost", report)
    jobs = {job.info.name: job for job in LocalStore(private_store).jobs()}
    assert set(jobs) == set(commands)
    assert len({job.info.identity["pid"] for job in jobs.values()}) == 3
    expected = {"threads.py": "AssignAddVariableOp", "own_trace.py": "Conv2D", "keras_fit.py": "MatMul"}
    for name, op in expected.items():
        rows = {row["name"]: row for row in _ask("op", jobs[name].info.hex)["rows"]}  # type: ignore[attr-defined]
        assert {device for node in rows[op]["nodes"] for device in node["devices"]} == {"CPU:0"}
    shapes: list[list[int]] = jobs["keras_fit.py"].table("op_log")["shape"].to_pylist()
    assert sum(map(math.prod, shapes)) == 20 * 32 + 32 + 32 * 1 + 1
    first_lines: list[int] = jobs["threads.py"].table("frames")["start_line"].to_pylist()
    assert max(first_lines) > 1


@pytest.mark.parametrize("release", ["tf1_python", "tf2_python"])
def test_with_every_step_traced_the_op_view_equals_that_of_the_tf_profiler(
    release: str, request: pytest.FixtureRequest, private_store: Path, tmp_path: Path
) -> None:
    python = request.getfixturevalue(release)
    completed = _run(RUN, "--trace", "all", *_command(python, "own_trace.py", tmp_path / "oracle.json"))
    assert completed.returncode == 0, completed.stderr
    oracle = json.loads((tmp_path / "oracle.json").read_text())
    view = _ask("op", "last", "--exact-tf", "-max_depth", "9999")
    tfprof_numbers = {
        entry["name"]: {
            "occurrence": sum(node["run_count"] for node in entry["graph_nodes"]),
            "micros": entry["exec_micros"],
            "bytes": entry["requested_bytes"],
            "peak_bytes": entry["peak_bytes"],
            "output_bytes": entry["output_bytes"],
        }
        for entry in _entries(view["profile"])
    }
    assert sum(op["micros"] for op in oracle.values()) > 0
    assert tfprof_numbers == oracle


@pytest.mark.parametrize("release", ["tf1_python", "tf2_python"])
def test_sessions_in_many_threads_raise_nothing_with_every_step_traced(
    release: str, request: pytest.FixtureRequest, private_store: Path
) -> None:
    python = request.getfixturevalue(release)
    completed = _run(RUN, "--trace", "all", "--trace-level", "auto", *_command(python, "threads.py", 250))
    assert completed.stdout == "0 True 1000\n"
    job = _last_job(private_store)
    traced = job.table("traces").num_rows
    assert traced + job.info.counters["dropped_traces"] == 1002


def test_a_killed_job_loses_no_record_and_is_marked_as_killed(
    tf1_python: Path, tf2_python: Path, private_store: Path
) -> None:
    for number in range(KILLS):
        python = (tf1_python, tf2_python)[number % 2]
        command = [RUN, "--trace", "all", *_command(python, "endless.py")]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_environment()
        )
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        until(lambda pid=pid: _has_traces(private_store, pid))
        os.kill(pid, signal.SIGKILL)
        _, err = process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL, err
        job = _last_job(private_store)
        assert job.info.identity["pid"] == pid
        assert job.info.state == "killed"
        traces = job.table("traces").num_rows
        counted = job.info.counters["traced"] - job.info.counters["dropped_traces"]
        assert traces in (counted, counted + 1), "the shim writes the record before it raises the counter"


@pytest.mark.parametrize(("name", "release"), [("agent", "tf1_python"), ("collector", "tf2_python")])
def test_the_successor_of_a_killed_daemon_loses_and_repeats_nothing(
    name: str, release: str, request: pytest.FixtureRequest, private_store: Path, tmp_path: Path
) -> None:
    python = request.getfixturevalue(release)
    command = [RUN, "--trace", "every=50", *_command(python, "threads.py", tmp_path / "stop")]
    instance_dir = runtime_dir.instance_dir(str(private_store))
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_environment()
    ) as job:
        try:
            until(lambda: _has_job(private_store))
            for _ in range(KILLS):
                pid = until(lambda: ready_pid(instance_dir, name), f"the {name}")
                os.kill(pid, signal.SIGKILL)
                until(lambda pid=pid: _daemon_pid(private_store, name) != pid)
        finally:
            (tmp_path / "stop").touch()
        out, err = job.communicate(timeout=120)
    assert out.startswith("0 True "), err
    stored_job = _last_job(private_store)
    assert stored_job.info.state == "exited", err
    traces = stored_job.table("traces")
    steps = list(zip(traces["kind"].to_pylist(), traces["step"].to_pylist(), strict=True))
    assert (
        len(steps) == len(set(steps)) == stored_job.info.counters["traced"] - stored_job.info.counters["dropped_traces"]
    )
    spans = sum(stored_job.table("spans")["count"].to_pylist())
    runs = int(out.split()[-1]) + 2
    assert (stored_job.info.counters["counts"]["init"], stored_job.info.counters["counts"]["run"]) == (1, runs - 1)
    activities = stored_job.info.counters["counts"]["activity"]
    # Steps after the last timed step are counted, and are in no span.
    assert 0 <= runs + activities - spans - stored_job.info.counters["dropped_spans"] < UNTIMED_TAIL_MAX


def test_without_memory_files_the_job_runs_and_one_line_gives_the_reason(tf2_python: Path, private_store: Path) -> None:
    code = (
        REFUSING_MEMORY_FILES + "import runpy, sys\n"
        "sys.argv[:] = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    completed = _run(RUN, str(tf2_python), "-c", code, *_command(tf2_python, "threads.py", 5)[1:])
    assert completed.stdout == "0 True 20\n"
    _, report = _split(completed.stderr)
    assert re.fullmatch(r"tfprof: no profile: .* \[memfd-refused\]\n", report)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_with_a_full_disk_the_job_runs_and_the_launcher_reports_the_loss(
    tf1_python: Path, private_store: Path, tmp_path: Path
) -> None:
    small_disk = tmp_path / "small"
    small_disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", str(small_disk)], check=True)
    store = str(small_disk / "store")
    try:
        completed = _run(RUN, "--trace", "all", "--store", store, *_command(tf1_python, "threads.py", 6000))
        status = _run(TFPROF, "status", "--store", store)
        assert _run(TFPROF, "stop", "--store", store).returncode == 0
    finally:
        subprocess.run(["umount", str(small_disk)], check=True)
    assert completed.stdout == "0 True 24000\n"
    assert re.search(
        r"tfprof: .* \([\d,]+ records not stored, [\d,]+ traced steps lost, .*\) \[store-full\]\n$", completed.stderr
    )
    assert (status.returncode, "store-full" in status.stdout) == (1, True)


def test_queries_work_while_the_job_runs_and_after_the_daemons_have_stopped(
    tf1_python: Path, private_store: Path
) -> None:
    command = [RUN, "--trace", "every=10", *_command(tf1_python, "endless.py")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_environment())
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    until(lambda: _has_job(private_store) and _last_job(private_store).table("traces").num_rows > 3)
    (running,) = _ask("jobs")["jobs"]  # type: ignore[misc]
    assert running["state"] == "running"
    assert running["pid"] == pid
    assert _ask("op", "last")["rows"]
    os.kill(pid, signal.SIGTERM)
    process.communicate(timeout=60)
    assert _run(TFPROF, "stop").returncode == 0
    until(lambda: not _daemon_pid(private_store, "agent") and not _daemon_pid(private_store, "collector"))
    for view in ("op", "steps", "spans", "host"):
        assert _ask(view, "last")
    (ended,) = _ask("jobs")["jobs"]  # type: ignore[misc]
    assert (ended["state"], ended["signal"]) == ("killed", int(signal.SIGTERM))


def test_a_job_cannot_import_the_modules_of_tfprof(tf2_python: Path, private_store: Path) -> None:
    code = (
        "import tensorflow, sys\n"
        "print([n for n in ('tfprof', 'shim', 'agent', 'collector', 'core', 'hook')"
        " if __import__('importlib.util').util.find_spec(n)])\n"
        "print([p for p in sys.path if 'inject' in p],"
        " [n for n in sys.modules if 'tfprof' in n and 'tensorflow' not in n])\n"
    )
    completed = _run("env", "--chdir=/", RUN, str(tf2_python), "-c", code)
    names, paths_and_modules = completed.stdout.splitlines()
    assert names == "[]"
    paths, modules = paths_and_modules.split("] [")
    assert paths == "["
    assert all(name.strip(" ']").startswith("_tfprof") for name in modules.split(","))


def test_tfprof_adds_no_thread_and_no_socket_to_the_job(tf2_python: Path, private_store: Path) -> None:
    command = _command(tf2_python, "endless.py")
    counts = []
    for prefix in ([], [RUN, "--trace", "every=10"]):
        process = subprocess.Popen(
            [*prefix, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment()
        )
        assert process.stdout is not None
        job = psutil.Process(int(process.stdout.readline()))
        time.sleep(0.5)  # TensorFlow has started its threads
        sockets = [fd for fd in os.listdir(f"/proc/{job.pid}/fd") if _link(job.pid, fd).startswith("socket:")]
        counts.append((job.num_threads(), len(sockets)))
        job.kill()
        process.communicate(timeout=60)
    assert counts[0] == counts[1]


def _link(pid: int, fd: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/fd/{fd}")
    except OSError:
        return ""
