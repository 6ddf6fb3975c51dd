"""The notebook of the documentation runs on a real job, in Jupyter's own client and kernel."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.armed_job import JOBS
from fakes.profiled import ProfiledScripts
from house.tree import ROOT

pytestmark = pytest.mark.tf
NOTEBOOK = ROOT / "docs" / "notebook.ipynb"


def outputs(notebook: Path) -> list[list[list[str]]]:
    """Return the types of the outputs of each cell."""
    cells: list[dict[str, Any]] = json.loads(notebook.read_text())["cells"]
    return [[sorted(output["data"]) for output in cell.get("outputs", ())] for cell in cells]


def test_the_notebook_shows_a_job_of_keras(
    profiled_jobs: Callable[[str], ProfiledScripts], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (ROOT / ".venvs" / "notebook").exists():
        pytest.skip("needs .venvs/notebook (make .venvs/notebook)")
    jobs = profiled_jobs("tf2")
    assert jobs.run("all", JOBS / "convnet.py", "keras").status == 0
    monkeypatch.setenv("TFPROF_STORE", str(jobs.store))
    command = [sys.executable, str(ROOT / "tools" / "notebook"), str(tmp_path / "page.ipynb")]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    assert outputs(tmp_path / "page.ipynb") == outputs(NOTEBOOK)
    assert "MatMul" in (tmp_path / "page.ipynb").read_text()


def test_the_page_has_outputs_and_no_path_of_the_machine_that_made_it() -> None:
    text = NOTEBOOK.read_text()
    assert all(
        shown
        for cell, shown in zip(json.loads(text)["cells"], outputs(NOTEBOOK), strict=True)
        if cell["cell_type"] == "code"
    )
    assert "/tmp" not in text
    assert "/home" not in text
