"""Attaching to interpreters that are built in another way, or are in other namespaces.

In other namespaces they see other files and process ids than tfprof.

Tests agent/attach/elf.py, agent/attach/maps.py.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tfprof.agent import processes
from tfprof.agent.attach import inject as injecting
from tfprof.agent.attach import maps, targets
from tfprof.agent.attach.errors import AttachError
from tfprof.collector.store.reader import LocalStore

ROOT = Path(__file__).resolve().parent.parent.parent
LOOP = Path(__file__).parent / "jobs" / "attach_loop.py"
TFPROF = [sys.executable, "-m", "tfprof.cli.main"]
#: Number of attachments to each interpreter; more with TFPROF_TEST_ATTACHES=40.
ATTACHES = int(os.environ.get("TFPROF_TEST_ATTACHES", "2"))
INTERPRETERS = [
    path
    for path in sorted(Path("~/.pyenv/versions").expanduser().glob("3.*/bin/python"))
    if path.parent.parent.name[:4] != "3.6."
] or [Path(sys.executable)]
SYSTEM = Path("/usr/bin/python3")

#: Repeats a computation and checks its result until standard input is closed.
WORK = """
import ctypes, select, sys
if len(sys.argv) > 1:
    ctypes.CDLL(sys.argv[1])
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    assert sum(i * i for i in range(3000)) == 8995500500
print("done", flush=True)
"""
COUNTING_CODE = {"code": "import sys; sys.attaches = getattr(sys, 'attaches', 0) + 1; answer = str(sys.attaches)"}

USER_NAMESPACE = ["unshare", "--user", "--map-root-user"]
PID_NAMESPACE = [*USER_NAMESPACE, "--pid", "--fork", "--kill-child", "--mount-proc"]
#: Shell code that mounts / at the folder $0, and runs a command with this folder as its root.
OTHER_ROOT = 'mount --rbind / "$0" && exec chroot "$0" "$@"'


class Job:
    """An interpreter at work; ``pid`` is its own pid, not that of the process that started it."""

    def __init__(self, command, environ):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ
        )
        assert self.process.stdout is not None
        if self.process.stdout.readline() != "ready\n":
            pytest.fail(self.process.communicate()[1])
        self.pid = innermost_pid(self.process.pid)

    def inject_and_count(self):
        """Run COUNTING_CODE in the job; return how often it has run there, as text."""
        return injecting.inject(processes.process(self.pid), COUNTING_CODE).answer

    def end(self):
        out, err = self.process.communicate(timeout=60)
        assert (self.process.returncode, out, err) == (0, "done\n", "")


def innermost_pid(pid):
    """Return the pid of the last descendant of ``pid``, or ``pid`` itself if it has none."""
    tree = processes.process_tree(processes.all_pids())
    return tree.subtree(pid, frozenset())[-1].pid


@pytest.fixture
def start():
    jobs = []

    def start_job(python, *arguments, prefix=(), **variables):
        environ = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
        jobs.append(Job([*map(str, (*prefix, python)), "-c", WORK, *map(str, arguments)], environ | variables))
        return jobs[-1]

    yield start_job
    for job in jobs:
        job.process.kill()
        job.process.communicate()


def check(job):
    """Attach ATTACHES times; each time the job runs the code once, and then goes on."""
    assert targets.refusal_of(job.pid) is None
    assert [job.inject_and_count() for _ in range(ATTACHES)] == [str(number + 1) for number in range(ATTACHES)]
    job.end()


def libraries(pid):
    return {Path(mapping.path).name for mapping in maps.mappings(pid) if "/libpython" in mapping.path}


def require(command):
    """Skip the test where the system does not allow the namespaces of ``command``."""
    completed = subprocess.run([*command, "true"], capture_output=True, text=True, check=False)
    if completed.returncode:
        pytest.skip(f"no other namespaces here: {completed.stderr.strip()}")


def test_an_interpreter_without_a_library_is_found(start):
    job = start(SYSTEM)
    if libraries(job.pid):
        pytest.skip(f"{SYSTEM} has its interpreter in a library")
    check(job)


@pytest.mark.parametrize("python", [SYSTEM, *INTERPRETERS[-2:]], ids=lambda path: path.parent.parent.name)
def test_of_two_interpreters_the_running_one_is_used(start, python):
    own_name = python.resolve().name
    all_libraries = [
        path for interpreter in INTERPRETERS for path in interpreter.parent.parent.glob("lib/libpython3.*.so.*")
    ]
    other_library = next(
        (path for path in all_libraries if own_name not in path.name.replace("libpython", "python")), None
    )
    if other_library is None:
        pytest.skip("there is no library of another interpreter")
    job = start(python, other_library)
    assert other_library.name in libraries(job.pid)
    check(job)


def test_an_interpreter_whose_file_is_gone_is_found(start, tmp_path):
    python = INTERPRETERS[-1].resolve()
    copies = [shutil.copy(path, tmp_path) for path in python.parent.parent.glob("lib/libpython3.*.so.*")]
    job = start(python, LD_LIBRARY_PATH=str(tmp_path))
    if not any(str(tmp_path) in mapping.path for mapping in maps.mappings(job.pid)):
        pytest.skip(f"{python} does not take its library from elsewhere")
    for path in copies:
        os.unlink(path)
    check(job)


def test_a_library_that_is_only_loaded_is_no_interpreter():
    library = next(
        (path for interpreter in INTERPRETERS for path in interpreter.parent.parent.glob("lib/libpython3.*.so.*")), None
    )
    if library is None:
        pytest.skip("there is no library of an interpreter")
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, env={"LD_PRELOAD": str(library)}) as cat:
        time.sleep(0.3)
        assert library.name in libraries(cat.pid)
        refusal = targets.refusal_of(cat.pid)
        with pytest.raises(AttachError, match="no CPython"):
            injecting.inject(processes.process(cat.pid), COUNTING_CODE)
        assert cat.stdin is not None
        cat.stdin.close()
        assert cat.wait() == 0
    assert refusal is not None
    assert refusal.slug == "not-python"


def test_a_call_that_exceeds_its_time_limit_is_made_once(start, monkeypatch):
    monkeypatch.setattr(injecting, "CALL_S", 0.0)
    job = start(INTERPRETERS[-1])
    assert [job.inject_and_count() for _ in range(10)] == [str(number + 1) for number in range(10)]
    job.end()


@pytest.mark.parametrize("namespaces", [[*USER_NAMESPACE, "--mount"], PID_NAMESPACE], ids=["mounts", "pids"])
def test_a_job_in_other_namespaces_is_attached_to(start, namespaces):
    require(namespaces)
    check(start(INTERPRETERS[-1], prefix=namespaces))


@pytest.mark.parametrize("namespaces", [[*USER_NAMESPACE, "--mount"], PID_NAMESPACE], ids=["mounts", "pids"])
def test_a_job_below_another_root_is_attached_to(start, tmp_path, namespaces):
    require(namespaces)
    check(start(INTERPRETERS[-1], prefix=[*namespaces, "sh", "-c", OTHER_ROOT, tmp_path]))


@pytest.mark.tf
@pytest.mark.timeout(300)
def test_a_job_in_a_container_is_profiled_from_outside(tf1_python, tmp_path, private_store):
    require(PID_NAMESPACE)
    script, folder, root = tmp_path / "contained.py", tmp_path / "loop", tmp_path / "root"
    shutil.copy(LOOP, script)  # by another name than the loops of other tests
    folder.mkdir()
    root.mkdir()
    hidden_paths = [
        *(ROOT / name for name in ("agent", "cli", "formats", "shim")),
        private_store.parent.parent / "run",
    ]
    hide_paths = "".join(f'mount -t tmpfs none "{path}" && ' for path in hidden_paths)
    job = subprocess.Popen(
        [*PID_NAMESPACE, "sh", "-c", hide_paths + OTHER_ROOT, root, tf1_python, script, "session", folder],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )
    try:
        while not (folder / "running").exists():
            assert job.poll() is None, job.communicate()[1][-2000:]
            time.sleep(0.05)
        pid = innermost_pid(job.pid)
        assert processes.ns_pid(pid) != pid
        processes_shown = subprocess.run(
            [*TFPROF, "ps", "--json"], capture_output=True, text=True, timeout=60, check=True
        )
        rows = json.loads(processes_shown.stdout)["processes"]
        assert {row["pid"]: row["state"] for row in rows}[pid] == "attachable"
        completed = subprocess.run(
            [*TFPROF, "attach", str(pid), "--steps", "3", "-o", "ops"],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert completed.returncode == 0, completed.stderr
        assert "MatMul" in completed.stdout
        (folder / "stop").touch()
        out, err = job.communicate(timeout=60)
        assert job.returncode == 0, err[-2000:]
    finally:
        job.kill()
        job.communicate()
    report = json.loads(out.splitlines()[-1])
    assert (report["changed"], report["modules"], report["attributes"], report["objects"]) == ([], [], [], [])
    stored = [stored_job.info for stored_job in LocalStore(str(private_store)).jobs()]
    assert [(info.state, info.identity["pid"]) for info in stored] == [("detached", pid)]
