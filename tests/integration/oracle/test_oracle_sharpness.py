"""The comparison notices each broken rule: some answer no longer equals that of the TF profiler."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration.oracle import tfprof_answers
from integration.oracle.breaks import BREAKS, Break
from integration.oracle.cases import REAL_RUNS
from integration.oracle.comparison import comparable, differences
from integration.oracle.conftest import AnsweredCases, seeds

pytestmark = pytest.mark.tf


def is_affected(broken: Break, question: Any) -> bool:
    """Return whether a broken rule may change the answer to a question."""
    return question["view"] in broken.views and question.get("options", {}).get("output", "").startswith(broken.output)


def answer_matches(cases: AnsweredCases, broken: Break, folder: Path) -> Iterator[bool]:
    """Yield for each affected question whether the answer equals that of the TF profiler."""
    places = {name: folder / name for name in ("store", "files")}
    places["files"].mkdir()
    for name in [*map(str, seeds()), *REAL_RUNS]:
        store = cases.store(name)
        if broken.reimports:
            store = places["store"] / name
            tfprof_answers.import_case(cases.case(name), store)
        job = tfprof_answers.profiler(store, cases.version)
        for question, theirs in cases.questions(name):
            if is_affected(broken, question):
                mine = tfprof_answers.ask(job, question, places["files"])
                yield not any(differences(comparable(question, theirs), comparable(question, mine)))


@pytest.mark.parametrize(
    ("cases", "broken"),
    [pytest.param(broken.version, broken, id=broken.rule.replace(" ", "_")) for broken in BREAKS],
    indirect=["cases"],
)
def test_a_broken_rule_is_noticed(
    cases: AnsweredCases, broken: Break, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken.apply(monkeypatch)
    assert not all(answer_matches(cases, broken, tmp_path))
