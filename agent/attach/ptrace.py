"""Controls one thread of another process with ptrace: stops, reads, changes and releases it."""

import contextlib
import ctypes
import errno
import os
import signal
import time
from typing import Final

from ..processes import status_of
from .errors import AttachError, GoneError

_libc: Final = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)

_CONT, _DETACH, _SYSCALL = 7, 17, 24
_GETREGS, _SETREGS = 12, 13
_GETREGSET, _SETREGSET = 0x4204, 0x4205
_SEIZE, _INTERRUPT = 0x4206, 0x4207
_GETSIGMASK, _SETSIGMASK = 0x420A, 0x420B
_TRACESYSGOOD: Final = 1
_XSTATE: Final = 0x202
_XSTATE_MAX: Final = 32768
_WALL: Final = 0x40000000
_EVENT_STOP: Final = 128
_SYSCALL_STOP: Final = signal.SIGTRAP | 0x80
#: Signals that an instruction causes; blocking them would hide a fault.
_SYNCHRONOUS: Final = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP)
#: The signal that announces a stop. It is blocked while a thread is traced, and waited for, since
#: a process that polls uses up its share of the processor, and then waits while the thread is
#: stopped.
_STOP_NOTICE: Final = (signal.SIGCHLD,)
#: Poll interval for a notice that another thread of this process has taken (seconds).
_POLL_S: Final = 0.005

#: A signal mask that blocks all signals except those that instructions cause.
ALL_BLOCKED: Final = ~sum(1 << number - 1 for number in _SYNCHRONOUS) & (1 << 64) - 1


#: The names of the general registers, in the kernel's order.
_REGISTERS: Final = (
    "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss "
    "fs_base gs_base ds es fs gs"
)


class Registers(ctypes.Structure):
    """The general registers of x86-64, in the kernel's layout."""

    _fields_ = tuple((name, ctypes.c_uint64) for name in _REGISTERS.split())

    def copy(self) -> "Registers":
        """Return a copy."""
        return Registers.from_buffer_copy(self)


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("size", ctypes.c_size_t))


class NotStoppingError(AttachError):
    """The thread waits in the kernel, or the called function makes no system call, for too long."""

    slug = "not-stopping"


class CrashedError(AttachError):
    """The function called in the thread caused a fault; the call was undone."""


class TracedThread:
    """Thread ``tid``, traced from `seize` to `release`.

    The kernel releases it when this process ends.
    """

    def __init__(self, tid: int) -> None:
        self.tid = tid
        self._stopped = False
        self._stop_signal = 0  # the pending signal that stopped the thread
        self._deferred_signals: list[int] = []

    def seize(self, timeout_s: float) -> None:
        """Stop the thread; OSError if that is forbidden, NotStoppingError if it takes too long."""
        self._ask(_SEIZE, 0, _TRACESYSGOOD)
        self._usual_mask = signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_NOTICE)
        try:
            self.interrupt(timeout_s)
        except BaseException:
            self.release()
            raise

    def interrupt(self, timeout_s: float) -> None:
        """Stop the thread at a point where the kernel can restart an interrupted system call."""
        self._ask(_INTERRUPT)
        if self._stopped:
            self._resume(_CONT)
        while self._wait(timeout_s) != _EVENT_STOP:
            self._ask(_INTERRUPT)  # any other stop, as at the end of a system call, cancels the request
            self._resume(_CONT)

    def release(self) -> None:
        """Release the thread."""
        if self._stopped:
            with contextlib.suppress(OSError):
                self._ask(_DETACH)
            self._stopped = False
        for number in self._deferred_signals:
            with contextlib.suppress(OSError):
                os.kill(self.tid, number)
        self._deferred_signals.clear()
        signal.pthread_sigmask(signal.SIG_SETMASK, self._usual_mask)

    def next_syscall(self, timeout_s: float) -> Registers:
        """Run the thread up to the beginning or end of its next system call; return its registers.

        After NotStoppingError the thread runs.
        """
        self._resume(_SYSCALL)
        while (stop := self._wait(timeout_s)) != _SYSCALL_STOP:
            if stop in _SYNCHRONOUS:
                self._stop_signal = 0
                raise CrashedError(f"a call in the process ended with {signal.Signals(stop).name}; it was undone")
            if stop != _EVENT_STOP:
                self._deferred_signals.append(stop)
            self._resume(_SYSCALL)
        return self.registers()

    def registers(self) -> Registers:
        """Return the general registers."""
        registers = Registers()
        self._ask(_GETREGS, 0, ctypes.addressof(registers))
        return registers

    def set_registers(self, registers: Registers) -> None:
        """Set the general registers, all at once."""
        self._ask(_SETREGS, 0, ctypes.addressof(registers))

    def extended_state(self) -> bytes:
        """Return the state of the vector units in the layout of XSAVE."""
        buffer = ctypes.create_string_buffer(_XSTATE_MAX)
        vector = _Vector(ctypes.addressof(buffer), _XSTATE_MAX)
        self._ask(_GETREGSET, _XSTATE, ctypes.addressof(vector))
        return buffer.raw[: vector.size]

    def set_extended_state(self, state: bytes) -> None:
        """Set the state of the vector units."""
        buffer = ctypes.create_string_buffer(state, len(state))
        vector = _Vector(ctypes.addressof(buffer), len(state))
        self._ask(_SETREGSET, _XSTATE, ctypes.addressof(vector))

    def signal_mask(self) -> int:
        """Return the mask of blocked signals, bit 0 for signal 1."""
        mask = ctypes.c_uint64()
        self._ask(_GETSIGMASK, 8, ctypes.addressof(mask))
        return mask.value

    def set_signal_mask(self, mask: int) -> None:
        """Set the mask of blocked signals."""
        value = ctypes.c_uint64(mask)
        self._ask(_SETSIGMASK, 8, ctypes.addressof(value))

    def _resume(self, request: int) -> None:
        """Continue the thread; deliver the signal that stopped it, except in a called function."""
        number, self._stop_signal = self._stop_signal, 0
        self._ask(request, 0, number if request == _CONT else 0)
        self._stopped = False

    def _wait(self, timeout_s: float) -> int:
        """Wait for the next stop; return its kind: `_EVENT_STOP`, `_SYSCALL_STOP`, or a signal."""
        deadline = time.monotonic() + timeout_s
        while True:
            pid, status = os.waitpid(self.tid, os.WNOHANG | _WALL)
            if pid:
                break
            if time.monotonic() > deadline:
                raise NotStoppingError(f"thread {self.tid} did not stop within {timeout_s:g} s")
            signal.sigtimedwait(_STOP_NOTICE, _POLL_S)
        if not os.WIFSTOPPED(status):
            raise GoneError(f"process {self.tid} ended meanwhile")
        self._stopped = True
        number = os.WSTOPSIG(status)
        if status >> 16 == _EVENT_STOP:
            return _EVENT_STOP
        if number != _SYSCALL_STOP:
            self._stop_signal = number
        return number

    def _ask(self, request: int, address: int = 0, data: int = 0) -> None:
        ctypes.set_errno(0)
        if _libc.ptrace(request, self.tid, address, data) == -1:
            code = ctypes.get_errno()
            if code:
                raise _error(self.tid, code)


def _error(tid: int, code: int) -> Exception:
    """Return the error for a request that the kernel refused."""
    # The kernel returns ESRCH also for a thread that is not stopped.
    if code == errno.ESRCH or (code == errno.EPERM and _has_ended(tid)):
        return GoneError(f"process {tid} ended meanwhile")
    return OSError(code, os.strerror(code))


def _has_ended(tid: int) -> bool:
    try:
        return status_of(tid)["State"][0] in "ZX"
    except OSError:
        return True
