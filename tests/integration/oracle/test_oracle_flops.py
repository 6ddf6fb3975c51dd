"""Operation counts from a graph and its traces alone equal those of TensorFlow's registry."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from integration.oracle import tfprof_answers
from integration.oracle.cases import REAL_RUNS
from integration.oracle.conftest import AnsweredCases
from integration.oracle.queries import BASE_OPTIONS

pytestmark = pytest.mark.tf


def import_without_log(case: Path, folder: Path, version: str, runs: int) -> Any:
    """Return a job with a case's graph and first ``runs`` steps, without the op log."""
    short_case = folder / f"case-{runs}"
    short_case.mkdir()
    for name in ("graph.pb", *(f"run-{number}.pb" for number in range(runs))):
        shutil.copy(case / name, short_case)
    tfprof_answers.import_case(short_case, folder / f"store-{runs}")
    return tfprof_answers.profiler(folder / f"store-{runs}", version)


def operations_by_type(job: Any, step: int) -> dict[str, int]:
    """Return operations by op type."""
    root, operations = job.profile_operations({**BASE_OPTIONS, "step": step, "output": "none"}), {}
    while root.children:
        (root,) = root.children
        operations[root.name] = root.float_ops
    return operations


@pytest.mark.parametrize("name", REAL_RUNS)
def test_operations_of_steps_equal_the_counts_of_tensorflow(cases: AnsweredCases, name: str, tmp_path: Path) -> None:
    theirs = json.loads((cases.case(name) / "flops.json").read_text())
    assert sum(theirs["once"].values()) > 1000
    assert operations_by_type(import_without_log(cases.case(name), tmp_path, cases.version, 1), -1) == theirs["once"]
    job = import_without_log(cases.case(name), tmp_path, cases.version, len(theirs["steps"]))
    assert [operations_by_type(job, step) for step in range(len(theirs["steps"]))] == theirs["steps"]
