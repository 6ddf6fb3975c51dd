"""Code with a call in front is otherwise unchanged, in every supported interpreter."""

import subprocess

import pytest
from fakes.armed_job import MODERN, ROOT, name_of

SCRIPT = ROOT / "tests/unit/shim/prologue_check.py"


@pytest.mark.parametrize("keeps", ["keeps", "drops"])
@pytest.mark.parametrize("python", MODERN, ids=name_of)
def test_functions_of_the_library_work_as_before(python, keeps):
    command = [str(python), "-B", "-W", "ignore", str(SCRIPT), str(ROOT / "shim"), keeps]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert completed.returncode == 0, completed.stderr
    changed_count, call_count, tried_count, end_count = map(int, completed.stdout.split())
    assert changed_count > 500
    assert changed_count > 0.9 * tried_count
    assert call_count > 300
    assert end_count == (call_count if keeps == "keeps" else 0)
