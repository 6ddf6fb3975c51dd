"""The Python API against TensorFlow's: equal calls make equal options, and print equal text."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.forks import ForkServer
from fakes.made_store import trace_tables, write_job
from integration.oracle.tfprof_answers import COMPAT
from tfprof.collector import Profiler, open_store
from tfprof.collector.options import ProfileOptionBuilder as Builder

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
    builder = (
        Builder()
        .with_max_depth(7)
        .with_min_memory(1, 2, 3, 4)
        .with_min_execution_time(5, 6, 7)
        .with_min_parameters(8)
        .with_min_occurrence(9)
        .with_min_float_operations(10)
        .with_accounted_types(["a", "b"])
        .with_node_names(["s"], ["t"], ["u"], ["v"])
        .account_displayed_op_only(True)
        .order_by("bytes")
        .select(["bytes", "micros"])
        .with_step(11)
    )
    assert oracle[0]["dicts"] == {
        "default": Builder().build(),
        "every": builder.build(),
        "some_names": Builder().with_node_names(hide_name_regexes=["h"]).with_min_memory().build(),
        "empty": Builder().with_empty_output().build(),
        "stdout": Builder({"output": "none"}).with_stdout_output().build(),
        "file": Builder().with_file_output("f").build(),
        "timeline": Builder().with_timeline_output("f").build(),
        "pprof": Builder().with_pprof_output("f").build(),
        "parameters": Builder.trainable_variables_parameter(),
        "operations": Builder.float_operation(),
        "time": Builder.time_and_memory(),
        "times": Builder.time_and_memory(1, 2, 3, 4, 5, 6, 7),
        "changed": Builder(Builder.time_and_memory()).with_max_depth(3).build(),
    }


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
