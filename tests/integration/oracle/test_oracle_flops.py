"""Operation counts from a graph and its traces alone equal those of TensorFlow's registry."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from integration.oracle import ours
from integration.oracle.cases import REAL
from integration.oracle.conftest import Asked
from integration.oracle.queries import BASE

pytestmark = pytest.mark.tf


def counted(case: Path, folder: Path, version: str, runs: int) -> Any:
    """Return a job with a case's graph and first ``runs`` steps, without the op log."""
    bare = folder / f"case-{runs}"
    bare.mkdir()
    for name in ("graph.pb", *(f"run-{number}.pb" for number in range(runs))):
        shutil.copy(case / name, bare)
    ours.import_case(bare, folder / f"store-{runs}")
    return ours.profiler(folder / f"store-{runs}", version)


def by_type(job: Any, step: int) -> dict[str, int]:
    """Return operations by op type."""
    root, found = job.profile_operations({**BASE, "step": step, "output": "none"}), {}
    while root.children:
        (root,) = root.children
        found[root.name] = root.float_ops
    return found


@pytest.mark.parametrize("name", REAL)
def test_operations_of_steps_equal_the_counts_of_tensorflow(asked: Asked, name: str, tmp_path: Path) -> None:
    theirs = json.loads((asked.case(name) / "flops.json").read_text())
    assert sum(theirs["once"].values()) > 1000
    assert by_type(counted(asked.case(name), tmp_path, asked.version, 1), -1) == theirs["once"]
    every = counted(asked.case(name), tmp_path, asked.version, len(theirs["steps"]))
    assert [by_type(every, step) for step in range(len(theirs["steps"]))] == theirs["steps"]
