"""Every answer about random cases and real runs equals that of the TF profiler.

Tests collector/tfviews/parity.py.
"""

from pathlib import Path

import pytest
from integration.oracle.cases import REAL_RUNS
from integration.oracle.conftest import AnsweredCases, seeds

pytestmark = pytest.mark.tf


@pytest.mark.parametrize("name", [*map(str, seeds()), *REAL_RUNS])
def test_answers_equal_those_of_the_tf_profiler(cases: AnsweredCases, name: str, tmp_path: Path) -> None:
    report = cases.report(name, tmp_path)
    assert not report, report


@pytest.mark.parametrize("name", [*map(str, seeds()), *REAL_RUNS])
def test_steps_cover_the_same_share_of_the_graph(cases: AnsweredCases, name: str) -> None:
    cases.store(name)
    assert cases.coverage[name] == pytest.approx(cases.answers(name)["coverage"])
