"""A signal frame on a thread's stack, with which the thread restores itself.

A call in another process is made as the kernel calls a signal handler. A frame with the whole state
of the thread lies below the used part of its stack. The call returns into `rt_sigreturn`, which
restores the state from the frame. So the thread is restored even when no process traces it any
more.
"""

import struct
from typing import Final, NamedTuple

from .ptrace import Registers

#: Distance from the interrupted stack to the frame: the red zone (128 bytes) and a margin.
_DISTANCE: Final = 1024
_ALIGNMENT: Final = 64

#: uc_flags: extended state is present, and the stack segment is restored strictly.
_FLAGS: Final = 1 | 2 | 4
#: An alternate stack that the kernel refuses to set, so that the thread keeps its own.
_NO_STACK: Final = (0, 0x7FFF, 0)
_CONTEXT: Final = struct.Struct("<QQQiiQ16QQQHHHHQQQQQ64sQ")
_REGISTER_ORDER: Final = "r8 r9 r10 r11 r12 r13 r14 r15 rdi rsi rbp rbx rdx rax rcx rsp"

#: The part of the extended state that is reserved for software (`sw_reserved`): its offset, its
#: layout, and the two magic numbers that mark a valid frame.
_SOFTWARE_AT: Final = 464
_SOFTWARE: Final = struct.Struct("<IIQI")
_MAGIC_1, _MAGIC_2 = 0x46505853, 0x46505845
#: The tiles of AMX: feature bit and offset. Frames of programs that never used the tiles have no
#: room for them. The features in use are at the last offset.
_TILES: Final = 1 << 18
_TILES_AT: Final = 2816
_USED_FEATURES_AT: Final = 512

#: Results of interrupted system calls. The kernel restarts a call with one of `_RESTART_RESULTS`
#: from its beginning, and a call with `_TIMED_RESTART_RESULT` with the remaining time. It does not
#: restart a call with `_INTERRUPTED_RESULT` (EINTR).
_RESTART_RESULTS: Final = (-512, -513, -514)
_TIMED_RESTART_RESULT: Final = -516
_INTERRUPTED_RESULT: Final = -4
_SYSCALL_SIZE: Final = 2


class SavedState(NamedTuple):
    """The part of a stopped thread's state that a call changes."""

    registers: Registers
    extended_state: bytes
    mask: int


class SignalFrame(NamedTuple):
    """A frame: ``data`` goes to ``address``, which is rsp when `rt_sigreturn` is called."""

    address: int
    data: bytes


def build(state: SavedState) -> SignalFrame:
    """Return the frame that restores ``state``; it ends below the red zone."""
    registers = state.registers
    extended = _in_stack_layout(state.extended_state)
    extended_at = (registers.rsp - _DISTANCE - len(extended)) // _ALIGNMENT * _ALIGNMENT
    address = (extended_at - _CONTEXT.size) // _ALIGNMENT * _ALIGNMENT
    restored_registers = _restart_registers(registers)
    values = [getattr(restored_registers, name) for name in _REGISTER_ORDER.split()]
    context = _CONTEXT.pack(
        _FLAGS,
        0,
        *_NO_STACK[:2],
        0,
        _NO_STACK[2],
        *values,
        restored_registers.rip,
        restored_registers.eflags,
        restored_registers.cs,
        0,
        0,
        restored_registers.ss,
        0,
        0,
        0,
        0,
        extended_at,
        bytes(64),
        state.mask,
    )
    gap = extended_at - address - len(context)
    return SignalFrame(address, context + bytes(gap) + extended)


def _in_stack_layout(extended: bytes) -> bytes:
    """Return the extended state in the kernel's stack layout: with size and two magic numbers."""
    features = int.from_bytes(extended[_SOFTWARE_AT : _SOFTWARE_AT + 8], "little")
    if not int.from_bytes(extended[_USED_FEATURES_AT : _USED_FEATURES_AT + 8], "little") & _TILES:
        features &= ~_TILES
        extended = extended[:_TILES_AT]
    words = _SOFTWARE.pack(_MAGIC_1, len(extended) + 4, features, len(extended))
    head = extended[:_SOFTWARE_AT] + words + bytes(512 - _SOFTWARE_AT - len(words))
    return head + extended[512:] + _MAGIC_2.to_bytes(4, "little")


def _restart_registers(registers: Registers) -> Registers:
    """Return the registers that restart an interrupted system call.

    A call that would continue with its remaining time fails with EINTR, as after a signal: only the
    kernel knows the remaining time, and does not keep it.
    """
    restored_registers = registers.copy()
    if registers.orig_rax >> 63:
        return restored_registers
    result = registers.rax - (1 << 64 if registers.rax >> 63 else 0)
    if result in _RESTART_RESULTS:
        restored_registers.rax = registers.orig_rax
        restored_registers.rip -= _SYSCALL_SIZE
    elif result == _TIMED_RESTART_RESULT:
        restored_registers.rax = _INTERRUPTED_RESULT & (1 << 64) - 1
    return restored_registers
