"""The op types of TensorFlow's own kernels: each has a count of operations, or a written reason to have none."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.forks import Forks
from tfprof.collector.flops.flops import formula
from tfprof.collector.tfviews.parity import DEFAULT

pytestmark = pytest.mark.tf

REASONS = Path(__file__).with_name("uncounted_ops.txt")
ORACLE = Path(__file__).with_name("oracle_kernels.py")
#: Names that a rewritten node may have begin so.
MADE = ("_Fused", "_Mkl", "__Mkl", "_Quantized", "_Unary", "Fused")


@pytest.fixture(scope="module")
def registered(asking: Callable[[str], Forks]) -> set[str]:
    """The op types of the kernels of both versions."""
    return {name for version in ("tf1", "tf2") for name in json.loads(asking(version).output(ORACLE)[-1])}


def with_reason() -> list[str]:
    lines = REASONS.read_text().splitlines()
    return [name for line in lines if not line.startswith("#") for name in line.split()]


def test_every_kernel_is_counted_or_has_a_reason_not_to_be(registered: set[str]) -> None:
    uncounted = {name for name in registered if formula(name, DEFAULT) is None}
    listed = with_reason()
    assert len(listed) == len(set(listed)), "no op has two reasons"
    assert uncounted - set(listed) == set(), "count them, or say why not"
    assert set(listed) - uncounted == set(), "these are counted, or gone"


def test_what_is_rewritten_is_counted_but_for_what_computes_nothing(registered: set[str]) -> None:
    made = {name for name in registered if name.startswith(MADE)}
    assert {name for name in made if formula(name, DEFAULT) is None} == {
        *("_MklConcat", "_MklConcatV2", "_MklConjugateTranspose", "_MklTranspose"),
        *("_MklDequantize", "_MklQuantizeV2", "_MklQuantizedConcatV2"),
        "_MklNativeSparseMatrixMatMul",  # how many values are not zero is not known
    }
