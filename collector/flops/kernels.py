"""Maps the kernel names of libraries to op types."""

import re
from typing import Final, NamedTuple

#: Names of oneDNN's kernels: `_MklMatMul` implements MatMul, `_MklNativeFusedConv2D` implements
#: TensorFlow's `_FusedConv2D`.
_ONEDNN: Final = re.compile("_?_Mkl(?:Native|Dummy)?(.+)")
#: An executor's timeline label: memory in use (optional), node, op, inputs.
_LABEL: Final = re.compile(r"(?:\[[^\]]*\] )?(\S+) = (\w+)\((.*)", re.DOTALL)
#: Fused ops that TensorFlow's optimizer also creates without oneDNN; their names begin with `_`.
FUSED_OPS: Final = frozenset(
    {
        *("_FusedConv2D", "_FusedConv3D", "_FusedDepthwiseConv2dNative", "_FusedMatMul", "_FusedBatchMatMulV2"),
        *("_FusedBatchNormEx", "_FusedBatchNormGradEx"),
    }
)


def op_type(kernel: str) -> str:
    """Return the op type that ``kernel`` implements.

    Return ``kernel`` itself if it is not the kernel of a library.
    """
    match = _ONEDNN.fullmatch(kernel)
    if match is None:
        return kernel
    return f"_{match[1]}" if f"_{match[1]}" in FUSED_OPS else match[1]


def is_library_kernel(kernel: str) -> bool:
    """Return whether ``kernel`` is a kernel of oneDNN, whose name is not that of its op type."""
    return _ONEDNN.fullmatch(kernel) is not None


class Label(NamedTuple):
    """The node, the kernel and the inputs in an executor's timeline label.

    `inputs_text` is the text after `(`.
    """

    node: str
    kernel: str
    inputs_text: str


def split_label(label: str) -> Label | None:
    """Parse a timeline label; return None if it is not from an executor.

    The node's name ends at a colon, as in the store: the debugger names its nodes after tensors.
    """
    match = _LABEL.fullmatch(label)
    return Label(match[1].partition(":")[0], match[2], match[3]) if match else None
