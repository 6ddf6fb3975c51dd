"""Injects code into interpreters whose work is hard to interrupt: all continue unharmed.

Tests agent/attach/call.py, agent/attach/errors.py, agent/attach/memory.py, agent/attach/ptrace.py,
agent/attach/signal_frame.py, agent/attach/traceback_timer.py.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from fakes.polling import until
from tfprof.agent import processes
from tfprof.agent.attach import inject as injecting
from tfprof.agent.attach import maps, targets
from tfprof.agent.attach.__main__ import answer
from tfprof.agent.attach.call import BackedOutError, StoppedThread
from tfprof.agent.attach.errors import AttachError, GoneError
from tfprof.agent.attach.inject import (
    CALL_S,
    CALLBACK,
    METHODS,
    PENDING_CALL,
    REMOTE_DEBUGGING,
    STOP_S,
    WORK_S,
    _Injection,
    inject,
)
from tfprof.agent.attach.memory import FileMemory, ProcessMemory
from tfprof.agent.attach.ptrace import TracedThread
from tfprof.formats import runtime_dir

INTERPRETERS = sorted(
    path
    for path in Path("~/.pyenv/versions").expanduser().glob("3.*/bin/python")
    if path.parent.parent.name[:4] != "3.6."
) or [Path(sys.executable)]
#: Python 3.14, the first with a remote debugging interface; None if it is not installed.
PYTHON_3_14 = shutil.which("python3.14")
#: Bytes of an interpreter's `_PyRuntime` that are compared.
RUNTIME_SIZE = 1024
#: Injections into each interpreter; more with TFPROF_TEST_ATTACHES=40.
ATTACHES = int(os.environ.get("TFPROF_TEST_ATTACHES", "2"))
#: File that gets a line of JSON for each injection: interpreter, work, method, time stopped.
FIGURES = os.environ.get("TFPROF_TEST_FIGURES")

pytestmark = pytest.mark.usefixtures("private_store")

#: A script is BEGIN, one kind of WORK, and END. The work checks its own results. END looks for the
#: stop file only now and then: each look releases the GIL for a moment, and a thread that waits for
#: the GIL then begins its wait anew.
BEGIN = """
import ctypes, os, signal, sys, threading, time
next_look_s = 0.0
print("ready", flush=True)
"""
END = """
    if time.monotonic() > next_look_s:
        if os.path.exists(sys.argv[1]):
            break
        next_look_s = time.monotonic() + 0.02
signal.setitimer(signal.ITIMER_REAL, 0); signal.setitimer(signal.ITIMER_PROF, 0)
"""
WORK = {
    "arithmetic": "while True:\n    assert sum(i * i for i in range(300)) == 8955050",
    "floats": "while True:\n    assert sum(i / 7.0 for i in range(300)) == {floats!r}",
    "malloc": "while True:\n    assert len([bytearray(n * 37) for n in range(200)]) == 200",
    "dlopen": (
        "import ctypes, _ctypes\n"
        "name = next(l.split()[-1] for l in open('/proc/self/maps') if '/libm' in l or '/libc' in l)\n"
        "while True:\n    handle = _ctypes.dlopen(name, 2); _ctypes.dlclose(handle)"
    ),
    "gc": "import gc\nwhile True:\n    a = [[] for _ in range(50)]; a.append(a); del a; gc.collect()",
    "finalizers": (
        "import gc\ngc.set_threshold(3); main = threading.get_ident(); seen = set()\n"
        "class Cycle:\n"
        "    def __init__(self): self.own = self\n"
        "    def __del__(self):\n"
        "        if threading.get_ident() != main: seen.add((gc.isenabled(), sys._getframe(1).f_lineno))\n"
        "collects = time.monotonic()\n"
        "while True:\n    made = [Cycle() for _ in range(30)]; del made; assert not seen, seen\n"
        "    if gc.isenabled(): collects = time.monotonic()\n"
        "    assert time.monotonic() < collects + 20"
    ),
    "uncollected": "import gc\ngc.disable()\nwhile True:\n    assert sum(range(1000)) == 499500 and not gc.isenabled()",
    "threads": (
        "def work():\n    while True: sum(range(100)); time.sleep(0.0001)\n"
        "for _ in range(8): threading.Thread(target=work, daemon=True).start()\n"
        "while True:\n    assert sum(range(1000)) == 499500"
    ),
    "debugger": (  # pydevd replaces the function that starts threads
        "import _thread\n_thread._original_start_new_thread = original = _thread.start_new_thread\n"
        "def begin(function, args):\n    threading.current_thread()\n    function(*args)\n"
        "_thread.start_new_thread = lambda function, args: original(begin, (function, args))\n"
        "while True:\n    assert threading.active_count() == 1, threading.enumerate()"
    ),
    "gil": (  # a thread that holds the GIL most of the time
        "import ctypes\nsleep = ctypes.PyDLL(None).usleep\n"
        "def work():\n    while True: sleep(200000)\n"
        "threading.Thread(target=work, daemon=True).start()\n"
        "while True:\n    assert sum(range(1000)) == 499500"
    ),
    "signals": (
        "got = [0]\ndef handler(*_): got[0] += 1\n"
        "signal.signal(signal.SIGALRM, handler); signal.signal(signal.SIGPROF, handler)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005); signal.setitimer(signal.ITIMER_PROF, 0.0005, 0.0005)\n"
        "while True:\n    assert sum(range(1000)) == 499500"
    ),
    "sleep": ("while True:\n    before = time.monotonic(); time.sleep(0.4); assert time.monotonic() - before >= 0.399"),
    "native": ("import ctypes\nsleep = ctypes.CDLL(None).usleep\nwhile True:\n    assert sleep(300000) == 0"),
    "mutex": (  # it prints the address of a function, and of a lock that another thread holds
        "import ctypes\nlibc, mutex = ctypes.CDLL(None), (ctypes.c_char * 64)()\n"
        "def work(): libc.pthread_mutex_lock(mutex); time.sleep(1000)\n"
        "threading.Thread(target=work, daemon=True).start(); time.sleep(0.2)\n"
        "print(ctypes.cast(libc.pthread_mutex_lock, ctypes.c_void_p).value, ctypes.addressof(mutex), flush=True)\n"
        "while True:\n    assert sum(range(1000)) == 499500"
    ),
    "asleep": "import ctypes\nsleep = ctypes.CDLL(None).sleep\nwhile True:\n    sleep(5)",
    "lock": ("lock = threading.Lock(); lock.acquire()\nwhile True:\n    assert not lock.acquire(timeout=0.4)"),
    "forks": (  # children whose garbage collector is off end with an error
        "import gc, warnings\nwarnings.simplefilter('ignore')  # threads at a fork: TensorFlow has some, too\n"
        "while True:\n"
        "    child = os.fork()\n"
        "    if not child: os._exit(not gc.isenabled())\n"
        "    assert os.waitpid(child, 0)[1] == 0"
    ),
    "blocks": "import subprocess\nwhile True:\n    subprocess.call(['sleep', '0.3'])",
}
#: Work during which attaching is refused, or uses another method. It prints a line when it begins.
UNUSUAL = {
    "no_new_code": (  # prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN)
        "forbids = ctypes.CDLL(None).prctl(65, 1, 0, 0, 0) == 0; print('begins' if forbids else '', flush=True)\n"
        "while True:\n    time.sleep(0.5)"
    ),
    "other_interpreter": (
        "import _xxsubinterpreters as own\nown.create(); print('begins', flush=True)\nwhile True:\n    time.sleep(0.5)"
    ),
    "in_other_interpreter": (
        "import _xxsubinterpreters as own\ncode = 'import time; end = time.monotonic() + 3.0\\n'\n"
        "code += 'while time.monotonic() < end: sum(range(100))'\n"
        "print('begins', flush=True)\nwhile True:\n    own.run_string(own.create(), code)"
    ),
    "timer": (  # a timer that dumps tracebacks twice a second
        "import faulthandler\nfaulthandler.dump_traceback_later(0.5, repeat=True, file=open(os.devnull, 'w'))\n"
        "print('begins', flush=True)\nwhile True:\n    time.sleep(0.01)"
    ),
    "late_timer": (  # another thread blocks all signals, as that of the timer does
        "import faulthandler\nfaulthandler.dump_traceback_later(1000)\n"
        "def work():\n    signal.pthread_sigmask(signal.SIG_BLOCK, {*range(1, 65)} - {32, 33})\n"
        "    while True: threading.Event().wait(0.5)\n"
        "threading.Thread(target=work, daemon=True).start()\n"
        "print('begins', flush=True)\nwhile True:\n    assert sum(range(1000)) == 499500"
    ),
}
#: Kinds of work that are interrupted in all interpreters.
BUSY = tuple(kind for kind in WORK if kind not in ("asleep", "mutex"))
#: Kinds of work that do not load ctypes. The injected code needs ctypes, which every TensorFlow job
#: has loaded. In jobs of these kinds, the thread of the injected code has to import it. After each
#: system call of the import, the thread waits for the GIL.
WITHOUT_CTYPES = ("gc", "sleep", "lock", "blocks")


class Job:
    """An interpreter at work; `end` stops it."""

    def __init__(self, python, kind, folder, **variables):
        self.stop = folder / f"stop{time.monotonic_ns()}"
        floats = sum(i / 7.0 for i in range(300))
        begin = BEGIN.replace("ctypes, ", "") if kind in WITHOUT_CTYPES else BEGIN
        script = begin + {**WORK, **UNUSUAL}[kind].replace("{floats!r}", repr(floats)) + END
        environ = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
        self.process = subprocess.Popen(
            [str(python), "-c", script, str(self.stop)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**environ, **variables},
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def end(self):
        self.stop.touch()
        out, err = self.process.communicate(timeout=120)
        assert (self.process.returncode, out, err) == (0, "", "")


@pytest.fixture
def start(tmp_path):
    jobs = []

    def start_job(python, kind, **variables):
        jobs.append(Job(python, kind, tmp_path, **variables))
        return jobs[-1]

    yield start_job
    for job in jobs:
        job.process.kill()
        job.process.communicate()


PAYLOAD = {"code": "import sys; kept = [[] for _ in range(3000)]; answer = '%d.%d' % sys.version_info[:2]"}


def inject_payload(job, methods=METHODS):
    """Inject the payload; return how this was done, and the answer."""
    try:
        return inject(processes.process(job.process.pid), PAYLOAD, methods)
    except (OSError, AttachError):
        assert job.process.poll() is None, job.process.communicate()
        raise


def can_inject(job):
    """Try to inject; return whether it worked."""
    try:
        inject_payload(job)
    except AttachError:
        return False
    return True


def note_figures(**figures):
    if FIGURES:
        with open(FIGURES, "a") as file:
            file.write(json.dumps(figures) + "\n")


@pytest.mark.parametrize("kind", BUSY)
@pytest.mark.parametrize("python", INTERPRETERS, ids=lambda path: path.parent.parent.name)
def test_a_busy_interpreter_runs_injected_code_and_continues(start, python, kind):
    job = start(python, kind)
    time.sleep(0.05)  # the job is in the middle of its work
    for _ in range(5 * ATTACHES if kind == "finalizers" else ATTACHES):
        injection = inject_payload(job)
        assert python.parent.parent.name.startswith(injection.answer)
        note_figures(python=injection.answer, kind=kind, method=injection.method, stopped_ns=injection.stopped_ns)
    assert "tfprof" not in Path(f"/proc/{job.process.pid}/maps").read_text()
    job.end()


def test_a_running_thread_takes_a_pending_call_and_a_sleeping_thread_a_callback(start):
    assert inject_payload(start(INTERPRETERS[-1], "arithmetic")).method == PENDING_CALL
    sleeping_job = start(INTERPRETERS[-1], "asleep")
    until(lambda: psutil.Process(sleeping_job.process.pid).status() == psutil.STATUS_SLEEPING, "its sleep")
    time.sleep(0.5)  # the job is in its sleep of five seconds, not in an import
    assert inject_payload(sleeping_job).method == CALLBACK


@pytest.fixture
def python_3_14():
    if PYTHON_3_14 is None:
        pytest.skip("no Python 3.14 here")
    return Path(PYTHON_3_14)


@pytest.mark.parametrize("kind", BUSY)
def test_an_interpreter_with_a_remote_debugging_interface_runs_a_file_and_continues(start, python_3_14, kind):
    job = start(python_3_14, kind)
    time.sleep(0.05)
    for _ in range(ATTACHES):
        injection = inject_payload(job)
        assert injection.answer == "3.14"
        if kind in ("arithmetic", "floats", "malloc", "gc"):  # its main thread is never blocked
            assert (injection.method, injection.stopped_ns) == (REMOTE_DEBUGGING, 0)
        note_figures(python=injection.answer, kind=kind, method=injection.method, stopped_ns=injection.stopped_ns)
    job.end()
    assert not list(Path(runtime_dir.runtime_root()).glob("attach/*"))


def test_an_interpreter_whose_interface_is_off_gets_a_pending_call(start, python_3_14):
    job = start(python_3_14, "arithmetic", PYTHON_DISABLE_REMOTE_DEBUG="1")
    assert inject_payload(job).method == PENDING_CALL
    with pytest.raises(AttachError) as caught:
        inject_payload(job, (REMOTE_DEBUGGING,))
    assert caught.value.slug == "no-remote-debugging"
    job.end()


@pytest.mark.parametrize("python", [path for path in INTERPRETERS if path.parent.parent.name.startswith("3.8.")])
def test_a_pending_call_runs_even_if_the_interpreter_clears_its_flag(start, python, monkeypatch):
    original_queue, cleared_offsets = _Injection._queue, []

    def queue_without_signal(injection, thread):
        """Queue the call and clear its signal, as the interpreter may do at that moment."""
        runtime = injection.functions.runtime.start
        before = injection._memory.read(runtime, RUNTIME_SIZE)
        original_queue(injection, thread)
        after = injection._memory.read(runtime, RUNTIME_SIZE)
        at = next(at for at in range(0, RUNTIME_SIZE, 4) if (before[at], after[at]) == (0, 1))  # ceval.eval_breaker
        injection._memory.write(runtime + at, bytes(4))
        cleared_offsets.append(at)

    monkeypatch.setattr(_Injection, "_queue", queue_without_signal)
    job = start(python, "floats")
    time.sleep(0.05)
    injection = inject_payload(job)
    assert (injection.method, injection.answer, len(cleared_offsets)) == (PENDING_CALL, "3.8", 1)
    job.end()


def test_a_job_that_ends_in_injected_code_is_reported_at_once(start):
    job = start(INTERPRETERS[-1], "arithmetic")
    before = time.monotonic()
    with pytest.raises(ProcessLookupError):
        inject(processes.process(job.process.pid), {"code": "import os; os._exit(3)"})
    assert time.monotonic() - before < WORK_S / 2
    assert job.process.wait() == 3


def test_a_call_that_waits_for_a_lock_is_undone(start):
    job = start(INTERPRETERS[-1], "mutex")
    lock_function, mutex = map(int, job.process.stdout.readline().split())
    memory = ProcessMemory(job.process.pid)
    restorer = maps.functions(job.process.pid, memory).restorer
    for _ in range(3):
        with StoppedThread(job.process.pid, memory, restorer, STOP_S) as thread, pytest.raises(BackedOutError):
            thread.call(lock_function, (mutex,), CALL_S)
    memory.close()
    job.end()


def test_of_several_stops_the_longest_is_reported(start):
    job = start(INTERPRETERS[-1], "arithmetic")
    memory = ProcessMemory(job.process.pid)
    injection = _Injection(processes.process(job.process.pid), PAYLOAD, memory)
    for _ in range(8):
        injection._with_stopped_thread(lambda _: time.sleep(0.2))
    assert 0.2e9 <= injection._stopped_ns < 8 * 0.2e9
    injection._with_stopped_thread(injection._queue)
    memory.close()
    job.end()


def test_a_zombie_counts_as_gone(start):
    job = start(INTERPRETERS[-1], "arithmetic")
    memory = ProcessMemory(job.process.pid)
    job.process.kill()
    until(lambda: psutil.Process(job.process.pid).status() == psutil.STATUS_ZOMBIE, "its end")
    for use in (lambda: memory.read(0, 8), lambda: memory.write(0, bytes(8))):
        with pytest.raises(ProcessLookupError):
            use()
    memory.close()
    with pytest.raises(GoneError):
        TracedThread(job.process.pid).seize(1.0)


def test_only_the_given_methods_are_used(start):
    job = start(INTERPRETERS[-1], "arithmetic")
    time.sleep(0.05)  # the job has ended its imports, during which it may be blocked
    with pytest.raises(AttachError, match="not blocked"):
        inject_payload(job, (CALLBACK,))
    job.end()


def start_unusual(start, python, kind):
    """Start a job of a kind in UNUSUAL; skip the test where this system does not have it."""
    job = start(python, kind)
    line = job.process.stdout.readline()
    if line == "\n":
        pytest.skip("this kernel has no such job")
    assert line == "begins\n", job.process.communicate()
    time.sleep(0.2)  # the job is in its loop
    return job


def error_of(job, methods=METHODS):
    """Inject the payload, which fails; return the error."""
    with pytest.raises(AttachError) as caught:
        inject_payload(job, methods)
    return caught.value


def test_a_stopped_job_is_refused_and_stays_as_it_is(start):
    job = start(INTERPRETERS[-1], "arithmetic")
    os.kill(job.process.pid, signal.SIGSTOP)
    until(lambda: psutil.Process(job.process.pid).status() == psutil.STATUS_STOPPED, "its stop")
    mapped = Path(f"/proc/{job.process.pid}/maps").read_text()
    assert (error_of(job).slug, targets.refusal_of(job.process.pid).slug) == ("job-stopped", "job-stopped")
    assert Path(f"/proc/{job.process.pid}/maps").read_text() == mapped
    assert Path(f"/proc/{job.process.pid}/stat").read_text().split()[2] == "T"
    os.kill(job.process.pid, signal.SIGCONT)
    job.end()


def test_a_job_that_is_stopped_during_an_injection_is_called_stopped(start, monkeypatch):
    job = start(INTERPRETERS[-1], "native")
    monkeypatch.setattr(injecting, "BEGIN_S", 0.2)
    monkeypatch.setattr(_Injection, "_begin", lambda *_: os.kill(job.process.pid, signal.SIGSTOP) or PENDING_CALL)
    injection = _Injection(processes.process(job.process.pid), PAYLOAD, ProcessMemory(job.process.pid))
    injection._area.place(FileMemory(os.memfd_create("area"), "its memory"), 0)
    with pytest.raises(AttachError, match=rf"it is stopped, .*kill -CONT {job.process.pid}"):
        injection.run((PENDING_CALL,))
    os.kill(job.process.pid, signal.SIGCONT)
    job.end()


def test_a_blocked_job_that_may_not_make_memory_executable_gets_a_pending_call(start):
    job = start_unusual(start, INTERPRETERS[-1], "no_new_code")
    assert error_of(job, (CALLBACK,)).slug == "no-new-code"
    assert inject_payload(job).method == PENDING_CALL
    job.end()


def test_a_blocked_job_that_may_not_make_memory_executable_is_told_from_others(start, monkeypatch):
    job = start_unusual(start, INTERPRETERS[-1], "no_new_code")
    monkeypatch.setattr(injecting, "BEGIN_S", 0.0)
    monkeypatch.setattr(injecting, "BLOCKED_S", 0.02)
    monkeypatch.setattr(injecting, "BEGIN_WAITS", 1)
    errors = []
    for _ in range(10):
        try:
            inject_payload(job)
        except AttachError as error:
            errors.append((error.slug, "may not make memory executable" in str(error)))
    assert ("no-new-code", True) in errors
    job.end()


with_two_interpreters = pytest.mark.parametrize(
    "python",
    [path for path in INTERPRETERS if path.parent.parent.name.split(".")[1] in ("9", "10", "11", "12")],
    ids=lambda path: path.parent.parent.name,
)


@with_two_interpreters
def test_a_blocked_job_that_has_had_a_second_interpreter_gets_a_pending_call(start, python):
    job = start_unusual(start, python, "other_interpreter")
    assert error_of(job, (CALLBACK,)).slug == "holds-gil"
    assert inject_payload(job).method == PENDING_CALL
    job.end()


@with_two_interpreters
def test_a_job_that_runs_in_a_second_interpreter_gets_this_reason(start, python, monkeypatch):
    monkeypatch.setattr(injecting, "BEGIN_S", 0.05)
    job = start_unusual(start, python, "in_other_interpreter")
    assert "did not return to Python code of its main interpreter in time" in str(error_of(job, (PENDING_CALL,)))
    job.end()


@pytest.mark.parametrize("python", INTERPRETERS, ids=lambda path: path.parent.parent.name)
def test_a_job_with_a_timer_of_tracebacks_is_refused(start, python):
    job = start_unusual(start, python, "timer")
    for _ in range(3 * ATTACHES):
        assert error_of(job).slug == "traceback-timer"
    job.end()


@pytest.mark.parametrize("python", INTERPRETERS, ids=lambda path: path.parent.parent.name)
def test_a_timer_of_tracebacks_that_is_due_later_is_no_obstacle(start, python):
    job = start_unusual(start, python, "late_timer")
    for _ in range(ATTACHES):
        inject_payload(job)
    job.end()


def test_a_process_that_is_gone_is_called_gone(start):
    job = start(INTERPRETERS[-1], "arithmetic")
    process = processes.process(job.process.pid)
    job.process.kill()
    job.process.wait()
    request = {"action": "disarm", "launch": 1, "pid": process.pid, "started": process.started}
    assert answer(request) == {"slug": "process-gone", "text": f"process {process.pid} is gone"}


def test_a_process_that_a_debugger_traces_is_refused_with_this_reason(start):
    job = start(INTERPRETERS[-1], "arithmetic")
    process = processes.process(job.process.pid)
    trace = (
        "import sys; from tfprof.agent.attach.ptrace import TracedThread\n"
        "thread = TracedThread(int(sys.argv[1])); thread.seize(5.0); thread.release(); thread.seize(5.0)\n"
        "thread._resume(7); print('traces', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", trace, str(process.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as tracer:
        assert tracer.stdout.readline() == "traces\n"
        request = {"action": "disarm", "launch": 1, "pid": process.pid, "started": process.started}
        assert answer(request)["slug"] == "held-by-tracer"
        threading.Timer(0.3, tracer.stdin.close).start()
        assert targets.refusal_of(process.pid) is None  # the tracer ends soon
    inject_payload(job)
    job.end()


def test_only_one_process_attaches_at_a_time(start):
    job = start(INTERPRETERS[-1], "arithmetic")
    first, second = ProcessMemory(job.process.pid), ProcessMemory(job.process.pid)
    first.lock(0.0)
    with pytest.raises(AttachError) as caught:
        second.lock(0.1)
    assert caught.value.slug == "attach-busy"
    first.close()
    second.lock(10.0)
    second.close()
    inject_payload(job)
    job.end()


def test_an_interrupted_injection_waits_for_code_that_has_begun(start, tmp_path):
    job = start(INTERPRETERS[-1], "arithmetic")
    begun, ended = tmp_path / "begun", tmp_path / "ended"
    code = f"import time; open({str(begun)!r}, 'w').close(); time.sleep(1.0); open({str(ended)!r}, 'w').close()"
    helper = subprocess.Popen(
        [sys.executable, "-c", HELPER, str(job.process.pid), code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    until(begun.exists, "the code")
    helper.send_signal(signal.SIGINT)
    helper.communicate(timeout=60)
    assert ended.exists()
    job.end()


HELPER = """
import sys
from tfprof.agent import processes
from tfprof.agent.attach.inject import METHODS, inject
process = processes.process(int(sys.argv[1]))
print("begins", flush=True)
while True:
    inject(process, {"code": sys.argv[2]}, METHODS)
"""


@pytest.mark.parametrize("kind", ["floats", "malloc", "threads", "sleep", "signals"])
@pytest.mark.parametrize("version", ["usual", "3.14"])
def test_the_injecting_process_may_be_killed_at_any_moment(start, request, version, kind):
    python = request.getfixturevalue("python_3_14") if version == "3.14" else INTERPRETERS[-1]
    job, rng = start(python, kind), random.Random(kind)
    for _ in range(5 * ATTACHES):
        helper = subprocess.Popen(
            [sys.executable, "-c", HELPER, str(job.process.pid), "pass"], stdout=subprocess.PIPE, text=True
        )
        assert helper.stdout is not None
        assert helper.stdout.readline() == "begins\n"
        time.sleep(rng.uniform(0.0, 0.05))
        helper.kill()
        helper.communicate()
        assert job.process.poll() is None
    until(lambda: can_inject(job), "an injection", timeout_s=20.0)
    job.end()
