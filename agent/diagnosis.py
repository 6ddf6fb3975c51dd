"""Checks what tfprof can profile of a process, a command or this host; changes nothing."""

import json
import os
import re
import resource
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from ..commands.environment import initial_environment
from ..formats import addresses, layout, private_files, runtime_dir, settings, tested_versions
from ..formats.errors import FolderError, TfprofError
from . import python_command
from .attach import maps, targets
from .attach.targets import Target

#: Verdicts: the part can be profiled, can be profiled with the limit in the text, or cannot be
#: profiled.
OK, NOTE, NO = "ok", "note", "no"
#: Time limit of the start of a command's interpreter (seconds).
PROBE_S: Final = 30.0
_PROBE: Final = (
    "import json, sys; print(json.dumps([sys.implementation.name, sys.version_info[:3], sys.executable, sys.path]))"
)
_PACKAGE: Final = re.compile(r"(?:tensorflow(?:_cpu|_gpu|_intel|_macos|_rocm)?|tf_nightly\w*)-([0-9][^-]*)\.dist-info")
#: By version of TensorFlow, newest first: the steps that are profiled from this version on.
_PROFILED_STEPS: Final = (
    ((2, 0), "session runs, Keras, functions and eager training steps"),
    ((1, 15), "session runs and Keras; functions are timed only"),
)
_CGROUP_MEMORY: Final = "sys/fs/cgroup/memory.max"


#: Verdict and text of a check; None if there is nothing to report.
Outcome = tuple[str, str] | None
Check = Callable[[], Outcome]


class Finding(NamedTuple):
    """The result of one check: the part that was checked, a verdict, and one sentence."""

    part: str
    verdict: str
    text: str


def check_process(pid: int) -> Iterator[Finding]:
    """Yield the findings about process ``pid``."""
    target = targets.target(pid)
    if target is None:
        yield Finding("process", NO, f"there is no process {pid}")
        return
    yield Finding("process", OK, f"{targets.program(target.command)} of {target.user}")
    yield from _run_check("attach", lambda: _attach_outcome(target))
    yield from _run_check("python", lambda: _python_outcome(pid))
    yield from _run_check("tensorflow", lambda: _tensorflow_outcome(pid, target.has_tensorflow))
    yield from _run_check("namespace", lambda: _namespace_outcome(pid))
    yield from _run_check("memory", lambda: _memory_outcome(f"/proc/{pid}/root"))


def check_command(command: Sequence[str]) -> Iterator[Finding]:
    """Yield the findings about ``command``.

    If the command runs Python, its interpreter is started once, without the command's script.
    """
    command = python_command.with_python(list(command))
    program = shutil.which(command[0])
    if program is None:
        yield Finding("program", NO, f"{command[0]} is not found, or cannot be executed")
        return
    yield Finding("program", *_program_outcome(program))
    python = python_command.interpreter_of(program)
    if python is None:
        yield Finding(
            "python", NOTE, "unknown: each Python that the program starts is profiled if it inherits the environment"
        )
    else:
        parsed_command = python_command.parse(command if python == [program] else python)
        if parsed_command is not None and parsed_command.isolating_option is not None:
            option = parsed_command.isolating_option
            text = f"with {option} Python ignores tfprof-run: start the command, then tfprof attach PID"
            yield Finding("start", NO, text)
        yield from _interpreter_findings(python)
    yield from _run_check("memory", lambda: _memory_outcome("/"))


def check_host(store: str) -> Iterator[Finding]:
    """Yield the findings about the folders that daemons and jobs share, and about free space."""
    yield from _run_check("runtime", lambda: _runtime_outcome(store))
    yield from _run_check("store", lambda: _space_outcome(store))


def _run_check(part: str, check: Check) -> Iterator[Finding]:
    try:
        outcome = check()
    except TfprofError as error:
        outcome = (NO, str(error))
    except OSError as error:
        outcome = (NOTE, f"cannot be read: {error.strerror}")
    if outcome is not None:
        yield Finding(part, *outcome)


def _program_outcome(path: str) -> tuple[str, str]:
    if os.stat(path).st_mode & (stat.S_ISUID | stat.S_ISGID):
        return NO, f"{path} runs with another user's rights (setuid): tfprof does not touch such programs"
    return OK, path


def _interpreter_findings(python: Sequence[str]) -> Iterator[Finding]:
    try:
        result = subprocess.run(
            [*python, "-c", _PROBE],
            env=initial_environment(),
            capture_output=True,
            timeout=PROBE_S,
            check=True,
            text=True,
        )
        name, version, executable, path = json.loads(result.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        yield Finding("python", NO, f"{python[0]} does not run")
        return
    yield Finding("python", *_python_verdict(name, tuple(version), executable))
    package = _tensorflow_in(path)
    if package is None:
        yield Finding("tensorflow", NO, "it is not installed for this interpreter")
    else:
        yield Finding("tensorflow", *_tensorflow_verdict(*package))


def _attach_outcome(target: Target) -> Outcome:
    if target.state == targets.PROFILED:
        return OK, "it is already profiled: tfprof trace traces more of its steps"
    refusal = targets.refusal_of(target.process.pid)
    if refusal is not None:
        return NO, str(refusal.args[0])
    if target.has_tensorflow is False:
        return NOTE, f"after it has loaded TensorFlow: tfprof attach {target.process.pid}"
    return OK, f"tfprof attach {target.process.pid}"


def _python_outcome(pid: int) -> Outcome:
    minor_version = maps.python_version(pid)
    if minor_version is None:
        return None
    return _python_verdict("cpython", (3, minor_version), os.readlink(f"/proc/{pid}/exe"))


def _python_verdict(name: str, version: Sequence[int], executable: str) -> tuple[str, str]:
    text, tested = ".".join(map(str, version)), tested_versions.PYTHON
    remark = f"CPython {text} at {executable}: {tested_versions.remark(text, tested)}"
    if name != "cpython":
        return NO, f"{executable} is {name} {text}: the shim needs CPython"
    if not tested_versions.is_outside(text, tested):
        return OK, remark
    if tested_versions.release(text) < tested_versions.release(tested[0]):
        return NO, f"{remark}; the shim needs {tested[0]} or later"
    return NOTE, f"{remark}; {tested_versions.OTHER_PYTHON}"


def _tensorflow_outcome(pid: int, is_loaded: bool | None) -> Outcome:
    if not is_loaded:
        return NOTE, "it is not loaded yet" if is_loaded is False else "the process's files cannot be read"
    folders = dict.fromkeys(
        file.path[: match.start()] for file in maps.mappings(pid) for match in re.finditer("/tensorflow", file.path)
    )
    root = f"/proc/{pid}/root"
    package = _tensorflow_in(root + folder for folder in folders)
    return (
        (NOTE, "its version is unknown, and may be untested")
        if package is None
        else _tensorflow_verdict(package[0], package[1].removeprefix(root))
    )


def _tensorflow_in(folders: Iterable[str]) -> tuple[str, str] | None:
    """Return (version, folder) of the first TensorFlow in ``folders``, None if there is none."""
    for folder in folders:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        versions = [match[1] for name in names if (match := _PACKAGE.fullmatch(name))]
        if versions:
            return versions[0], folder
    return None


def _tensorflow_verdict(version: str, folder: str) -> tuple[str, str]:
    tested = tested_versions.FRAMEWORKS["tensorflow"]
    steps = (text for oldest, text in _PROFILED_STEPS if tested_versions.release(version) >= oldest)
    verdict = NOTE if tested_versions.is_outside(version, tested) else OK
    return verdict, "; ".join([f"{version} in {folder}: {tested_versions.remark(version, tested)}", *islice(steps, 1)])


def _namespace_outcome(pid: int) -> Outcome:
    separate_namespaces = [
        name for name in ("mnt", "pid", "user") if _namespace(pid, name) != _namespace(os.getpid(), name)
    ]
    return (
        (OK, f"its own ({', '.join(separate_namespaces)}): files of the host may not be visible there")
        if separate_namespaces
        else None
    )


def _namespace(pid: int, name: str) -> str:
    return os.readlink(f"/proc/{pid}/ns/{name}")


def _memory_outcome(root: str) -> Outcome:
    size = layout.RING_AT + int(settings.SETTINGS["ring"].read())
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if root == "/" and limit != resource.RLIM_INFINITY and limit < size:
        return NO, f"the limit of file sizes (ulimit -f) is {limit:,} bytes, and a process needs {size:,} for records"
    container_bytes = _cgroup_bytes(root)
    if container_bytes is not None and container_bytes < 4 * size:
        return (
            NOTE,
            f"the container has {container_bytes:,} bytes, and records take {size:,} in each process (--ring)",
        )
    return OK, f"{size:,} bytes for records in each process"


def _cgroup_bytes(root: str) -> int | None:
    # The root of the process may have any file there, such as a pipe.
    text = (private_files.read_file(os.path.join(root, _CGROUP_MEMORY), 64) or b"").strip()
    return int(text) if text.isdigit() else None


def _runtime_outcome(store: str) -> Outcome:
    instance = runtime_dir.instance_dir(store)
    try:
        addresses.local_endpoint(instance)
    except FolderError as error:
        return NO, str(error.args[0])
    folder = _nearest_folder(instance)
    info = os.stat(folder)
    if folder in (instance, runtime_dir.runtime_root()) and (info.st_uid != os.geteuid() or info.st_mode & 0o077):
        return NO, f"{folder} is not a private folder of yours"
    if not os.access(folder, os.W_OK | os.X_OK):
        return NO, f"{folder} cannot be written: set XDG_RUNTIME_DIR"
    return OK, instance if folder == instance else f"{instance}, which is created on first use"


def _space_outcome(store: str) -> Outcome:
    elsewhere = runtime_dir.endpoint_elsewhere(store)
    if elsewhere is not None:
        return OK, f"the collector at {elsewhere.place} has it"
    folder = _nearest_folder(store)
    if not os.access(folder, os.W_OK | os.X_OK):
        return NO, f"{folder} cannot be written: give another folder with --store"
    filesystem = os.statvfs(folder)
    free = filesystem.f_bavail * filesystem.f_frsize
    verdict = OK if free >= 1 << 30 else NOTE
    return verdict, f"{store}, {free / 1e9:,.1f} GB free"


def _nearest_folder(path: str) -> str:
    """Return ``path`` or the nearest folder above it that exists."""
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def verdict_of(findings: Iterable[Finding]) -> str:
    """Return NO if any part cannot be profiled, NOTE if any has a limit, else OK."""
    verdicts = {finding.verdict for finding in findings}
    return next(verdict for verdict in (NO, NOTE, OK) if verdict in verdicts or verdict == OK)
