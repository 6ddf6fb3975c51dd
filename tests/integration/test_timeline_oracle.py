"""Timelines against the TF profiler: both write the same bytes for the same executions."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from fakes.forks import ForkServer
from integration import timeline_cases
from integration.oracle import tfprof_answers
from tfprof.collector.imports.files import BINARY, parse
from tfprof.collector.imports.graph import graph
from tfprof.collector.imports.op_log import op_log
from tfprof.collector.imports.steps import step
from tfprof.collector.imports.writing import ImportSource, store_job
from tfprof.collector.proto.tfprof_log_pb2 import OpLogProto

pytestmark = pytest.mark.tf

ORACLE = Path(__file__).parent / "oracle" / "scripts" / "timeline.py"
FIRST_SEED, CASES = (
    int(os.environ.get(f"TFPROF_TEST_TIMELINE_{name}", value)) for name, value in (("SEED", 1), ("CASES", 24))
)


@pytest.fixture(scope="module", params=["tf1", "tf2"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def answered_cases(
    version: str, plain_forks: Callable[[str], ForkServer], tmp_path_factory: pytest.TempPathFactory
) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """The cases, each with TensorFlow's answers to its questions."""
    folder = tmp_path_factory.mktemp(version)
    cases = [timeline_cases.case(seed) for seed in range(FIRST_SEED, FIRST_SEED + CASES)]
    (folder / "cases.json").write_text(json.dumps(cases, default=lambda data: data.decode("latin-1")))
    plain_forks(version).output(ORACLE, folder / "cases.json", folder / "answers.json")
    return list(zip(cases, json.loads((folder / "answers.json").read_text()), strict=True))


def import_case(case: Mapping[str, Any], store: Path) -> None:
    """Import a case as a job."""
    nodes = graph(case["graph"], "graph")
    message = parse(case["op_log"], OpLogProto, "op_log", (BINARY,))
    log_rows = op_log(message, frozenset(nodes["name"].to_pylist()), "op_log").rows
    steps = [step(number, data, "step") for number, data in case["steps"]]
    store_job(
        store,
        "host",
        ImportSource("case", nodes, [log_rows], iter(filter(None, steps)), {"op_log": True}),
        lambda _: None,
    )


def first_difference(theirs: str, mine: str) -> str:
    """Return the first event that differs, or the numbers of events if none does."""
    events = [text.replace('},{"', '}\n,{"').split("\n") for text in (theirs, mine)]
    return next(
        (
            f"{their_event} != {my_event}"
            for their_event, my_event in zip(*events, strict=False)
            if their_event != my_event
        ),
        f"{list(map(len, events))}",
    )


def test_timelines_equal_those_of_tensorflow_byte_for_byte(
    version: str, answered_cases: list[tuple[dict[str, Any], list[dict[str, Any]]]], tmp_path: Path
) -> None:
    """Compare files and printed output of each view, for one or all steps, with filters."""
    compared = dict.fromkeys(("graph", "scope", "code"), 0)
    out = tmp_path / "out"
    out.mkdir()
    for at, (case, answers) in enumerate(answered_cases):
        store = tmp_path / f"store-{at}"
        import_case(case, store)
        job = tfprof_answers.profiler(store, version)
        for question, answer in zip(case["questions"], answers, strict=True):
            mine = tfprof_answers.ask(job, question, out)
            where = f"seed {FIRST_SEED + at}: {question}"
            assert sorted(mine["files"]) == sorted(answer["files"]), where
            for name, text in answer["files"].items():
                assert mine["files"][name] == text, f"{where} {name}: {first_difference(text, mine['files'][name])}"
                compared[question["view"]] += 1
            assert mine["printed"] == answer["printed"], where
    assert min(compared.values()) >= CASES // 4, compared
