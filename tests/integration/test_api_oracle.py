"""The Python API against TensorFlow's: equal calls make equal options, and print equal text."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.forks import ForkServer
from fakes.made_store import trace_tables, write_job
from integration.oracle.scripts.built_options import built_options
from integration.oracle.tfprof_answers import COMPAT
from tfprof.collector import Profiler, open_store
from tfprof.collector.options import ProfileOptionBuilder

pytestmark = pytest.mark.tf

ORACLE = Path(__file__).parent / "oracle" / "scripts" / "options.py"


@pytest.fixture(scope="module", params=sorted(COMPAT))
def oracle(
    request: pytest.FixtureRequest, plain_forks: Callable[[str], ForkServer], tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], Profiler]:
    """TensorFlow's answers, and our profiler of the same step."""
    folder = tmp_path_factory.mktemp(f"options-{request.param}")
    plain_forks(request.param).output(ORACLE, folder)
    write_job(
        folder / "store", 1, trace_tables((folder / "graph.pb").read_bytes(), [(folder / "run-0.pb").read_bytes()])
    )
    answers = json.loads((folder / "answers.json").read_text())
    return answers, open_store(folder / "store").job("last", compat=COMPAT[request.param], exact=True)


def test_every_method_of_the_builder_makes_the_same_options(oracle: tuple[dict[str, Any], Profiler]) -> None:
    assert oracle[0]["dicts"] == built_options(ProfileOptionBuilder)


def without_doc(text: str) -> list[str]:
    """Return the parts of a printed report before and after the explanation, which differs."""
    before, doc, after = text.partition("\nDoc:\n")
    return [before, after.partition("Profile:\n")[2]] if doc else [text]


def test_the_methods_print_the_same_text(
    oracle: tuple[dict[str, Any], Profiler],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    answers, profiler = oracle
    methods = {"scope": profiler.profile_name_scope, "graph": profiler.profile_graph, "op": profiler.profile_operations}
    for answer in answers["calls"]:
        root = methods[answer["view"]](answer["options"])
        printed = capsys.readouterr()
        assert without_doc(printed.out) == without_doc(answer["out"]), answer["options"]
        assert (root.name, len(root.children)) == (answer["name"], answer["children"]), answer["options"]
        theirs = [line for line in answer["err"].splitlines() if "warning" not in line.lower()]
        mine = printed.err.splitlines()
        assert mine == theirs or (root.children == [] and not theirs), answer["options"]
    assert len(answers["calls"]) > 15
    assert list(tmp_path.iterdir()) == []
