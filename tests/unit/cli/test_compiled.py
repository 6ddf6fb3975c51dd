"""`tfprof compiled`: the programs that XLA compiled, their ops, and their comparison with these.

Tests collector/documents/compiled.py, collector/documents/ops.py, collector/query/compiled.py,
collector/render/compiled_text.py, collector/summaries/compiled.py.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from fakes.command import Run
from fakes.made_steps import Execution, made_job
from fakes.made_store import rows, span
from tfprof.collector.decoders.proto import graph_pb2
from tfprof.formats import layout
from tfprof.formats.activities import FIRST_RUN, key_of

#: The ops of a step that is not compiled, with their times in µs.
PLAIN = {"dense/MatMul:MatMul": 50, "dense/mul:Mul": 10, "dense/Relu:Relu": 20, "loss:Mean": 5}
#: The same step: XLA fused mul and Relu, and added a copy. The mean is not compiled.
BY_OP = {"dense/MatMul:MatMul": 40, "dense/Relu:Relu_fusion": 12, "copy.3:copy": 8, "loss:Mean": 5}
#: The same where TensorFlow records no instructions.
AS_A_WHOLE = {"step:XlaLaunch": 60, "loss:Mean": 5}
#: The same in a session of TensorFlow 1.15.
CLUSTERS = {"cluster_0_1/xla_run:_XlaRun": 45, "cluster_1_1/xla_run:_XlaRun": 15, "loss:Mean": 5}
MODULE = "a_inference_step_12__XlaMustCompile_true_config_proto_3_executor_type_11__.45(0)"
PARTS = [
    {"module": MODULE, "node": node, "op": op, "fused_into": into, "instructions": number}
    for node, op, into, number in (
        ("dense/MatMul", "MatMul", "", 1),
        ("dense/mul", "Mul", "dense/Relu", 2),
        ("dense/Relu", "Relu", "", 1),
        ("copy.3", "", "", 1),
    )
]


def write(
    store: Path,
    ops: Mapping[str, int],
    parts: Sequence[Mapping[str, object]] = (),
    marked: Sequence[str] = (),
    uid: int = 1,
) -> str:
    """Write a job with two traced steps; return its store. The graph marks the nodes ``marked``."""
    start, executions = 0, []
    for name, duration_us in ops.items():
        executions.append(Execution(name, start, duration_us))
        start += duration_us
    graph = graph_pb2.GraphDef(
        node=[graph_pb2.NodeDef(name=name.split(":")[0], op=name.split(":")[1]) for name in PLAIN]
    )
    for node in graph.node:
        if node.name in marked:
            node.attr["_XlaCompile"].b = True
    spans = [span(layout.RUN, number, 2 * number, 1) for number in (1, 2)]
    spans.append(span(layout.ACTIVITY, 1, 0, 300, key=key_of(FIRST_RUN, "step")))
    tables = {"programs": rows("programs", [*parts, *parts]), "spans": rows("spans", spans)}
    made_job(store, [executions] * 2, graph.SerializeToString(), uid=uid, source=layout.XSPACE, **tables)
    return str(store)


@pytest.fixture
def programs(run: Run, tmp_path: Path):
    def programs_of(*job: object) -> list[dict[str, object]]:
        status, text, _ = run("compiled", "last", "--json", "--store", write(tmp_path / "s", *job))
        assert status == 0
        return json.loads(text)["programs"]

    return programs_of


def test_a_program_has_the_time_of_its_instructions_and_its_ops(programs) -> None:
    (program,) = programs(BY_OP, PARTS)
    assert (program["name"], program["ns"], program["variants"]) == ("step", 60_000, 1)
    assert program["share"] == pytest.approx(60 / 65)
    ops = [(op["node"], op["op"], op["ns"], op["fused_into"], op["instructions"]) for op in program["ops"]]
    assert ops == [
        ("dense/MatMul", "MatMul", 40_000, "", 1),
        ("dense/Relu", "Relu_fusion", 12_000, "", 1),
        ("copy.3", "copy", 8_000, "", 1),
        ("dense/mul", "Mul", None, "dense/Relu", 2),
    ]


@pytest.mark.parametrize("module", ["a_inference_step_12.45(1)", "a_inference_step_12(1)", "a_inference_step_12.45"])
def test_each_module_of_a_function_is_a_variant_of_its_program(module: str, programs) -> None:
    others = [{**part, "module": module} for part in PARTS]
    (program,) = programs(BY_OP, [*PARTS, *others])
    assert (program["name"], program["variants"], len(program["ops"])) == ("step", 2, 4)


def test_without_instructions_the_program_has_the_time_and_the_ops_are_listed(programs) -> None:
    (program,) = programs(AS_A_WHOLE, PARTS)
    assert (program["name"], program["ns"]) == ("step", 60_000)
    assert [(op["node"], op["ns"]) for op in program["ops"]] == [
        ("dense/MatMul", None),
        ("dense/Relu", None),
        ("dense/mul", None),
    ]


def test_in_a_session_the_ops_are_those_that_the_graph_marks(programs) -> None:
    (program,) = programs(CLUSTERS, (), ("dense/MatMul", "dense/mul", "dense/Relu"))
    assert (program["name"], program["ns"], program["variants"]) == ("2 clusters", 60_000, 0)
    assert [op["op"] for op in program["ops"]] == ["MatMul", "Relu", "Mul"]


def test_without_a_mark_the_clusters_have_times_only(programs) -> None:
    assert [(program["name"], program["ns"], program["ops"]) for program in programs(CLUSTERS)] == [
        ("cluster_0", 45_000, []),
        ("cluster_1", 15_000, []),
    ]


def test_a_program_that_did_not_run_has_no_time(programs) -> None:
    (program,) = programs({"loss:Mean": 5}, PARTS)
    assert (program["ns"], program["share"]) == (None, 0)


def test_the_screen_opens_the_only_program(run: Run, tmp_path: Path) -> None:
    store = write(tmp_path / "s", BY_OP, PARTS)
    status, text, err = run("compiled", "last", "--top", "3", "--store", store)
    assert (status, err) == (0, "")
    lines = text.splitlines()
    assert lines[0] == "Verdict: 1 program compiled by XLA: 92 % of the ops' time in 2 traced steps."
    assert any(line.split()[:4] == ["dense/Relu", "Relu_fusion", "12.0", "µs"] for line in lines)
    assert lines[-1] == "and 1 more (--top)"
    assert "tfprof compiled" in run("op", "last", "--store", store)[2]
    assert "tfprof compiled" in run("show", "last", "--store", store)[1]


@pytest.mark.parametrize(("job", "is_compiled"), [((BY_OP, PARTS), True), ((AS_A_WHOLE,), True), ((PLAIN,), False)])
def test_the_summary_says_whether_xla_compiled_ops(
    job: tuple[Any, ...], is_compiled: bool, run: Run, tmp_path: Path
) -> None:
    document = json.loads(run("show", "last", "--json", "--store", write(tmp_path / "s", *job))[1])
    assert document["compiled"] is is_compiled


def test_of_several_programs_one_is_opened_by_its_name(run: Run, tmp_path: Path) -> None:
    store = write(tmp_path / "s", CLUSTERS)
    lines = run("compiled", "last", "--store", store)[1].splitlines()
    assert lines[-2].endswith(" cluster_0 shows its ops")
    assert lines[-1] == f"(with --store {store})"
    _, text, _ = run("compiled", "last", "cluster_1", "--store", store)
    assert text.splitlines()[-1].startswith("note: TensorFlow did not record which ops")
    status, _, err = run("compiled", "last", "cluster", "--store", store)
    assert (status, "it has cluster_0, cluster_1" in err) == (2, True)


def test_a_job_without_programs_says_so(run: Run, tmp_path: Path) -> None:
    store = write(tmp_path / "s", PLAIN)
    assert run("compiled", "last", "--store", store)[1:] == (
        "",
        "tfprof: XLA compiled nothing that ran in the traced steps\n",
    )
    assert "compiled" not in run("op", "last", "--store", store)[2]


@pytest.mark.parametrize("compiled", [(BY_OP, PARTS), (AS_A_WHOLE, PARTS), (CLUSTERS,)], ids=["ops", "whole", "1.15"])
@pytest.mark.parametrize("is_after", [True, False])
def test_a_program_is_compared_with_the_ops_that_it_replaced(
    run: Run, tmp_path: Path, compiled: tuple[object, ...], is_after: bool
) -> None:
    document = _difference(run, tmp_path, *(((PLAIN,), compiled) if is_after else (compiled, (PLAIN,))))
    expected = (80_000, 60_000) if is_after else (60_000, 80_000)
    assert document["ops"] == {"compiled by XLA": pytest.approx(expected), "Mean": pytest.approx((5_000, 5_000))}
    assert list(document["differences"]) == ["compiled by XLA"]


def test_programs_that_are_recorded_alike_are_compared_by_op(run: Run, tmp_path: Path) -> None:
    faster = {**BY_OP, "dense/MatMul:MatMul": 30}
    document = _difference(run, tmp_path, (BY_OP, PARTS), (faster, PARTS))
    assert document["ops"]["MatMul"] == pytest.approx((40_000, 30_000))
    assert set(document["ops"]) == {"MatMul", "Relu_fusion", "copy", "Mean"}


def test_a_program_recorded_as_a_whole_is_compared_with_one_recorded_by_op(run: Run, tmp_path: Path) -> None:
    document = _difference(run, tmp_path, (AS_A_WHOLE, PARTS), (BY_OP, PARTS))
    assert document["ops"] == {"compiled by XLA": pytest.approx((60_000, 60_000)), "Mean": pytest.approx((5_000,) * 2)}


def _difference(run: Run, folder: Path, before: tuple[object, ...], after: tuple[object, ...]) -> dict[str, dict]:
    """Return the times of the ops before and after, and the differences, by name."""
    for uid, job in ((1 << 60, before), (2 << 60, after)):
        store = write(folder / "s", *job, uid=uid)
    document = json.loads(run("diff", "1000", "2000", "--json", "--store", store)[1])
    return {
        "ops": {op["op"]: (op["before_ns"], op["after_ns"]) for op in document["ops"]},
        "differences": {each["what"]: each["before"] for each in document["differences"]},
    }
