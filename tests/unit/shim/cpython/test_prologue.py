"""Code with a call in front is otherwise unchanged, in every installed interpreter.

Tests shim/cpython/relocation.py.
"""

import subprocess

import pytest
from fakes.armed_job import MODERN, ROOT, name_of

SCRIPT = ROOT / "tests/unit/shim/cpython/prologue_check.py"


#: Minimum share of the functions that are changed; generators and very long functions are not.
SHARE = 0.9


@pytest.mark.parametrize("mode", ["drops", "keeps"])
@pytest.mark.parametrize("python", MODERN, ids=name_of)
def test_functions_of_the_library_work_as_before(python, mode):
    command = [str(python), "-B", "-W", "ignore", str(SCRIPT), str(ROOT / "shim"), mode]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert completed.returncode == 0, completed.stderr
    changed_count, call_count, tried_count, end_count = map(int, completed.stdout.split())
    assert changed_count > 500
    assert changed_count > SHARE * tried_count
    assert call_count > 200
    assert end_count == (call_count if mode == "keeps" else 0)
