"""Operation counts against TensorFlow's registry and the TF profiler."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fakes.made_store import trace_tables, write_job
from fakes.profiles import profile
from integration.oracle.tfprof_answers import COMPAT
from tfprof.collector.flops.registry import REGISTRY
from tfprof.collector.query.facts import FLOAT_OPS
from tfprof.collector.store.catalog import IMPORTED
from tfprof.collector.store.reader import LocalJob, LocalStore
from tfprof.collector.tfviews.nodes import Node
from tfprof.collector.tfviews.parity import DEFAULT, Parity

pytestmark = [
    pytest.mark.tf,
    pytest.mark.parametrize(
        ("oracle_run", "onednn"), [("tf1", False), ("tf2", False), ("tf2", True)], indirect=True, ids=str
    ),
]

ORACLE = Path(__file__).parent / "oracle" / "scripts" / "float_ops.py"
CASES = ("kinds", "fed", "odd")
#: Op types whose counts differ from TensorFlow's because of the number of terms of a sum, adjoint
#: matrices, or padding in gradients.
COUNTED_DIFFERENTLY = {"AddN", "BatchMatMul", "BatchMatMulV2", "Conv2DBackpropInput", "Conv2DBackpropFilter"}


@pytest.fixture(scope="module")
def oracle_run(
    request: pytest.FixtureRequest,
    onednn: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[str, Path]:
    """Return (version, folder with TensorFlow's counts and with stores of the same steps)."""
    python = request.getfixturevalue(f"{request.param}_python")
    folder = tmp_path_factory.mktemp(request.param)
    subprocess.run([python, ORACLE, folder], check=True, capture_output=True, timeout=280)
    for case in CASES:
        graph = (folder / case / "graph.pb").read_bytes()
        parts = [path.read_bytes() for path in sorted((folder / case).glob("run-*.pb"))]
        write_job(folder / case / "store", 1, trace_tables(graph, parts))
        write_job(folder / case / "once", 1, trace_tables(graph, parts[:1]))
        graph_tables = {name: table for name, table in trace_tables(graph, []).items() if table.num_rows}
        write_job(folder / case / "alone", 1, graph_tables, state=IMPORTED)
    return request.param, folder


def counts_of(folder: Path) -> Any:
    """Return TensorFlow's counts of a case."""
    return json.loads((folder / "counts.json").read_text())


def job(folder: Path, name: str = "store") -> LocalJob:
    """Return our job of a case."""
    return LocalStore(folder / name).job("last")


def nodes(stored_job: LocalJob, step: int = -1, parity: Parity = DEFAULT) -> list[Node]:
    """Return the nodes of a job with their operations."""
    step_profile = profile(stored_job, step, required_facts={FLOAT_OPS}, parity=parity)
    assert step_profile is not None
    return step_profile.nodes


def counts_of_job(stored_job: LocalJob, step: int, parity: Parity) -> dict[str, int]:
    """Return {node: operations} without nodes of 0 operations."""
    return {node.name: node.stats.float_ops for node in nodes(stored_job, step, parity) if node.stats.float_ops}


def without_zeros(numbers: Mapping[str, int]) -> dict[str, int]:
    """Return the numbers that are not 0."""
    return {name: number for name, number in numbers.items() if number}


@pytest.mark.parametrize("case", CASES)
def test_a_graph_without_steps_has_the_counts_of_the_registry(oracle_run: tuple[str, Path], case: str) -> None:
    version, folder = oracle_run
    theirs = counts_of(folder / case)
    mine = counts_of_job(job(folder / case, "alone"), -1, Parity(COMPAT[version], exact=True))
    assert mine == theirs["static"]
    assert mine == without_zeros(theirs["once"][0]["nodes"])
    assert sum(mine.values()) == theirs["once"][0]["total"]


def test_the_cases_have_every_registered_op_type(oracle_run: tuple[str, Path]) -> None:
    version, folder = oracle_run
    counted_nodes = counts_of(folder / "kinds")["static"]
    graph = {node.name: node.op for node in nodes(job(folder / "kinds"))}
    missing = set(REGISTRY) - {graph[name] for name in counted_nodes}
    assert missing == Parity(COMPAT[version]).missing_formulas


@pytest.mark.parametrize("case", CASES)
def test_every_node_of_every_step_has_the_count_of_the_tf_profiler(oracle_run: tuple[str, Path], case: str) -> None:
    version, folder = oracle_run
    theirs = counts_of(folder / case)
    assert len(theirs["steps"]) > 2
    for step, answer in theirs["steps"].items():
        mine = counts_of_job(job(folder / case), int(step), Parity(COMPAT[version], exact=True))
        assert mine == without_zeros(answer["nodes"]), step
        assert sum(mine.values()) == answer["total"] > 0


@pytest.mark.parametrize("case", CASES)
def test_the_first_step_alone_has_the_counts_of_tensorflows_one_shot_profile(
    oracle_run: tuple[str, Path], case: str
) -> None:
    version, folder = oracle_run
    answer = counts_of(folder / case)["once"][1]
    assert counts_of_job(job(folder / case, "once"), -1, Parity(COMPAT[version], exact=True)) == without_zeros(
        answer["nodes"]
    )


def test_steps_add_shapes_to_more_nodes_of_the_graph(oracle_run: tuple[str, Path]) -> None:
    _, folder = oracle_run
    for case in ("fed", "odd"):
        theirs = counts_of(folder / case)
        assert len(theirs["filled"]) > len(theirs["static"])


def test_without_parity_the_counts_of_registered_op_types_are_the_same(oracle_run: tuple[str, Path]) -> None:
    _, folder = oracle_run
    theirs, compared = counts_of(folder / "kinds")["static"], set()
    for node in nodes(job(folder / "kinds")):
        is_optimized = node.name.startswith("random_uniform")  # TensorFlow replaces a product with 1 by a copy
        if node.stats.runs and node.name in theirs and node.op not in COUNTED_DIFFERENTLY and not is_optimized:
            assert node.stats.float_ops == theirs[node.name] * node.stats.runs, node.name
            compared.add(node.op)
    assert len(compared) > 25


#: Operations per example of the net in the oracle's case `fed`.
CONV = 2 * 12 * 12 * 8 * 27
POOL = 4 * 6 * 6 * 8
DENSE = 2 * 288 * 10
LOOP = 3 * 2 * 10 * 10


@pytest.mark.parametrize(("step", "batch", "trains"), [(0, 4, True), (1, 6, True), (2, 6, False), (3, 5, True)])
def test_counts_behind_a_placeholder_follow_the_batch_of_the_step(
    oracle_run: tuple[str, Path], step: int, batch: int, trains: bool
) -> None:
    _, folder = oracle_run
    numbers = counts_of_job(job(folder / "fed"), step, DEFAULT)
    dense = numbers.pop("dense/MatMul", 0) + numbers.pop("dense/BiasAdd")
    assert dense == batch * (DENSE + 10), "fused into one node, or two nodes"
    # Without gradients TensorFlow moves the rectifier behind the pooling.
    rectified_pixels = 12 * 12 if trains else 6 * 6
    assert numbers.pop("conv/Conv2D", 0) + numbers.pop("Relu") == batch * (CONV + rectified_pixels * 8)
    assert numbers["pool"] == batch * POOL
    assert numbers["while/loop/MatMul"] == batch * LOOP
    gradients = {
        "gradients/conv/Conv2D_grad/Conv2DBackpropFilter": CONV,
        "gradients/dense/MatMul_grad/MatMul": DENSE,
        "gradients/dense/MatMul_grad/MatMul_1": DENSE,
        "gradients/while/loop/MatMul_grad/MatMul": LOOP,
        "gradients/pool_grad/MaxPoolGrad": POOL + 6 * 6 * 8,
    }
    for name, number in gradients.items():
        assert numbers.get(name, 0) == batch * number * trains, name


def test_the_average_is_over_the_steps_in_which_a_node_ran(oracle_run: tuple[str, Path]) -> None:
    _, folder = oracle_run
    numbers = counts_of_job(job(folder / "fed"), -1, DEFAULT)
    assert numbers["pool"] == (4 + 6 + 6 + 5) * POOL // 4
    assert numbers["gradients/dense/MatMul_grad/MatMul"] == (4 + 6 + 5) * DENSE // 3


def test_shapes_unknown_to_the_graph_are_counted_as_recorded(oracle_run: tuple[str, Path]) -> None:
    _, folder = oracle_run
    stored_job = job(folder / "odd")
    grown = (2 + 4 + 8) * 3, (3 + 6) * 3, (2 + 4 + 8) * 3
    for step, (shape, rows) in enumerate((((2, 2), 16), ((), 12), ((4,), 16))):
        numbers = counts_of_job(stored_job, step, DEFAULT)
        assert numbers["square"] == {(2, 2): 4, (): 1, (4,): 4}[shape]
        assert numbers["doubled"] == rows * 3
        assert numbers["while/grown/Sqrt"] == grown[step], "each iteration with its own shape"
