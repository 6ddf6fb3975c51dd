"""The example in docs/api.md runs, and the page lists every method."""

import re
import subprocess
import sys
from pathlib import Path

from fakes import small_store
from tfprof.collector import OpenStore, Profiler

PAGE = (Path(__file__).parents[3] / "docs" / "api.md").read_text()


def test_the_example_runs(tmp_path: Path) -> None:
    store = small_store.write(tmp_path / "store")
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    # A job and steps that the store has.
    example = example.replace('"last"', '"aa10"').replace("steps=(100, 200)", "steps=(0, 1)")
    environment = {"PATH": "/usr/bin", "TFPROF_STORE": str(store), "PYTHONIOENCODING": "utf-8"}
    process = subprocess.run(
        [sys.executable, "-c", example], env=environment, capture_output=True, text=True, check=False
    )
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout.splitlines() == [
        "aa10 train.py node7 exited 0 0",
        "bb10 train.py node8 exited 0 0",
        "cc10 idle.py node8 exited 0 0",
        "net 20 µs 128 bytes",
        "loss 10 µs 64 bytes",
        "3 0",
    ]


def test_every_method_is_on_the_page() -> None:
    methods = {name for kind in (OpenStore, Profiler) for name in vars(kind) if not name.startswith("_")}
    assert not {name for name in methods if f"`{name}(" not in PAGE and f"`Profiler.{name}`" not in PAGE}
