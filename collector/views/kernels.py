"""Op types by what was seen to run: libraries give their kernels names of their own."""

import re
from typing import Final

#: oneDNN's kernels: `_MklMatMul` is a MatMul, `_MklNativeFusedConv2D` TensorFlow's `_FusedConv2D`.
_ONEDNN: Final = re.compile("_Mkl(Native)?(Fused)?(.+)")


def op_type(kernel: str) -> str:
    """Return the op type that ``kernel`` implements, itself when it is none of a library's."""
    match = _ONEDNN.fullmatch(kernel)
    if match is None:
        return kernel
    return f"_Fused{match[3]}" if match[2] else match[3]
