"""Odd files in the runtime folder block neither the launcher nor a daemon nor a command.

TFPROF_ODD_FILES=all tries each command with each kind of file at each place. Otherwise the cases
are pairwise combinations of place, kind and command.

Tests formats/runtime_dir.py.
"""

import itertools
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
from fakes.channel_job import OPEN_CHANNEL
from fakes.odd_files import ODD_FILES
from fakes.polling import until
from tfprof.formats import runtime_dir

#: A job with a channel and one span.
JOB = f"""{OPEN_CHANNEL}
writer.put_span(1)
time.sleep(1)
"""
#: A command that takes longer than this number of seconds is blocked. The time includes the start
#: or stop of daemons.
TIMEOUT_S = 20.0
#: Places that are tried although a normal run creates no file there. The last place is the instance
#: folder itself.
MORE_PLACES = ("report.log", "given-up/00000000000000ab.json", "announce/.123-00000000000000ab", ".")
TFPROF, RUN = "tfprof.cli.main", "tfprof.agent.launcher.run"
COMMANDS = (
    (RUN, sys.executable, "-c", "pass"),
    (TFPROF, "status"),
    (TFPROF, "jobs"),
    (TFPROF, "top", "--once"),
    (TFPROF, "trace", "last", "--steps", "1"),
    (TFPROF, "attach", "999999999"),
    (TFPROF, "stop"),
)
#: Time limit of a command in an empty store, even if the command starts daemons (seconds). If the
#: host is slow, the limit is twice the command's time without an odd file in the way.
COMMAND_MAX_S = 2.0
THREADS = 4
TRIES_ALL = os.environ.get("TFPROF_ODD_FILES") == "all"


def run(module: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


def run_job() -> str:
    """Run the job, then `tfprof status` and `tfprof stop`; return the output of the launcher."""
    completed = run("tfprof.agent.launcher.run", sys.executable, "-c", JOB)
    assert completed.returncode == 0
    assert run("tfprof.cli.main", "status").returncode in {0, 1}  # 1: a daemon could not start
    assert run("tfprof.cli.main", "stop").returncode == 0
    return completed.stderr


@pytest.fixture
def instance_dir(private_store: Path) -> Path:
    return Path(runtime_dir.make_instance(str(private_store)))


def test_odd_announcements_and_launch_files_are_ignored(instance_dir: Path) -> None:
    for number, make in enumerate(ODD_FILES.values()):
        make(instance_dir / "announce" / f"{100 + number}-{number:016x}")
        make(instance_dir / "launches" / f"{number:016x}.json")
        make(instance_dir / "launches" / f"{number + 16:016x}.done")
    assert "more with  tfprof steps" in run_job()


@pytest.mark.parametrize(
    ("name", "kind"), [("agent.json", "fifo"), ("collector.json", "endless"), ("report.log", "fifo"), ("store", "fifo")]
)
def test_an_odd_file_that_is_not_essential_is_ignored(instance_dir: Path, name: str, kind: str) -> None:
    (instance_dir / name).unlink(missing_ok=True)
    ODD_FILES[kind](instance_dir / name)
    assert "more with  tfprof steps" in run_job()


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
def test_an_odd_file_that_a_daemon_needs_is_reported_in_one_line(
    instance_dir: Path, name: str, kind: str, slug: str
) -> None:
    ODD_FILES[kind](instance_dir / name)
    start_s = time.monotonic()
    report = run_job()
    assert time.monotonic() - start_s < TIMEOUT_S
    assert report.startswith("tfprof: no profile: ")
    assert report.endswith(f"[{slug}]\n")
    assert report.count("\n") == 1


class Case(NamedTuple):
    """A kind of file at a place in the instance folder, and a command."""

    place: str
    kind: str
    command: tuple[str, ...]


class Outcome(NamedTuple):
    """The time of a command (seconds), its exit status and its standard error."""

    seconds: float
    status: int
    errors: str

    @property
    def is_failure(self) -> bool:
        """Whether the command was blocked or failed unexpectedly."""
        return self.status < 0 or "Traceback" in self.errors


def places(folder: Path) -> Iterator[str]:
    """Yield the places of all files and folders below ``folder``; fixed numbers replace ids.

    Files that are about to be renamed have unforeseeable names, and are left out.
    """
    for path in folder.rglob("*"):
        name = re.sub(r"[0-9a-f]{16}", "00000000000000ab", str(path.relative_to(folder)))
        if not name.endswith(".tmp"):
            yield re.sub(r"[0-9]{3,9}-", "123-", name)


def places_of_a_run(store: Path) -> set[str]:
    """Run the job; return the places of all files of its instance folder, and MORE_PLACES."""
    folder, result, has_ended = Path(runtime_dir.make_instance(str(store))), set(MORE_PLACES), threading.Event()

    def watch() -> None:
        while not has_ended.wait(0.002):
            result.update(places(folder))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        run_job()
    finally:
        has_ended.set()
        watcher.join()
    return result


def cases(tested_places: set[str]) -> list[Case]:
    """Return all cases, or half of a Latin square: each place with half of the kinds of files."""
    if TRIES_ALL:
        return [Case(*parts) for parts in itertools.product(sorted(tested_places), ODD_FILES, COMMANDS)]
    return [
        Case(place, kind, COMMANDS[(row + column) % len(COMMANDS)])
        for row, place in enumerate(sorted(tested_places))
        for column, kind in enumerate(ODD_FILES)
        if (row + column) % 2
    ]


def make_odd_file(base: Path, case: Case) -> None:
    """Make the file of ``case`` in a new runtime folder, for a new store, below ``base``."""
    (base / "run").mkdir(mode=0o700, parents=True)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_RUNTIME_DIR", str(base / "run"))
        path = Path(runtime_dir.make_instance(str(base / "store"))) / case.place
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    ODD_FILES[case.kind](path)


def try_command(base: Path, case: Case) -> Outcome:
    """Run the command of ``case`` with the runtime folder and the store below ``base``."""
    environ = {**os.environ, "XDG_RUNTIME_DIR": str(base / "run"), "TFPROF_STORE": str(base / "store")}
    environ |= {"TFPROF_AGENT_IDLE": "1", "TFPROF_COLLECTOR_IDLE": "1"}
    module, *arguments = case.command
    start_s = time.monotonic()
    try:
        command = [sys.executable, "-m", module, *arguments]
        completed = subprocess.run(
            command, env=environ, stdin=-3, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return Outcome(TIMEOUT_S, -1, "")
    return Outcome(time.monotonic() - start_s, completed.returncode, completed.stderr)


def is_fast(base: Path, case: Case, limit_s: float) -> bool:
    """Return whether the command of ``case`` is within the limit in one of three tries."""
    for folder in (base / f"{attempt}" for attempt in range(3)):
        make_odd_file(folder, case)
        if try_command(folder, case).seconds <= limit_s:
            return True
    return False


def daemons_below(folder: Path) -> list[int]:
    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if any(str(folder) in word for word in process.info["cmdline"] or ()) and process.pid != os.getpid()
    ]


@pytest.mark.timeout(7200 if TRIES_ALL else 600)
def test_no_odd_file_anywhere_blocks_a_command_or_makes_it_fail_with_a_traceback(
    private_store: Path, tmp_path: Path
) -> None:
    tested_places = places_of_a_run(private_store)
    assert {"agent.pid", "collector.sock", "announce", "launches/00000000000000ab.json"} <= tested_places
    odd_cases = cases(tested_places)
    plain_cases = [Case("unused", kind, command) for kind in ("deep", "folder") for command in COMMANDS]
    all_cases = [*plain_cases, *odd_cases]
    for at, case in enumerate(all_cases):
        make_odd_file(tmp_path / f"{at}", case)
    with ThreadPoolExecutor(THREADS) as pool:
        results = list(pool.map(lambda at: try_command(tmp_path / f"{at}", all_cases[at]), range(len(all_cases))))
    assert [
        case_and_outcome for case_and_outcome in zip(all_cases, results, strict=True) if case_and_outcome[1].is_failure
    ] == []
    limits = {
        command: max(
            [COMMAND_MAX_S]
            + [
                2 * outcome.seconds
                for case, outcome in zip(plain_cases, results, strict=False)
                if case.command == command
            ]
        )
        for command in COMMANDS
    }
    slow = [case for case, outcome in zip(all_cases, results, strict=True) if outcome.seconds > limits[case.command]]
    # On a loaded machine a command is sometimes slow even without an odd file.
    assert [case for at, case in enumerate(slow) if not is_fast(tmp_path / f"r{at}", case, limits[case.command])] == []
    print(
        f"{len(tested_places)} places, {len(odd_cases)} cases,"
        f" {max(outcome.seconds for outcome in results):.1f} s at most"
    )
    until(lambda: not daemons_below(tmp_path), "the end of the daemons")
