"""Runs code in a running job: the methods that make its interpreter run a source text."""

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from ...commands.proc_stat import read_stat
from ...formats.errors import FolderError
from ..processes import Process
from . import maps, priority, remote_debugging, traceback_timer
from .call import BackedOutError, StillRunningError, StoppedThread, lock_address
from .errors import AttachError, GoneError, RefusedError, stopped_error
from .identities import owner_of
from .memory import ProcessMemory
from .work_area import PAGE, WorkArea, WorkProgress, WorkState, pack
from .work_area_file import WorkAreaFile

#: Time limits (seconds): for other attaching processes to end their work, for a thread to stop, for
#: a call in it to get a lock, and for the work.
LOCK_S: Final = 30.0
STOP_S: Final = 2.0
CALL_S: Final = 0.25
WORK_S: Final = 60.0
#: Time limit for the work to begin (seconds), and how many times the limit is extended. The work
#: runs in a new thread, which may wait long for the GIL while the main thread computes.
BEGIN_S: Final = 2.0
BEGIN_WAITS: Final = 8
#: A thread counts as blocked if it stays in one system call for this time (seconds).
BLOCKED_S: Final = 0.15
#: Time limit for the work to begin after its request was withdrawn (seconds): the main thread may
#: have read the request before.
WITHDRAWN_S: Final = 0.1
#: Attempts to queue a call while a lock is held, and the pause between them (seconds).
TRIES: Final = 5
PAUSE_S: Final = 0.02

REMOTE_DEBUGGING, PENDING_CALL, CALLBACK = "remote-debugging", "pending-call", "gil-callback"
#: All methods. `remote-debugging` is tried first; then `gil-callback` if the main thread is
#: blocked, else `pending-call`. With `gil-callback`, a blocked main thread runs machine code that
#: takes the GIL and runs the text, as a callback from C would (docs/attach.md).
METHODS: Final = (REMOTE_DEBUGGING, PENDING_CALL, CALLBACK)

#: orig_rax of a thread that is in no system call.
_NO_SYSCALL: Final = (1 << 64) - 1
#: call *r12 (PyGILState_Check); test eax, eax; jnz end; call *r13 (PyGILState_Ensure);
#: mov ebx, eax; mov rdi, rbp; call *r14 (PyRun_SimpleString); mov edi, ebx;
#: call *r15 (PyGILState_Release); xor r12d, r12d; end: mov eax, 15; syscall (rt_sigreturn)
_CALLBACK_CODE: Final = bytes.fromhex("41ffd485c0751341ffd589c34889ef41ffd689df41ffd74531e4b80f0000000f05")


class RawResult(NamedTuple):
    """Finished work: the method, the longest stop of the main thread (ns), and the answer."""

    method: str
    stopped_ns: int
    answer: str


class NoCallbackError(AttachError):
    """No callback can run in the main thread.

    A slug of its own marks a reason that also explains why the work has not begun.
    """


def inject(
    process: Process, work: Mapping[str, Any], methods: tuple[str, ...] = METHODS, user_id: int | None = None
) -> RawResult:
    """Run ``work`` (see `work_area.pack`) in ``process`` by one of ``methods``.

    AttachError if that fails, OSError if the system forbids it. RefusedError if the process is
    stopped, if its timer of tracebacks is due, or if ``user_id`` is given and is not its user.
    """
    memory = ProcessMemory(process.pid)
    try:
        memory.lock(LOCK_S)
        if process.is_stopped:
            raise stopped_error(process.pid)
        injection = _Injection(process, work, memory)
        if user_id is not None and injection.owner != user_id:
            raise RefusedError("it belongs to another user", "other-user")
        traceback_timer.check(process.pid, memory, injection.functions, WORK_S)
        return injection.run(methods)
    finally:
        memory.close()


class _Injection:
    """One injection into ``process``."""

    def __init__(self, process: Process, work: Mapping[str, Any], memory: ProcessMemory) -> None:
        self._pid = process.pid
        self._memory = memory
        self._fingerprint = _program_fingerprint(process)
        self.owner = self._fingerprint[0]
        self._process = process
        self.functions = maps.functions(process.pid, memory)
        self._archive = pack(work)
        self._area = WorkArea(self._archive)
        self._obstacle: NoCallbackError | None = None  # the reason why no callback was possible
        self._stopped_ns = 0

    def run(self, methods: tuple[str, ...]) -> RawResult:
        """Start the work by one of ``methods`` that is possible, and wait for it."""
        progress = self._run_file() if REMOTE_DEBUGGING in methods else None
        if progress is not None:
            return RawResult(REMOTE_DEBUGGING, 0, _answer_text(progress, self._why_not_begun))
        if methods == (REMOTE_DEBUGGING,):
            raise AttachError(
                "its Python has no remote debugging interface (only 3.14 has one), or cannot use it now",
                "no-remote-debugging",
            )
        return self._run_in_memory(methods)

    def _run_file(self) -> WorkProgress | None:
        """Run the work through the interpreter's own interface; return its progress.

        None if that is not possible.
        """
        runtime_at = self.functions.runtime.start
        interface = remote_debugging.find(self._memory, runtime_at) if runtime_at else None
        if interface is None or interface.is_busy or is_blocked(self._pid):
            return None
        area = WorkArea(self._archive)
        try:
            file = WorkAreaFile(area)
        except (OSError, FolderError):
            return None
        try:
            if not file.is_readable_by(self._pid) or not interface.request(os.fsencode(file.script)):
                return None
            if area.wait(BEGIN_S, WorkState.BEGUN).state == WorkState.QUEUED:
                interface.withdraw()
                if area.wait(WITHDRAWN_S, WorkState.BEGUN).state == WorkState.QUEUED:
                    return None
            return area.wait(WORK_S)
        finally:
            with contextlib.suppress(OSError):
                area.release()
                if area.has_begun:
                    file.wait_until_freed(self._pid)
            file.remove()

    def _run_in_memory(self, methods: tuple[str, ...]) -> RawResult:
        """Start the work in a work area in the memory of the process, and wait for it.

        The injected text then frees the work area, which stays mapped if the text never runs.
        """
        area, is_area_used = self._area, False
        try:
            method = self._begin(methods)
            progress = area.wait(BEGIN_S, WorkState.BEGUN)
            for _ in range(BEGIN_WAITS):
                if progress.state != WorkState.QUEUED or self._process.is_stopped:
                    break
                if method == PENDING_CALL:
                    method = self._begin_queued(methods)
                progress = area.wait(BEGIN_S, WorkState.BEGUN)
            if progress.state != WorkState.QUEUED:
                progress = area.wait(WORK_S)
        except StillRunningError:
            is_area_used = True  # the main thread may be in the work area's machine code
            raise
        finally:
            with contextlib.suppress(OSError):  # the process is gone
                area.release(keep_mapped=is_area_used)
                if area.has_begun and not is_area_used:
                    area.wait_until_freed()
        return RawResult(method, self._stopped_ns, _answer_text(progress, self._why_not_begun))

    def _begin(self, methods: tuple[str, ...]) -> str:
        """Make the interpreter run the text, at once or soon; return the method."""
        if CALLBACK in methods and (PENDING_CALL not in methods or is_blocked(self._pid)):
            try:
                self._with_stopped_thread(lambda thread: self._call_back(thread, self._area.text_at))
            except NoCallbackError as error:
                if PENDING_CALL not in methods:
                    raise
                self._obstacle = error
            else:
                return CALLBACK
        for attempts_left in reversed(range(TRIES)):
            try:
                self._with_stopped_thread(self._queue)
            except BackedOutError:
                if not attempts_left:
                    raise
                time.sleep(PAUSE_S)
            else:
                break
        return PENDING_CALL

    def _begin_queued(self, methods: tuple[str, ...]) -> str:
        """Make the main thread look at its queued calls; return the method.

        A blocked thread is made to run an empty text, since the interpreter runs queued calls
        before any text. Otherwise a second call is queued. This sets the interpreter's flag for
        queued calls again: until Python 3.12 the interpreter can lose this flag, if it is set while
        another flag is cleared.
        """
        if CALLBACK in methods and is_blocked(self._pid):
            try:
                self._with_stopped_thread(lambda thread: self._call_back(thread, self._area.empty_text_at))
            except NoCallbackError as error:
                self._obstacle = error
            else:
                return CALLBACK
        with contextlib.suppress(BackedOutError):
            self._with_stopped_thread(self._queue_nothing)
        return PENDING_CALL

    def _with_stopped_thread(self, work: Callable[[StoppedThread], None]) -> None:
        """Stop the main thread for ``work``; the first call also places the work area."""
        start_ns = time.monotonic_ns()
        try:
            with (
                priority.raised(),
                StoppedThread(self._pid, self._memory, self.functions.restorer, STOP_S) as thread,
            ):
                if _program_fingerprint(self._process) != self._fingerprint:
                    raise GoneError(f"process {self._pid} has become another program meanwhile")
                if not self._area.address:
                    address = thread.map(self.functions.mmap, self._area.size + PAGE)
                    self._area.place(self._memory, address)
                    self._memory.write(address + self._area.size, _CALLBACK_CODE)
                work(thread)
        finally:
            self._stopped_ns = max(self._stopped_ns, time.monotonic_ns() - start_ns)

    def _queue(self, thread: StoppedThread) -> None:
        python = self.functions.python
        thread.call(python["Py_AddPendingCall"], (python["PyRun_SimpleString"], self._area.text_at), CALL_S)

    def _queue_nothing(self, thread: StoppedThread) -> None:
        """Queue a call of `PyErr_CheckSignals`, which needs no work area.

        The call changes nothing: before queued calls, the interpreter checks for signals itself.
        """
        python = self.functions.python
        thread.call(python["Py_AddPendingCall"], (python["PyErr_CheckSignals"], 0), CALL_S)

    def _call_back(self, thread: StoppedThread, text_at: int) -> None:
        if thread.state.registers.orig_rax == _NO_SYSCALL:
            raise NoCallbackError("its main thread is not blocked")
        if lock_address(thread.state.registers) in self.functions.runtime:
            # The thread is registered as a waiter in the GIL's condition variable. If the callback
            # also used this variable, the next signal to it could wait for this thread forever.
            raise NoCallbackError("its main thread waits for the GIL, where no callback can run")
        python, code = self.functions.python, self._area.address + self._area.size
        if not thread.make_executable(self.functions.mprotect, code, PAGE):
            text = "the process may not make memory executable (PR_SET_MDWE, or a rule of the host)"
            raise NoCallbackError(text, "no-new-code")
        end_registers = thread.run(
            code,
            r12=python["PyGILState_Check"],
            r13=python["PyGILState_Ensure"],
            r14=python["PyRun_SimpleString"],
            r15=python["PyGILState_Release"],
            rbp=text_at,
        )
        if end_registers.r12:
            # In a process that has ever had a second interpreter, CPython cannot tell whether this
            # is so, and reports it always.
            text = "its main thread holds the GIL in a system call, or the process has several interpreters"
            raise NoCallbackError(text, "holds-gil")

    def _why_not_begun(self) -> AttachError:
        """Return the error for work that has not begun in time."""
        if self._process.is_stopped:
            return stopped_error(self._pid)
        text = "its main thread did not return to Python code of its main interpreter in time; nothing was changed"
        if self._obstacle is not None and self._obstacle.slug != NoCallbackError.slug:
            return AttachError(f"{text} (no callback: {self._obstacle.args[0]})", self._obstacle.slug)
        return AttachError(text, "attach-unanswered")


def _answer_text(progress: WorkProgress, why_not_begun: Callable[[], AttachError]) -> str:
    """Return the text of the answer; AttachError if the work failed or did not end in time."""
    if progress.state == WorkState.DONE:
        return progress.text
    if progress.state == WorkState.FAILED:
        raise AttachError(f"the code failed in the process: {progress.text}")
    if progress.state == WorkState.BEGUN:
        text = f"the code of tfprof did not end within {WORK_S:g} s in the process; it may still end"
        raise AttachError(text, "attach-unfinished")
    raise why_not_begun()


def is_blocked(pid: int) -> bool:
    """Return whether the main thread stays in one system call for a while."""
    first_syscall = _syscall(pid)
    if first_syscall is None:
        return False
    time.sleep(BLOCKED_S)
    return _syscall(pid) == first_syscall


def _syscall(pid: int) -> str | None:
    """Return the system call that the main thread is in, None if it is in none."""
    try:
        with open(f"/proc/{pid}/task/{pid}/syscall", encoding="ascii") as file:
            text = file.read()
    except OSError:
        return None
    return None if text.startswith(("running", "-1")) else text


def _program_fingerprint(process: Process) -> tuple[int, ...]:
    """Return values that change when the process executes another program.

    They are the owner and the addresses of code and stack.
    """
    stat, owner = read_stat(process.pid), owner_of(process.pid)
    if stat is None or owner is None:
        raise GoneError(f"process {process.pid} is gone")
    if stat.started != process.started:
        raise GoneError(f"process {process.pid} is gone; another process has its pid")
    return (owner, *stat.addresses)
