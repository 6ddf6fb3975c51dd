"""The table of exporters, and what `tfprof export` does in the same way for all formats.

Tests formats/exports.py, cli/export.py, cli/progress.py.
"""

import gzip
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from fakes import ended_jobs
from fakes.command import Run
from fakes.many_executions import write_many_executions
from tfprof.collector import open_store
from tfprof.collector.errors import TfprofError, UsageError
from tfprof.collector.exporters.table import exporter_for
from tfprof.collector.loader import load
from tfprof.formats.exports import EXPORTERS, FORMATS, VIEW, VIEW_EXPORTERS

ROOT = Path(__file__).parents[4]
#: Modules of the folder that are no exporters.
HELPERS = {
    "__init__",
    "otel",
    "profile_summary",
    "request",
    "stacks",
    "step_stats",
    "table",
    "timelines",
    "xspace",
}


@pytest.fixture
def run(run: Run, tmp_path: Path) -> Run:
    """Run a command on a store with two jobs."""
    ended_jobs.write(tmp_path / "store")
    return run


def names() -> set[str]:
    """Return the names of all files in the folder."""
    return {path.name for path in Path.cwd().iterdir()}


def test_every_exporter_is_one_row_and_one_module() -> None:
    assert len(VIEW_EXPORTERS) + len(FORMATS) == len(EXPORTERS)
    for row in EXPORTERS:
        function = "files" if row.subject == VIEW else "folder" if row.is_folder else "pieces"
        assert callable(load(f"tfprof.collector.exporters.{row.module}:{function}"))
    modules = {path.stem for path in (ROOT / "collector" / "exporters").glob("*.py")}
    assert modules == {row.module for row in EXPORTERS} | HELPERS


def test_the_page_lists_every_format_with_its_suffixes() -> None:
    page = (ROOT / "docs" / "exports.md").read_text()
    for row in FORMATS.values():
        (line,) = [line for line in page.splitlines() if line.startswith(f"| `{row.name}` |")]
        assert all(f"`{suffix}`" in line for suffix in row.suffixes)


def test_no_suffix_means_two_formats() -> None:
    suffixes = [suffix for row in FORMATS.values() for suffix in row.suffixes]
    assert len(set(suffixes)) == len(suffixes)
    for row in FORMATS.values():
        for suffix in row.suffixes:
            assert exporter_for(f"a.b{suffix}") is row
            assert not row.can_compress or exporter_for(f"a.b{suffix}.gz") is row


def test_the_list_names_every_format(run: Run) -> None:
    status, out, error = run("export", "--list")
    assert (status, error) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == ["format", *FORMATS]


def test_the_format_overrides_the_suffix(run: Run) -> None:
    assert run("export", "last", "--format", "chrome", "-o", "timeline") == (
        1,
        "",
        run("export", "last", "-o", "a.json")[2],
    )
    assert run("export", "7f3a", "--format", "chrome", "-o", "timeline") == (0, "", "")
    assert json.loads(Path("timeline").read_bytes())["traceEvents"]


@pytest.mark.parametrize("path", ["out", "out.txt", ".", "json", "out.json.bz2"])
def test_a_name_without_a_known_suffix_is_refused(path: str, run: Run) -> None:
    status, out, error = run("export", "7f3a", "-o", path)
    assert (status, out) == (2, "")
    assert error.startswith(f"tfprof: the name {path} does not tell the format")
    assert error.endswith("[no-such-format]\n")
    assert names() == set()


def test_an_existing_file_is_kept_unless_forced(run: Run) -> None:
    Path("out.json").write_text("mine")
    status, _, error = run("export", "7f3a", "-o", "new.json", "-o", "out.json")
    assert (status, error) == (1, "tfprof: out.json exists: --force replaces it [file-exists]\n")
    assert names() == {"out.json"}, "no other file is written either"
    assert Path("out.json").read_text() == "mine"
    assert run("export", "7f3a", "-o", "out.json", "--force") == (0, "", "")
    assert json.loads(Path("out.json").read_bytes())


def test_an_open_range_of_steps_reaches_to_the_last_step(run: Run, tmp_path: Path) -> None:
    write_many_executions(tmp_path / "store", 3, name="many.py")
    assert run("export", "many.py", "--steps", "8-", "-o", "a.csv") == (0, "", "")
    assert len(Path("a.csv").read_text().splitlines()) == 1 + 80
    assert run("export", "many.py", "--steps", "8-", "-o", "a.json") == (0, "", "")
    status, _, error = run("export", "many.py", "--steps", "99-", "-o", "b.json")
    assert (status, error.split()[-1]) == (2, "[no-such-step]")


def test_several_files_are_written_at_once(run: Run) -> None:
    assert run("export", "7f3a", "-o", "a.json", "-o", "b.json.gz", "-o", "c.pftrace") == (0, "", "")
    assert names() == {"a.json", "b.json.gz", "c.pftrace"}
    assert gzip.decompress(Path("b.json.gz").read_bytes()) == Path("a.json").read_bytes()


def test_a_file_is_written_to_standard_output(run: Run) -> None:
    assert run("export", "7f3a", "-o", "a.json") == (0, "", "")
    command = [sys.executable, "-m", "tfprof.cli.main", "export", "7f3a", "--format", "chrome", "-o", "-"]
    assert subprocess.run(command, capture_output=True, check=True).stdout == Path("a.json").read_bytes()


def test_a_terminal_gets_no_file(run: Run) -> None:
    primary, terminal = pty.openpty()
    command = [sys.executable, "-m", "tfprof.cli.main", "export", "7f3a", "--format", "chrome", "-o", "-"]
    result = subprocess.run(command, stdout=terminal, stderr=subprocess.PIPE, check=False)
    os.close(terminal)
    os.close(primary)
    assert (result.returncode, result.stderr.split()[-1]) == (2, b"[usage]")
    assert run("export", "7f3a", "-o", "a.json") == (0, "", "")


@pytest.mark.parametrize(
    ("path", "reason"),
    [("missing/a.json", "No such file"), ("folder.json", "Is a directory"), ("file/a.json", "Not a dir")],
)
def test_a_file_that_cannot_be_written_leaves_nothing(path: str, reason: str, run: Run) -> None:
    Path("folder.json").mkdir()
    Path("file").touch()
    status, _, error = run("export", "7f3a", "-o", path)
    assert status == 1
    assert error.startswith(f"tfprof: cannot write {path}: {reason}")
    assert error.endswith("[io]\n")
    assert names() == {"folder.json", "file"}


def test_a_full_disk_is_an_error(run: Run) -> None:
    status, _, error = run("export", "7f3a", "--format", "chrome", "-o", "/dev/full")
    assert (status, error) == (1, "tfprof: cannot write /dev/full: No space left on device [io]\n")


def test_a_job_without_any_data_leaves_no_file(run: Run) -> None:
    status, _, error = run("export", "other.py", "-o", "a.json")
    assert status == 1
    assert error.endswith("[no-data]\n")
    assert names() == set()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("7f3a",), "nothing to write: give -o FILE"),
        ((), "no JOB given"),
        (("7f3a", "-o", "a.json", "--steps", "3-1"), "Invalid option '--steps'"),
        (("7f3a", "-o", "a", "--format", "op-log", "--steps", "3"), "the format op-log has no option --steps"),
        (("7f3a", "other.py", "-o", "a", "--format", "op-log"), "a file of the format op-log holds one job"),
        (("7f3a", "-o", "a", "--format", "nothing"), "'nothing' is not one of"),
    ],
)
def test_a_wrong_command_line_is_refused(words: tuple[str, ...], text: str, run: Run) -> None:
    status, out, error = run("export", *words, *(("-o", "a.json") if not words else ()))
    assert (status, out) == (2, "")
    assert text in error
    assert error.endswith("[usage]\n")
    assert names() == set()


def test_the_api_writes_the_same_file(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("export", "7f3a", "-o", "command.json") == (0, "", "")
    job = open_store(tmp_path / "store").job("7f3a")
    job.export("api.json")
    assert Path("api.json").read_bytes() == Path("command.json").read_bytes()
    with pytest.raises(TfprofError, match="file-exists"):
        job.export("api.json")
    job.export(Path("api.json"), file_format="perfetto", overwrite=True)
    assert Path("api.json").read_bytes()[:1] == b"\n"
    with pytest.raises(UsageError, match="no-such-format"):
        job.export("api.unknown")
    assert capsys.readouterr() == ("", "")
