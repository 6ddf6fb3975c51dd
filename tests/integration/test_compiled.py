"""Programs that XLA compiled in real jobs: their names, and the ops that went into them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.profiled import ProfiledScripts
from tfprof.collector.query.compiled import compiled

pytestmark = pytest.mark.tf

SCRIPT = Path(__file__).parent / "jobs" / "compiled.py"


def test_a_compiled_function_has_its_name_its_ops_and_their_times(
    profiled_jobs: Callable[[str], ProfiledScripts],
) -> None:
    jobs = profiled_jobs("tf2")
    assert jobs.run("every=5", SCRIPT, "function").status == 0
    (program,) = compiled(jobs.job).programs
    assert (program.name, program.variants) == ("train_step", 1)
    assert program.first_runs is not None
    assert program.first_runs.number == 1
    ops = {op.node: op for op in program.ops}
    assert ops["MatMul"].op == "MatMul"
    assert ops["MatMul"].line.startswith("compiled.py:")
    assert (ops["mul"].op, ops["mul"].ns, ops["mul"].fused_into in ops) == ("Mul", None, True)
    assert program.ns == pytest.approx(sum(op.ns for op in program.ops if op.ns is not None))


def test_the_programs_of_one_function_are_told_apart(profiled_jobs: Callable[[str], ProfiledScripts]) -> None:
    jobs = profiled_jobs("tf2")
    assert jobs.run("every=5", SCRIPT, "shapes").status == 0
    (program,) = compiled(jobs.job).programs
    assert (program.name, program.variants) == ("train_step", 2)
    assert program.share == pytest.approx(1)  # each instruction is found in its program
    ops = {op.node: op for op in program.ops}
    assert (ops["MatMul"].op, ops["Relu"].op) == ("MatMul", "Relu_fusion")


def test_a_cluster_of_a_session_has_a_time_and_the_ops_that_the_graph_marks(
    profiled_jobs: Callable[[str], ProfiledScripts],
) -> None:
    jobs = profiled_jobs("tf1")
    assert jobs.run("every=5", SCRIPT, "session").status == 0
    (program,) = compiled(jobs.job).programs
    assert program.name == "cluster_0"
    assert program.ns
    assert {"MatMul", "mul", "Relu", "Sum"} <= {op.node for op in program.ops}
