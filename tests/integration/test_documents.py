"""What every command prints with --json about real jobs is valid by its JSON Schema.

Tests collector/documents/settings.py, cli/config.py.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.command import Run, caller
from fakes.json_schema import validated
from tfprof.collector.documents.table import DOCUMENTS

pytestmark = pytest.mark.tf

TFPROF = str(Path(sys.executable).parent / "tfprof")
JOBS = Path(__file__).parent / "jobs"
#: Command -> its further words, for each line that is checked.
LINES = {
    "advise": (("last",), ("last", "last~1")),
    "alerts": ((), ("last",)),
    "attach": (("4194303", "--no-wait"),),
    "code": (("last",), ("last", "-show_name_regexes", ".*"), ("last", "--exact-tf")),
    "compiled": (("last",),),
    "config": ((),),
    "detach": (("last", "--wait", "1s"),),
    "diff": (("last~1", "last"),),
    "doctor": ((str(os.getpid()),),),
    "follow": (("last", "--all", "--each"),),
    "graph": (("last",), ("last", "--kind", "all"), ("last", "--exact-tf")),
    "host": (("last",),),
    "import": (("--profile_path", "PROFILE"),),
    "jobs": ((),),
    "op": (
        ("last",),
        ("last", "-select", "bytes,params", "-min_bytes", "1"),
        ("last", "last~1"),
        ("last", "--exact-tf"),
    ),
    "ps": ((),),
    "rm": (("last", "--yes"),),
    "scope": (("last",), ("last", "--exact-tf")),
    "breakdown": (("last",),),
    "memory": (("last",),),
    "curves": (("last",),),
    "show": (("last",),),
    "source": (("last",),),
    "spans": (("last",),),
    "status": ((),),
    "steps": (("last", "--all"),),
    "tag": (("last", "a tag"),),
    "top": (("--all", "--once"),),
    "workers": (("last",),),
    "trace": (("last", "--steps", "2", "--wait", "1s"),),
}
#: What Slurm tells a job of several processes.
SLURM_STEP = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"}


def texts(profile: Path, run: Run) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield each line, and what it prints; the removal of the job comes last."""
    for command in sorted(LINES, key=lambda name: (name in ("import", "rm"), name)):
        for words in LINES[command]:
            line = (command, *(str(profile) if word == "PROFILE" else word for word in words))
            _, out, errors = run(command, "--json", *line[1:])
            yield line, out or errors


def test_every_command_has_lines() -> None:
    assert set(LINES) == set(DOCUMENTS)


@pytest.mark.parametrize(("release", "script"), [("tf1", "two_calls.py"), ("tf2", "keras_fit.py")])
def test_every_document_about_a_job_is_valid(
    release: str,
    script: str,
    request: pytest.FixtureRequest,
    private_store: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = caller(capsys)
    python = request.getfixturevalue(f"{release}_python")
    for _ in range(2):
        command = [f"{TFPROF}-run", "--trace", "every=7", "--name", script, python, JOBS / script]
        subprocess.run(command, capture_output=True, timeout=300, check=True, env=os.environ | SLURM_STEP)
    profile = tmp_path / "profile"
    assert run("profile-proto", "last", "-o", str(profile))[0] == 0
    printed = 0
    for line, text in texts(profile, run):
        for document in text.splitlines() if line[0] == "follow" else [text]:
            assert validated(document)["schema"].startswith("tfprof."), line
            printed += 1
    assert printed > len(DOCUMENTS)
