"""Each op type with a kernel has a formula for its operations, or a reason in uncounted_ops.txt."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.forks import ForkServer
from tfprof.collector.flops.flops import formula
from tfprof.collector.tfviews.parity import DEFAULT

pytestmark = pytest.mark.tf

REASONS = Path(__file__).with_name("uncounted_ops.txt")
ORACLE = Path(__file__).parent / "oracle" / "scripts" / "kernels.py"
#: Prefixes of the op types that TensorFlow's rewrites produce.
REWRITTEN_PREFIXES = ("_Fused", "_Mkl", "__Mkl", "_Quantized", "_Unary", "Fused")


@pytest.fixture(scope="module")
def kernel_op_types(plain_forks: Callable[[str], ForkServer]) -> set[str]:
    """The op types of the kernels of both versions."""
    return {name for version in ("tf1", "tf2") for name in json.loads(plain_forks(version).output(ORACLE)[-1])}


def names_with_reason() -> list[str]:
    lines = REASONS.read_text().splitlines()
    return [name for line in lines if not line.startswith("#") for name in line.split()]


def test_every_kernel_has_a_formula_or_a_reason(kernel_op_types: set[str]) -> None:
    uncounted = {name for name in kernel_op_types if formula(name, DEFAULT) is None}
    explained = names_with_reason()
    assert len(explained) == len(set(explained)), "an op has two reasons"
    assert uncounted - set(explained) == set(), "add formulas, or reasons to uncounted_ops.txt"
    assert set(explained) - uncounted == set(), "op types with a reason have formulas, or no kernel"


def test_rewritten_ops_have_formulas_with_few_exceptions(kernel_op_types: set[str]) -> None:
    rewritten = {name for name in kernel_op_types if name.startswith(REWRITTEN_PREFIXES)}
    assert {name for name in rewritten if formula(name, DEFAULT) is None} == {
        *("_MklConcat", "_MklConcatV2", "_MklConjugateTranspose", "_MklTranspose"),
        *("_MklDequantize", "_MklQuantizeV2", "_MklQuantizedConcatV2"),
        "_MklNativeSparseMatrixMatMul",  # the number of nonzero values is unknown
    }
