"""Processes with TensorFlow, their owners, and whether attaching is possible."""

import os
import time
from collections.abc import Callable, Container, Sequence
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from .. import identity, processes, python_command
from ..processes import Process
from . import maps
from .errors import RefusedError, stopped_error

#: The machine that attaching is for, and its number in the header of an ELF file.
ARCHITECTURE: Final = "x86_64"
_MACHINE: Final = (62).to_bytes(2, "little")
#: The oldest minor version of Python 3 that the shim runs in.
PYTHON_MIN: Final = 7
#: Another user's Python process is listed from this size on: its mapped files cannot be read.
LARGE_BYTES: Final = 200 << 20

#: Time limit for the end of tracing, and poll interval (seconds).
TRACER_S: Final = 1.0
POLL_S: Final = 0.02
_PTRACE_SCOPE_FILE: Final = "/proc/sys/kernel/yama/ptrace_scope"
_SYS_PTRACE: Final = 19  # bit number of the capability
_COMMAND_MAX: Final = 1 << 16

PROFILED, ATTACHABLE, REFUSED = "profiled", "attachable", "refused"
#: The reason why a process with another user's rights is refused.
SETUID: Final = "it runs with another user's rights (setuid): tfprof does not touch such processes"


class Target(NamedTuple):
    """One process: ``state`` is PROFILED, ATTACHABLE, or REFUSED with ``slug`` and ``reason``.

    ``age_s`` is its age (seconds). ``has_tensorflow`` is None if that is unknown.
    """

    process: Process
    user_id: int
    user: str
    age_s: float
    command: list[str]
    state: str
    has_tensorflow: bool | None
    slug: str | None = None
    reason: str | None = None


def survey() -> list[Target]:
    """Return the processes of the host that have or may have TensorFlow loaded, in order of pid."""
    candidates = (target(pid) for pid in sorted(processes.all_pids()) if pid != os.getpid())
    return [candidate for candidate in candidates if candidate is not None and candidate.has_tensorflow is not False]


def program(command: Sequence[str]) -> str:
    """Return the name of the Python script or module that ``command`` runs, else the program's."""
    python = python_command.parse(command)
    return os.path.basename(
        command[0] if python is None or python.script_or_module is None else python.script_or_module
    )


def matching_targets(pattern: str, known_processes: Container[Process]) -> list[Target]:
    """Return this user's attachable processes with TensorFlow whose program matches ``pattern``.

    ``known_processes`` are left out. Of processes that do not match, only the command line is read.
    """
    matches = []
    for pid in sorted(processes.all_pids()):
        try:
            command = command_of(pid)
        except OSError:
            continue
        if not command or pid == os.getpid() or not fnmatchcase(program(command), pattern):
            continue
        candidate = None if processes.process(pid) in known_processes else target(pid)
        if (
            candidate is not None
            and candidate.user_id == os.geteuid()
            and candidate.state == ATTACHABLE
            and candidate.has_tensorflow
        ):
            matches.append(candidate)
    return matches


def target(pid: int) -> Target | None:
    """Return process ``pid`` as a target, None if it does not exist or is a kernel thread."""
    process = processes.process(pid)
    try:
        command = command_of(pid)
        status = processes.status_of(pid)
    except OSError:
        return None
    if process is None or not command:
        return None
    user_id = int(status["Uid"].split()[0])
    try:
        has_tensorflow: bool | None = maps.has_tensorflow(pid)
    except OSError:
        has_tensorflow = None if _may_have_tensorflow(status) else False
    state, refusal = PROFILED, None
    if not processes.channels_of(pid):
        refusal = _refusal(pid, status) if has_tensorflow is not False else None
        state = ATTACHABLE if refusal is None else REFUSED
    reason = (refusal.slug, str(refusal.args[0])) if refusal is not None else (None, None)
    user, age_s = identity.user_name(user_id), processes.age_s(process)
    return Target(process, user_id, user, age_s, command, state, has_tensorflow, *reason)


def refusal_of(pid: int) -> RefusedError | None:
    """Return the reason why attaching to process ``pid`` is refused, None if there is none.

    The function waits TRACER_S for the end of tracing, since another tfprof that attaches to the
    process traces it for a moment.
    """
    deadline = time.monotonic() + TRACER_S
    while True:
        try:
            refusal = _refusal(pid, processes.status_of(pid))
        except OSError:
            return RefusedError(f"there is no process {pid}", "no-such-process")
        if refusal is None or refusal.slug != "held-by-tracer" or time.monotonic() > deadline:
            return refusal
        time.sleep(POLL_S)


def command_of(pid: int) -> list[str]:
    """Return the command line of process ``pid``, empty for a kernel thread.

    OSError if the process is gone.
    """
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        data = file.read(_COMMAND_MAX)
    return [os.fsdecode(word) for word in data.rstrip(b"\0").split(b"\0")] if data else []


def _may_have_tensorflow(status: dict[str, str]) -> bool:
    resident_bytes = int(status.get("VmRSS", "0 kB").split()[0]) << 10
    return status["Name"].startswith(("python", "pypy")) and resident_bytes >= LARGE_BYTES


def _refusal(pid: int, status: dict[str, str]) -> RefusedError | None:
    for check in _CHECKS:
        refusal = check(pid, status)
        if refusal is not None:
            return refusal
    return None


def _check_owner(pid: int, status: dict[str, str]) -> RefusedError | None:
    owner = int(status["Uid"].split()[0])
    if os.geteuid() in (0, owner):
        return None
    owner_name = identity.user_name(owner)
    allowed_users = f"{owner_name} or root" if owner else owner_name
    return RefusedError(
        f"it is {owner_name}'s: {allowed_users} can attach to it (sudo tfprof attach {pid})", "other-user"
    )


def _check_setuid(_pid: int, status: dict[str, str]) -> RefusedError | None:
    for ids in (status["Uid"].split(), status["Gid"].split()):
        if len(set(ids[:3])) > 1:
            return RefusedError(SETUID, "set-uid")
    return None


def _check_dumpable(pid: int, _status: dict[str, str]) -> RefusedError | None:
    if os.geteuid() == 0:
        return None
    try:
        os.readlink(f"/proc/{pid}/exe")
    except PermissionError:
        text = "it forbids other processes to read it (PR_SET_DUMPABLE, or a file capability); root can attach to it"
        return RefusedError(text, "not-dumpable")
    except OSError:
        return None
    return None


def _check_stopped(pid: int, status: dict[str, str]) -> RefusedError | None:
    return stopped_error(pid) if status["State"].startswith("T") else None


def _check_tracer(_pid: int, status: dict[str, str]) -> RefusedError | None:
    tracer = int(status.get("TracerPid", "0"))
    if not tracer:
        return None
    return RefusedError(f"process {tracer}, a debugger or tracer, traces it", "held-by-tracer")


def _check_ptrace_scope(pid: int, _status: dict[str, str]) -> RefusedError | None:
    try:
        with open(_PTRACE_SCOPE_FILE, encoding="ascii") as file:
            scope = int(file.read())
    except (OSError, ValueError):
        return None
    if scope == 3:
        return RefusedError("this host forbids ptrace until the next boot (ptrace_scope 3)", "ptrace-scope")
    if scope == 0 or _has_capability():
        return None
    text = f"on this host only root can attach to running processes (ptrace_scope {scope}): sudo tfprof attach {pid}"
    return RefusedError(text, "ptrace-scope")


def _has_capability() -> bool:
    return bool(int(processes.status_of(os.getpid()).get("CapEff", "0"), 16) >> _SYS_PTRACE & 1)


def _check_architecture(pid: int, _status: dict[str, str]) -> RefusedError | None:
    try:
        with open(f"/proc/{pid}/exe", "rb") as file:
            head = file.read(20)
    except OSError:
        return None
    if os.uname().machine == ARCHITECTURE and head[18:] == _MACHINE:
        return None
    return RefusedError(f"attaching is for {ARCHITECTURE}: start the job with tfprof-run", "other-architecture")


def _check_python(pid: int, status: dict[str, str]) -> RefusedError | None:
    if "VmSize" not in status and status["State"][0] not in "XZ":  # it has no memory, and has not ended
        return RefusedError("it is a thread of the kernel", "not-python")
    try:
        version = maps.python_version(pid)
        is_python = maps.has_python(pid)
    except OSError:
        return None
    if not is_python:
        return RefusedError("it runs no CPython whose functions can be found", "not-python")
    if version is not None and version < PYTHON_MIN:
        return RefusedError(f"it runs Python 3.{version}, and the shim needs 3.{PYTHON_MIN}", "old-python")
    return None


#: Checks that can refuse an attach, the simplest reason first.
_CHECKS: Final[tuple[Callable[[int, dict[str, str]], RefusedError | None], ...]] = (
    _check_owner,
    _check_setuid,
    _check_dumpable,
    _check_tracer,
    _check_stopped,
    _check_ptrace_scope,
    _check_architecture,
    _check_python,
)
