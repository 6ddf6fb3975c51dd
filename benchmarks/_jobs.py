"""For benchmarks that start jobs: the environments with TensorFlow, and private folders."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
VENVS = Path(os.environ.get("TFPROF_TEST_VENVS", HERE.parent / ".venvs"))
RUN = [str(Path(sys.executable).parent / "tfprof-run"), "--no-report"]
STOP = [sys.executable, "-m", "tfprof.cli.main", "stop"]


def environment(folder: str) -> dict[str, str]:
    """Return an environment without settings, whose store and daemons are in ``folder``."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TFPROF_")}
    private = {"XDG_RUNTIME_DIR": folder, "XDG_STATE_HOME": folder, "XDG_CONFIG_HOME": f"{folder}/config"}
    return {**kept, **private, "TF_CPP_MIN_LOG_LEVEL": "3"}


def stop(folder: str) -> None:
    """Stop the daemons of `environment`."""
    subprocess.run(STOP, env=environment(folder), capture_output=True, check=False)


@contextmanager
def private_folder() -> Iterator[Path]:
    """Make a folder, and give this process and its children its `environment`."""
    with tempfile.TemporaryDirectory() as folder:
        private = environment(folder)
        os.environ.clear()
        os.environ.update(private)
        yield Path(folder)


def is_installed(venv: str) -> bool:
    """Return whether the environment ``venv`` is installed, and print it otherwise."""
    found = (VENVS / venv / "bin/python").exists()
    if not found:
        print(f"{venv}: not installed")
    return found
