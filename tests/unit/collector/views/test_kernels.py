"""Kernels of libraries under their ops' names."""

import pytest
from tfprof.collector.views.kernels import op_type


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
    ],
)
def test_a_kernel_goes_by_its_ops_name(kernel: str, op: str) -> None:
    assert op_type(kernel) == op
