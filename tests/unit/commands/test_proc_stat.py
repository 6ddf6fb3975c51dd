"""What the kernel tells about a process."""

import os
import subprocess
import sys
from pathlib import Path

from fakes.polling import until
from tfprof.commands.proc_stat import is_alive, read_stat

#: A thread that waits for input, in a process whose main thread ends.
WITHOUT_MAIN_THREAD = """
import ctypes, threading
threading.Thread(target=input).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_this_process_is_alive_and_has_its_parent_and_its_addresses() -> None:
    stat = read_stat(os.getpid())
    assert stat is not None
    assert (stat.parent, stat.is_over, stat.is_stopped) == (os.getppid(), False, False)
    assert min(stat.threads, stat.started, stat.rss_pages, *stat.addresses) > 0
    assert len(stat.addresses) == 3
    assert is_alive(os.getpid(), stat.started)


def test_another_start_is_another_process() -> None:
    stat = read_stat(os.getpid())
    assert stat is not None
    assert not is_alive(os.getpid(), stat.started - 1)
    assert not is_alive(os.getpid(), None)


def test_a_pid_without_a_process_has_no_stat() -> None:
    assert read_stat(1 << 30) is None
    assert not is_alive(0, 0)


def test_a_name_may_hold_parentheses_and_spaces() -> None:
    code = "open('/proc/self/comm', 'w').write(') Z (1 2'); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1, stderr=-1) as child:
        assert child.stdout is not None
        child.stdout.readline()
        stat = read_stat(child.pid)
        child.kill()
    assert stat is not None
    assert (stat.parent, stat.is_over) == (os.getpid(), False)


def test_a_process_without_its_main_thread_runs_until_its_last_thread_ends() -> None:
    with subprocess.Popen([sys.executable, "-c", WITHOUT_MAIN_THREAD], stdin=-1) as child:
        stat = read_stat(child.pid)
        assert stat is not None
        main_thread = Path(f"/proc/{child.pid}/task/{child.pid}/status")
        until(lambda: "State:\tZ" in main_thread.read_text())
        assert is_alive(child.pid, stat.started)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not is_alive(child.pid, stat.started)
