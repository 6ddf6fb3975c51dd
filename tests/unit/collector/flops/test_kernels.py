"""Op types of the kernels of libraries."""

import pytest
from tfprof.collector.flops.kernels import is_library_kernel, op_type, split_label


@pytest.mark.parametrize(
    ("kernel", "op"),
    [
        ("MatMul", "MatMul"),
        ("_FusedConv2D", "_FusedConv2D"),
        ("_MklMatMul", "MatMul"),
        ("_MklNativeFusedConv2D", "_FusedConv2D"),
        ("_MklFusedMatMul", "_FusedMatMul"),
        ("_MklNativeConv2DBackpropFilterWithBias", "Conv2DBackpropFilterWithBias"),
        ("_Mkl", "_Mkl"),
        ("_MklNativeFusedBatchNormV3", "FusedBatchNormV3"),
        ("_MklNativeFusedBatchNormGradV3", "FusedBatchNormGradV3"),
        ("_MklNativeFusedBatchNormEx", "_FusedBatchNormEx"),
        ("_MklNativePadWithFusedConv2D", "PadWithFusedConv2D"),
        ("__MklDummyPadWithConv2D", "PadWithConv2D"),
    ],
)
def test_a_kernel_has_the_op_type_that_it_implements(kernel: str, op: str) -> None:
    assert op_type(kernel) == op


def test_a_label_is_split_into_node_kernel_and_inputs() -> None:
    parts = split_label("a/b = _MklMatMul(x, y)")
    assert split_label("[CPU: 3] a/b = _MklMatMul(x, y)") == parts == ("a/b", "_MklMatMul", "x, y)")
    assert split_label("__dbg_w:0_0_DebugIdentity = DebugIdentity(w)") == ("__dbg_w", "DebugIdentity", "w)")
    assert split_label("_MklMatMul") is None
    assert [is_library_kernel(name) for name in ("_MklMatMul", "MatMul", "_FusedConv2D")] == [True, False, False]
