"""A daemon holds its lock while it lives, and shares nothing with the process that starts it."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from fakes.odd_files import ODD_FILES
from fakes.polling import until
from tfprof.commands import daemons
from tfprof.formats import errors, private_files, runtime_dir


def test_a_lock_has_one_holder_whose_pid_is_known(tmp_path) -> None:
    lock = daemons.PidFileLock(str(tmp_path), "agent")
    assert daemons.running_pid(str(tmp_path), "agent") == 0
    assert lock.acquire()
    assert daemons.running_pid(str(tmp_path), "agent") == os.getpid()
    assert not daemons.PidFileLock(str(tmp_path), "agent").acquire()
    lock.release()
    assert daemons.running_pid(str(tmp_path), "agent") == 0
    assert lock.acquire()
    lock.release()


def test_a_lock_is_free_when_its_holder_is_killed(tmp_path) -> None:
    code = (
        "from tfprof.commands.daemons import PidFileLock;"
        f" print(PidFileLock({str(tmp_path)!r}, 'agent').acquire(), flush=True); input()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1) as holder:
        assert holder.stdout.readline() == b"True\n"
        assert daemons.running_pid(str(tmp_path), "agent") == holder.pid
        holder.kill()
    assert daemons.running_pid(str(tmp_path), "agent") == 0


def test_a_status_says_whether_its_daemon_lives(tmp_path) -> None:
    folder = str(tmp_path)
    assert daemons.read_status(folder, "agent") is None
    private_files.write_json(str(tmp_path / "agent.json"), {"jobs": 3})
    assert daemons.read_status(folder, "agent") == {"jobs": 3, "alive": False}
    lock = daemons.PidFileLock(folder, "agent")
    lock.acquire()
    assert daemons.read_status(folder, "agent") == {"jobs": 3, "alive": True}
    lock.release()


@pytest.mark.parametrize("text", ["", "{", "[]", "3"])
def test_a_damaged_status_is_none(tmp_path, text: str) -> None:
    (tmp_path / "agent.json").write_text(text)
    assert daemons.read_status(str(tmp_path), "agent") is None


def test_a_status_that_cannot_be_written_keeps_the_old_one_and_leaves_no_temporary_file(tmp_path, monkeypatch) -> None:
    path = tmp_path / "agent.json"
    private_files.write_json(str(path), {"old": 1})

    def fail(_old, _new):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        private_files.write_json(str(path), {"new": 1})
    assert [file.name for file in tmp_path.iterdir()] == ["agent.json"]
    assert private_files.read_json(str(path)) == {"old": 1}


@pytest.mark.parametrize("kind", sorted(ODD_FILES))
def test_an_unusable_file_counts_as_missing_and_only_a_regular_one_can_be_locked(tmp_path, kind: str) -> None:
    for name in ("agent.pid", "agent.json"):
        ODD_FILES[kind](tmp_path / name)
    assert private_files.read_json(str(tmp_path / "agent.json")) is None
    assert daemons.running_pid(str(tmp_path), "agent") == 0
    assert daemons.last_pid(str(tmp_path), "agent") == 0
    if kind not in ("sparse", "deep", "unreadable"):  # any regular file can be locked
        with pytest.raises(OSError, match=r"."):
            daemons.PidFileLock(str(tmp_path), "agent").acquire()


def test_at_most_the_requested_bytes_of_a_file_are_read(tmp_path) -> None:
    path = tmp_path / "log"
    path.write_text("first" + "-" * 100 + "last")
    assert private_files.read_file(str(path), 5) == b"first"
    assert private_files.read_file(str(path), 4, last=True) == b"last"


def test_json_is_written_although_its_temporary_file_exists(tmp_path) -> None:
    path = tmp_path / "agent.json"
    os.mkfifo(f"{path}.{os.getpid()}.tmp")
    private_files.write_json(str(path), {"new": 1})
    assert private_files.read_json(str(path)) == {"new": 1}


def test_the_reason_of_a_failed_start_is_known_until_the_daemon_starts(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    store, folder = "/some/store", runtime_dir.instance_dir("/some/store")

    def fail() -> int:
        assert daemons.running_pid(folder, "agent") == os.getpid()
        raise errors.TfprofError("no such luck", "store")

    start_ns = time.time_ns()
    assert daemons.failure(folder, "agent", 0) is None
    assert daemons.run("agent", store, fail) == 1
    assert daemons.running_pid(folder, "agent") == 0
    assert daemons.failure(folder, "agent", start_ns) == {"slug": "store", "text": "no such luck"}
    assert daemons.failure(folder, "agent", time.time_ns()) is None
    assert not daemons.is_up(folder, "agent", os.getpid())
    private_files.write_json(os.path.join(folder, "agent.json"), {"pid": os.getpid()})
    assert daemons.is_up(folder, "agent", os.getpid())
    assert daemons.failure(folder, "agent", 0) is None


def test_a_second_daemon_of_a_store_is_refused(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    lock = daemons.PidFileLock(runtime_dir.make_instance("/some/store"), "agent")
    assert lock.acquire()
    assert daemons.run("agent", "/some/store", lambda: 7) == 1
    lock.release()
    assert "[store-in-use]" in capsys.readouterr().err
    assert daemons.run("agent", "/some/store", lambda: 7) == 7


def test_a_daemon_gets_only_the_listed_variables() -> None:
    environ = {
        "HOME": "/h",
        "TFPROF_AGENT_IDLE": "5",
        "TFPROF_RUN": "x",
        "TFPROF_TRACE": "all",
        "AWS_SECRET": "hush",
        "LD_PRELOAD": "/x.so",
        "PYTHONPATH": "/mine",
        "PYTHONHOME": "/of/another/version",
    }
    assert daemons.daemon_environment(environ) == {"HOME": "/h", "TFPROF_AGENT_IDLE": "5"}


PROBE = """
import json, os, signal, sys
fds = sorted(os.listdir("/proc/self/fd"))
print(json.dumps({
    "session": os.getsid(0) != int(sys.argv[2]), "leader": os.getsid(0) == os.getpid(), "cwd": os.getcwd(),
    "umask": os.umask(0), "stdin": os.readlink("/proc/self/fd/0"), "fds": len(fds), "parent": os.getppid(),
    "hup": signal.getsignal(signal.SIGHUP) == signal.SIG_DFL, "mask": len(signal.pthread_sigmask(0, [])),
}), flush=True)
"""


@pytest.mark.parametrize("closed_fds", [[], [0], [1], [2], [0, 1, 2]], ids=str)
def test_a_daemon_shares_neither_session_nor_files_nor_signals_with_its_starter(
    tmp_path, closed_fds: list[int]
) -> None:
    probe = tmp_path / "probe.py"
    probe.write_text(PROBE)
    log = tmp_path / "log"
    starter = (
        "import os, signal, sys; from tfprof.commands import daemons\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN); signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\n"
        "open('/dev/null'); os.set_inheritable(os.open('/dev/null', 0), True)\n"
        f"daemons.ISOLATED = {str(probe)!r}; [os.close(fd) for fd in {closed_fds}]\n"
        f"lock = daemons.PidFileLock({str(tmp_path)!r}, 'agent'); assert lock.take()\n"
        f"daemons.spawn('probe_daemon', [str(os.getsid(0))], {str(log)!r}, lock)"
    )
    subprocess.run([sys.executable, "-c", starter], check=True, timeout=30)
    while not log.read_text().endswith("}\n"):
        time.sleep(0.01)
    state = json.loads(log.read_text())
    assert state["session"]
    assert not state["leader"]
    assert state["cwd"] == "/"
    assert state["umask"] == 0o077
    assert state["stdin"] == "/dev/null"
    assert state["fds"] == 5  # descriptors 0, 1 and 2, the lock, and that of the listed folder
    assert state["hup"]
    assert state["mask"] == 0
    assert oct(log.stat().st_mode & 0o777) == "0o600"


def taken_lock(folder: Path) -> daemons.PidFileLock:
    lock = daemons.PidFileLock(str(folder), "agent")
    assert lock.take()
    return lock


def test_a_lock_is_taken_at_once_although_a_check_holds_it_shared(tmp_path) -> None:
    (tmp_path / "agent.pid").touch()
    with (tmp_path / "agent.pid").open() as check:
        fcntl.flock(check, fcntl.LOCK_SH)
        threading.Timer(0.1, lambda: fcntl.flock(check, fcntl.LOCK_UN)).start()
        lock = taken_lock(tmp_path)
    lock.release()


SLOW_DAEMON = """
import site, sys, time
while not open(sys.argv[2]).read(): time.sleep(0.01)
site.main()
from tfprof.commands import daemons
sys.exit(daemons.run("agent", sys.argv[3], lambda: print("serving", flush=True) or time.sleep(60)))
"""


def test_a_daemon_has_its_lock_and_pid_from_its_start_on(tmp_path, monkeypatch) -> None:
    """However slowly it starts, no second one is started."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "probe.py").write_text(SLOW_DAEMON)
    monkeypatch.setattr(daemons, "ISOLATED", str(tmp_path / "probe.py"))
    folder, gate, log = runtime_dir.make_instance("/some/store"), tmp_path / "gate", tmp_path / "log"
    gate.touch()
    lock = taken_lock(Path(folder))
    daemons.spawn("probe_daemon", [str(gate), "/some/store"], str(log), lock)
    lock.close()
    pid = until(lambda: daemons.running_pid(folder, "agent"), "the pid of the daemon")
    try:
        assert not daemons.PidFileLock(folder, "agent").take()
        assert daemons.last_pid(folder, "agent") == pid
        gate.write_text("go")
        until(lambda: log.read_text() == "serving\n", "the daemon")
        assert daemons.running_pid(folder, "agent") == pid
    finally:
        os.kill(pid, signal.SIGKILL)
    until(lambda: not daemons.running_pid(folder, "agent"), "the end of the daemon")


def test_a_daemon_whose_log_cannot_be_opened_is_not_started(tmp_path) -> None:
    with pytest.raises(daemons.DaemonError, match="No such file"):
        daemons.spawn("probe_daemon", [], str(tmp_path / "nowhere" / "log"), taken_lock(tmp_path))


def test_a_large_log_is_renamed(tmp_path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"x" * (daemons.LOG_MAX + 1))
    daemons.spawn("this.is.no.module", [], str(log), taken_lock(tmp_path))
    while not Path(log).exists() or not log.read_text().strip():
        time.sleep(0.01)
    assert (tmp_path / "log.old").stat().st_size > daemons.LOG_MAX
