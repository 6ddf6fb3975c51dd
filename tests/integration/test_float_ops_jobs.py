"""Operation counts of unmodified jobs against numbers computed by hand.

Steps of Keras are recorded as XSpaces, session runs as RunMetadata.
"""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.command import output_of
from fakes.profiled import ProfiledScripts
from tfprof.formats import layout

pytestmark = pytest.mark.tf

JOBS = Path(__file__).parent / "jobs"
#: Operations per example of the two convolutions, the pooling and the dense layer of convnet.py.
FIRST_CONV, SECOND_CONV, POOL, DENSE = 2 * 26 * 26 * 8 * 9, 2 * 13 * 13 * 16 * 72, 4 * 13 * 13 * 8, 2 * 2704 * 10
PARAMETERS = (9 + 1) * 8 + (72 + 1) * 16 + (2704 + 1) * 10


def run(profiled: ProfiledScripts, trace: str, script: str, *arguments: str) -> list[str]:
    """Run a job that must exit with 0; return its printed lines."""
    result = profiled.run(trace, JOBS / script, *arguments)
    assert result.status == 0, result.errors
    return result.output


def ask(profiled: ProfiledScripts, *options: str) -> str:
    """Return the printed op view of the last job."""
    return output_of("op", profiled.uid, "--store", profiled.store, *options)


def entries(profiled: ProfiledScripts, *options: str) -> dict[str, Any]:
    """Return the rows of the op view of the last job by op type."""
    rows = json.loads(ask(profiled, "-select", "float_ops,params", *options, "--json"))["rows"]
    return {row["name"]: row for row in rows}


def float_ops_by_type(entry_of_type: dict[str, Any]) -> Counter[str]:
    """Return the operations of each op type."""
    return Counter({name: entry["float_ops"] for name, entry in entry_of_type.items()})


def exact_float_ops_by_node(profiled: ProfiledScripts, *options: str) -> Counter[str]:
    """Return the operations of each node as the TF profiler gives them; its numbers are strings."""
    output = ask(profiled, "--exact-tf", "-max_depth", "9999", "-select", "float_ops,params", *options, "--json")
    root, numbers = json.loads(output)["profile"], Counter[str]()
    while root["children"]:
        (root,) = root["children"]
        numbers.update({node["name"]: int(node["float_ops"]) for node in root["graph_nodes"]})
    return numbers


def float_ops_by_node(entry_of_type: dict[str, Any]) -> Counter[str]:
    """Return the operations of each node."""
    all_nodes = (node for entry in entry_of_type.values() for node in entry["nodes"])
    return Counter({node["name"]: node["float_ops"] for node in all_nodes})


@pytest.mark.parametrize("package", ["keras", "tf_keras"])
def test_the_operations_of_a_keras_net_follow_its_batch_sizes(
    package: str, onednn: bool, profiled_jobs: Callable[[str], ProfiledScripts]
) -> None:
    profiled = profiled_jobs("tf2")
    run(profiled, "steps=4-6", "convnet.py", package)  # the first epoch compiles, and may exceed the limit of a window
    for step, batch in ((4, 32), (5, 32), (6, 6)):
        numbers = float_ops_by_type(entries(profiled, "-step", str(step)))
        element_wise = 2 * 26 * 26 * 8 + 2 * 13 * 13 * 16  # biases and rectifiers
        assert numbers["_FusedConv2D"] == batch * (FIRST_CONV + SECOND_CONV + element_wise)
        filters, biases = FIRST_CONV + SECOND_CONV, 26 * 26 * 8 + 13 * 13 * 16
        bias_gradients = batch * biases - 8 - 16 if onednn else 0  # oneDNN's op includes the gradient of the bias
        assert (
            numbers["Conv2DBackpropFilter"] + numbers["Conv2DBackpropFilterWithBias"]
            == batch * filters + bias_gradients
        )
        assert numbers["Conv2DBackpropInput"] == batch * SECOND_CONV
        assert numbers["_FusedMatMul"] == batch * (DENSE + 10)
        assert numbers["MatMul"] == batch * 2 * DENSE
        assert numbers["MaxPool"] == batch * POOL
        products, per_example = (
            FIRST_CONV + 2 * SECOND_CONV + 3 * DENSE + filters,
            2 * FIRST_CONV + 3 * SECOND_CONV + 3 * DENSE,
        )
        other_ops = numbers.total() - batch * products
        assert 0 < other_ops < batch * per_example * 0.05, "element-wise ops, pooling and the optimizer"
    by_type = entries(profiled)
    assert sum(int(entry["params"]) for entry in by_type.values()) == PARAMETERS
    trainable = entries(profiled, "-account_type_regexes", "_trainable_variables")
    assert sum(int(entry["params"]) for entry in trainable.values()) == PARAMETERS


def parameters(profiled: ProfiledScripts) -> list[int]:
    """Return the numbers of parameters of the last job: [all, trainable]."""
    selections = (), ("-account_type_regexes", "_trainable_variables")
    return [sum(int(entry["params"]) for entry in entries(profiled, *options).values()) for options in selections]


@pytest.mark.parametrize("package", ["keras", "tf_keras"])
def test_padding_and_normalization_count_the_same_with_and_without_onednn(
    package: str, onednn: bool, profiled_jobs: Callable[[str], ProfiledScripts]
) -> None:
    profiled = profiled_jobs("tf2")
    weights = json.loads(run(profiled, "steps=5", "normalized.py", package)[-1])
    numbers, batch = float_ops_by_node(entries(profiled, "-step", "5")), 16
    first_conv, second_conv, third_conv = 2 * 64 * 4 * 27, 2 * 64 * 5 * 36, 2 * 64 * 6 * 45
    if package == "tf_keras":  # Keras 3 normalizes by single ops
        norms = [number for name, number in numbers.items() if name.endswith("FusedBatchNormV3")]
        relu = 64 * 4 if onednn else 0  # fused into the normalization
        assert sorted(norms) == sorted([batch * (6 * 64 * 4 + relu), batch * 6 * 64 * 5])
        gradients = [number for name, number in numbers.items() if name.endswith("FusedBatchNormGradV3")]
        assert sorted(gradients) == [batch * 9 * 64 * 4, batch * 9 * 64 * 5]
    relus = sum(number for name, number in numbers.items() if name.endswith("/Relu"))
    first_relu = 0 if package == "tf_keras" and onednn else 64 * 4
    assert relus == batch * (second_conv + third_conv + 2 * 64 * (5 + 6) + first_relu)
    convolutions = [number for name, number in numbers.items() if name.endswith(("/Conv2D", "/convolution"))]
    assert [number for number in convolutions if number] == [batch * first_conv]
    bias = batch * 64 * 5 - 5
    filters = sum(number for name, number in numbers.items() if "Conv2DBackpropFilter" in name)
    sums = sum(number for name, number in numbers.items() if "conv2d_1" in name and name.endswith("BiasAddGrad"))
    assert (filters, sums) == (batch * (first_conv + second_conv) + bias * onednn, bias * (not onednn))
    assert parameters(profiled) == weights


@pytest.mark.parametrize("form", ["global", "method", "closure", "argument"])
@pytest.mark.parametrize("package", ["keras", "tf_keras"])
def test_a_handwritten_loop_has_the_parameters_of_its_model(
    package: str, form: str, profiled_jobs: Callable[[str], ProfiledScripts]
) -> None:
    profiled = profiled_jobs("tf2")
    weights = json.loads(run(profiled, "steps=4-5", "custom_loops.py", package, form)[-1])
    assert parameters(profiled) == weights


@pytest.mark.parametrize("form", ["session", "fit", "batches"])
@pytest.mark.parametrize("version", ["tf1", "tf2"])
def test_graph_mode_has_the_parameters_of_the_model_and_none_of_the_optimizer(
    version: str, form: str, profiled_jobs: Callable[[str], ProfiledScripts]
) -> None:
    profiled = profiled_jobs(version)
    weights = json.loads(run(profiled, "all", "graph_weights.py", form)[-1])
    assert parameters(profiled) == weights


@pytest.mark.usefixtures("onednn")
def test_an_evaluation_is_counted_with_its_own_batch_sizes(profiled_jobs: Callable[[str], ProfiledScripts]) -> None:
    profiled = profiled_jobs("tf2")
    run(profiled, "all", "convnet.py", "keras")
    examples = {layout.BATCH: (32, 32, 6) * 2, layout.TEST_BATCH: (50, 20)}
    traces = profiled.job.table("traces").to_pylist()
    assert {row["kind"] for row in traces} == set(examples)
    (forward,) = (
        number
        for name, number in float_ops_by_node(entries(profiled, "--kind", "all")).items()
        if name.endswith("/conv2d_1/Relu")
    )
    per_example = FIRST_CONV + 2 * 26 * 26 * 8
    assert forward == sum(examples[row["kind"]][row["step"] - 1] for row in traces) * per_example / len(traces)


@pytest.mark.usefixtures("onednn")
@pytest.mark.parametrize(
    ("version", "onednn"), [("tf1", False), ("tf2", False), ("tf2", True)], indirect=["onednn"], ids=str
)
def test_the_operations_of_a_session_run_follow_its_feed(
    version: str, profiled_jobs: Callable[[str], ProfiledScripts]
) -> None:
    profiled = profiled_jobs(version)
    run(profiled, "all", "fed_net.py")
    convolution, dense, turn = 2 * 7 * 7 * 8 * 27, 2 * 392 * 10, 2 * 10 * 10
    steps = profiled.job.table("traces")["step"].to_pylist()
    for step, batch in zip(sorted(steps)[1:], (4, 9, 9), strict=True):
        numbers = float_ops_by_node(entries(profiled, "-step", str(step)))
        assert numbers["conv"] == batch * convolution
        assert numbers["dense"] == batch * dense
        assert numbers["while/turn"] + numbers["while/body/_1/turn_0"] == batch * 3 * turn, (
            "the name of the node differs between versions"
        )
        assert numbers["gradients/conv_grad/Conv2DBackpropFilter"] == batch * convolution
        assert numbers["gradients/dense_grad/MatMul"] == numbers["gradients/dense_grad/MatMul_1"] == batch * dense
    average = float_ops_by_node(entries(profiled))
    assert average["conv"] == (4 + 9 + 9) * convolution // 3
    exact = exact_float_ops_by_node(profiled, "-step", str(sorted(steps)[3]))
    assert exact["conv"] == 0, "the TF profiler does not know the shape of the placeholder"
    assert exact["dense"] == 4 * dense, "the TF profiler keeps the counts of the first batch"
    output = ask(profiled, "-select", "input_shapes,occurrence", "-step", str(sorted(steps)[1]))
    assert "4x16x16x3, 3x3x3x8" in output
    assert sum(
        int(entry["params"]) for entry in entries(profiled, "-account_type_regexes", "_trainable_variables").values()
    ) == (3 * 3 * 3 * 8 + 392 * 10 + 100)


#: Operations of the outputs of jobs/rewrites.py, computed by hand for 4 images of 8x8 pixels, with
#: 6 input channels and 4 output channels, and for rows of 48.
_PIXELS, _PADDED = 4 * 8 * 8, 4 * 8 * 10
_ELEMENTS, _OUTPUTS, _CONVOLUTION, _DENSE = _PIXELS * 6, _PIXELS * 4, 2 * 3 * 3 * 6 * 4, 2 * 32 * 48 * 5
REWRITES = {
    "conv_bias_relu": _PIXELS * _CONVOLUTION + 2 * _OUTPUTS,
    "pad_conv": _PADDED * _CONVOLUTION,
    "pad_conv_relu": _PADDED * _CONVOLUTION + 2 * _PADDED * 4,
    "norm_relu": 7 * _ELEMENTS,
    "inference_norm_relu": 3 * _ELEMENTS,
    "dense_tanh": _DENSE + 2 * 160,
    "gelu": _DENSE + 6 * 160,
    "swish": 2 * _ELEMENTS,
    "mish": 3 * _ELEMENTS,
    "scores": 4 * 8 * 8 * 48 * 2 + 2 * 4 * 8 * 8,
    "squeezed": 4 * 8 * 4 * 6 * 2 + 4 * 8 * 4,
    "depthwise": _ELEMENTS * 9 * 2 + 2 * _ELEMENTS,
    "unary": 3 * _ELEMENTS,
}
#: Operations of the additions to images and rows before those ops. TensorFlow merges equal
#: additions, so each different addition counts once.
_SHIFTS = 8 * _ELEMENTS + 2 * 32 * 48 + 4 * 8 * 6


@pytest.mark.usefixtures("onednn")
@pytest.mark.parametrize("kind", ["session", "function"])
def test_rewritten_ops_have_the_operations_of_the_original_ops(
    kind: str, profiled_jobs: Callable[[str], ProfiledScripts]
) -> None:
    profiled = profiled_jobs("tf2")
    run(profiled, "steps=3", "rewrites.py", kind)
    numbers = float_ops_by_node(entries(profiled, "-step", "3"))
    assert numbers.total() == sum(REWRITES.values()) + _SHIFTS
    assert "not counted" not in ask(profiled, "-select", "float_ops", "-step", "3")


@pytest.mark.parametrize("loop", ["old", "new"])
@pytest.mark.parametrize("version", ["tf1", "tf2"])
def test_a_loop_counts_the_rows_of_each_iteration(
    version: str, loop: str, profiled_jobs: Callable[[str], ProfiledScripts]
) -> None:
    profiled = profiled_jobs(version)
    run(profiled, "all", "growing.py", loop)
    numbers = {
        name.rpartition("/")[2].partition("_0")[0]: number
        for name, number in float_ops_by_node(entries(profiled)).items()
    }
    assert numbers["turn"] == sum(2 * rows * 8 * 8 for rows in (4, 8, 16))
    assert numbers["square"] == sum(2 * rows * 8 * rows for rows in (4, 8, 16))
    assert numbers["total"] == sum(rows * 8 - 1 for rows in (4, 8, 16))
    assert numbers["mean"] == sum(rows * rows for rows in (4, 8, 16))
