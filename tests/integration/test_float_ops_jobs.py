"""Operation counts of unmodified jobs, against numbers made by hand: Keras on profiler windows, sessions on their run's metadata."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tfprof.collector.store.reader import Store
from tfprof.shim import layout

pytestmark = pytest.mark.tf

JOBS = Path(__file__).parent / "jobs"
TFPROF = str(Path(sys.executable).parent / "tfprof")
#: Operations for one example: of the two convolutions, the pooling and the dense layer of convnet.py.
FIRST, SECOND, POOL, DENSE = 2 * 26 * 26 * 8 * 9, 2 * 13 * 13 * 16 * 72, 4 * 13 * 13 * 8, 2 * 2704 * 10
PARAMETERS = (9 + 1) * 8 + (72 + 1) * 16 + (2704 + 1) * 10


def run(*command: str | Path) -> str:
    """Run a command that ends well, and return what it prints."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def entries(*options: str) -> dict[str, Any]:
    """Return the op view of the last job by op type."""
    asked = run(TFPROF, "op", "last", "-max_depth", "9999", "-select", "float_ops,params", *options, "--json")
    root = json.loads(asked)["profile"]
    found = {}
    while root["children"]:
        (root,) = root["children"]
        found[root["name"]] = root
    return found


def float_ops(found: dict[str, Any]) -> Counter[str]:
    """Return the operations of each op type; numbers of 64 bits are texts."""
    return Counter({name: int(entry["float_ops"]) for name, entry in found.items()})


def nodes(found: dict[str, Any]) -> Counter[str]:
    """Return the operations of each node."""
    every = (node for entry in found.values() for node in entry["graph_nodes"])
    return Counter({node["name"]: int(node["float_ops"]) for node in every})


@pytest.mark.parametrize("package", ["keras", "tf_keras"])
def test_a_net_in_keras_has_the_operations_of_its_batches(
    package: str, tf2_python: Path, private_places: Path, onednn: bool
) -> None:
    run(f"{TFPROF}-run", "--trace", "all", tf2_python, JOBS / "convnet.py", package)
    for step, batch in ((1, 32), (2, 32), (3, 6)):
        numbers = float_ops(entries("-step", str(step)))
        element_wise = 2 * 26 * 26 * 8 + 2 * 13 * 13 * 16  # biases and rectifiers
        assert numbers["_FusedConv2D"] == batch * (FIRST + SECOND + element_wise)
        # A limitation (docs/views.md): oneDNN's op with the bias's gradient in it is not counted.
        filters = 0 if onednn else FIRST + SECOND
        assert numbers["Conv2DBackpropFilter"] + numbers["Conv2DBackpropFilterWithBias"] == batch * filters
        assert numbers["Conv2DBackpropInput"] == batch * SECOND
        assert numbers["_FusedMatMul"] == batch * (DENSE + 10)
        assert numbers["MatMul"] == batch * 2 * DENSE
        assert numbers["MaxPool"] == batch * POOL
        products, most = FIRST + 2 * SECOND + 3 * DENSE + filters, 2 * FIRST + 3 * SECOND + 3 * DENSE
        rest = numbers.total() - batch * products
        assert 0 < rest < batch * most * 0.05, "what is element-wise, pooling, and the optimizer"
    by_type = entries()
    assert sum(int(entry["parameters"]) for entry in by_type.values()) == PARAMETERS
    trainable = entries("-account_type_regexes", "_trainable_variables")
    assert sum(int(entry["parameters"]) for entry in trainable.values()) == PARAMETERS


@pytest.mark.usefixtures("onednn")
def test_evaluation_with_other_batches_has_those_of_its_own(tf2_python: Path, private_places: Path) -> None:
    run(f"{TFPROF}-run", "--trace", "all", tf2_python, JOBS / "convnet.py", "keras")
    kinds = Store(private_places).job("last").table("traces")["kind"].to_pylist()
    assert Counter(kinds) == {layout.BATCH: 3, layout.TEST_BATCH: 2}
    (forward,) = (number for name, number in nodes(entries()).items() if name.endswith("/conv2d_1/Relu"))
    each = FIRST + 2 * 26 * 26 * 8
    assert forward == (32 + 32 + 6 + 50 + 20) * each // 5


@pytest.mark.usefixtures("onednn")
@pytest.mark.parametrize(
    ("version", "onednn"), [("tf1", False), ("tf2", False), ("tf2", True)], indirect=["onednn"], ids=str
)
def test_a_session_has_the_operations_of_what_it_was_fed(
    version: str, request: pytest.FixtureRequest, private_places: Path
) -> None:
    python = request.getfixturevalue(f"{version}_python")
    run(f"{TFPROF}-run", "--trace", "all", python, JOBS / "fed_net.py")
    convolution, dense, turn = 2 * 7 * 7 * 8 * 27, 2 * 392 * 10, 2 * 10 * 10
    steps = Store(private_places).job("last").table("traces")["step"].to_pylist()
    for step, batch in zip(sorted(steps)[1:], (4, 9, 9), strict=True):
        numbers = nodes(entries("-step", str(step)))
        assert numbers["conv"] == batch * convolution
        assert numbers["dense"] == batch * dense
        assert numbers["while/turn"] + numbers["while/body/_1/turn_0"] == batch * 3 * turn, "as this version calls it"
        assert numbers["gradients/conv_grad/Conv2DBackpropFilter"] == batch * convolution
        assert numbers["gradients/dense_grad/MatMul"] == numbers["gradients/dense_grad/MatMul_1"] == batch * dense
    average = nodes(entries())
    assert average["conv"] == (4 + 9 + 9) * convolution // 3
    strictly = nodes(entries("--strict-tfprof", "-step", str(sorted(steps)[3])))
    assert strictly["conv"] == 0, "the placeholder's shape is not known to TensorFlow's own profiler"
    assert strictly["dense"] == 4 * dense, "and what it counts goes by the first batch, for good"
    shown = run(TFPROF, "op", "last", "-select", "input_shapes,occurrence", "-step", str(sorted(steps)[1]))
    assert "input_type: 0:4x16x16x3,\t1:3x3x3x8\t" in shown
    assert sum(
        int(entry["parameters"]) for entry in entries("-account_type_regexes", "_trainable_variables").values()
    ) == (3 * 3 * 3 * 8 + 392 * 10 + 100)
