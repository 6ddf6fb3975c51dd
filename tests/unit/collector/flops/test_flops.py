"""Operation counts of single ops, compared with numbers computed by hand.

Tests collector/flops/registry.py.
"""

from typing import Any

import pytest
from fakes.graphs import attributes
from hypothesis import given
from hypothesis import strategies as st
from tfprof.collector.flops.flops import OWN_FORMULAS, float_ops
from tfprof.collector.flops.registry import REGISTRY
from tfprof.collector.tfviews.parity import Parity

OWN, EXACT, OLD = Parity(), Parity(exact=True), Parity(compat="1.15", exact=True)
IMAGES, KERNEL, OUTPUT = (2, 8, 8, 6), (3, 3, 6, 4), (2, 6, 6, 4)
IMAGES_NCHW, OUTPUT_NCHW = (2, 6, 8, 8), (2, 4, 6, 6)
#: Operations of a convolution of IMAGES with KERNEL without padding: two for each multiply-add.
CONVOLUTION = 2 * (2 * 6 * 6 * 4) * (3 * 3 * 6)


@pytest.mark.parametrize(
    ("op", "inputs", "outputs", "number"),
    [
        ("Square", [(3, 4)], [(3, 4)], 12),
        ("Rsqrt", [(3, 4)], [(3, 4)], 24),
        ("Softmax", [(3, 4)], [(3, 4)], 60),
        ("L2Loss", [(3, 4)], [()], 35),
        ("Add", [(3, 1), (4,)], [(3, 4)], 12),
        ("SquaredDifference", [(3, 4), (4,)], [(3, 4)], 24),
        ("RsqrtGrad", [(5,), (5,)], [(5,)], 20),
        ("Mean", [(3, 4), (1,)], [(3,)], 12),
        ("Sum", [(3, 4), (1,)], [(3,)], 9),
        ("Sum", [(), (0,)], [()], 0),
        ("BiasAddGrad", [(5, 4)], [(4,)], 16),
        ("AddN", [(5,), (5,), (5,)], [(5,)], 10),
        ("MatMul", [(3, 5), (5, 7)], [(3, 7)], 2 * 3 * 5 * 7),
        ("BatchMatMul", [(2, 3, 5), (2, 5, 7)], [(2, 3, 7)], 2 * 2 * 3 * 5 * 7),
        ("BiasAdd", [(5, 4), (4,)], [(5, 4)], 20),
        ("Conv2D", [IMAGES, KERNEL], [OUTPUT], CONVOLUTION),
        ("DepthwiseConv2dNative", [IMAGES, (3, 3, 6, 2)], [(2, 6, 6, 12)], 2 * (2 * 6 * 6 * 12) * 9),
        ("Conv3D", [(1, 4, 4, 4, 2), (2, 2, 2, 2, 3)], [(1, 3, 3, 3, 3)], 2 * 81 * 16),
    ],
)
def test_registered_and_own_formulas_count_what_tensorflow_registers(
    op: str, inputs: Any, outputs: Any, number: int
) -> None:
    for parity in (EXACT, OLD, OWN):
        assert float_ops(op, {}, inputs, outputs, parity) == number, parity


def test_pooling_counts_its_windows() -> None:
    attrs = attributes(ksize=[1, 3, 2, 1], strides=[1, 1, 1, 1], data_format="NHWC")
    assert float_ops("MaxPool", attrs, [IMAGES], [OUTPUT], EXACT) == 6 * 288
    assert float_ops("AvgPoolGrad", attrs, [(4,), OUTPUT], [IMAGES], EXACT) == 6 * 288 * 2
    assert float_ops("MaxPoolGrad", attrs, [IMAGES, OUTPUT, OUTPUT], [IMAGES], EXACT) == 7 * 288


def test_with_exact_parity_quotients_are_truncated_as_in_tensorflow() -> None:
    attrs = attributes(strides=[1, 2, 2, 1], data_format="NHWC")
    images, kernel = (1, 3, 3, 1), (1, 1, 1, 5)
    assert float_ops("Conv2DBackpropInput", attrs, [(4,), kernel, (1, 2, 2, 5)], [images], EXACT) == int(90 / 4)
    assert float_ops("Conv2DBackpropFilter", attrs, [images, (4,), (1, 2, 2, 5)], [kernel], EXACT) == int(90 / 4)


def test_gradients_of_a_convolution_count_like_the_convolution() -> None:
    for layout, image in (("NHWC", IMAGES), ("NCHW", IMAGES_NCHW)):
        attrs = attributes(strides=[1, 1, 1, 1], data_format=layout)
        output = OUTPUT if layout == "NHWC" else OUTPUT_NCHW
        assert float_ops("Conv2DBackpropInput", attrs, [(4,), KERNEL, output], [image], OWN) == CONVOLUTION
        assert float_ops("Conv2DBackpropFilter", attrs, [image, (4,), output], [KERNEL], OWN) == CONVOLUTION


def test_with_exact_parity_pooling_and_gradients_in_other_data_formats_have_no_number() -> None:
    attrs = attributes(ksize=[1, 1, 2, 2], strides=[1, 1, 1, 1], data_format="NCHW")
    gradient = [IMAGES_NCHW, OUTPUT_NCHW, OUTPUT_NCHW]
    for op, inputs, outputs, number in (
        ("MaxPool", [IMAGES_NCHW], [OUTPUT_NCHW], 4 * 288),
        ("AvgPool", [IMAGES_NCHW], [OUTPUT_NCHW], 4 * 288),
        ("AvgPoolGrad", [(4,), OUTPUT_NCHW], [IMAGES_NCHW], 8 * 288),
        ("MaxPoolGrad", gradient, [IMAGES_NCHW], 5 * 288),
    ):
        assert float_ops(op, attrs, inputs, outputs, EXACT) is None
        assert float_ops(op, attrs, inputs, outputs, OWN) == number
    assert float_ops("Conv2DBackpropInput", attrs, [(4,), KERNEL, OUTPUT_NCHW], [IMAGES_NCHW], EXACT) is None
    assert float_ops("Conv2D", attrs, [IMAGES_NCHW, KERNEL], [OUTPUT_NCHW], EXACT) == CONVOLUTION


@pytest.mark.parametrize(
    ("compat", "missing"),
    [("1.15", {"AddV2", "BatchMatMulV2", "BatchMatMulV3"}), ("2.4", {"AddV2", "BatchMatMulV3"}), ("2.21", set())],
)
def test_older_versions_do_not_register_newer_ops(compat: str, missing: set[str]) -> None:
    shapes: tuple[Any, Any] = [(2, 2), (2, 2)], [(2, 2)]
    ops = ("Add", "AddV2", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
    assert {op for op in ops if float_ops(op, {}, *shapes, Parity(compat, exact=True)) is None} == missing
    assert all(float_ops(op, {}, *shapes, Parity(compat)) for op in ops)


@pytest.mark.parametrize("op", ["BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"])
def test_an_adjoint_matrix_is_summed_over_its_rows(op: str) -> None:
    shapes: tuple[Any, Any] = [(2, 5, 3), (2, 5, 7)], [(2, 3, 7)]
    attrs = attributes(adj_x=True)
    assert float_ops(op, attrs, *shapes, OWN) == 2 * 2 * 3 * 5 * 7
    assert float_ops(op, attrs, *shapes, EXACT) == 2 * 2 * 3 * 3 * 7, "TensorFlow looks for another attribute"


def test_a_matrix_product_is_counted_from_either_matrix() -> None:
    for inputs in ([(3, 5), None], [None, (5, 7)], [(-1, 5), (5, 7)]):
        assert float_ops("MatMul", {}, inputs, [(3, 7)], OWN) == 2 * 3 * 5 * 7
        assert float_ops("MatMul", {}, inputs, [(3, 7)], EXACT) == (None if inputs[0] != (3, 5) else 210)
    assert float_ops("MatMul", {}, [(-1, 5), (-1, 7)], [(3, 7)], OWN) is None
    assert float_ops("MatMul", {}, [(0, 5), (5, 7)], [(0, 7)], OWN) == 0


def test_control_inputs_of_addn_count_as_addends_only_with_exact_parity() -> None:
    inputs = [(5,), (5,), None]
    assert float_ops("AddN", attributes(N=2), inputs, [(5,)], EXACT) == 10
    assert float_ops("AddN", attributes(N=2), inputs, [(5,)], OWN) == 5


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "outputs", "number"),
    [
        ("Relu", {}, [(3, 4)], [(3, 4)], 12),
        ("TanhGrad", {}, [(3, 4), (3, 4)], [(3, 4)], 12),
        ("FloorDiv", {}, [(3, 4), ()], [(3, 4)], 12),
        ("Max", {}, [(3, 4), (1,)], [(3,)], 9),
        ("AssignAddVariableOp", {}, [(), (3, 4)], [], 12),
        ("FusedBatchNormV3", {"is_training": True}, [IMAGES], [IMAGES], 6 * 768),
        ("FusedBatchNormV3", {"is_training": False}, [IMAGES], [IMAGES], 2 * 768),
        ("FusedBatchNormGradV2", {"is_training": True}, [IMAGES], [IMAGES], 9 * 768),
        ("BiasAddV1", {}, [(5, 4), (4,)], [(5, 4)], 20),
        ("DepthwiseConv2dNativeBackpropInput", {}, [(4,), (3, 3, 6, 2), (2, 6, 6, 12)], [IMAGES], 2 * 864 * 9),
        ("DepthwiseConv2dNativeBackpropFilter", {}, [IMAGES, (4,), (2, 6, 6, 12)], [(3, 3, 6, 2)], 2 * 864 * 9),
        ("Conv3DBackpropInputV2", {}, [(5,), (2, 2, 2, 2, 3), (1, 3, 3, 3, 3)], [(1, 4, 4, 4, 2)], 2 * 81 * 16),
        ("Conv3DBackpropFilterV2", {}, [(1, 4, 4, 4, 2), (5,), (1, 3, 3, 3, 3)], [(2, 2, 2, 2, 3)], 2 * 81 * 16),
        ("MaxPool3D", {"ksize": [1, 2, 2, 2, 1]}, [None], [(1, 3, 3, 3, 3)], 8 * 81),
        ("Einsum", {"equation": "abij,abjk->abik", "N": 2}, [(3, 2, 6, 5), (3, 2, 5, 7)], [(3, 2, 6, 7)], 2520),
        ("_FusedConv2D", {"fused_ops": ["BiasAdd", "Relu"]}, [IMAGES, KERNEL, (4,)], [OUTPUT], CONVOLUTION + 2 * 288),
        ("_FusedMatMul", {}, [(3, 5), (5, 7), (7,)], [(3, 7)], 210 + 21),
        ("_MklMatMul", {}, [(3, 5), (5, 7)], [(3, 7)], 210),
        ("_MklNativeConv2D", {}, [None, KERNEL], [OUTPUT], CONVOLUTION),
        ("QuantizedMatMulWithBiasAndRelu", {}, [(3, 5), (5, 7), (7,)], [(3, 7)], 210),
        ("QuantizedConv2DAndRequantize", {}, [None, KERNEL], [OUTPUT], CONVOLUTION),
        ("_QuantizedMatMul", {}, [(3, 5), (5, 7)], [(3, 7)], 210),
    ],
)
def test_only_own_formulas_count_these_ops(op: str, attrs: Any, inputs: Any, outputs: Any, number: int) -> None:
    assert float_ops(op, attributes(**attrs), inputs, outputs, OWN) == number
    assert float_ops(op, attributes(**attrs), inputs, outputs, EXACT) is None


def test_an_unknown_shape_that_the_count_needs_gives_no_number() -> None:
    for parity in (EXACT, OWN):
        assert float_ops("Sum", {}, [(-1, 4), (1,)], [(4,)], parity) is None
        assert float_ops("Conv2D", {}, [IMAGES, None], [OUTPUT], parity) is None
        assert float_ops("Einsum", attributes(N=2, equation="ij,jk->ik"), [(3, 5), None], [(3, 7)], parity) is None
    assert float_ops("Conv2D", {}, [(-1, 8, 8, 6), KERNEL], [OUTPUT], EXACT) is None, (
        "TensorFlow needs the input's sizes"
    )
    assert float_ops("Conv2D", {}, [(-1, 8, 8, 6), KERNEL], [OUTPUT], OWN) == CONVOLUTION
    assert float_ops("Square", {}, [None], [(3, 4)], OWN) == 12


def test_ops_without_arithmetic_have_no_number() -> None:
    for parity in (EXACT, OWN):
        assert float_ops("Identity", {}, [(3, 4)], [(3, 4)], parity) is None
    assert float_ops("Relu", {}, [(3, 4)], [(3, 4)], EXACT) is None


sizes = st.integers(-1, 4)
shapes = st.lists(st.none() | st.lists(sizes, max_size=5).map(tuple), max_size=5)


@given(
    st.sampled_from(sorted({*REGISTRY, *OWN_FORMULAS})),
    shapes,
    shapes,
    st.sampled_from([{}, {"ksize": [2, 2], "strides": [1, 0], "equation": "ij->k", "data_format": "NCHW", "N": 7}]),
    st.sampled_from([EXACT, OLD, OWN]),
)
def test_random_shapes_raise_no_error(op: str, inputs: Any, outputs: Any, attrs: Any, parity: Parity) -> None:
    number = float_ops(op, attributes(**attrs), inputs, outputs, parity)
    assert number is None or isinstance(number, int)


#: Inputs of a normalization of 60 elements, and of the gradient of a convolution of IMAGES with
#: KERNEL. The convolution has 288 outputs in 4 channels.
_NORM_INPUTS = [(3, 4, 5), (5,), (5,), (5,), (5,)]
_GRADIENT_INPUTS = [IMAGES, (4,), OUTPUT]


@pytest.mark.parametrize(
    ("op", "inputs", "outputs", "number"),
    [
        ("FusedBatchNormV3", _NORM_INPUTS, [(3, 4, 5)], 6 * 60),
        ("FusedBatchNormGradV3", [(3, 4, 5), *_NORM_INPUTS], [(3, 4, 5)], 9 * 60),
        ("FusedBatchNormEx", _NORM_INPUTS, [(3, 4, 5)], 7 * 60),
        ("FusedBatchNormEx", [*_NORM_INPUTS, (3, 4, 5)], [(3, 4, 5)], 8 * 60),
        ("FusedConv2D", [IMAGES, KERNEL, (4,)], [OUTPUT], CONVOLUTION + 288),
        ("Conv2DWithBias", [IMAGES, KERNEL, (4,)], [OUTPUT], CONVOLUTION + 288),
        ("PadWithConv2D", [IMAGES, KERNEL, (4, 2)], [OUTPUT], CONVOLUTION),
        ("PadWithFusedConv2D", [IMAGES, KERNEL, (4,), (4, 2)], [OUTPUT], CONVOLUTION + 288),
        ("Conv2DBackpropFilter", _GRADIENT_INPUTS, [KERNEL], CONVOLUTION),
        ("Conv2DBackpropFilterWithBias", _GRADIENT_INPUTS, [KERNEL, (4,)], CONVOLUTION + 288 - 4),
        ("FusedDepthwiseConv2dNative", [IMAGES, (3, 3, 6, 1), (6,)], [(2, 6, 6, 6)], (2 * 9 + 1) * 432),
        ("FusedConv3D", [(1, 4, 4, 4, 2), (2, 2, 2, 2, 3), (3,)], [(1, 3, 3, 3, 3)], (2 * 16 + 1) * 81),
        ("FusedMatMul", [(3, 5), (5, 7), (7,)], [(3, 7)], (2 * 5 + 1) * 21),
        ("FusedBatchMatMulV2", [(2, 3, 5), (2, 5, 7), (), (3, 7)], [(2, 3, 7)], (2 * 5 + 2) * 42),
        ("QuantizedMatMulWithBiasAndRelu", [(3, 5), (5, 7), (7,)], [(3, 7)], 2 * 5 * 21),
        ("QuantizedConv2DWithBias", [IMAGES, KERNEL, (4,)], [OUTPUT], CONVOLUTION),
        ("Swish", [(3, 4, 5)], [(3, 4, 5)], 2 * 60),
        ("FusedMish", [(3, 4, 5)], [(3, 4, 5)], 3 * 60),
        ("LayerNorm", [(3, 4, 5), (5,), (5,)], [(3, 4, 5)], 6 * 60),
        ("FusedInstanceNorm", [(3, 4, 5), (5,), (5,)], [(3, 4, 5)], 6 * 60),
        ("Softmax", [(3, 4, 5)], [(3, 4, 5)], 5 * 60),
    ],
)
def test_kernels_of_onednn_are_counted(op: str, inputs: Any, outputs: Any, number: int) -> None:
    for prefix in ("_Mkl", "_MklNative"):
        assert float_ops(prefix + op, {}, inputs, outputs, OWN) == number
        assert float_ops(prefix + op, {}, inputs, outputs, EXACT) is None


def test_fused_ops_of_tensorflow_are_counted() -> None:
    norm, outputs = [(3, 4, 5), (5,), (5,)], [(3, 4, 5)]
    assert float_ops("_FusedBatchNormGradEx", {}, [(3, 4, 5), *norm], outputs, OWN) == 10 * 60
    attrs = attributes(is_training=False)
    assert float_ops("_FusedBatchNormEx", attrs, _NORM_INPUTS, outputs, OWN) == 3 * 60
    composition = attributes(op_names=["Abs", "Exp", "Tanh"])
    assert float_ops("_UnaryOpsComposition", composition, outputs, outputs, OWN) == 3 * 60
    assert float_ops("_UnaryOpsComposition", {}, outputs, outputs, OWN) is None
    assert float_ops("FusedPadConv2D", {}, [IMAGES, (4, 2), KERNEL], [OUTPUT], OWN) == CONVOLUTION
    resized = [IMAGES, (2,), (4, 2), KERNEL]
    assert float_ops("FusedResizeAndPadConv2D", {}, resized, [OUTPUT], OWN) == CONVOLUTION
    assert float_ops("_FusedQuantizedConv2D", {}, [IMAGES, KERNEL], [OUTPUT], OWN) == CONVOLUTION
    assert float_ops("_QuantizedMatMul", {}, [(3, 5), (5, 7)], [(3, 7)], OWN) == 2 * 5 * 21


def test_contradicting_shapes_of_a_matrix_product_give_no_number() -> None:
    assert float_ops("MatMul", {}, [(4, 8), (8, 8)], [(16, 8)], OWN) is None
    assert float_ops("MatMul", {}, [(-1, 8), (8, 8)], [(16, 8)], OWN) == 2 * 16 * 8 * 8
