"""Every answer about random cases and real runs equals that of the TF profiler.

Tests collector/tfviews/parity.py.
"""

from pathlib import Path

import pytest
from fakes.profiles import profile
from integration.oracle.cases import REAL_RUNS
from integration.oracle.conftest import AnsweredCases, seeds
from integration.oracle.tfprof_answers import COMPAT
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.tfviews.code import call_tree
from tfprof.collector.tfviews.parity import Parity

pytestmark = pytest.mark.tf


@pytest.mark.parametrize("name", [*map(str, seeds()), *REAL_RUNS])
def test_answers_equal_those_of_the_tf_profiler(cases: AnsweredCases, name: str, tmp_path: Path) -> None:
    report = cases.report(name, tmp_path)
    assert not report, report


@pytest.mark.parametrize("name", [*map(str, seeds()), *REAL_RUNS])
def test_steps_cover_the_same_share_of_the_graph(cases: AnsweredCases, name: str) -> None:
    cases.store(name)
    assert cases.coverage[name] == pytest.approx(cases.answers(name)["coverage"])


def test_as_many_gradients_have_no_forward_op_as_for_the_tf_profiler(cases: AnsweredCases) -> None:
    """The TF profiler warns of them once, when it is first asked for a view that needs calls."""
    theirs, mine, parity = {}, {}, Parity(COMPAT[cases.version], exact=True)
    for name in [*map(str, seeds()), *REAL_RUNS]:
        steps_profile = profile(LocalStore(cases.store(name)).job("last"), parity=parity)
        assert steps_profile is not None
        warned = [line for _, answer in cases.questions(name) for line in answer["warned"].split("\n")]
        theirs[name] = next((int(line.split()[0]) for line in warned if "gradient nodes not" in line), 0)
        mine[name] = len(call_tree(steps_profile.nodes, parity).gradients_without_forward)
    assert mine == theirs
    assert any(mine.values())
