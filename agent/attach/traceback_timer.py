"""Finds the timer of `faulthandler.dump_traceback_later` in a process.

When the timer is due, a thread of C code reads the frames of all Python threads. It does not hold
the GIL, so the process may crash if a thread's frames change at that moment, as those of the thread
that tfprof starts do. Python has no function that tells whether there is a timer. Its thread is
recognized by three properties: it blocks all signals, the interpreter's code is on its stack, and
it runs no Python code.
"""

import os
import struct
import time
from typing import Final

from ..processes import status_of
from .errors import RefusedError
from .maps import Functions
from .memory import Memory

#: The signals that the thread blocks. Nobody can block SIGKILL and SIGSTOP.
_BLOCKED: Final = 0x7FFBFEFF
#: Bytes of a thread's stack that are searched.
_STACK: Final = 4096
#: The system calls of a wait, its operation with an absolute time, and the flag for the wall clock.
_FUTEX, _RESTART_SYSCALL = 202, 219
_WAIT_UNTIL: Final = 9
_OPERATION: Final = 0x7F
_WALL_CLOCK: Final = 0x100
_TIME: Final = struct.Struct("<qq")  # seconds, nanoseconds
#: Attempts to read a thread that runs, and the pause between them (seconds).
_TRIES: Final = 5
_PAUSE_S: Final = 0.01


def check(pid: int, memory: Memory, functions: Functions, within_s: float) -> None:
    """Raise RefusedError if a timer in process ``pid`` is due within ``within_s``."""
    for tid in map(int, os.listdir(f"/proc/{pid}/task")):
        due_s = _due_s(pid, tid, memory, functions)
        if due_s is not None and due_s < within_s:
            raise RefusedError(
                f"its timer of faulthandler.dump_traceback_later is due in {max(due_s, 0):.1f} s: "
                "this could crash it while tfprof's code begins in it",
                "traceback-timer",
            )


def _due_s(pid: int, tid: int, memory: Memory, functions: Functions) -> float | None:
    """Return the time until the timer of thread ``tid`` is due (seconds), None if it has none."""
    try:
        if int(status_of(tid)["SigBlk"], 16) & _BLOCKED != _BLOCKED:
            return None
        call = _system_call(pid, tid)
        stack = memory.read(call[-2], _STACK) if call else b""
        words = [word for (word,) in struct.iter_unpack("<Q", stack[: len(stack) // 8 * 8])]
        if not any(word in functions.code for word in words) or any(word in functions.evaluation for word in words):
            return None
        return _remaining_s(call, memory)
    except OSError:  # the thread has ended
        return None


def _system_call(pid: int, tid: int) -> list[int]:
    """Return number, arguments, stack pointer and program counter of a thread's system call.

    Empty if the thread runs.
    """
    for _ in range(_TRIES):
        with open(f"/proc/{pid}/task/{tid}/syscall", encoding="ascii") as file:
            words = file.read().split()
        if words[0].isdigit():
            return [int(words[0]), *(int(word, 16) for word in words[1:])]
        time.sleep(_PAUSE_S)
    return []


def _remaining_s(call: list[int], memory: Memory) -> float:
    """Return the remaining time of a wait (seconds), 0 if the thread does not wait."""
    number, _, operation, _, time_at = call[:5]
    if number not in (_FUTEX, _RESTART_SYSCALL) or not time_at:
        return 0.0
    seconds, nanoseconds = _TIME.unpack(memory.read(time_at, _TIME.size))
    end_s = seconds + nanoseconds / 1e9
    if operation & _OPERATION != _WAIT_UNTIL:
        return float(end_s)
    return float(end_s - (time.time() if operation & _WALL_CLOCK else time.monotonic()))
