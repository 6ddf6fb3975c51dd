"""The op types of TensorFlow's own kernels: each has a count of operations, or a written reason to have none."""

import functools
import json
import os
import subprocess
from pathlib import Path

import pytest
from tfprof.collector.flops.flops import formula
from tfprof.collector.tfviews.parity import DEFAULT

pytestmark = [pytest.mark.tf, pytest.mark.xdist_group("kernels")]

REASONS = Path(__file__).with_name("uncounted_ops.txt")
LIST = """
import json
from tensorflow.python.framework import kernels
print(json.dumps(sorted({kernel.op for kernel in kernels.get_all_registered_kernels().kernel})))
"""
#: Names that a rewritten node may have begin so.
MADE = ("_Fused", "_Mkl", "__Mkl", "_Quantized", "_Unary", "Fused")


@functools.cache
def registered(python: Path) -> set[str]:
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run([python, "-c", LIST], capture_output=True, text=True, check=True, env=environment)
    return set(json.loads(done.stdout.splitlines()[-1]))


def with_reason() -> list[str]:
    lines = REASONS.read_text().splitlines()
    return [name for line in lines if not line.startswith("#") for name in line.split()]


def test_every_kernel_is_counted_or_has_a_reason_not_to_be(tf1_python: Path, tf2_python: Path) -> None:
    names = registered(tf1_python) | registered(tf2_python)
    uncounted = {name for name in names if formula(name, DEFAULT) is None}
    listed = with_reason()
    assert len(listed) == len(set(listed)), "no op has two reasons"
    assert uncounted - set(listed) == set(), "count them, or say why not"
    assert set(listed) - uncounted == set(), "these are counted, or gone"


def test_what_is_rewritten_is_counted_but_for_what_computes_nothing(tf1_python: Path, tf2_python: Path) -> None:
    made = {name for python in (tf1_python, tf2_python) for name in registered(python) if name.startswith(MADE)}
    assert {name for name in made if formula(name, DEFAULT) is None} == {
        *("_MklConcat", "_MklConcatV2", "_MklConjugateTranspose", "_MklTranspose"),
        *("_MklDequantize", "_MklQuantizeV2", "_MklQuantizedConcatV2"),
        "_MklNativeSparseMatrixMatMul",  # how many values are not zero is not known
    }
