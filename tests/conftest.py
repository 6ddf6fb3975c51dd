"""Fixtures for all tests: interpreters, private daemons and stores, a check for leftovers."""

import contextlib
import functools
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))  # `from fakes import …`

from fakes import armed_job
from fakes.forks import SERVER_PIDS, ForkServer
from fakes.profiled import ProfiledScripts
from fakes.thorough import is_thorough
from matrix.versions import VENVS
from tfprof.formats.settings import SETTINGS

#: The variable that turns TensorFlow's oneDNN kernels on or off. A process reads it once.
ONEDNN_VARIABLE = "TF_ENABLE_ONEDNN_OPTS"

settings.register_profile("untimed", deadline=None)  # a loaded machine makes examples slow
settings.load_profile("untimed")


def pytest_configure(config: pytest.Config) -> None:
    """Hide the terminal and the settings of the user who runs the tests; handle ignored signals.

    The settings of the host in /etc/tfprof cannot be hidden from the commands that tests start.
    """
    settings_folder = tempfile.TemporaryDirectory()
    config.add_cleanup(settings_folder.cleanup)
    os.environ["XDG_CONFIG_HOME"] = settings_folder.name
    for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", *(row.variable for row in SETTINGS.values())):
        os.environ.pop(name, None)
        os.unsetenv(name)  # readline, which pytest loads, sets COLUMNS and LINES in C; os.environ lacks them
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)  # child processes reset a handler to the default


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that `make test` leaves out."""
    for item in items:
        if is_thorough(item.nodeid):
            item.add_marker("thorough")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Return the scheduler that distributes test files among workers."""
    from fakes.scheduling import Scheduling

    return Scheduling(config, log)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a path short enough for sockets in it."""
    with tempfile.TemporaryDirectory(prefix="t") as name:
        yield Path(name)


def _interpreter(name: str) -> Path:
    python = VENVS / name / "bin" / "python"
    if not python.exists():
        message = f"no environment {python.parent.parent}: run `make venvs`"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return python


@pytest.fixture(scope="session")
def tf1_python() -> Path:
    """Interpreter (Python 3.7) with TensorFlow 1.15.5."""
    return _interpreter("tf1")


@pytest.fixture(scope="session")
def marks_python() -> Path:
    """Interpreter with nvtx and the OpenTelemetry SDK, for the Python of ``tf2_python``."""
    return _interpreter("marks")


@pytest.fixture(scope="session")
def tf2_python() -> Path:
    """Interpreter with TensorFlow 2.21, Keras 3 and tf_keras."""
    return _interpreter("tf2")


@pytest.fixture(scope="session")
def tf24_python() -> Path:
    """Interpreter with TensorFlow 2.4, one of the versions that only CI installs."""
    return _interpreter("tf24")


@pytest.fixture(scope="session")
def tf313_python() -> Path:
    """Interpreter (Python 3.13) with TensorFlow 2.21, Keras 3 and tf_keras."""
    return _interpreter("tf313")


@pytest.fixture(scope="session")
def xprof_python() -> Path:
    """Interpreter with XProf."""
    return _interpreter("xprof")


@pytest.fixture(scope="session")
def plain_forks(request: pytest.FixtureRequest) -> Iterator[Callable[[str], ForkServer]]:
    """Yield a function that returns the ForkServer of a version of TensorFlow, without tfprof.

    The server of each version starts once.
    """
    with contextlib.ExitStack() as stack:

        @functools.cache
        def server(version: str) -> ForkServer:
            python = request.getfixturevalue(f"{version}_python")
            return stack.enter_context(ForkServer([python], {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}))

        yield server


@pytest.fixture(scope="module")
def armed_forks(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], ForkServer]]:
    """Yield a function that returns the ForkServer of a version of TensorFlow.

    The servers are armed and have no agent. The server of each version starts once for a test file.
    """
    with contextlib.ExitStack() as stack:

        @functools.cache
        def server(version: str) -> ForkServer:
            folder = tmp_path_factory.mktemp(version)
            (folder / "announce").mkdir()
            python = request.getfixturevalue(f"{version}_python")
            variables: dict[str, str] = armed_job.environment(folder)  # type: ignore[no-untyped-call]
            return stack.enter_context(ForkServer([python], variables))

        yield server


@pytest.fixture(scope="module")
def profiled_jobs(request: pytest.FixtureRequest, shared_store: Path) -> Iterator[Callable[[str], ProfiledScripts]]:
    """Yield a function that returns the ProfiledScripts of a version of TensorFlow.

    The server of each version starts once for a test file and a setting of oneDNN.
    """
    with contextlib.ExitStack() as stack:

        @functools.cache
        def server(version: str, _onednn: str | None) -> ForkServer:
            python = request.getfixturevalue(f"{version}_python")
            command = [Path(sys.executable).with_name("tfprof-run"), "--quiet", python]
            return stack.enter_context(ForkServer(command, {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}))

        yield lambda version: ProfiledScripts(shared_store, server(version, os.environ.get(ONEDNN_VARIABLE)))


@pytest.fixture(scope="session")
def digits_python() -> Path:
    """Interpreter with the packages of `tf2_python` and those that the examples need."""
    return _interpreter("digits")


@pytest.fixture(scope="module", params=[False, True], ids=["eigen", "onednn"])
def onednn(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Run a module without and with oneDNN's kernels.

    TensorFlow's default depends on the processor.
    """
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(ONEDNN_VARIABLE, str(int(request.param)))
        yield request.param


@pytest.fixture
def private_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield the path of a store that only this test uses; stop its daemons at the end.

    The test also has its own runtime and state folders.
    """
    yield from _isolated_store(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the path of a store like `private_store`, one for all tests of a module."""
    with pytest.MonkeyPatch.context() as environment:
        yield from _isolated_store(tmp_path_factory.mktemp("shared"), environment)


def _isolated_store(folder: Path, environment: pytest.MonkeyPatch) -> Iterator[Path]:
    runtime, state = folder / "run", folder / "state"
    runtime.mkdir(mode=0o700)
    state.mkdir(mode=0o700)
    environment.setenv("XDG_RUNTIME_DIR", str(runtime))
    environment.setenv("XDG_STATE_HOME", str(state))
    for name in ("TFPROF_STORE", "TFPROF_RUN", "TFPROF_TRACE", "TFPROF_TRACE_LEVEL"):
        environment.delenv(name, raising=False)
    store = state / "tfprof"
    yield store
    subprocess.run([sys.executable, "-m", "tfprof.cli.main", "stop"], capture_output=True, timeout=150, check=False)


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """Fail a test that leaves a child process or an open channel."""
    before = _channels()
    yield
    children = psutil.Process().children()
    leftovers = [child for child in children if child.pid not in SERVER_PIDS and child.status() != psutil.STATUS_ZOMBIE]
    for child in leftovers:
        child.kill()  # otherwise every later test fails, too
    assert not leftovers, f"processes left behind: {leftovers}"
    assert not _channels() - before, "a channel was left open"


def _channels() -> set[str]:
    return {fd for fd in os.listdir("/proc/self/fd") if _is_channel(fd)}


def _is_channel(fd: str) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{fd}").startswith("/memfd:tfprof")
    except OSError:
        return False


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runtime folder of servers of the page. Its path is short, since it holds a socket."""
    path = tmp_path_factory.mktemp("r")
    path.chmod(0o700)
    return path
