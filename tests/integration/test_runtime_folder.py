"""Odd files in the runtime folder block neither the launcher nor a daemon nor a command."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from fakes.channel_job import OPEN_CHANNEL
from fakes.odd_files import ODD_FILES
from tfprof.formats import runtime_dir

#: A job with a channel and one span.
JOB = f"""{OPEN_CHANNEL}
writer.put_span(1)
time.sleep(1)
"""
#: The longest time of a command in seconds, including the start or stop of daemons. A blocked
#: command never ends.
PATIENCE_S = 20.0


def run(module: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def profiled() -> str:
    """Run the job, then `tfprof status` and `tfprof stop`; return the output of the launcher."""
    ended = run("tfprof.agent.launcher.run", sys.executable, "-c", JOB)
    assert ended.returncode == 0
    for command in ("status", "stop"):
        assert run("tfprof.cli.main", command).returncode == 0
    return ended.stderr


@pytest.fixture
def place(private_places: Path) -> Path:
    return Path(runtime_dir.make_instance(str(private_places)))


def test_odd_announcements_and_launch_files_are_ignored(place: Path) -> None:
    for number, make in enumerate(ODD_FILES.values()):
        make(place / "announce" / f"{100 + number}-{number:016x}")
        make(place / "launches" / f"{number:016x}.json")
        make(place / "launches" / f"{number + 16:016x}.done")
    assert "1 spans" in profiled() or "tfprof op" in profiled()


@pytest.mark.parametrize(
    ("name", "kind"), [("agent.json", "fifo"), ("collector.json", "endless"), ("report.log", "fifo"), ("store", "fifo")]
)
def test_an_odd_file_that_is_not_essential_is_ignored(place: Path, name: str, kind: str) -> None:
    (place / name).unlink(missing_ok=True)
    ODD_FILES[kind](place / name)
    assert "tfprof op" in profiled()


@pytest.mark.parametrize(
    ("name", "kind", "slug"),
    [
        ("agent.pid", "fifo", "runtime-dir"),
        ("collector.pid", "loop", "runtime-dir"),
        ("collector.sock", "folder", "runtime-dir"),
        ("agent.log", "fifo", "daemon"),
        ("collector.log", "folder", "daemon"),
    ],
)
def test_an_odd_file_that_a_daemon_needs_is_reported_in_one_line(place: Path, name: str, kind: str, slug: str) -> None:
    ODD_FILES[kind](place / name)
    began = time.monotonic()
    report = profiled()
    assert time.monotonic() - began < PATIENCE_S
    assert report.startswith("tfprof: no profile: ")
    assert report.endswith(f"[{slug}]\n")
    assert report.count("\n") == 1
