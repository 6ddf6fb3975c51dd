"""Rules for code in jobs: the versions of Python that parse it, its except clauses, its threads."""

import ast
import subprocess
from pathlib import Path

import pytest
from house.tree import ROOT, imports, sources, tree

INTERPRETERS = sorted(Path("~/.pyenv/versions").expanduser().glob("3.*/bin/python"))
#: Packages whose code runs in jobs.
JOB_PACKAGES = ("formats", "shim")
#: Files in these packages of which a job uses at most constants and classes of exceptions.
FILES_OUTSIDE_JOBS = {"given_up.py", "runtime_dir.py", "private_files.py", "wire.py", "errors.py"}
#: Files that may catch every exception: the guard, the injected file, the forked children,
#: and the server of the page.
GUARDS = {"fence.py", "guard.py", "sitecustomize.py", "daemons.py", "worker_process.py"}


def test_every_file_of_the_shim_parses_as_python_3_7() -> None:
    for path in sources(*JOB_PACKAGES):
        ast.parse(path.read_text(), feature_version=(3, 7))


@pytest.mark.parametrize("python", INTERPRETERS, ids=lambda path: path.parent.parent.name)
def test_every_interpreter_present_compiles_the_shim(python: Path) -> None:
    minor_version = tuple(int(part) for part in python.parent.parent.name[2:].split(".")[:1])
    files = [str(path) for path in sources(*JOB_PACKAGES) if minor_version >= (7,) or path.name == "sitecustomize.py"]
    code = "import sys; [compile(open(name, 'rb').read(), name, 'exec') for name in sys.argv[1:]]"
    subprocess.run([str(python), "-c", code, *files], check=True)


#: Maximum lines of the shim with its C part. A change that raises it says what for: marks 150,
#: conversions 15, loops that an exception has left 16.
LINES_MAX = 7460


def test_the_shim_is_small() -> None:
    files = [*sources("shim"), *(ROOT / "shim").rglob("*.c")]
    assert sum(len(path.read_text().splitlines()) for path in files) <= LINES_MAX


def test_the_injected_file_has_at_most_60_lines() -> None:
    assert len((ROOT / "shim/inject/sitecustomize.py").read_text().splitlines()) <= 60


def test_only_the_guards_catch_everything() -> None:
    broad_handlers = []
    for path in sources():
        if path.name in GUARDS:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ExceptHandler):
                names = {getattr(node.type, "id", "")} if node.type else {"BaseException"}
                if names & {"Exception", "BaseException"} and not _passes_on(node):
                    broad_handlers.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not broad_handlers


#: Exceptions that only tfprof raises.
OWN_EXCEPTIONS = {"ChannelError", "ExportError", "InvalidValueError", "PolicyError"}


def test_every_handler_in_a_job_lets_the_exceptions_of_the_job_pass() -> None:
    violations = []
    for path in sources(*JOB_PACKAGES):
        if path.name in FILES_OUTSIDE_JOBS | {"sitecustomize.py"}:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ExceptHandler):
                types = getattr(node.type, "elts", [node.type])
                names = {getattr(type_, "attr", getattr(type_, "id", "")) for type_ in types}
                if not names <= OWN_EXCEPTIONS and not _calls_guard(node):
                    violations.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not violations


def _calls_guard(handler: ast.ExceptHandler) -> bool:
    """Return whether the handler calls the guard, or ends with a bare ``raise``."""
    last = handler.body[-1]
    if isinstance(last, ast.Raise) and last.exc is None:
        return True
    callees = (node.func for node in ast.walk(handler) if isinstance(node, ast.Call))
    functions = (callee.value if isinstance(callee, ast.Subscript) else callee for callee in callees)
    # `handlers` in shim/process_events.py is a list of the guard's `contain_in_callback`, or empty.
    guard_functions = {"contain", "raised_by_job", "contain_in_callback", "handlers"}
    return any(getattr(function, "id", getattr(function, "attr", "")) in guard_functions for function in functions)


def _passes_on(handler: ast.ExceptHandler) -> bool:
    """Return whether the handler raises, or calls a function that counts or reports."""
    nodes = list(ast.walk(handler))
    calls = {getattr(node.func, "id", getattr(node.func, "attr", "")) for node in nodes if isinstance(node, ast.Call)}
    return any(isinstance(node, ast.Raise) for node in nodes) or bool(
        calls & {"contain", "contain_in_callback", "count_failure", "report_failure", "_report_failure", "on_error"}
    )


#: Modules whose functions a job's tests often replace -> the files of the shim that import them.
MOCKED_MODULES = {
    "os": {"own_os.py", "sitecustomize.py"},
    "time": {"clock.py"},
    "tempfile": set(),
    "io": {"recording.py"},
}


@pytest.mark.parametrize("module", MOCKED_MODULES)
def test_the_shim_calls_no_function_that_a_mock_of_the_job_may_replace(module: str) -> None:
    assert {path.name for path in sources("shim") if module in imports(path)} <= MOCKED_MODULES[module]


def test_functions_of_further_modules_are_bound_at_import() -> None:
    nodes = (node for path in sources("shim") for node in ast.walk(tree(path)) if isinstance(node, ast.Import))
    assert not {alias.name for node in nodes for alias in node.names} & {"_thread", "fcntl", "weakref", "zlib"}


def test_the_shim_uses_no_builtin_function_that_a_mock_of_the_job_may_replace() -> None:
    paths = [path for path in sources("shim") if path.name != "clock.py"]  # it binds `id` at import
    names = [node for path in paths for node in ast.walk(tree(path)) if isinstance(node, ast.Name)]
    assert not [node.lineno for node in names if node.id in ("id", "open", "print")]


def test_the_shim_starts_threads_only_for_profiler_sessions() -> None:
    files = {
        path.name for path in sources(*JOB_PACKAGES) if path.name not in FILES_OUTSIDE_JOBS and _starts_threads(path)
    }
    assert files <= {"recording.py"}


def _starts_threads(path: Path) -> bool:
    return any(word in path.read_text() for word in ("start_new_thread", "threading.Thread"))
