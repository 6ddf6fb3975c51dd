"""Numbers look the same in a terminal and on the page: one table of cases tests both."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from house.tree import ROOT
from tfprof.collector import numbers

FOLDER = Path(__file__).parent
CASES: list[list[Any]] = json.loads((FOLDER / "numbers.json").read_text())
MODULE = ROOT / "web/static/lib/numbers.js"


def test_there_are_enough_cases_of_every_function() -> None:
    assert len(CASES) >= 200
    exported = set(re.findall(r"^export function (\w+)", MODULE.read_text(), re.MULTILINE))
    assert {name for name, _, _ in CASES} == exported - {"fixed", "dateAndTime", "timeOfDay"}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_number_in_python(case: list[Any]) -> None:
    name, values, text = case
    assert getattr(numbers, re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower())(*values) == text


def test_the_numbers_in_javascript(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        if os.environ.get("CI"):
            pytest.fail("no node (apt-get install nodejs)")
        pytest.skip("no node")
    module = tmp_path / "numbers.mjs"
    shutil.copy(MODULE, module)
    command = [node, str(FOLDER / "numbers.mjs"), str(module)]
    result = subprocess.run(command, input=json.dumps(CASES), capture_output=True, text=True, check=True)
    shown = [[name, values, text] for (name, values, _), text in zip(CASES, json.loads(result.stdout), strict=True)]
    assert shown == CASES
