"""Calls of functions in a stopped thread of another process.

At any moment the thread is either unchanged, or returns to its old state by itself
(`signal_frame`). So this process may end at any point.
"""

import struct
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from .errors import AttachError
from .memory import ProcessMemory
from .ptrace import ALL_BLOCKED, NotStoppingError, Registers, TracedThread
from .signal_frame import SavedState, SignalFrame, build

_RT_SIGRETURN: Final = 15
_MMAP, _MPROTECT = 9, 10
#: -1, as orig_rax outside of a system call, and as the descriptor of anonymous memory.
_NO_SYSCALL = _NO_FILE = (1 << 64) - 1
_CODE_64_BIT: Final = 0x33
_DIRECTION_FLAG: Final = 0x400
_PROT_READ_WRITE, _PROT_READ_EXEC = 1 | 2, 1 | 4
_PRIVATE_ANONYMOUS: Final = 0x22
_FIRST_ERROR: Final = (1 << 64) - 4096
#: Maximum number of stops of a called function, two for each system call. A contended lock causes
#: many.
_STOPS_MAX: Final = 10_000
#: The system call that waits for a lock, and its operations that wait.
_FUTEX: Final = 202
_FUTEX_WAITS: Final = (0, 9)
_FUTEX_OPERATION: Final = 0x7F
#: The system call that continues an interrupted wait with a time limit.
_RESTART_SYSCALL: Final = 219
#: Time limit for a called function to stop at its next system call, unless it waits for a lock
#: (seconds).
_RUN_S: Final = 20.0

#: A callback that gets the registers at the beginning and at the end of each system call of a
#: called function.
OnSyscall = Callable[[Registers], None]


class BackedOutError(AttachError):
    """A call waited for a lock and was undone."""

    slug = "backed-out"


class StillRunningError(AttachError):
    """A call did not return in time; it continues, and the thread restores itself afterwards."""


class StoppedThread:
    """Stops a thread for a `with` block, and calls functions in it.

    ``restorer`` is the address of an `rt_sigreturn` in the process; calls return to it.
    """

    def __init__(self, tid: int, memory: ProcessMemory, restorer: int, timeout_s: float) -> None:
        self._thread = TracedThread(tid)
        self._memory = memory
        self._restorer = restorer
        self._timeout_s = timeout_s

    def __enter__(self) -> Self:
        self._thread.seize(self._timeout_s)
        try:
            thread = self._thread
            self.state = SavedState(thread.registers(), thread.extended_state(), thread.signal_mask())
            self._frame = build(self.state)
        except BaseException:
            self._thread.release()
            raise
        if self.state.registers.cs != _CODE_64_BIT:
            self._thread.release()
            raise AttachError("the process does not run 64-bit code", "other-architecture")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._thread.release()

    def map(self, mmap: int, size: int) -> int:
        """Call ``mmap`` for ``size`` new bytes and return their address."""
        address = self._result(_MMAP, mmap, (0, size, _PROT_READ_WRITE, _PRIVATE_ANONYMOUS, _NO_FILE, 0))
        if address >= _FIRST_ERROR:
            raise AttachError("the process gets no memory from the system")
        return address

    def make_executable(self, mprotect: int, address: int, size: int) -> bool:
        """Call ``mprotect`` to let memory be executed, not written; return whether that worked."""
        return self._result(_MPROTECT, mprotect, (address, size, _PROT_READ_EXEC)) == 0

    def _result(self, number: int, function: int, arguments: tuple[int, ...]) -> int:
        """Call ``function``, which makes the system call ``number``; return that call's result."""
        results = [_FIRST_ERROR]

        def keep_result(registers: Registers) -> None:
            if registers.orig_rax == number:
                results.append(registers.rax)

        self.call(function, arguments, on_syscall=keep_result)
        return results[-1]

    def call(
        self,
        function: int,
        arguments: tuple[int, ...],
        lock_timeout_s: float = 1.0,
        on_syscall: OnSyscall | None = None,
    ) -> Registers:
        """Call ``function`` and return the registers at its return; rax is not its result.

        BackedOutError if the function waits for its first lock for ``lock_timeout_s``,
        StillRunningError if it takes much longer for another reason.
        """
        frame = self._frame
        registers = self.state.registers.copy()
        registers.orig_rax = _NO_SYSCALL
        registers.rip = function
        registers.eflags &= ~_DIRECTION_FLAG
        registers.rax = 0
        for name, value in zip(("rdi", "rsi", "rdx", "rcx", "r8", "r9"), arguments, strict=False):
            setattr(registers, name, value)
        # At a function's start the stack is 8 bytes below alignment and holds the return address.
        registers.rsp = frame.address - 8
        self._memory.write(frame.address, frame.data)
        self._memory.write(registers.rsp, struct.pack("<Q", self._restorer))
        return self._make_call(frame, registers, lock_timeout_s, on_syscall)

    def run(self, code: int, **registers: int) -> Registers:
        """Run machine code that ends with `rt_sigreturn`; return the registers there.

        The code is never undone: while it waits for one lock it may hold another. StillRunningError
        if it takes too long.
        """
        frame = self._frame
        start_registers = self.state.registers.copy()
        start_registers.orig_rax, start_registers.rip, start_registers.rsp = _NO_SYSCALL, code, frame.address
        start_registers.eflags &= ~_DIRECTION_FLAG
        for name, value in registers.items():
            setattr(start_registers, name, value)
        self._memory.write(frame.address, frame.data)
        return self._make_call(frame, start_registers)

    def _make_call(
        self,
        frame: SignalFrame,
        registers: Registers,
        lock_timeout_s: float | None = None,
        on_syscall: OnSyscall | None = None,
    ) -> Registers:
        thread = self._thread
        thread.set_registers(registers)  # from here on the thread restores itself
        thread.set_signal_mask(ALL_BLOCKED)
        try:
            end_registers = self._run_until_return(lock_timeout_s, on_syscall)
        except BackedOutError:
            self._undo()
            raise
        except StillRunningError:
            raise
        except AttachError:
            self._restore()
            raise
        # The thread is stopped at the entry of `rt_sigreturn`. The new registers cancel this call.
        # If this process ends, they make the thread call it again by itself. Otherwise the thread
        # is interrupted, and the old registers are restored at that second stop. Only there does
        # the kernel restart a system call that was interrupted.
        repeat_registers = end_registers.copy()
        repeat_registers.orig_rax, repeat_registers.rip = _NO_SYSCALL, self._restorer
        repeat_registers.rsp = frame.address
        thread.set_registers(repeat_registers)
        thread.interrupt(self._timeout_s)
        self._restore()
        return end_registers

    def _run_until_return(self, lock_timeout_s: float | None, on_syscall: OnSyscall | None) -> Registers:
        """Run the thread until the call has returned.

        Only a call that waits for its first lock can be undone, since it has done nothing yet. Any
        other call may have done its work, or may hold a lock, which would stay locked.
        BackedOutError if the call waits for a lock for ``lock_timeout_s``; None if it is never
        undone. StillRunningError if it takes too long for another reason.
        """
        undo_after_s: float | None = None  # set while the thread waits for a lock
        is_in_syscall = False
        for _ in range(_STOPS_MAX):
            try:
                registers = self._thread.next_syscall(_RUN_S if undo_after_s is None else undo_after_s)
            except NotStoppingError:
                if undo_after_s is not None:
                    raise BackedOutError("the function called in the process is blocked; the call was undone") from None
                raise StillRunningError(
                    "the function called in the process has not returned yet, and continues by itself"
                ) from None
            if registers.orig_rax == _RT_SIGRETURN and registers.rsp == self._frame.address:
                return registers
            is_in_syscall = not is_in_syscall
            undo_after_s = lock_timeout_s if is_in_syscall and _enters_lock_wait(registers) else None
            if on_syscall is not None:
                on_syscall(registers)
        raise StillRunningError("the function called in the process makes many system calls, and continues by itself")

    def _undo(self) -> None:
        """Stop the thread in the called function and restore it; StillRunningError if it runs."""
        try:
            self._thread.interrupt(self._timeout_s)
        except NotStoppingError:
            raise StillRunningError(
                "the function called in the process waits for a lock, and continues by itself"
            ) from None
        self._restore()

    def _restore(self) -> None:
        """Restore everything, the registers last and all at once."""
        self._thread.set_signal_mask(self.state.mask)
        self._thread.set_extended_state(self.state.extended_state)
        self._thread.set_registers(self.state.registers)


def lock_address(registers: Registers) -> int:
    """Return the address of the lock that a stopped thread waits for; 0 if it waits for none."""
    return registers.rdi if registers.orig_rax in (_FUTEX, _RESTART_SYSCALL) else 0


def _enters_lock_wait(registers: Registers) -> bool:
    """Return whether the thread enters the wait for a lock."""
    return registers.orig_rax == _FUTEX and registers.rsi & _FUTEX_OPERATION in _FUTEX_WAITS
