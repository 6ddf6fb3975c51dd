"""Odd files in a store neither block a command, nor take much memory, nor hide other jobs.

TFPROF_ODD_FILES=all tries every command with every kind of file at every place. Otherwise
each file is tried with `tfprof jobs`, `tfprof top` and two other commands.

Tests collector/store/store_files.py.
"""

import json
import os
import resource
import shutil
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path

import pytest
from fakes import ended_jobs, small_store
from fakes.command import Run
from fakes.made_store import HOST, SECOND, START_NS, trace_tables, write_host, write_job
from fakes.odd_files import ODD_FILES
from fakes.refusals import refusal_slug
from fakes.run_metadata import run_metadata

TRIES_ALL = os.environ.get("TFPROF_ODD_FILES") == "all"
#: A job with segments and a job with a log, whose files become odd, and a job whose files do not.
ENDED, RUNNING, OTHER = 0xE0DE000000000001, 0xB0DE000000000002, 0xCA5E000000000003
#: Memory that the commands may take in addition to what this process has (bytes of addresses).
MEMORY_MAX = 1 << 30
#: Commands; JOB is a job with an odd file. The last ones remove jobs.
COMMANDS = (
    "jobs --json",
    "top --once --all --json",
    "op JOB",
    "scope JOB",
    "graph JOB",
    "code JOB",
    "advise JOB",
    "show JOB",
    "steps JOB",
    "spans JOB",
    "host JOB",
    "host JOB --json",
    "alerts",
    "alerts JOB",
    "tag JOB",
    "tag JOB new",
    "profile-proto JOB -o out",
    "follow ca5e e0de --all",
    "trace nosuch --steps 1",
    "status",
    "rm JOB --yes",
    "rm --all --yes",
)


def _huge(path: Path) -> None:
    """Append a hole of 20 GiB to the file."""
    os.truncate(path, 20 << 30)


def _moved(path: Path) -> None:
    """Move the file or folder, and put a link in its place."""
    target = path.with_name(f"{path.name}-target")
    path.replace(target)
    path.symlink_to(target)


def _foreign(path: Path) -> None:
    """Give the file or folder to another user."""
    os.chown(path, 12345, 12345)


def _foreign_link(path: Path) -> None:
    """Replace the file by a hard link to a file of another user with the same content."""
    target = path.with_name("target")
    shutil.copy(path, target)
    os.chown(target, 12345, 12345)
    path.unlink()
    os.link(target, path)


def _null(path: Path) -> None:
    os.mknod(path, 0o20666, os.makedev(1, 3))


IS_ROOT = os.geteuid() == 0
#: Kinds of odd files: new ones in the place of a file or folder, and changes of a file.
NEW_FILES: dict[str, Callable[[Path], object]] = {**ODD_FILES, **({"null": _null} if IS_ROOT else {})}
CHANGES: dict[str, Callable[[Path], object]] = {
    "huge": _huge,
    "moved": _moved,
    **({"foreign": _foreign, "foreign_link": _foreign_link} if IS_ROOT else {}),
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the three jobs, and samples of their host."""
    store = tmp_path_factory.mktemp("odd") / "store"
    graph = small_store.GRAPH.SerializeToString()
    tables = {**ended_jobs.tables(), **trace_tables(graph, [run_metadata([b"net/weights", b"net/MatMul", b"loss"])])}
    for uid, state in ((ENDED, "exited"), (RUNNING, None), (OTHER, "exited")):
        identity = {"name": f"job-{uid >> 48:x}.py", "host": HOST}
        write_job(store, uid, tables, state=state, identity=identity, counters=ended_jobs.COUNTERS)
    write_host(store, [{"t_ns": START_NS + n * SECOND, "cpus": 8, "cpu_busy_s": 3.0 * n} for n in range(40)])
    for uid in (ENDED, RUNNING):
        (store / "jobs" / f"{uid:016x}" / "tags.json").write_text('{"tags": ["nightly"]}')
    return store


@pytest.fixture
def store(template: Path) -> Path:
    return template


@pytest.fixture
def limited_memory() -> Iterator[None]:
    """Limit the memory that this process may take in addition to what it has."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY_MAX, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)


def places(store: Path) -> list[Path]:
    """Return the files and folders of a store, relative to it, without those of the job OTHER."""
    paths = sorted(path.relative_to(store) for path in store.rglob("*"))
    return [path for path in paths if f"{OTHER:016x}" not in path.parts]


def odd_store(template: Path, folder: Path, place: Path, kind: str) -> Path | None:
    """Return a copy of the store ``template`` with an odd file; None if there is no such change."""
    store = folder / "store"
    path = store / place
    if kind in CHANGES and kind != "moved" and (template / place).is_dir():
        return None
    shutil.copytree(template, store)
    if kind in CHANGES:
        CHANGES[kind](path)
        return store
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    NEW_FILES[kind](path)
    return store


def check(run: Run, command: str, place: Path) -> tuple[str, str]:
    """Run the command; check its exit status and its error, and return its output and its error."""
    job = RUNNING if f"{RUNNING:016x}" in place.parts else ENDED
    answer = code, out, err = run(*command.replace("JOB", f"{job >> 48:x}").split())
    case = f"{place}: {command}: {code} {err}"
    assert "[internal]" not in err, case
    if code and not out:
        refusal_slug((code, out, err.splitlines(keepends=True)[-1]), case)
    return answer[1:]


@pytest.mark.timeout(3600 if TRIES_ALL else 600)
@pytest.mark.usefixtures("limited_memory")
@pytest.mark.parametrize("kind", [*NEW_FILES, *CHANGES])
def test_an_odd_file_affects_only_its_own_job(
    run: Run, template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for number, place in enumerate(places(template)):
        (folder := tmp_path / str(number)).mkdir()
        store = odd_store(template, folder, place, kind)
        if store is None:
            continue
        monkeypatch.setenv("TFPROF_STORE", str(store))
        is_listed = len(place.parts) > 1 or place.name not in {"jobs", "store.json"}
        for command in ("jobs", "top --once --all"):
            out, err = check(run, command, place)
            assert not is_listed or f"job-{OTHER >> 48:x}.py" in out, f"{place}: {command}: {out} {err}"
        for command in COMMANDS if TRIES_ALL else islice(cycle(COMMANDS), 2 * number, 2 * number + 2):
            check(run, command, place)
        shutil.rmtree(folder)


@pytest.mark.parametrize("kind", ["fifo", "endless", "socket", "folder", "moved", "huge"])
@pytest.mark.parametrize("name", ["job.json", "wal-000000.log", "samples-000000.parquet", "traces-000000.parquet"])
def test_a_job_with_an_odd_file_is_one_damaged_row_and_one_error(
    run: Run, template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: str
) -> None:
    uid = RUNNING if name.endswith(".log") else ENDED
    store = odd_store(template, tmp_path, Path("jobs", f"{uid:016x}", name), kind)
    monkeypatch.setenv("TFPROF_STORE", str(store))
    code, out, err = run("jobs")
    rows = {line.split()[0]: line for line in out.splitlines()[1:]}
    assert code == 0
    assert len(rows) == 3
    assert [row_id for row_id, line in rows.items() if " damaged " in f"{line} "] == [f"{uid >> 48:x}"]
    assert name in err
    assert err.endswith("[store-damaged]\n")
    assert err.count("\n") == 1
    document = json.loads(run("jobs", "--json")[1])
    assert [row["uid"] for row in document["jobs"] if row["state"] == "damaged"] == [f"{uid:016x}"]
    assert len(document["damaged"]) == 1
    assert refusal_slug(run("show", f"{uid >> 48:x}")) == "store-damaged"


def test_a_damaged_file_of_the_host_leaves_the_rest_of_the_answer(
    run: Run, template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = odd_store(template, tmp_path, Path("hosts", HOST, "job.json"), "fifo")
    monkeypatch.setenv("TFPROF_STORE", str(store))
    for command in ("show", "host", "advise"):
        code, out, err = run(command, f"{ENDED >> 48:x}")
        assert code == 0
        assert out
        assert f"{HOST}/job.json is damaged" in out + err


def test_alerts_and_follow_go_on_without_a_damaged_job(
    run: Run, template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = odd_store(template, tmp_path, Path("jobs", f"{ENDED:016x}", "spans-000000.parquet"), "fifo")
    monkeypatch.setenv("TFPROF_STORE", str(store))
    code, out, err = run("alerts")
    assert (code, f"job-{OTHER >> 48:x}.py" in out, err.endswith("[store-damaged]\n")) == (0, True, True)
    code, out, err = run("follow", f"{ENDED >> 48:x}", f"{OTHER >> 48:x}", "--all")
    assert (code, f"job {OTHER >> 48:x}" in out, err.endswith("[store-damaged]\n")) == (1, True, True)
    assert refusal_slug(run("follow", f"{ENDED >> 48:x}")) == "store-damaged"
