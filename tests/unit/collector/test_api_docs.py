"""The examples in docs/api.md run, and the page lists every method."""

import re
import subprocess
import sys
from pathlib import Path

from fakes import ended_jobs, small_store
from tfprof.collector import OpenStore, Profiler, open_store
from tfprof.collector.job_tables import JobTables
from tfprof.formats.exports import TABLES

PAGE_FOLDER = Path(__file__).parents[3] / "docs"
PAGE = (PAGE_FOLDER / "api.md").read_text()


OPS, STEPS, PROFILER = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def run(example: str, store: Path) -> list[str]:
    """Run an example and return the lines that it prints."""
    environment = {"PATH": "/usr/bin", "TFPROF_STORE": str(store), "PYTHONIOENCODING": "utf-8"}
    process = subprocess.run(
        [sys.executable, "-c", example], env=environment, capture_output=True, text=True, check=False
    )
    assert (process.returncode, process.stderr) == (0, "")
    return process.stdout.splitlines()


def test_the_examples_of_tables_run(tmp_path: Path) -> None:
    small_store.write(tmp_path / "small")
    assert run(OPS.replace('"last"', '"aa10"'), tmp_path / "small") == ["MatMul 0.01 ms a step "]
    ended_jobs.write(tmp_path / "ended")
    assert run(STEPS.replace('"last"', '"7f3a"'), tmp_path / "ended") == ["20000000.0"]


def test_the_example_of_views_runs(tmp_path: Path) -> None:
    store = small_store.write(tmp_path / "store")
    # A job and steps that the store has.
    assert run(PROFILER.replace('"last"', '"aa10"').replace("steps=(100, 200)", "steps=(0, 1)"), store) == [
        "aa10 train.py node7 exited 0 0",
        "bb10 train.py node8 exited 0 0",
        "cc10 idle.py node8 exited 0 0",
        "net 15 µs 128 bytes",
        "loss 10 µs 64 bytes",
        "3 0",
    ]


def test_every_method_is_on_the_page() -> None:
    methods = {name for kind in (OpenStore, Profiler, JobTables) for name in vars(kind) if not name.startswith("_")}
    assert not {name for name in methods if f"`{name}(" not in PAGE and f"`Profiler.{name}`" not in PAGE}


def test_the_columns_of_each_table_are_documented(tmp_path: Path) -> None:
    page = (PAGE_FOLDER / "exports.md").read_text()
    job = open_store(small_store.write(tmp_path / "store")).job("aa10")
    documented = dict(re.findall(r"^\| `(\w+)` \| ([^|]*\|.*) \|$", page, re.MULTILINE))
    texts = {name: documented[name] for name in TABLES}
    texts["nodes"] += texts["ops"]
    texts["spans"] += texts["steps"]
    shared = page.partition("## Tables")[2].partition("| table |")[0]
    for name in TABLES:
        columns = getattr(job, name)().column_names
        assert [column for column in columns if f"`{column}`" not in texts[name] + shared] == [], name
