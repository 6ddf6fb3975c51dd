"""The C part of the shim loads and counts correctly in every installed interpreter."""

import subprocess

import pytest
from fakes.armed_job import MODERN, ROOT, name_of

SCRIPT = ROOT / "tests/unit/shim/pacing/native_check.py"


@pytest.mark.parametrize("python", MODERN, ids=name_of)
def test_every_interpreter_loads_the_c_part_and_counts(python):
    command = [str(python), "-B", "-X", "faulthandler", str(SCRIPT), str(ROOT / "shim")]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert completed.returncode == 0, completed.stderr
