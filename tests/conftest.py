"""Fixtures that every test may use: interpreters with TensorFlow, a private instance, and a check that nothing is left."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
VENVS = Path(os.environ.get("TFPROF_TEST_VENVS", ROOT / ".venvs"))

sys.path.insert(0, str(Path(__file__).parent))  # `from fakes import …`


settings.register_profile("untimed", deadline=None)  # how long an example takes is the machine's affair
settings.load_profile("untimed")


def pytest_configure() -> None:
    """Make the suite alike wherever it is started: no terminal's settings, no signal that is ignored (as by nohup)."""
    for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
        os.environ.pop(name, None)
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)  # a handler: programs that are started have the default again


def _interpreter(name: str) -> Path:
    python = VENVS / name / "bin" / "python"
    if not python.exists():
        message = f"no TensorFlow environment {python.parent.parent}: run `make venvs`"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return python


@pytest.fixture(scope="session")
def tf1_python() -> Path:
    """Interpreter (Python 3.7) with TensorFlow 1.15.5."""
    return _interpreter("tf1")


@pytest.fixture(scope="session")
def tf2_python() -> Path:
    """Interpreter with TensorFlow 2.21, Keras 3 and tf_keras."""
    return _interpreter("tf2")


@pytest.fixture(scope="module", params=[False, True], ids=["eigen", "onednn"])
def onednn(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Whether jobs run on oneDNN's kernels: both in turn, where TensorFlow alone would go by the processor."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TF_ENABLE_ONEDNN_OPTS", str(int(request.param)))
        yield request.param


@pytest.fixture
def private_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Runtime and state folders of this test alone; daemons that it started are stopped after it. Yields the store."""
    yield from _places(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def shared_places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """As `private_places`, for the tests of a file that ask about the same job."""
    with pytest.MonkeyPatch.context() as environment:
        yield from _places(tmp_path_factory.mktemp("shared"), environment)


def _places(folder: Path, environment: pytest.MonkeyPatch) -> Iterator[Path]:
    runtime, state = folder / "run", folder / "state"
    runtime.mkdir(mode=0o700)
    state.mkdir(mode=0o700)
    environment.setenv("XDG_RUNTIME_DIR", str(runtime))
    environment.setenv("XDG_STATE_HOME", str(state))
    for name in ("TFPROF_STORE", "TFPROF_RUN", "TFPROF_TRACE", "TFPROF_TRACE_LEVEL"):
        environment.delenv(name, raising=False)
    store = state / "tfprof"
    yield store
    subprocess.run([sys.executable, "-m", "tfprof.cli.main", "stop"], capture_output=True, timeout=30, check=False)


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """No test leaves a child process or a channel of this process open."""
    before = _channels()
    yield
    left = [child for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE]
    for child in left:
        child.kill()  # or each test to come would fail
    assert not left, f"processes left behind: {left}"
    assert not _channels() - before, "a channel was left open"


def _channels() -> set[str]:
    return {fd for fd in os.listdir("/proc/self/fd") if _is_channel(fd)}


def _is_channel(fd: str) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{fd}").startswith("/memfd:tfprof")
    except OSError:
        return False
